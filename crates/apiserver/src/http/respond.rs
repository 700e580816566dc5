//! Encoding of responses.

use std::collections::HashSet;
use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, Stream};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, LOCATION,
    RETRY_AFTER, VARY, WARNING,
};
use http::request::Parts;
use http::{HeaderName, Response, StatusCode};
use serde_json::{Value, json};

use super::body::Body;
use super::negotiate::{self, Accepted, Encoding, Shape};
use super::order::{self, Order};
use crate::discovery::Aggregated;
use crate::openapi::{self, Document, Name};
use crate::registry::query::Query;
use crate::registry::{Answer, Content, ListAnswer, Registry, Row, convert};
use crate::status::Status;
use crate::store::Object;
use crate::table::{self, IncludeObject};

/// Responses of at least this size are compressed if the client supports it, as upstream.
const GZIP_BYTES_MIN: usize = 128 << 10;
/// Lists are encoded and sent in pieces of about this size.
const CHUNK_BYTES: usize = 64 << 10;

/// The total length of warnings beyond which they are truncated; upstream's bound.
const WARNING_LETTERS_TOTAL: usize = 4096;
/// The length of a truncated warning; upstream's bound.
const WARNING_LETTERS_MAX: usize = 256;
/// The maximum number of warnings. Upstream has no bound but that of findings (100), and Python's clients refuse a
/// response with more than 100 headers.
const WARNINGS_MAX: usize = 64;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const AGGREGATED: HeaderValue =
    HeaderValue::from_static("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
const OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");

/// Builds the response to one request.
pub(super) struct Responder<'a> {
    parts: &'a Parts,
    /// Whether answers are indented.
    is_pretty: bool,
}

// === impl Responder ===

impl<'a> Responder<'a> {
    pub(super) fn new(parts: &'a Parts) -> Self {
        Self { parts, is_pretty: negotiate::wants_pretty(parts) }
    }

    fn respond(code: u16, kind: HeaderValue, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        response
    }

    fn may_gzip(&self) -> bool {
        let accepted = self.parts.headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        accepted
            .unwrap_or_default()
            .split(',')
            .any(|name| name.split(';').next().is_some_and(|name| name.trim() == "gzip"))
    }

    /// Returns a complete body, compressed if it is large and the client supports it.
    fn whole(&self, code: u16, kind: HeaderValue, bytes: Bytes) -> Response<Body> {
        if bytes.len() >= GZIP_BYTES_MIN
            && self.may_gzip()
            && let Some(packed) = gzip(&bytes)
        {
            let mut response = Self::respond(code, kind, Body::whole(packed));
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            return response;
        }
        Self::respond(code, kind, Body::whole(bytes))
    }

    /// A document for people and clients: discovery, statuses, keys.
    pub(super) fn json(&self, code: u16, value: &Value) -> Response<Body> {
        self.ordered(code, value, Order::Document)
    }

    /// An OpenAPI document, unless the client has it already. With the `hash` of its address it may be kept for ever; with
    /// another one, the client is sent to the right one.
    pub(super) fn document(&self, name: &Name, document: &Document) -> Response<Body> {
        let kind = match name {
            Name::V2Protobuf => HeaderValue::from_static(negotiate::OPENAPI_PROTOBUF),
            Name::V2 | Name::V3Index | Name::V3(_) => JSON,
        };
        let is_packed = document.bytes.len() >= GZIP_BYTES_MIN && self.may_gzip();
        let packed = is_packed.then(|| document.packed(|bytes| gzip(bytes).map(Bytes::from))).flatten();
        let mut response = match packed {
            Some(packed) => {
                let mut response = Self::respond(200, kind, Body::whole(packed));
                response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                self.tagged(response, &document.tag)
            }
            None => self.tagged(Self::respond(200, kind, Body::whole(document.bytes.clone())), &document.tag),
        };
        let headers = response.headers_mut();
        let asked = Query::parse(self.parts.uri.query().unwrap_or_default()).get("hash").to_owned();
        match name {
            Name::V3(path) if !asked.is_empty() && asked != document.tag => {
                let mut response = self.nothing(301);
                let address = HeaderValue::from_str(&openapi::v3_address(path, &document.tag));
                response.headers_mut().extend(address.ok().map(|address| (LOCATION, address)));
                return response;
            }
            Name::V3(_) if !asked.is_empty() => {
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            }
            _ => {}
        }
        response
    }

