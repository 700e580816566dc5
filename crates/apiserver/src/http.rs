//! The server as a [`tower::Service`]: requests in, responses out, in process or behind a listener.
//!
//! 1. Every request except health checks is authenticated, or it is 401.
//! 2. A body of more than [`BODY_BYTES_MAX`] is refused unread; a malformed one is refused in upstream's words.
//! 3. A handler that panics gives a 500; it has written nothing, because the write is the last step.
//! 4. Requests are bounded in number, time and threads: see [`limits`].

mod aggregated;
mod body;
pub mod limits;
pub(crate) mod negotiate;
pub(crate) mod order;
mod path;
mod respond;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use steersman_base::FieldSelector;
use steersman_base::validation::path_segment;
use steersman_structured_merge::manager_name;

pub use body::Body;
use limits::{Class, HeavyWork};
use negotiate::Shape;
use path::{ResourcePath, Target};
use respond::Responder;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::auth::impersonate::impersonate;
use crate::auth::rbac::Attributes;
use crate::auth::{Credentials, User};
use crate::decode::ContentType;
use crate::openapi::Name;
use crate::registry::admission::webhook::Session;
use crate::registry::delete::DeleteOptions;
use crate::registry::query::{Query, WriteOptions};
use crate::registry::subresource::Input;
use crate::registry::write::Part;
use crate::registry::{Answer, Call, Content, Registry, Row, Verb};
use crate::server::ApiServer;
use crate::status::Status;
use crate::table::IncludeObject;
use crate::watch::Watch;
use crate::{discovery, health, webhook};

/// The largest body that is read.
pub const BODY_BYTES_MAX: usize = 3 << 20;

