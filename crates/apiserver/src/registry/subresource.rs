//! Subresources: parts of objects with a path of their own.
//!
//! `status` and `scale` are the same for every kind; the others are in the rule sets of their kinds.

use serde_json::Value;

use super::request_match::wrong_kind;
use super::write::Part;
use super::{Answer, Call, Registry, Verb};
use crate::decode::{self, ContentType};
use crate::kinds::Handler;
use crate::patch::PatchType;
use crate::schema;
use crate::status::Status;

/// The body of a request, by verb.
pub(crate) enum Input<'a> {
    /// None.
    None,
    /// An object.
    Object(&'a [u8], ContentType),
    /// A patch.
    Patch(&'a [u8], PatchType),
    /// A configuration to apply.
    Apply(&'a [u8]),
}

impl Registry {
    /// Answers a request about a subresource.
    pub(crate) fn subresource(&self, call: &Call, verb: Verb, input: &Input<'_>) -> Result<Answer, Status> {
        match (call.subresource.as_str(), input) {
            ("status", input) => self.part(call, Part::Status, input),
            ("scale", Input::None) => self.get_scale(call),
            ("scale", Input::Object(body, kind)) => self.put_scale(call, body, *kind),
            ("scale", Input::Patch(body, kind)) => self.patch_scale(call, *kind, body),
            ("scale", Input::Apply(body)) => self.apply_scale(call, body),
            ("exec" | "attach" | "portforward" | "proxy", _) => {
                let message = format!("{} is not supported by this server: its pods are simulated", call.subresource);
                Err(Status::new(405, "MethodNotAllowed", message))
            }
            (name, input) => match (call.row.rules.handler(name), input) {
                (Some(Handler::Part(rules)), input) => self.part(call, Part::Subresource(rules), input),
                (Some(Handler::Get(get)), Input::None) => get(self, call),
                (Some(Handler::Create(create)), Input::Object(body, kind)) => create(self, call, body, *kind),
                _ => Err(Status::method_not_supported(call.row.target(), verb.name())),
            },
        }
    }

    /// Reads or writes one part of an object.
    fn part(&self, call: &Call, part: Part, input: &Input<'_>) -> Result<Answer, Status> {
        match input {
            Input::None => self.get(call),
            Input::Object(body, kind) => self.put(call, part, body, *kind),
            Input::Patch(body, kind) => self.patch(call, part, *kind, body),
            Input::Apply(body) => self.apply(call, part, body),
        }
    }
}

/// Decodes a body that is not an object of the request's resource.
pub(crate) fn read_body(
    body: &[u8],
    content_type: ContentType,
    group: &str,
    version: &str,
    kind: &str,
    call: &Call,
) -> Result<Value, Status> {
    let decoded = decode::object(body, content_type).map_err(|error| Status::bad_request(error.message(kind)))?;
    let mut value = decoded.value;
    check_kind(&value, group, version, kind)?;
    let checked = schema::check_with(group, version, kind, &mut value, decoded.duplicates, call.field_validation);
    checked.map_err(|problem| Status::bad_request(problem.message(version, kind)))?;
    Ok(value)
}

/// Refuses a body of another kind; a body may leave its kind out.
pub(super) fn check_kind(value: &Value, group: &str, version: &str, want: &str) -> Result<(), Status> {
    match value["kind"].as_str() {
        Some(kind) if !kind.is_empty() && kind != want => {
            Err(Status::bad_request(wrong_kind(group, version, want, kind)))
        }
        _ => Ok(()),
    }
}
