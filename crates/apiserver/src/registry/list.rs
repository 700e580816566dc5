//! Gets and lists.
//!
//! 1. Pages of one list show one revision; the token says which, and where the next page starts.
//! 2. A token whose revision is gone is 410, with a token to go on from the present.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use steersman_base::{FieldSelector, Istr, ObjectKey, Selector};

use super::custom::value_at;
use super::query::{ListOptions, VersionMatch};
use super::write::content;
use super::{Answer, Call, ListAnswer, Registry, Row, convert};
use crate::status::{Details, Status};
use crate::store::{Object, Range, Unavailable, Wanted};

/// As Go reads it: bits that do not matter need not be zero.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The filter of a list or a watch.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    namespace: Istr,
    labels: Selector,
    fields: Vec<(FieldOf, bool, Istr)>,
}

/// The place of a selected field's value.
#[derive(Clone, Debug)]
enum FieldOf {
    Name,
    Namespace,
    Row(usize),
    /// At a path that the definition of a custom resource declares.
    Declared(String),
}

/// The token with which a list continues.
struct Token {
    revision: Option<u64>,
    from: ObjectKey,
}

impl Registry {
    /// GET of an object.
    pub(crate) fn get(&self, call: &Call) -> Result<Answer, Status> {
        let row = &*call.row;
        self.reached(call.query.resource_version()?.unwrap_or_default())?;
        let stored = self.store.get(&row.collection, &call.key());
        let stored = stored.ok_or_else(|| Status::not_found(row.target(), &call.name))?;
        Ok(Answer::ok(content(row, stored)))
    }

    /// GET of a collection.
    pub(crate) fn list(&self, call: &Call, options: &ListOptions) -> Result<ListAnswer, Status> {
        let row = &*call.row;
        let filter = Filter::new(row, &call.namespace, options)?;
        let mut range = Range { namespace: &call.namespace, limit: options.limit, ..Range::default() };
        if options.continue_token.is_empty() {
            range.at = self.version_of(options)?;
        } else {
            if options.resource_version.is_some_and(|version| version != 0) {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Status::bad_request(message));
            }
            let token = Token::decode(&options.continue_token, &call.namespace)?;
            range.at = token.revision;
            range.from = Some(token.from);
        }
        let matches = |object: &Object| filter.matches(object);
        // What is left to say about all objects of a namespace is known without a look at each.
        let wanted: Option<&Wanted<'_>> = if filter.is_everything() { None } else { Some(&matches) };
        let page = self.store.list(&row.collection, &range, wanted).map_err(|unavailable| match unavailable {
            Unavailable::Compacted { .. } if options.continue_token.is_empty() => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            Unavailable::Compacted { .. } => expired_token(&range),
            Unavailable::Future { current } => Status::future_version(range.at.unwrap_or(0), current),
        })?;
        let last = page.objects.last().filter(|_| page.remaining > 0);
        let continue_token =
            last.map_or_else(String::new, |last| Token::encode(Some(page.revision), &last.key, &call.namespace));
        // With a selector, upstream does not know how many are left.
        let remaining = (page.remaining > 0 && filter.is_everything()).then_some(page.remaining);
        Ok(ListAnswer { objects: page.objects, revision: page.revision, continue_token, remaining })
    }

    /// Refuses to answer from a state before this version: who asks has seen a later one, maybe of another server.
    fn reached(&self, version: u64) -> Result<(), Status> {
        let current = self.store.revision();
        if version > current { Err(Status::future_version(version, current)) } else { Ok(()) }
    }

    fn version_of(&self, options: &ListOptions) -> Result<Option<u64>, Status> {
        self.reached(options.resource_version.unwrap_or_default())?;
        match options.resource_version {
            None | Some(0) => Ok(None),
            Some(version) => Ok(match options.version_match {
                Some(VersionMatch::Exact) => Some(version),
                Some(VersionMatch::NotOlderThan) => None,
                // Pages of a list with a version and without a match are of exactly that version, as upstream's are.
                None => (options.limit > 0).then_some(version),
            }),
        }
    }
}

fn expired_token(range: &Range<'_>) -> Status {
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                   list without the continue parameter, or use the continue token in this response to retrieve the \
                   remainder of the results. Continuing with the provided token results in an inconsistent list - \
                   objects that were created, modified, or deleted between the time the first chunk was returned and \
                   now may show up in the list.";
    let mut status = Status::expired(message);
    if let Some(from) = &range.from {
        let continue_token = Token::encode(None, from, range.namespace);
        status.details = Some(Box::new(Details { continue_token, ..Details::default() }));
    }
    status
}

// === impl Token ===

