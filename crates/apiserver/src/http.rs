//! The server as a [`tower::Service`]: requests in, responses out, in process or behind a listener.
//!
//! 1. Every request except health checks is authenticated, or it is 401.
//! 2. A body of more than [`BODY_BYTES_MAX`] is refused unread; a malformed one is refused in upstream's words. The body of a
//!    watch or a followed log, which may last for ever, is not read at all.
//! 3. A handler that panics gives a 500; it has written nothing, because the write is the last step.
//! 4. Requests are bounded in number, time and threads: see [`limits`].

mod aggregated;
mod body;
pub(crate) mod limits;
pub(crate) mod negotiate;
pub(crate) mod order;
mod path;
mod resource;
mod respond;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use http::header::{AUTHORIZATION, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};

pub use body::Body;
use limits::{Class, HeavyWork};
use path::Target;
use respond::Responder;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::auth::impersonate::impersonate;
use crate::auth::{Authenticated, Credentials, User};
use crate::openapi::Name;
use crate::registry::admission::webhook::Session;
use crate::registry::query::Query;
use crate::server::ApiServer;
use crate::status::Status;
use crate::{discovery, health, webhook};

/// The largest body that is read.
pub(crate) const BODY_BYTES_MAX: usize = 3 << 20;

/// Any error, as upstream of a service names it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The user of the client's certificate, and none if it names nobody: read once for a connection, and put among the extensions of
/// its requests by the listener.
#[derive(Clone, Debug)]
pub(crate) struct PeerCertificate(pub(crate) Option<Arc<User>>);

/// Marks a response whose request was authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known;

fn known(mut response: Response<Body>) -> Response<Body> {
    response.extensions_mut().insert(Known);
    response
}

/// The user of a request without credentials.
#[derive(Clone, Debug)]
pub(crate) enum Sender {
    /// The administrator: for requests within the process.
    Local(Arc<User>),
    /// Anonymous.
    Remote,
}

/// The target of a request, and its user.
struct Asked {
    target: Target,
    query: Query,
    user: User,
}

/// The user of a request, and the calls of webhooks for it.
struct Caller {
    user: User,
    /// Absent if no webhook is concerned.
    session: Option<Arc<Session>>,
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let parts = Arc::new(parts);
            let answered = std::panic::AssertUnwindSafe(server.answer(&parts, body)).catch_unwind().await;
            let response = answered.unwrap_or_else(|_| {
                tracing::error!(method = %parts.method, path = parts.uri.path(), "a request handler panicked");
                Responder::new(&parts).status(&Status::internal("the handler of this request panicked"))
            });
            Ok(if parts.method == Method::HEAD { without_body(response) } else { response })
        })
    }
}

/// Returns the answer to a HEAD: the headers of the answer to a GET. HTTP/2 clients take a body for a broken connection.
fn without_body(response: Response<Body>) -> Response<Body> {
    let length = http_body::Body::size_hint(response.body()).exact();
    let mut response = response.map(|_| Body::default());
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

/// Returns a body that is wanted, or nothing.
async fn read<B>(body: Option<B>) -> Result<Bytes, Status>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Some(body) = body else { return Ok(Bytes::new()) };
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(BODY_BYTES_MAX)),
        Err(error) => Err(Status::bad_request(format!("error reading the body: {error}"))),
    }
}

