//! Requests: paths, queries and the `Accept` header.
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
    /// The maximum items of one page; `None` requests all at once.
    pub limit: Option<u32>,
    /// The token of the page before; empty for the first.
    pub continue_token: &'a str,
}

/// A watch, with bookmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchQuery<'a> {
    /// The version to continue from; `None` requests a streaming list: the current state first, consistent, then a
    /// bookmark that ends it.
    pub from: Option<&'a ResourceVersion>,
    /// The time after which the server ends it.
    pub timeout_seconds: u32,
}

/// The accepted encodings, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    projection: Projection,
    protobuf: bool,
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";
const AS_METADATA: &str = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const AS_METADATA_LIST: &str = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Builds the request for one page of a list.
///
/// # Errors
/// The namespace does not fit into a URL.
pub fn list_request(target: &Target, query: ListQuery<'_>, accept: Accept) -> Result<Request<()>, http::Error> {
    let mut url = Url::of(target);
    if let Some(limit) = query.limit {
        url.add("limit", &limit.to_string());
    }
    url.add("continue", query.continue_token);
    request(&url, &accept.header(AS_METADATA_LIST))
}

/// Builds the request for a watch.
///
/// # Errors
/// The namespace does not fit into a URL.
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

/// Builds a GET. 1.37 compresses even watches if allowed: bytes then wait in the compressor, and it costs both sides
/// CPU.
fn request(url: &Url, accept: &str) -> Result<Request<()>, http::Error> {
    Request::get(&url.text).header(ACCEPT, accept).header(ACCEPT_ENCODING, "identity").body(())
}

// === impl Accept ===

impl Accept {
    /// Returns the encodings that a view can read.
    #[must_use]
    pub fn of<V: View>() -> Self {
        Self { projection: V::PROJECTION, protobuf: V::PROTOBUF }
    }

    /// Accepts metadata alone, to learn only that something exists.
    #[must_use]
    pub(super) const fn metadata() -> Self {
        Self { projection: Projection::Metadata, protobuf: true }
    }

    /// Returns the fallback for a server without these encodings (406, 415): plain JSON. `None` if that was all.
    #[must_use]
    pub fn fall_back(self) -> Option<Self> {
        let plain = Self { projection: Projection::Whole, protobuf: false };
        (self != plain).then_some(plain)
    }

    /// Returns the same in JSON, for a server whose protobuf cannot be decoded. `None` if it is JSON already.
    #[must_use]
    pub fn without_protobuf(self) -> Option<Self> {
        self.protobuf.then_some(Self { protobuf: false, ..self })
    }

    /// Plain JSON ends every list: any server has it, and metadata can be read from whole objects.
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
        let selection = &target.selection;
        let path = target.resource.collection_path(selection.namespace.as_deref());
        let mut url = Self { text: path, separator: '?' };
        url.add("labelSelector", selection.labels.as_deref().unwrap_or_default());
        url.add("fieldSelector", selection.fields.as_deref().unwrap_or_default());
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
    use crate::target::Selection;
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
        target.selection =
            Selection::namespace("kube-system").with_labels("app in (a,b)").with_fields("metadata.name=x");
        assert_eq!(
            list_request(&target, ListQuery::default(), JSON_ONLY).unwrap().uri(),
            "/api/v1/namespaces/kube-system/pods?labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=metadata.name%3Dx"
        );
        target.selection = Selection::namespace("no such\nplace");
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
