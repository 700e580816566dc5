//! Content negotiation of responses and bodies.
//!
//! The first supported clause of `Accept` wins. Objects are read as protobuf but not written as it, so a clause for it is skipped:
//! clients that request it also accept JSON.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;

use crate::decode::ContentType;
use crate::patch::PatchType;
use crate::registry::query::Query;
use crate::registry::subresource::Input;
use crate::status::Status;

/// The encoding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

/// The representation of an object or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The whole object.
    Full,
    /// A table, for people.
    Table,
    /// The metadata of an object, also for each object of a watch.
    Metadata,
    /// The metadata of each object of a list.
    MetadataList,
}

/// The formats that the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) encoding: Encoding,
    pub(crate) shape: Shape,
}

/// The document of OpenAPI version 2 as protobuf.
pub(crate) const OPENAPI_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Content types of creates and updates; the first two for custom resources.
const OBJECT_TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const APPLY_TYPE: &str = "application/apply-patch+yaml";
const CUSTOM_PATCH_TYPES: [&str; 3] = ["application/json-patch+json", "application/merge-patch+json", APPLY_TYPE];

/// Negotiates the response to a request.
pub(crate) fn accepted(headers: &HeaderMap) -> Result<Accepted, Status> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header.trim().is_empty() {
        return Ok(Accepted { encoding: Encoding::Json, shape: Shape::Full });
    }
    let refused = || match header.split(',').any(|clause| encoding_of(clause).is_some()) {
        // The encoding is supported, the representation is not.
        true => Status::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {}", OBJECT_TYPES.join(", ")),
        ),
        false => Status::not_acceptable(),
    };
    header.split(',').find_map(clause).ok_or_else(refused)
}

fn encoding_of(clause: &str) -> Option<Encoding> {
    match clause.split(';').next()?.trim() {
        "application/json" | "application/*" | "*/*" => Some(Encoding::Json),
        "application/yaml" => Some(Encoding::Yaml),
        _ => None,
    }
}

fn clause(clause: &str) -> Option<Accepted> {
    let encoding = encoding_of(clause)?;
    let parts = clause.split(';').skip(1).map(str::trim);
    let mut shape = Shape::Full;
    let mut group = "meta.k8s.io";
    let mut version = "v1";
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match (name, value) {
            ("as", "Table") => shape = Shape::Table,
            ("as", "PartialObjectMetadata") => shape = Shape::Metadata,
            ("as", "PartialObjectMetadataList") => shape = Shape::MetadataList,
            ("as", _) => return None,
            ("g", value) => group = value,
            ("v", value) => version = value,
            _ => {}
        }
    }
    let is_known = shape == Shape::Full || group == "meta.k8s.io" && matches!(version, "v1" | "v1beta1");
    is_known.then_some(Accepted { encoding, shape })
}

/// Whether answers are indented: if the query says so, or for browsers and curl, unless it says no.
pub(crate) fn wants_pretty(parts: &Parts) -> bool {
    let asked = parts.uri.query().filter(|query| query.contains("pretty")).map(Query::parse);
    match asked.as_ref().map(|query| query.get("pretty")).unwrap_or_default() {
        "" => {
            let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
        }
        // The words that Go takes for true.
        asked => matches!(asked, "1" | "t" | "T" | "TRUE" | "true" | "True"),
    }
}

/// Whether the document of OpenAPI version 2 is wanted as protobuf, or `None` if in no form that we have.
pub(crate) fn wants_openapi_protobuf(headers: &HeaderMap) -> Option<bool> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header.trim().is_empty() {
        return Some(false);
    }
    header.split(',').find_map(|clause| match clause.split(';').next().unwrap_or_default().trim() {
        "application/json" | "application/*" | "*/*" => Some(false),
        // The first is deprecated; Go's clients ask for it.
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" | OPENAPI_PROTOBUF => Some(true),
        _ => None,
    })
}

/// Whether the client requests aggregated discovery.
pub(crate) fn wants_aggregated(headers: &HeaderMap) -> bool {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = header.split(',').find(|clause| clause.trim().starts_with("application/json"));
    first.is_some_and(|clause| {
        let parts: Vec<_> = clause.split(';').map(str::trim).collect();
        ["as=APIGroupDiscoveryList", "g=apidiscovery.k8s.io", "v=v2"].iter().all(|part| parts.contains(part))
    })
}

fn media_type(headers: &HeaderMap) -> &str {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim()
}

/// Returns the encoding of a body. Custom resources have no protobuf.
pub(crate) fn content_type(headers: &HeaderMap, is_custom: bool) -> Result<ContentType, Status> {
    match media_type(headers) {
        "" | "application/json" => Ok(ContentType::Json),
        "application/yaml" => Ok(ContentType::Yaml),
        "application/vnd.kubernetes.protobuf" if !is_custom => Ok(ContentType::Protobuf),
        _ => Err(Status::unsupported_media_type(if is_custom { &OBJECT_TYPES[..2] } else { &OBJECT_TYPES })),
    }
}

/// Whether a patch is a server-side apply.
pub(crate) fn is_apply(headers: &HeaderMap) -> bool {
    media_type(headers) == APPLY_TYPE
}

/// Returns the body of a patch. Custom resources do not support strategic merge patches; CBOR is not supported, as it is not
/// upstream by default.
pub(crate) fn patch<'a>(headers: &HeaderMap, is_custom: bool, body: &'a [u8]) -> Result<Input<'a>, Status> {
    match media_type(headers) {
        APPLY_TYPE => Ok(Input::Apply(body)),
        "application/json-patch+json" => Ok(Input::Patch(body, PatchType::Json)),
        "application/merge-patch+json" => Ok(Input::Patch(body, PatchType::Merge)),
        "application/strategic-merge-patch+json" if !is_custom => Ok(Input::Patch(body, PatchType::Strategic)),
        "application/strategic-merge-patch+json" => Err(Status::unsupported_media_type(&CUSTOM_PATCH_TYPES)),
        _ => {
            let mut status = Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            status.details = Some(Box::default());
            Err(status)
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::{wants_openapi_protobuf, wants_pretty};

    #[test]
    fn answers_are_indented_for_people_and_for_who_asks() {
        let cases = [
            ("/api", "kubectl/v1.37.1", false),
            ("/api", "curl/8.5.0", true),
            ("/api", "Wget/1.21", true),
            ("/api", "Mozilla/5.0 (X11)", true),
            ("/api?pretty=true", "kubectl/v1.37.1", true),
            ("/api?pretty=1", "", true),
            ("/api?pretty=false", "curl/8.5.0", false),
            ("/api?pretty=maybe", "curl/8.5.0", false),
            ("/api?pretty=", "curl/8.5.0", true),
        ];
        for (path, agent, want) in cases {
            let request = Request::get(path).header("user-agent", agent).body(()).unwrap();
            assert_eq!(wants_pretty(&request.into_parts().0), want, "{path} {agent}");
        }
    }

    #[test]
    fn openapi_is_protobuf_for_those_who_ask_for_it_first() {
        let old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        let new = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        let cases = [
            ("", Some(false)),
            ("*/*", Some(false)),
            ("application/json, */*", Some(false)),
            (old, Some(true)),
            (new, Some(true)),
            (&format!("text/html, {new}, application/json"), Some(true)),
            ("application/yaml", None),
        ];
        for (accept, want) in cases {
            let request = Request::get("/openapi/v2").header("accept", accept).body(()).unwrap();
            assert_eq!(wants_openapi_protobuf(&request.into_parts().0.headers), want, "{accept}");
        }
    }
}
