//! A webhook server on loopback, with a certificate of its own. The rig tier uses it, too.

#![allow(clippy::needless_pass_by_value, reason = "tests write values in place")]
#![allow(dead_code, reason = "two test programs use parts of it")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// How a webhook answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A review with this response; the uid is that of the question, unless it is given.
    Answer(Value),
    /// A status, a content type, and any bytes.
    Bytes(u16, &'static str, Vec<u8>),
    /// Nothing, ever.
    Hang,
    /// The connection is closed.
    Close,
}

/// A webhook server, until it is dropped.
pub(crate) struct HookServer {
    pub(crate) address: SocketAddr,
    authority: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    task: tokio::task::JoinHandle<()>,
}

// === impl Reply ===

impl Reply {
    pub(crate) fn answer(response: Value) -> Self {
        Self::Answer(response)
    }

    pub(crate) fn allow() -> Self {
        Self::Answer(json!({"allowed": true}))
    }

    pub(crate) fn deny(message: &str) -> Self {
        Self::Answer(json!({"allowed": false, "status": {"message": message}}))
    }

    pub(crate) fn patch(operations: &Value) -> Self {
        let patch = STANDARD.encode(operations.to_string());
        Self::Answer(json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"}))
    }

    pub(crate) fn text(code: u16, text: &str) -> Self {
        Self::Bytes(code, "text/plain", text.as_bytes().to_vec())
    }

    async fn respond(self, review: &Value) -> Option<Response<Full<Bytes>>> {
        let (code, kind, body) = match self {
            Self::Answer(mut response) => {
                if response["uid"].is_null() {
                    response["uid"] = review["request"]["uid"].clone();
                }
                let version = &review["apiVersion"];
                let answer = json!({"apiVersion": version, "kind": review["kind"], "response": response});
                (200, "application/json", answer.to_string().into_bytes())
            }
            Self::Bytes(code, kind, body) => (code, kind, body),
            Self::Hang => std::future::pending().await,
            Self::Close => return None,
        };
        let response = Response::builder().status(code).header("content-type", kind);
        Some(response.body(Full::new(Bytes::from(body))).unwrap())
    }
}

/// Returns the bundle of an authority that has signed nothing.
pub(crate) fn authority_of_nobody() -> String {
    let certificate = rcgen::generate_simple_self_signed(vec!["nobody".to_owned()]).unwrap();
    STANDARD.encode(certificate.cert.pem())
}

/// Starts a webhook server that answers so.
pub(crate) async fn serve(answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> HookServer {
    let names = ["127.0.0.1", "hook.default.svc"].map(str::to_owned).to_vec();
    let certificate = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let answer = Arc::new(answer);
    let heard = Arc::clone(&asked);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            let answer = Arc::clone(&answer);
            let heard = Arc::clone(&heard);
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = Arc::clone(&answer);
                    let heard = Arc::clone(&heard);
                    async move {
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        let review: Value = serde_json::from_slice(&body).unwrap();
                        heard.lock().unwrap().push((path.clone(), review.clone()));
                        let reply = answer(&path, &review);
                        reply.respond(&review).await.ok_or_else(|| std::io::Error::other("closed"))
                    }
                });
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    HookServer { address, authority: STANDARD.encode(certificate.cert.pem()), asked, task }
}

/// Asks the API server, and returns the whole response.
pub(crate) async fn raw(
    api: &ApiServer,
    method: &str,
    path: &str,
    body: &Value,
) -> Response<steersman_apiserver::Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let answered: Result<_, Infallible> = api.clone().oneshot(request).await;
    answered.unwrap()
}

// === impl HookServer ===

impl HookServer {
    /// Returns a webhook of a configuration: about ConfigMaps, unless these fields say otherwise.
    pub(crate) fn webhook(&self, fields: Value) -> Value {
        let rule = json!({
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        });
        let mut webhook = json!({
            "name": "a.example.dev", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://{}", self.address)},
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            match field.as_str() {
                "path" => {
                    let url = format!("https://{}{}", self.address, value.as_str().unwrap());
                    webhook["clientConfig"]["url"] = url.into();
                }
                field => webhook[field] = value.clone(),
            }
        }
        if webhook["clientConfig"]["caBundle"].is_null() {
            webhook["clientConfig"]["caBundle"] = self.authority.clone().into();
        }
        webhook
    }

    /// Returns the reviews that it was asked for.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().iter().map(|(_, review)| review.clone()).collect()
    }

    /// Returns the paths that it was asked at.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

impl Drop for HookServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