impl ApiServer {
    async fn answer<B>(&self, parts: &Arc<Parts>, body: B) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.registry.catch_up();
        let responder = Responder::new(parts);
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        if let Some(answer) = health::answer(parts.uri.path(), &query) {
            return responder.text(answer.0, &answer.1);
        }
        let Some(Authenticated { user, warning }) = self.authenticate(parts) else {
            return responder.status(&Status::unauthorized());
        };
        let mut response = self.answer_to(parts, query, user, body).await;
        respond::warn(&mut response, warning);
        response
    }

    /// Answers an authenticated user.
    async fn answer_to<B>(&self, parts: &Arc<Parts>, query: Query, user: User, body: B) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let responder = Responder::new(parts);
        let target = path::parse(parts.uri.path());
        let user = match impersonate(&self.registry, user, &parts.headers, || self.asked(parts, &target, &query)) {
            Ok(user) => user,
            Err(status) => return responder.status(&status),
        };
        let class = Class::of(parts, &target, &query);
        let place = match &self.sender {
            Sender::Remote if class != Class::LongRunning => match self.limits.admit(class) {
                None => return known(responder.status(&Status::too_many_requests())),
                place => place,
            },
            _ => None,
        };
        let body = (class != Class::LongRunning).then_some(body);
        let asked = Asked { target, query, user };
        let work = self.work(parts, asked, body, place);
        if class == Class::LongRunning {
            return known(work.await);
        }
        known(match tokio::time::timeout(self.limits.timeout, work).await {
            Ok(response) => response,
            Err(_) => responder.status(&Status::timeout()),
        })
    }

    /// Reads the body, if it is wanted, and handles the request.
    async fn work<B>(
        &self,
        parts: &Arc<Parts>,
        asked: Asked,
        body: Option<B>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let responder = Responder::new(parts);
        let body = match read(body).await {
            Ok(body) => body,
            Err(status) => return responder.status(&status),
        };
        // Calls end when this future does: when the client has disconnected, or the time is over.
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let is_write = !matches!(parts.method, Method::GET | Method::HEAD);
        let session = self.registry.session(is_write, limits::is_converted(&self.registry, &asked.target), ended);
        let is_heavy =
            || self.heavy_work != HeavyWork::Inline && limits::is_heavy(&self.registry, parts, &asked.target, &body);
        let permit = match &session {
            Some(_) => self.limits.caller().await,
            None if is_heavy() => self.limits.heavy().await,
            None => return self.routed(parts, asked, &body, None),
        };
        let server = self.clone();
        let parts = Arc::clone(parts);
        let span = tracing::Span::current();
        let work = move || {
            // The permits are held until the work is done, even if the client has disconnected.
            let line = session.as_ref().map(|session| Arc::clone(&session.line));
            let routed = || span.in_scope(|| server.routed(&parts, asked, &body, session));
            let response = match line {
                Some(line) => webhook::on_line(line, routed),
                None => routed(),
            };
            drop((permit, place));
            response
        };
        let done = tokio::task::spawn_blocking(work).await;
        drop(guard);
        match done {
            Ok(response) => response,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => responder.status(&Status::internal("the server is stopping")),
            },
        }
    }

    fn routed(&self, parts: &Parts, asked: Asked, body: &Bytes, session: Option<Arc<Session>>) -> Response<Body> {
        let responder = Responder::new(parts);
        match self.route(parts, &responder, asked, body, session) {
            Ok(response) => response,
            Err(status) => responder.status(&status),
        }
    }

    fn authenticate(&self, parts: &Parts) -> Option<Authenticated> {
        let header = parts.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
        // Any other scheme is anonymous: it must not fall through to the administrator.
        let bearer = header.map(|header| match header.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            _ => "",
        });
        let certificate = parts.extensions.get::<PeerCertificate>();
        if bearer.is_none() && certificate.is_none() {
            return match &self.sender {
                Sender::Local(user) => Some(User::clone(user).into()),
                Sender::Remote => None,
            };
        }
        let named = certificate.and_then(|certificate| certificate.0.as_deref());
        self.registry.auth.authenticate(&self.registry, Credentials { bearer, named })
    }

    fn route(
        &self,
        parts: &Parts,
        responder: &Responder<'_>,
        asked: Asked,
        body: &Bytes,
        session: Option<Arc<Session>>,
    ) -> Result<Response<Body>, Status> {
        let Asked { target, query, user } = asked;
        let registry = &*self.registry;
        let wants_aggregated = negotiate::wants_aggregated(&parts.headers);
        if !matches!(target, Target::Resource(_)) {
            registry.authorize(&user, &self.asked(parts, &target, &query))?;
        }
        if let Some(source) = &registry.aggregated
            && let Some(response) = aggregated::answer(registry, &**source, parts, responder, &target, &user)?
        {
            return Ok(response);
        }
        let is_read_only = match &target {
            Target::Other(segments) => *segments == ["version"],
            Target::Resource(_) => false,
            _ => true,
        };
        if is_read_only && parts.method != Method::GET {
            return Err(Status::method_not_allowed());
        }
        match target {
            Target::CoreVersions if wants_aggregated => {
                Ok(responder.aggregated(&discovery::aggregated(registry, true)))
            }
            Target::CoreVersions => Ok(responder.json(200, &discovery::core_versions())),
            Target::Groups if wants_aggregated => Ok(responder.aggregated(&discovery::aggregated(registry, false))),
            Target::Groups => Ok(responder.json(200, &discovery::groups(registry))),
            Target::Group(group) => match discovery::group(registry, &group) {
                Some(document) => Ok(responder.json(200, &document)),
                None => Ok(responder.page_not_found()),
            },
            Target::Version(group, version) => match discovery::resources(registry, &group, &version) {
                Some(document) => Ok(responder.json(200, &document)),
                None if registry.has_group(&group, None) => Err(Status::no_resource()),
                None => Ok(responder.page_not_found()),
            },
            Target::Resource(path) => {
                if !registry.has_group(&path.group, None) {
                    self.authorize_unknown(parts, &path, &query, &user)?;
                    return Ok(responder.page_not_found());
                }
                self.resource(parts, responder, path, query, Caller { user, session }, body)
            }
            Target::Other(segments) => Ok(self.other(&parts.headers, responder, &segments)),
        }
    }

    fn other(&self, headers: &HeaderMap, responder: &Responder<'_>, segments: &[String]) -> Response<Body> {
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => responder.json(200, &discovery::paths(&self.registry)),
            ["version"] => responder.json(200, &discovery::version()),
            ["metrics"] => responder.text(200, &health::metrics(&self.registry)),
            ["openid", "v1", "jwks"] => responder.json(200, &self.registry.auth.jwks()),
            [".well-known", "openid-configuration"] => responder.json(200, &discovery::openid()),
            ["openapi", "v2"] => match negotiate::wants_openapi_protobuf(headers) {
                Some(true) => self.document(responder, &Name::V2Protobuf),
                Some(false) => self.document(responder, &Name::V2),
                None => responder.nothing(406),
            },
            ["openapi", "v3"] => self.document(responder, &Name::V3Index),
            ["openapi", "v3", rest @ ..] => self.document(responder, &Name::V3(rest.join("/"))),
            _ => responder.page_not_found(),
        }
    }

    fn document(&self, responder: &Responder<'_>, name: &Name) -> Response<Body> {
        match self.registry.documents.get(name, &self.registry.custom_rows()) {
            Some(document) => responder.document(name, &document),
            None => responder.nothing(404),
        }
    }
}
