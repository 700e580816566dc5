//! Requests to aggregated groups.

use http::request::Parts;
use http::{Method, Response};

use super::Body;
use super::path::{ResourcePath, Target};
use super::respond::Responder;
use crate::aggregated::{self, Aggregated};
use crate::auth::User;
use crate::registry::Registry;
use crate::status::Status;

/// Responds to a request, if its group is an aggregated one.
pub(super) fn answer(
    registry: &Registry,
    source: &dyn Aggregated,
    parts: &Parts,
    responder: &Responder<'_>,
    target: &Target,
    user: &User,
) -> Result<Option<Response<Body>>, Status> {
    let document = match target {
        Target::Group(group) => aggregated::group(source, group),
        Target::Version(group, version) => aggregated::resources(source, group, version),
        Target::Resource(path) => return resource(registry, source, parts, responder, path, user),
        Target::CoreVersions | Target::Groups | Target::Other(_) => None,
    };
    Ok(document.map(|document| responder.json(200, &document)))
}

fn resource(
    registry: &Registry,
    source: &dyn Aggregated,
    parts: &Parts,
    responder: &Responder<'_>,
    path: &ResourcePath,
    user: &User,
) -> Result<Option<Response<Body>>, Status> {
    let mut served = registry.aggregated_versions.iter();
    if !served.any(|(group, version)| *group == path.group && *version == path.version) {
        return Ok(None);
    }
    let is_named = !path.name.is_empty();
    let verb = match parts.method {
        Method::GET | Method::HEAD if is_named => "get",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        _ if is_named => "delete",
        _ => "deletecollection",
    };
    registry.authorize(user, &path.attributes(verb))?;
    if !matches!(verb, "get" | "list") {
        return Err(Status::method_not_allowed());
    }
    let (code, body) = source.get(parts.uri.path(), parts.uri.query().unwrap_or_default());
    Ok(Some(responder.json(code, &body)))
}
