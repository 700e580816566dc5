//! What is asked: paths, queries and the `Accept` header.
//!
//! Pure: a target and a query in, a request out.

use std::fmt::Write as _;

use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use steersman_base::ResourceVersion;
use steersman_model::{Projection, View};

use crate::target::Target;

/// One page of a list, always consistent: `resourceVersion` is never set, and never `0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListQuery<'a> {
    /// The most items of one page; `None` asks for all at once.
    pub limit: Option<u32>,
    /// Where the page before ended; empty for the first.
    pub continue_token: &'a str,
}

/// A watch, with bookmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchQuery<'a> {
    /// Where to go on; `None` asks for a streaming list: the present state first, consistent, then a bookmark that says so.
    pub from: Option<&'a ResourceVersion>,
    /// When the server shall end it.
    pub timeout_seconds: u32,
}

/// What encodings a reader can take, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    projection: Projection,
    protobuf: bool,
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";
const AS_METADATA: &str = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const AS_METADATA_LIST: &str = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The request for one page of a list.
///
/// # Errors
/// The namespace cannot stand in a URL.
pub fn list_request(target: &Target, query: ListQuery<'_>, accept: Accept) -> Result<Request<()>, http::Error> {
    let mut url = Url::of(target);
    if let Some(limit) = query.limit {
        url.add("limit", &limit.to_string());
    }
    url.add("continue", query.continue_token);
    request(&url, &accept.header(AS_METADATA_LIST))
}

/// The request for a watch.
///
/// # Errors
/// The namespace cannot stand in a URL.
pub fn watch_request(target: &Target, query: WatchQuery<'_>, accept: Accept) -> Result<Request<()>, http::Error> {
    let mut url = Url::of(target);
    url.add("watch", "true");
    url.add("allowWatchBookmarks", "true");
    match query.from {
        Some(version) => url.add("resourceVersion", version.as_str()),
        None => {
            url.add("sendInitialEvents", "true");
            url.add("resourceVersionMatch", "NotOlderThan");
        }
    }
    url.add("timeoutSeconds", &query.timeout_seconds.to_string());
    request(&url, &accept.header(AS_METADATA))
}

/// A GET. 1.37 compresses even watches for who lets it: bytes then wait in the compressor, and it costs both sides CPU.
fn request(url: &Url, accept: &str) -> Result<Request<()>, http::Error> {
    Request::get(&url.text).header(ACCEPT, accept).header(ACCEPT_ENCODING, "identity").body(())
}

// === impl Accept ===

impl Accept {
    /// What a view can read.
    #[must_use]
    pub fn of<V: View>() -> Self {
        Self { projection: V::PROJECTION, protobuf: V::PROTOBUF }
    }

    /// Metadata alone, for who needs no more than that there is something.
    #[must_use]
    pub(super) const fn metadata() -> Self {
        Self { projection: Projection::Metadata, protobuf: true }
    }

    /// What is left when the server has nothing of it (406, 415): plain JSON. `None` if that was all.
    #[must_use]
    pub fn fall_back(self) -> Option<Self> {
        let plain = Self { projection: Projection::Whole, protobuf: false };
        (self != plain).then_some(plain)
    }

    /// The same in JSON, for a server whose protobuf cannot be read. `None` if it is JSON already.
    #[must_use]
    pub fn without_protobuf(self) -> Option<Self> {
        self.protobuf.then_some(Self { protobuf: false, ..self })
    }

    /// Plain JSON closes every list: any server has it, and metadata can be read from whole objects.
    fn header(self, as_metadata: &str) -> String {
        let part = match self.projection {
            Projection::Whole => "",
            Projection::Metadata => as_metadata,
        };
        let mut types = Vec::with_capacity(3);
        if self.protobuf {
            types.push(format!("{PROTOBUF}{part}"));
        }
        if !part.is_empty() {
            types.push(format!("{JSON}{part}"));
        }
        types.push(JSON.to_owned());
        types.join(", ")
    }
}

/// A path with a growing query.
struct Url {
    text: String,
    separator: char,
}

// === impl Url ===

impl Url {
    fn of(target: &Target) -> Self {
        let scope = &target.scope;
        let path = target.resource.collection_path(scope.namespace.as_deref());
        let mut url = Self { text: path, separator: '?' };
        url.add("labelSelector", scope.labels.as_deref().unwrap_or_default());
        url.add("fieldSelector", scope.fields.as_deref().unwrap_or_default());
        url
    }

    /// Adds a parameter, unless it is empty.
    fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.text.push(std::mem::replace(&mut self.separator, '&'));
        self.text.push_str(name);
        self.text.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                self.text.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(self.text, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Scope;
    use steersman_base::Resource;

    fn pods() -> Target {
        Target::all(Resource::namespaced("", "v1", "pods", "Pod"))
    }
    const JSON_ONLY: Accept = Accept { projection: Projection::Whole, protobuf: false };

    #[test]
    fn lists_are_consistent_and_never_ask_for_version_zero() {
        let url = |query| list_request(&pods(), query, JSON_ONLY).unwrap().uri().to_string();
        assert_eq!(url(ListQuery { limit: Some(500), continue_token: "" }), "/api/v1/pods?limit=500");
        assert_eq!(
            url(ListQuery { limit: Some(500), continue_token: "a b+/=" }),
            "/api/v1/pods?limit=500&continue=a%20b%2B%2F%3D"
        );
        assert_eq!(url(ListQuery::default()), "/api/v1/pods");
    }

    #[test]
    fn watches_resume_or_bring_the_state_first() {
        let url = |query| watch_request(&pods(), query, JSON_ONLY).unwrap().uri().to_string();
        let version = ResourceVersion::new("12");
        assert_eq!(
            url(WatchQuery { from: Some(&version), timeout_seconds: 300 }),
            "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=12&timeoutSeconds=300"
        );
        assert_eq!(
            url(WatchQuery { from: None, timeout_seconds: 300 }),
            "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300"
        );
    }

    #[test]
    fn a_scope_goes_into_path_and_query() {
        let mut target = pods();
        target.scope = Scope::namespace("kube-system").with_labels("app in (a,b)").with_fields("metadata.name=x");
        assert_eq!(
            list_request(&target, ListQuery::default(), JSON_ONLY).unwrap().uri(),
            "/api/v1/namespaces/kube-system/pods?labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=metadata.name%3Dx"
        );
        target.scope = Scope::namespace("no such\nplace");
        assert!(list_request(&target, ListQuery::default(), JSON_ONLY).is_err());
    }

    #[test]
    fn protobuf_is_asked_for_first_and_json_last() {
        let header = |projection, protobuf| Accept { projection, protobuf }.header(AS_METADATA);
        assert_eq!(header(Projection::Whole, false), "application/json");
        assert_eq!(header(Projection::Whole, true), "application/vnd.kubernetes.protobuf, application/json");
        assert_eq!(
            header(Projection::Metadata, true),
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, \
             application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
        );
    }

    #[test]
    fn compression_is_declined() {
        let request = list_request(&pods(), ListQuery::default(), JSON_ONLY).unwrap();
        assert_eq!(request.headers()[ACCEPT_ENCODING], "identity");
    }
}
