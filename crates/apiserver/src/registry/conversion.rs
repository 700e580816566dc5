//! Conversion of custom resources by a webhook: `spec.conversion.strategy: Webhook`.
//!
//! 1. Objects are converted when they are read or written in another version than they are stored in; those of a list
//!    together, in one call.
//! 2. A webhook changes anything but metadata; of that, only labels and annotations. An answer that says otherwise fails the
//!    request, and so does one with another uid, another number of objects or another kind.
//! 3. A request converts the same object to the same version once.
//!
//! Follows `apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go` of Kubernetes 1.37.

use std::sync::Weak;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Registry;
use super::object_meta::{meta_text, new_uid};
use super::query::strings;
use crate::decode::type_name;
use crate::field::{Errors, Path};
use crate::kinds::shared::check;
use crate::kinds::shared::json::text;
use crate::status::Status;
use crate::webhook::{ClientConfig, Line, decode_answer, line_of_thread};

/// The time limit of a conversion: client-go's default for calls without a deadline of their own.
const TIMEOUT: Duration = Duration::from_secs(30);
const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";
/// The versions of reviews that are known.
pub(crate) const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The webhook that converts the objects of a definition.
#[derive(Debug)]
pub(crate) struct Conversion {
    client: ClientConfig,
    review_versions: Vec<String>,
    registry: Weak<Registry>,
}

// === impl Conversion ===

impl Conversion {
    /// Reads the conversion of a definition; none if its versions differ in name only.
    pub(super) fn read(spec: &Value, registry: &Weak<Registry>) -> Option<Self> {
        let webhook = &spec["conversion"]["webhook"];
        (spec["conversion"]["strategy"] == "Webhook").then(|| Self {
            client: ClientConfig::read(&webhook["clientConfig"]),
            review_versions: strings(&webhook["conversionReviewVersions"]).into_iter().map(str::to_owned).collect(),
            registry: Weak::clone(registry),
        })
    }

    /// Converts one object.
    pub(crate) fn convert(&self, object: Value, to: &str) -> Result<Value, Status> {
        if text(&object["apiVersion"]) == to {
            return Ok(object);
        }
        let line = line_of_thread().ok_or_else(|| Status::internal("a conversion webhook cannot be called here"))?;
        if let Some(converted) = line.converted(to, &object) {
            return Ok(converted);
        }
        let shown = shown_kind(&object);
        let answered = self.ask(&line, &shown, std::slice::from_ref(&object), to)?;
        let [one]: [Value; 1] = answered
            .try_into()
            .map_err(|_| Status::plain(format!("conversion webhook for {shown} failed, no objects returned")))?;
        let converted = checked(&object, one, to).map_err(|wrong| {
            Status::plain(match wrong {
                Wrong::Unreadable(why) => why,
                Wrong::Kind(why) => format!("conversion webhook for {shown} returned invalid object at index 0: {why}"),
                Wrong::Object(why) => format!("conversion webhook for {shown} returned invalid object: {why}"),
                Wrong::Metadata(why) => format!("conversion webhook for {shown} returned invalid metadata: {why}"),
            })
        })?;
        line.remember(to, object, converted.clone());
        Ok(converted)
    }

    /// Converts the objects of a list.
    pub(crate) fn convert_all(&self, list_kind: &str, mut objects: Vec<Value>, to: &str) -> Result<Vec<Value>, Status> {
        let others: Vec<usize> = (0..objects.len()).filter(|at| text(&objects[*at]["apiVersion"]) != to).collect();
        if others.is_empty() {
            return Ok(objects);
        }
        let line = line_of_thread().ok_or_else(|| Status::internal("a conversion webhook cannot be called here"))?;
        // A list has the version that is asked for, whatever its items have.
        let shown = format!("{to}, Kind={list_kind}");
        let sent: Vec<Value> = others.iter().map(|at| objects[*at].clone()).collect();
        let answered = self.ask(&line, &shown, &sent, to)?;
        for (index, (at, one)) in others.into_iter().zip(answered).enumerate() {
            objects[at] = checked(&objects[at], one, to).map_err(|wrong| {
                let (what, why) = match wrong {
                    Wrong::Unreadable(why) | Wrong::Kind(why) | Wrong::Object(why) => ("converted object", why),
                    Wrong::Metadata(why) => ("metadata in object", why),
                };
                Status::plain(format!("conversion webhook for {shown} returned invalid {what} at index {index}: {why}"))
            })?;
        }
        Ok(objects)
    }

    /// Asks the webhook, and returns as many objects as it was asked for.
    fn ask(&self, line: &Line, shown: &str, objects: &[Value], to: &str) -> Result<Vec<Value>, Status> {
        let failed = |why: String| Status::plain(format!("conversion webhook for {shown} failed: {why}"));
        let known =
            self.review_versions.iter().find_map(|held| REVIEW_VERSIONS.into_iter().find(|known| known == held));
        let version = known.ok_or_else(|| Status::plain("no supported conversion review versions"))?;
        let registry = self.registry.upgrade().ok_or_else(|| Status::internal("the server is stopping"))?;
        let uid = new_uid();
        let api_version = format!("{GROUP}/{version}");
        let question = json!({
            "kind": KIND, "apiVersion": api_version,
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
        });
        let limit = line.time_for(TIMEOUT);
        let endpoint = self.client.endpoint_without_deadline(&registry).map_err(Status::plain)?;
        let pending = line.start(endpoint, question.to_string().into(), limit);
        let body = pending.wait().map_err(|error| failed(error.to_string()))?;
        let converted = read(&uid, &api_version, &body).map_err(failed)?;
        if converted.len() != objects.len() {
            let returned = converted.len();
            let expected = objects.len();
            return Err(Status::plain(format!(
                "conversion webhook for {shown} returned {returned} objects, expected {expected}"
            )));
        }
        Ok(converted)
    }
}

