//! What stands between one candidate and the server.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, pending};
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use parking_lot::Mutex;
use steersman_apiserver::ApiServer;
use steersman_apiserver::Body as Answer;
use tower::{BoxError, Service};

#[derive(Clone)]
pub(crate) struct Door {
    server: ApiServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    all: Option<Fate>,
    on: Option<(Method, Fate)>,
    no_watches: bool,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It gets this answer, and nothing else happens.
    Refuse(StatusCode),
    /// It is not sent, and no answer comes.
    Hang,
    /// It is executed, and no answer comes.
    HangAfter,
    /// It is not sent, and fails.
    Fail,
    /// It is executed, and fails.
    LoseReply,
}

impl Door {
    pub(crate) fn new(server: &ApiServer) -> Self {
        Self { server: server.clone(), state: Arc::default() }
    }

    pub(crate) fn refusing_watches(self) -> Self {
        self.state.lock().no_watches = true;
        self
    }

    /// From now on, this happens to every request.
    pub(crate) fn all(&self, fate: Fate) {
        self.state.lock().all = Some(fate);
    }

    /// This happens to the next request of this method.
    pub(crate) fn on(&self, method: Method, fate: Fate) {
        self.state.lock().on = Some((method, fate));
    }

    pub(crate) fn open(&self) {
        *self.state.lock() = State::default();
    }

    fn fate(&self, request: &Request<Body>) -> Option<Fate> {
        let mut state = self.state.lock();
        let is_collection = request.method() == Method::GET && request.uri().path().ends_with("/leases");
        if state.no_watches && is_collection {
            return Some(Fate::Refuse(StatusCode::FORBIDDEN));
        }
        match state.on.take() {
            Some((method, fate)) if method == request.method() => Some(fate),
            other => {
                state.on = other;
                state.all
            }
        }
    }
}

impl Service<Request<Body>> for Door {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answer>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let fate = self.fate(&request);
        let mut server = self.server.clone();
        Box::pin(async move {
            match fate {
                None => Ok(server.call(request).await?),
                Some(Fate::Refuse(code)) => {
                    let mut answer = Response::new(Answer::whole("{}".to_owned()));
                    *answer.status_mut() = code;
                    Ok(answer)
                }
                Some(Fate::Hang) => pending().await,
                Some(Fate::HangAfter) => {
                    let _ = server.call(request).await;
                    pending().await
                }
                Some(Fate::Fail) => Err("the request was lost, on purpose".into()),
                Some(Fate::LoseReply) => {
                    let _ = server.call(request).await;
                    Err("the reply was lost, on purpose".into())
                }
            }
        })
    }
}
