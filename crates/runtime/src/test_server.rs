//! A server of a few lines, for tests of what is asked and how answers are taken.

use std::sync::Arc;

use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;

/// Answers every request with one status and body, and records what was asked.
#[derive(Clone, Default)]
pub(crate) struct TestServer {
    answer: Arc<Mutex<(u16, String)>>,
    requests: Arc<Mutex<Vec<String>>>,
    /// The requests with bodies.
    bodies: Arc<Mutex<Vec<(String, Value)>>>,
}

// === impl TestServer ===

impl TestServer {
    /// A server that answers so.
    pub(crate) fn answering(code: u16, body: &Value) -> Self {
        let server = Self::default();
        server.answer(code, body);
        server
    }

    /// The answer to requests from now on.
    pub(crate) fn answer(&self, code: u16, body: &Value) {
        self.answer_text(code, &body.to_string());
    }

    /// As [`answer`](Self::answer), with a body that need not be JSON.
    pub(crate) fn answer_text(&self, code: u16, body: &str) {
        *self.answer.lock() = (code, body.to_owned());
    }

    /// Returns the requests since the last call, such as `POST /api/v1/namespaces/ns/pods`.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock())
    }

    /// Returns the requests with JSON bodies since the last call.
    pub(crate) fn bodies(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.bodies.lock())
    }

    pub(crate) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            server.requests.lock().push(format!("{} {path}", request.method()));
            let (code, body) = server.answer.lock().clone();
            let is_watch = request.method() == Method::GET && request.uri().query().unwrap_or("").contains("watch=");
            let body = if is_watch { String::new() } else { body };
            let answer = Response::builder().status(code).header("content-type", "application/json");
            let answer = answer.body(Body::from(body.into_bytes()));
            let asked = format!("{} {path}", request.method());
            let bodies = Arc::clone(&server.bodies);
            async move {
                let sent = request.into_body().collect_bytes().await.unwrap_or_default();
                if let Ok(sent) = serde_json::from_slice(&sent) {
                    bodies.lock().push((asked, sent));
                }
                answer
            }
        });
        kube::Client::new(service, "default")
    }
}