/// Returns group, version and kind of an object as Go shows them.
fn shown_kind(object: &Value) -> String {
    format!("{}, Kind={}", text(&object["apiVersion"]), text(&object["kind"]))
}

/// Reads the converted objects from an answer.
fn read(uid: &str, api_version: &str, body: &[u8]) -> Result<Vec<Value>, String> {
    let mut review = decode_answer(body)?;
    let is_v1 = api_version.ends_with("/v1");
    let sent = text(&review["apiVersion"]);
    let kind = text(&review["kind"]);
    if is_v1 && (sent != api_version || kind != KIND) {
        let (group, version) = sent.split_once('/').unwrap_or(("", sent));
        return Err(format!(
            "expected webhook response of {api_version}, Kind={KIND}, got {group}/{version}, Kind={kind}"
        ));
    }
    let response = &mut review["response"];
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    if is_v1 && text(&response["uid"]) != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", text(&response["uid"])));
    }
    let result = &response["result"];
    let status = text(&result["status"]);
    if status != "Success" {
        let message = text(&result["message"]);
        let why = format!("response.result.status was '{status}', not 'Success'");
        return Err(if message.is_empty() { why } else { message.to_owned() });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        Value::Null => Ok(Vec::new()),
        other => Err(format!(
            "json: cannot unmarshal {} into Go struct field ConversionResponse.response.convertedObjects of type \
             []runtime.RawExtension",
            type_name(&other)
        )),
    }
}

/// Reads the answer of a webhook to the question with the uid `u`, and takes over the first object that it has converted.
#[cfg(fuzzing)]
pub fn fuzz_answer(version: &str, body: &[u8], original: &Value, to: &str) {
    let Ok(converted) = read("u", &format!("{GROUP}/{version}"), body) else { return };
    let Some(Ok(one)) = converted.into_iter().next().map(|one| checked(original, one, to)) else { return };
    for field in ["name", "namespace", "uid"] {
        assert_eq!(one["metadata"].get(field), original["metadata"].get(field), "{field} stays");
    }
}

/// An error of a converted object.
enum Wrong {
    /// It has no kind: all that is said.
    Unreadable(String),
    /// Its version or kind.
    Kind(String),
    /// Its identity.
    Object(String),
    /// Its labels or annotations.
    Metadata(String),
}

/// Returns a converted object with the metadata of the original, labels and annotations aside.
fn checked(original: &Value, mut converted: Value, to: &str) -> Result<Value, Wrong> {
    if text(&converted["kind"]).is_empty() {
        return Err(Wrong::Unreadable(format!("Object 'Kind' is missing in '{converted}'")));
    }
    let got = text(&converted["apiVersion"]);
    if got != to {
        return Err(Wrong::Kind(format!("invalid groupVersion (expected {to}, received {got})")));
    }
    let kinds = [text(&original["kind"]), text(&converted["kind"])];
    if kinds[0] != kinds[1] {
        return Err(Wrong::Kind(format!("invalid kind (expected {}, received {})", kinds[0], kinds[1])));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let want = meta_text(original, field);
        let got = meta_text(&converted, field);
        if want != got {
            return Err(Wrong::Object(format!("must have the same {name}: {want} != {got}")));
        }
    }
    let metadata = restored(original, &converted["metadata"]).map_err(Wrong::Metadata)?;
    converted["metadata"] = metadata;
    Ok(converted)
}

/// Returns the type that Go's JSON decoder gives a value within an object.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn restored(original: &Value, answered: &Value) -> Result<Value, String> {
    let Some(answered) = answered.as_object() else {
        return Err(match answered {
            Value::Null => "missing metadata in converted object".to_owned(),
            other => format!("invalid metadata of type {} in converted object", go_type(other)),
        });
    };
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(map)) => {
                check_texts(field, map)?;
                if metadata.get(field).and_then(Value::as_object) != Some(map) {
                    check_changed(field, map)?;
                }
                metadata.insert(field.to_owned(), Value::Object(map.clone()));
            }
            Some(other) => {
                return Err(format!("invalid metadata.{field} of type {} in converted object", go_type(other)));
            }
        }
    }
    Ok(Value::Object(metadata))
}

fn check_texts(field: &str, map: &Map<String, Value>) -> Result<(), String> {
    match map.iter().find(|(_, value)| !value.is_string()) {
        Some((key, value)) => {
            Err(format!("metadata.{field}[{key}] must be a string, but is {} in converted object", go_type(value)))
        }
        None => Ok(()),
    }
}

fn check_changed(field: &str, map: &Map<String, Value>) -> Result<(), String> {
    let mut errors = Errors::default();
    let value = Value::Object(map.clone());
    let path = Path::new("metadata");
    match field {
        "labels" => check::labels(&value, &path.child("labels"), &mut errors),
        // Upstream names this field so.
        _ => check::annotations(&value, &path.child("annotation"), &mut errors),
    }
    let sentences: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match sentences.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
