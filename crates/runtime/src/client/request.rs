//! Pure: the requests of a client.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::{Method, Request, header};
use steersman_base::Resource;

use super::ClientError;
use crate::connection::exchange::{JSON, encode};

/// The field manager of a server-side apply, and whether it takes over fields of others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct FieldManager {
    name: Cow<'static, str>,
    force: bool,
}

/// The server's treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// The server drops them.
    Ignore,
    /// The server drops them and returns a warning; upstream's default.
    Warn,
    /// The server refuses the request.
    Strict,
}

/// One request.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) verb: &'static str,
    pub(super) method: Method,
    pub(super) resource: &'a Resource,
    pub(super) namespace: &'a str,
    /// `None` for a collection.
    pub(super) name: Option<&'a str>,
    pub(super) subresource: Option<&'a str>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) accept: &'static str,
    pub(super) content: &'static str,
    pub(super) body: Vec<u8>,
}

// === impl FieldManager ===

impl FieldManager {
    /// Creates a field manager with this name.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), force: false }
    }

    /// Takes over fields of other managers, as controllers should.
    pub fn force(self) -> Self {
        Self { force: true, ..self }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether fields of other managers are taken over.
    #[must_use]
    pub(crate) fn is_forced(&self) -> bool {
        self.force
    }
}

// === impl FieldValidation ===

impl FieldValidation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

// === impl Call ===

impl<'a> Call<'a> {
    /// A request for one object, or for a collection if there is no name.
    pub(super) fn new(
        verb: &'static str,
        method: Method,
        resource: &'a Resource,
        namespace: &'a str,
        name: Option<&'a str>,
    ) -> Self {
        let subresource = None;
        let query = Vec::new();
        let body = Vec::new();
        Self { verb, method, resource, namespace, name, subresource, query, accept: JSON, content: JSON, body }
    }

    /// Describes the operation.
    pub(super) fn what(&self) -> String {
        let mut what = format!("{} {}", self.verb, self.resource);
        if let Some(subresource) = self.subresource {
            let _ = write!(what, "/{subresource}");
        }
        match (self.namespace, self.name) {
            ("", None) => {}
            ("", Some(name)) => what.extend([" ", name]),
            (namespace, None) => what.extend([" in ", namespace]),
            (namespace, Some(name)) => what.extend([" ", namespace, "/", name]),
        }
        what
    }

    /// Builds the request.
    ///
    /// # Errors
    /// A name is not a valid path segment: the request would reach something else.
    pub(super) fn request(self) -> Result<Request<Vec<u8>>, ClientError> {
        let bad = |problem: String| ClientError::BadRequest { what: self.what(), problem };
        for part in [Some(self.namespace).filter(|part| !part.is_empty()), self.name].into_iter().flatten() {
            segment(part).map_err(bad)?;
        }
        let mut url = self.resource.collection_path(Some(self.namespace));
        for part in [self.name, self.subresource].into_iter().flatten() {
            url.extend(["/", part]);
        }
        for (at, (name, value)) in self.query.iter().enumerate() {
            url.push(if at == 0 { '?' } else { '&' });
            url.extend([name, "="]);
            encode(&mut url, value);
        }
        let what = self.what();
        let mut request = Request::builder().method(self.method).uri(url).header(header::ACCEPT, self.accept);
        if !self.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, self.content);
        }
        request.body(self.body).map_err(|problem| ClientError::BadRequest { what, problem: problem.to_string() })
    }
}

/// Upstream's rule for path segments.
fn segment(part: &str) -> Result<(), String> {
    match part {
        "" => Err("the name is empty".into()),
        "." | ".." => Err(format!("{part:?} is no name")),
        _ if part.contains(['/', '%']) => Err(format!("the name {part:?} contains '/' or '%'")),
        _ if part.contains(['?', '#']) || !part.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(format!("the name {part:?} cannot stand in a path"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

    #[test]
    fn what_is_wanted_becomes_a_request() {
        let pods = PODS;
        let mut call = Call::new("update", Method::PUT, &pods, "default", Some("web"));
        call.subresource = Some("status");
        call.query = vec![("fieldManager", "a b".into()), ("dryRun", "All".into())];
        assert_eq!(call.what(), "update pods/status default/web");
        let request = call.request().unwrap();
        assert_eq!(request.uri(), "/api/v1/namespaces/default/pods/web/status?fieldManager=a%20b&dryRun=All");

        let call = Call::new("list", Method::GET, &pods, "default", None);
        assert_eq!(call.what(), "list pods in default");
        assert_eq!(call.request().unwrap().uri(), "/api/v1/namespaces/default/pods");
    }

    #[test]
    fn a_name_never_reaches_another_path() {
        for name in ["", ".", "..", "a/b", "a%2Fb", "a?b", "a#b", "a b", "ä"] {
            let error = Call::new("get", Method::GET, &PODS, "default", Some(name)).request().unwrap_err();
            assert!(matches!(error, ClientError::BadRequest { .. }), "{name}: {error}");
        }
        for name in ["web", "system:node:n1", "a.b-c"] {
            assert!(Call::new("get", Method::GET, &PODS, "", Some(name)).request().is_ok(), "{name}");
        }
    }
}