    /// A response with its tag; nothing but the tag if the client has that one.
    fn tagged(&self, response: Response<Body>, tag: &str) -> Response<Body> {
        let quoted = format!("\"{tag}\"");
        let known = self.parts.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_known = known.split(',').any(|known| known.trim() == "*" || known.trim() == quoted);
        let mut response = if is_known { self.nothing(304) } else { response };
        let headers = response.headers_mut();
        headers.extend(HeaderValue::from_str(&quoted).ok().map(|tag| (ETAG, tag)));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        response
    }

    fn ordered(&self, code: u16, value: &Value, order: Order) -> Response<Body> {
        self.whole(code, JSON, order::encode(value, order, self.is_pretty).into())
    }

    /// The aggregated discovery document, unless the client has it already.
    pub(super) fn aggregated(&self, document: &Aggregated) -> Response<Body> {
        let mut response = self.tagged(self.whole(200, AGGREGATED, document.bytes.clone()), &document.tag);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        response
    }

    pub(super) fn text(&self, code: u16, text: &str) -> Response<Body> {
        let mut response = self.whole(code, TEXT, text.to_owned().into());
        response.headers_mut().insert(OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    /// Returns an empty response with this status code.
    pub(super) fn nothing(&self, code: u16) -> Response<Body> {
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
    }

    pub(super) fn page_not_found(&self) -> Response<Body> {
        self.text(404, "404 page not found\n")
    }

    pub(super) fn status(&self, status: &Status) -> Response<Body> {
        let mut response = self.json(status.code, &status.to_json());
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        if seconds > 0 {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// Returns a refusal, with warnings.
    pub(super) fn refused(&self, status: &Status, warnings: &[String]) -> Response<Body> {
        let mut response = self.status(status);
        warn(&mut response, warnings.iter().map(String::as_str));
        response
    }

    pub(super) fn watch(
        &self,
        warning: Option<&str>,
        lines: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Response<Body> {
        let mut response = Self::respond(200, JSON, Body::chunks(lines));
        warn(&mut response, warning);
        response
    }

    pub(super) fn answer(
        &self,
        registry: &Registry,
        row: &Row,
        accepted: Accepted,
        include: IncludeObject,
        answer: Answer,
    ) -> Result<Response<Body>, Status> {
        let Answer { code, body, warnings } = answer;
        let order = Order::of(row);
        let mut response = match (body, accepted.shape) {
            (Content::Status(status), _) => {
                self.encoded(status.code, accepted.encoding, &status.to_json(), Order::Document)?
            }
            (Content::Log(text), _) => Self::respond(code, PLAIN, Body::chunks(text.0)),
            (Content::Nothing, _) => self.nothing(204),
            (Content::Stored(object), Shape::Full) if accepted.encoding == Encoding::Json && !self.is_pretty => {
                self.whole(code, JSON, object.bytes())
            }
            // What writers ask for: they know the rest.
            (Content::Stored(object), Shape::Metadata) if accepted.encoding == Encoding::Json && !self.is_pretty => {
                self.whole(code, JSON, metadata_of(&object).into())
            }
            (Content::List(_), Shape::Metadata) => return Err(other_shape(row, "", "a list")),
            (Content::Stored(_) | Content::Value(_), Shape::MetadataList) => {
                return Err(other_shape(row, "List", "not a list"));
            }
            (Content::Stored(object), shape) => {
                let object = object.parse().map_err(Status::internal)?;
                self.encoded(code, accepted.encoding, &shaped(registry, row, shape, include, object), order)?
            }
            (Content::Value(object), shape) => {
                self.encoded(code, accepted.encoding, &shaped(registry, row, shape, include, object), order)?
            }
            (Content::List(list), shape) => self.list(registry, row, accepted.encoding, shape, include, list)?,
        };
        warn(&mut response, warnings.iter().map(String::as_str));
        Ok(response)
    }

    fn encoded(&self, code: u16, encoding: Encoding, value: &Value, order: Order) -> Result<Response<Body>, Status> {
        match encoding {
            Encoding::Json => Ok(self.ordered(code, value, order)),
            Encoding::Yaml => {
                let text = serde_saphyr::to_string(value).map_err(Status::internal)?;
                Ok(self.whole(code, YAML, text.into()))
            }
        }
    }

    fn list(
        &self,
        registry: &Registry,
        row: &Row,
        encoding: Encoding,
        shape: Shape,
        include: IncludeObject,
        list: ListAnswer,
    ) -> Result<Response<Body>, Status> {
        let head = ListHead::of(row, shape, &list);
        let is_plain = encoding == Encoding::Json && convert::is_storage_version(row) && !self.is_pretty;
        if is_plain && shape != Shape::Table {
            return Ok(self.stream(&head, row.custom.is_none(), shape, list));
        }
        let objects: Result<Vec<Value>, _> = list.objects.iter().map(|object| object.parse()).collect();
        let objects = convert::all_to_version(row, objects.map_err(Status::internal)?)?;
        if shape == Shape::Table {
            let table = render(registry, row, &objects, &head.metadata, include);
            return self.encoded(200, encoding, &table, Order::KindFirst);
        }
        let items: Vec<Value> = objects
            .into_iter()
            .map(|mut object| {
                if let (Some(map), Shape::Full, true) = (object.as_object_mut(), shape, row.custom.is_none()) {
                    map.remove("apiVersion");
                    map.remove("kind");
                }
                if shape == Shape::MetadataList { partial(&object) } else { object }
            })
            .collect();
        let value =
            json!({"kind": head.kind, "apiVersion": head.api_version, "metadata": head.metadata, "items": items});
        self.encoded(200, encoding, &value, Order::of(row))
    }

    /// A list of objects as they are stored: no object is decoded, and the whole is never in memory twice.
    fn stream(&self, head: &ListHead, drops_kind: bool, shape: Shape, list: ListAnswer) -> Response<Body> {
        let bytes: usize = list.objects.iter().map(|object| object.len()).sum();
        let mut chunks = ListChunks {
            opening: Some(head.opening()),
            objects: list.objects.into_iter(),
            drops_kind,
            shape,
            is_first: true,
            is_over: false,
        };
        if bytes < CHUNK_BYTES || self.may_gzip() {
            let whole: Vec<Bytes> = chunks.collect();
            return self.whole(200, JSON, whole.concat().into());
        }
        Self::respond(200, JSON, Body::chunks(stream::iter(std::iter::from_fn(move || chunks.next()))))
    }
}

/// Returns the part before the items of a list.
struct ListHead {
    kind: String,
    api_version: String,
    metadata: Value,
}

/// A list, encoded piece by piece.
struct ListChunks {
    opening: Option<String>,
    objects: std::vec::IntoIter<std::sync::Arc<Object>>,
    drops_kind: bool,
    shape: Shape,
    is_first: bool,
    is_over: bool,
}

// === impl ListHead ===

impl ListHead {
    fn of(row: &Row, shape: Shape, list: &ListAnswer) -> Self {
        let mut metadata = json!({"resourceVersion": list.revision.to_string()});
        // Upstream writes it always where it does not know the Go type.
        if !list.continue_token.is_empty() || row.custom.is_some() && shape == Shape::Full {
            metadata["continue"] = list.continue_token.clone().into();
        }
        if let Some(remaining) = list.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        let (kind, api_version) = match shape {
            Shape::MetadataList => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
            Shape::Full | Shape::Table | Shape::Metadata => {
                (row.list_kind.to_string(), row.resource.api_version().into_owned())
            }
        };
        Self { kind, api_version, metadata }
    }

    fn opening(&self) -> String {
        let kind = Value::from(self.kind.as_str());
        let version = Value::from(self.api_version.as_str());
        format!("{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{},\"items\":[", self.metadata)
    }
}

// === impl ListChunks ===

impl Iterator for ListChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut chunk = self.opening.take().map(String::into_bytes).unwrap_or_default();
        while chunk.len() < CHUNK_BYTES {
            let Some(object) = self.objects.next() else {
                self.is_over = true;
                chunk.extend_from_slice(b"]}");
                break;
            };
            if !std::mem::replace(&mut self.is_first, false) {
                chunk.push(b',');
            }
            match self.shape {
                Shape::MetadataList => chunk.extend_from_slice(&metadata_of(&object)),
                _ if self.drops_kind => {
                    chunk.push(b'{');
                    chunk.extend_from_slice(&object.item());
                }
                _ => chunk.extend_from_slice(&object.bytes()),
            }
        }
        Some(chunk.into())
    }
}

/// Returns an object in the requested representation.
fn shaped(registry: &Registry, row: &Row, shape: Shape, include: IncludeObject, object: Value) -> Value {
    match shape {
        // A status, a scale or a review has no columns.
        Shape::Table if object["kind"] == *row.resource.kind => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            render(registry, row, std::slice::from_ref(&object), &metadata, include)
        }
        Shape::Metadata => partial(&object),
        Shape::Full | Shape::Table | Shape::MetadataList => object,
    }
}

/// Returns 406, in upstream's words. The request has been carried out by then: only the response fails.
fn other_shape(row: &Row, asked: &str, is: &str) -> Status {
    let list = if is == "a list" { "List" } else { "" };
    let package = row.resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    let go_type = match row.custom {
        Some(_) => format!("*unstructured.Unstructured{list}"),
        None => format!("*{package}.{}{list}", row.resource.kind),
    };
    let message = format!("you requested PartialObjectMetadata{asked}, but the requested object is {is} ({go_type})");
    Status::new(406, "NotAcceptable", message)
}

fn render(registry: &Registry, row: &Row, objects: &[Value], metadata: &Value, include: IncludeObject) -> Value {
    let objects: Vec<&Value> = objects.iter().collect();
    let now = registry.clock.now();
    table::render(&row.resource, &row.rules.printer, row.declared_columns(), &objects, metadata, include, now)
}

/// Returns the `PartialObjectMetadata` of a stored object, which is not decoded for it.
fn metadata_of(object: &Object) -> Vec<u8> {
    const HEAD: &[u8] = b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";
    [HEAD, &object.metadata(), b"}"].concat()
}

fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// Adds one header per warning, as in RFC 7234, bounded as upstream's `filters/warning.go` does: if all are too long
/// together, each is truncated, and the rest is left out.
pub(super) fn warn<'a>(response: &mut Response<Body>, warnings: impl IntoIterator<Item = &'a str>) {
    let mut seen = HashSet::new();
    let warnings: Vec<&str> =
        warnings.into_iter().filter(|text| !text.is_empty() && seen.insert(*text)).take(WARNINGS_MAX).collect();
    let is_cut = warnings.iter().map(|text| text.chars().count()).sum::<usize>() > WARNING_LETTERS_TOTAL;
    let mut written = 0;
    for warning in warnings {
        if is_cut && written >= WARNING_LETTERS_TOTAL {
            return;
        }
        let letters_max = if is_cut { WARNING_LETTERS_MAX } else { usize::MAX };
        let shown = warning.chars().take(letters_max);
        let text: String = shown.filter(|letter| !letter.is_control()).collect();
        written += text.chars().count();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}