/// Any error, as upstream of a service names it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The certificate of the client, as DER: the listener puts it among the request's extensions.
#[derive(Clone, Debug)]
pub(crate) struct PeerCertificate(pub(crate) Bytes);

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
            Ok(answered.unwrap_or_else(|_| {
                tracing::error!(method = %parts.method, path = parts.uri.path(), "a request handler panicked");
                Responder::new(&parts).status(&Status::internal("the handler of this request panicked"))
            }))
        })
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
        let Some(user) = self.authenticate(parts) else {
            return responder.status(&Status::unauthorized());
        };
        let user = match impersonate(&self.registry, user, &parts.headers) {
            Ok(user) => user,
            Err(status) => return responder.status(&status),
        };
        let class = Class::of(parts, &query);
        let place = match &self.sender {
            Sender::Remote if class != Class::LongRunning => match self.limits.admit(class) {
                None => return known(responder.status(&Status::too_many_requests())),
                place => place,
            },
            _ => None,
        };
        let work = self.work(parts, query, user, body, place);
        if class == Class::LongRunning {
            return known(work.await);
        }
        known(match tokio::time::timeout(self.limits.timeout, work).await {
            Ok(response) => response,
            Err(_) => responder.status(&Status::timeout()),
        })
    }

    /// Reads the body and handles the request.
    async fn work<B>(
        &self,
        parts: &Arc<Parts>,
        query: Query,
        user: User,
        body: B,
        place: Option<OwnedSemaphorePermit>,
    ) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let responder = Responder::new(parts);
        let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return responder.status(&Status::too_large(BODY_BYTES_MAX));
            }
            Err(error) => return responder.status(&Status::bad_request(format!("error reading the body: {error}"))),
        };
        // Calls end when this future does: when the client has disconnected, or the time is over.
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let is_write = !matches!(parts.method, Method::GET | Method::HEAD);
        let session = self.registry.session(is_write, limits::is_converted(&self.registry, parts), ended);
        let is_heavy = || self.heavy_work != HeavyWork::Inline && limits::is_heavy(&self.registry, parts, &body);
        let permit = match &session {
            Some(_) => self.limits.caller().await,
            None if is_heavy() => self.limits.heavy().await,
            None => return self.routed(parts, query, user, &body, None),
        };
        let server = self.clone();
        let parts = Arc::clone(parts);
        let span = tracing::Span::current();
        let work = move || {
            // The permits are held until the work is done, even if the client has disconnected.
            let line = session.as_ref().map(|session| Arc::clone(&session.line));
            let routed = || span.in_scope(|| server.routed(&parts, query, user, &body, session));
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

    fn routed(
        &self,
        parts: &Parts,
        query: Query,
        user: User,
        body: &Bytes,
        session: Option<Arc<Session>>,
    ) -> Response<Body> {
        let responder = Responder::new(parts);
        match self.route(parts, &responder, query, user, body, session) {
            Ok(response) => response,
            Err(status) => responder.status(&status),
        }
    }

    fn authenticate(&self, parts: &Parts) -> Option<User> {
        let header = parts.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
        // Any other scheme is anonymous: it must not fall through to the administrator.
        let bearer = header.map(|header| match header.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            _ => "",
        });
        let certificate = parts.extensions.get::<PeerCertificate>().map(|certificate| &*certificate.0);
        if bearer.is_none() && certificate.is_none() {
            return match &self.sender {
                Sender::Local(user) => Some(User::clone(user)),
                Sender::Remote => None,
            };
        }
        self.registry.auth.authenticate(&self.registry, Credentials { bearer, certificate })
    }

    fn route(
        &self,
        parts: &Parts,
        responder: &Responder<'_>,
        query: Query,
        user: User,
        body: &Bytes,
        session: Option<Arc<Session>>,
    ) -> Result<Response<Body>, Status> {
        let registry = &*self.registry;
        let wants_aggregated = negotiate::wants_aggregated(&parts.headers);
        let target = path::parse(parts.uri.path());
        if !matches!(target, Target::Resource(_)) {
            let verb = parts.method.as_str().to_ascii_lowercase();
            let path = Some(parts.uri.path().to_owned());
            registry.authorize(&user, &Attributes { verb, path, ..Attributes::default() })?;
        }
        if let Some(source) = &registry.aggregated
            && let Some(response) = aggregated::answer(registry, &**source, parts, responder, &target, &user)?
        {
            return Ok(response);
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

    fn resource(
        &self,
        parts: &Parts,
        responder: &Responder<'_>,
        path: ResourcePath,
        query: Query,
        Caller { user, session }: Caller,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let registry = &*self.registry;
        let row = registry.row(&path.group, &path.version, &path.plural).ok_or_else(Status::no_resource)?;
        if !path.namespace.is_empty() && !row.is_namespaced() || path.has_rest && path.subresource != "proxy" {
            return Err(Status::no_resource());
        }
        let accepted = negotiate::accepted(&parts.headers)?;
        let is_watch = path.is_watch || path.name.is_empty() && query.flag("watch");
        let verb = verb_of(&parts.method, &path, is_watch).ok_or_else(Status::method_not_allowed)?;
        registry.authorize(&user, &attributes(&row, &path, verb, &query))?;
        check_verb(&row, &path, verb)?;
        // The options of a deletion are its body's, if it has one.
        let options = match write_options_kind(verb) {
            Some(kind) => query.write_options(kind, verb == Verb::Patch && negotiate::is_apply(&parts.headers))?,
            None => WriteOptions::default(),
        };
        let user_agent = parts.headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let manager = manager_name(&options.field_manager, user_agent.as_deref().unwrap_or(self.agent));
        let mut call = Call {
            namespace: path.namespace,
            name: path.name,
            subresource: path.subresource,
            user,
            dry_run: options.dry_run,
            field_validation: options.field_validation,
            manager,
            force: options.force,
            query,
            row,
            session,
        };
        let include =
            if accepted.shape == Shape::Table { include_object(&call.query)? } else { IncludeObject::default() };
        if verb == Verb::Watch {
            return watch(registry, responder, &mut call, accepted, include);
        }
        let handled = handle(registry, parts, &call, verb, body);
        let of_webhooks = call.session.as_ref().map(|session| session.take_warnings());
        let of_webhooks = of_webhooks.unwrap_or_default();
        let of_row = call.row.warning().map(str::to_owned);
        let answer = match handled {
            Ok(mut answer) => {
                answer.warnings.splice(0..0, of_row);
                answer.warning(of_webhooks)
            }
            Err(mut status) => {
                let own = std::mem::take(&mut status.warnings);
                let warnings: Vec<String> = of_row.into_iter().chain(own).chain(of_webhooks).collect();
                return Ok(responder.refused(&status, &warnings));
            }
        };
        responder.answer(registry, &call.row, accepted, include, answer)
    }
}

fn handle(registry: &Registry, parts: &Parts, call: &Call, verb: Verb, body: &Bytes) -> Result<Answer, Status> {
    let is_custom = call.row.custom.is_some();
    let input = match verb {
        Verb::Create | Verb::Update => Input::Object(body, negotiate::content_type(&parts.headers, is_custom)?),
        Verb::Patch => negotiate::patch(&parts.headers, is_custom, body)?,
        _ => Input::None,
    };
    if !call.subresource.is_empty() {
        return registry.subresource(call, verb, &input);
    }
    match (verb, input) {
        (Verb::Get, _) => registry.get(call),
        (Verb::List, _) => {
            let options = call.query.list_options(false)?;
            registry.list(call, &options).map(|list| Answer::ok(Content::List(list)))
        }
        (Verb::Create, Input::Object(body, kind)) => match call.row.rules.create {
            Some(create) => create(registry, call, body, kind),
            None => registry.create(call, body, kind),
        },
        (Verb::Update, Input::Object(body, kind)) => registry.put(call, Part::Whole, body, kind),
        (Verb::Patch, Input::Patch(body, kind)) => registry.patch(call, Part::Whole, kind, body),
        (Verb::Patch, Input::Apply(body)) => registry.apply(call, Part::Whole, body),
        (Verb::Delete | Verb::DeleteCollection, _) => {
            let kind =
                if body.is_empty() { ContentType::Json } else { negotiate::content_type(&parts.headers, false)? };
            let options = DeleteOptions::read(&call.query, body, kind)?;
            if verb == Verb::Delete {
                registry.delete(call, &options)
            } else {
                registry.delete_collection(call, &options)
            }
        }
        _ => Err(Status::method_not_allowed()),
    }
}

fn watch(
    registry: &Registry,
    responder: &Responder<'_>,
    call: &mut Call,
    accepted: negotiate::Accepted,
    include: IncludeObject,
) -> Result<Response<Body>, Status> {
    let mut options = call.query.list_options(true)?;
    if !call.name.is_empty() {
        let term = FieldSelector::equals("metadata.name", &call.name).to_string();
        options.field_selector =
            [options.field_selector, term].into_iter().filter(|term| !term.is_empty()).collect::<Vec<_>>().join(",");
    }
    let watch = Watch::begin(registry, call, &options, accepted, include)?;
    Ok(responder.watch(call.row.warning(), watch.lines()))
}

fn verb_of(method: &Method, path: &ResourcePath, is_watch: bool) -> Option<Verb> {
    let is_named = !path.name.is_empty();
    match *method {
        Method::GET | Method::HEAD if is_watch => Some(Verb::Watch),
        Method::GET | Method::HEAD => Some(if is_named { Verb::Get } else { Verb::List }),
        Method::POST if !is_named || !path.subresource.is_empty() => Some(Verb::Create),
        Method::PUT if is_named => Some(Verb::Update),
        Method::PATCH if is_named => Some(Verb::Patch),
        Method::DELETE => Some(if is_named { Verb::Delete } else { Verb::DeleteCollection }),
        _ => None,
    }
}

/// Returns the attributes of a request, for the authorizer.
fn attributes(row: &Row, path: &ResourcePath, verb: Verb, query: &Query) -> Attributes {
    // A list or a watch of one name is authorized for that name: rules with `resourceNames` apply.
    let name = match verb {
        Verb::List | Verb::Watch if path.name.is_empty() => selected_name(query).unwrap_or_default(),
        _ => path.name.clone(),
    };
    Attributes {
        verb: verb.name().to_owned(),
        // A right to a namespace is a right within the namespace.
        namespace: if row.rules.strategy.is_namespace { path.name.clone() } else { path.namespace.clone() },
        group: row.resource.group.to_string(),
        resource: row.resource.plural.to_string(),
        subresource: path.subresource.clone(),
        name,
        path: None,
    }
}

/// Returns the only name that a field selector matches, if there is one.
fn selected_name(query: &Query) -> Option<String> {
    let selector: FieldSelector = query.get("fieldSelector").parse().ok()?;
    let name = selector.requires_exact_match("metadata.name")?.to_string();
    (!name.is_empty() && path_segment(&name).is_empty()).then_some(name)
}

fn check_verb(row: &Row, path: &ResourcePath, verb: Verb) -> Result<(), Status> {
    let verbs = if path.subresource.is_empty() {
        row.verbs
    } else {
        let missing = || match &row.custom {
            Some(_) => Status::not_found(row.target(), &path.name),
            None => Status::no_resource(),
        };
        row.subresource(&path.subresource).ok_or_else(missing)?.verbs
    };
    // A namespaced object is reached through its namespace; only lists cover all namespaces.
    let is_homeless = row.is_namespaced() && path.namespace.is_empty();
    if is_homeless && (!path.name.is_empty() && !path.is_watch) {
        return Err(Status::no_resource());
    }
    if is_homeless && matches!(verb, Verb::Create | Verb::DeleteCollection) || !verbs.has(verb) {
        return Err(Status::method_not_allowed());
    }
    Ok(())
}

/// What upstream calls the options of a write.
const fn write_options_kind(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::Create => Some("CreateOptions"),
        Verb::Update => Some("UpdateOptions"),
        Verb::Patch => Some("PatchOptions"),
        Verb::Delete | Verb::DeleteCollection | Verb::Get | Verb::List | Verb::Watch => None,
    }
}

fn include_object(query: &Query) -> Result<IncludeObject, Status> {
    match query.get("includeObject") {
        "" | "Metadata" => Ok(IncludeObject::Metadata),
        "None" => Ok(IncludeObject::None),
        "Object" => Ok(IncludeObject::Object),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', \
             'Object', 'None', or empty"
        ))),
    }
}