impl Token {
    /// The token in upstream's shape: version of the format, revision, and the key behind the last one.
    fn encode(revision: Option<u64>, last: &ObjectKey, namespace: &str) -> String {
        let start = if namespace.is_empty() && !last.namespace.is_empty() {
            format!("{}/{}\0", last.namespace, last.name)
        } else {
            format!("/{}\0", last.name)
        };
        let revision = revision.and_then(|revision| i64::try_from(revision).ok()).unwrap_or(-1);
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(text: &str, namespace: &str) -> Result<Self, Status> {
        let invalid =
            |why: String| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let bytes = LENIENT.decode(text).map_err(|error| {
            use base64::DecodeError as Error;
            let at = match error {
                Error::InvalidByte(at, _) | Error::InvalidLastSymbol(at, _) => at,
                Error::InvalidLength(at) => at,
                Error::InvalidPadding => text.len(),
            };
            invalid(format!("illegal base64 data at input byte {at}"))
        })?;
        let token: Value = serde_json::from_slice(&bytes).map_err(|_| invalid(json_problem(&bytes)))?;
        if token["v"] != "meta.k8s.io/v1" {
            return Err(invalid(format!(
                "server does not recognize this encoded version {}",
                token["v"].as_str().unwrap_or_default()
            )));
        }
        let start = token["start"].as_str().unwrap_or_default();
        let revision = match token["rv"].as_i64().unwrap_or(0) {
            0 => return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned())),
            revision => u64::try_from(revision).ok(),
        };
        let from = match start.split_once('/') {
            Some(("", name)) => ObjectKey::new(namespace, name),
            Some((within, name)) if namespace.is_empty() => ObjectKey::new(within, name),
            _ => return Err(invalid("incorrect encoded start key".to_owned())),
        };
        Ok(Self { revision, from })
    }
}

/// Returns Go's error for bytes that are no JSON, as far as a token can show it.
fn json_problem(bytes: &[u8]) -> String {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => "unexpected end of JSON input".to_owned(),
        Some(byte) if byte.is_ascii_graphic() => {
            format!("invalid character '{}' looking for beginning of value", char::from(*byte))
        }
        Some(byte) => format!("invalid character '\\u{byte:04x}' looking for beginning of value"),
    }
}

// === impl Filter ===

impl Filter {
    pub(crate) fn new(row: &Row, namespace: &str, options: &ListOptions) -> Result<Self, Status> {
        let labels = if options.label_selector.is_empty() {
            Selector::everything()
        } else {
            options.label_selector.parse().map_err(|error| label_problem(&error))?
        };
        let selector: FieldSelector =
            options.field_selector.parse().map_err(|error| Status::bad_request(format!("{error}")))?;
        let mut fields = Vec::new();
        for term in selector.terms() {
            let field = match term.field.as_str() {
                "metadata.name" => FieldOf::Name,
                "metadata.namespace" if row.is_namespaced() || row.rules.strategy.selectable_fields.is_empty() => {
                    FieldOf::Namespace
                }
                other if row.custom.as_ref().is_some_and(|it| it.selectable.iter().any(|path| path == other)) => {
                    FieldOf::Declared(other.to_owned())
                }
                other => FieldOf::Row(field_of(row, other)?),
            };
            let is_equal = term.relation == steersman_base::field_selector::Relation::Equals;
            fields.push((field, is_equal, term.value.clone()));
        }
        Ok(Self { namespace: Istr::new(namespace), labels, fields })
    }

    /// Whether an object is among those asked for.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        if !self.namespace.is_empty() && object.key.namespace != self.namespace {
            return false;
        }
        let holds = |(field, is_equal, value): &(FieldOf, bool, Istr)| {
            let held = match field {
                FieldOf::Name => Some(&object.key.name),
                FieldOf::Namespace => Some(&object.key.namespace),
                FieldOf::Row(at) => object.fields.get(*at),
                FieldOf::Declared(path) => return (declared_value(object, path) == value.as_str()) == *is_equal,
            };
            (held.is_some_and(|held| held == value)) == *is_equal
        };
        self.fields.iter().all(holds) && self.labels.matches(&object.labels)
    }

    /// The namespace it is about; empty: all of them.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether every object (of the namespace) is.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }
}

/// The text of a field of a custom resource; empty if it is absent. Definitions change, so it is read when it is asked for.
fn declared_value(object: &Object, path: &str) -> String {
    let object = object.parse().unwrap_or_default();
    match object.as_object().and_then(|map| value_at(map, path)) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn field_of(row: &Row, field: &str) -> Result<usize, Status> {
    let strategy = &row.rules.strategy;
    let field = strategy.field_aliases.iter().find(|(alias, _)| *alias == field).map_or(field, |(_, name)| name);
    let stored = convert::stored_field(row, field);
    let found = stored.and_then(|name| strategy.selectable_fields.iter().position(|field| field.name == name));
    found.ok_or_else(|| {
        Status::bad_request(if strategy.selectable_fields.is_empty() && row.custom.is_none() {
            format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        } else {
            format!("field label not supported: {field}")
        })
    })
}

/// Upstream's answer is the parser's complaint alone.
fn label_problem(error: &steersman_base::selector::ParseSelectorError) -> Status {
    Status::bad_request(error.reason())
}

/// All objects of a resource, as they are.
pub(crate) fn list_all(registry: &Registry, row: &Row, namespace: &str) -> Vec<Arc<Object>> {
    let range = Range { namespace, ..Range::default() };
    registry.store.list(&row.collection, &range, None).map(|page| page.objects).unwrap_or_default()
}
