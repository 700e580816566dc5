//! `scale`: replicas wanted and there, the same for every kind that has them.

use std::sync::LazyLock;

use serde_json::{Value, json};
use steersman_base::LabelSelector;
use steersman_structured_merge::managed::ManagedError;
use steersman_structured_merge::scale::ScaleManagers;
use steersman_structured_merge::{self as merge, FieldManager, OneVersion, Schema, Writer};

use super::checked::Checked;
use super::object_meta::{meta_text, metadata};
use super::owners::{Config, built_in_schema, refused, set_managed_fields};
use super::request_match::{check_name, uid_conflict};
use super::write::{Computed, Owners, Part, Updated};
use super::{Answer, Call, Content, Registry, Row, convert};
use crate::decode::{self, ContentType, Decoded};
use crate::field::{FieldError, Path};
use crate::patch::{self, PatchType};
use crate::schema::{self, FieldValidation, Problem};
use crate::status::{GroupResource, Status};

/// The name of the subresource.
pub(super) const SCALE: &str = "scale";

const SCALE_KIND: patch::Kind<'static> = patch::Kind { group: "autoscaling", version: "v1", kind: "Scale" };

/// The number of replicas that a custom resource shows if its spec sets none; upstream's `invalidSpecReplicas`.
const REPLICAS_UNSET: i64 = i32::MIN as i64;

impl Registry {
    /// GET of a scale.
    pub(super) fn get_scale(&self, call: &Call) -> Result<Answer, Status> {
        let row = &*call.row;
        let stored = self.store.get(&row.collection, &call.key());
        let object = stored.ok_or_else(|| Status::not_found(row.target(), &call.name))?.parse();
        let scale = scale_of(row, &object.map_err(Status::internal)?)?;
        Ok(Answer::ok(Content::Value(shown(scale))))
    }

    /// PUT of a scale.
    pub(super) fn put_scale(&self, call: &Call, body: &[u8], content_type: ContentType) -> Result<Answer, Status> {
        let decoded =
            decode::object(body, content_type).map_err(|error| Status::bad_request(error.message("Scale")))?;
        let (scale, warnings) = checked(decoded, call.field_validation)
            .map_err(|problem| Status::bad_request(problem.message("v1", "Scale")))??;
        self.set_scale(call, &mut |_| Ok((scale.clone(), Vec::new(), Owners::Changes)))
            .map(|answer| answer.warning(warnings))
    }

    /// Apply to a scale.
    pub(super) fn apply_scale(&self, call: &Call, body: &[u8]) -> Result<Answer, Status> {
        let config = Config::read(body)?;
        let now = self.clock.now().to_string();
        self.set_scale(call, &mut |current| {
            let writer = Writer { manager: &call.manager, now: &now };
            // Upstream converts the scale of a custom resource as if it were the resource, which fails.
            let is_custom = call.row.custom.is_some();
            let failed = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";
            if is_custom && current["metadata"]["managedFields"].as_array().is_none_or(Vec::is_empty) {
                return Err(Status::plain(format!(
                    "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, \
                     Kind=Scale) {failed}"
                )));
            }
            let applied = scale_managers(|managers| managers.apply(Some(current), &config.value, writer, call.force));
            let applied = applied.map_err(refused)?;
            if is_custom && applied.object["spec"]["replicas"] != current["spec"]["replicas"] {
                let namespace = meta_text(&config.value, "namespace");
                let name = meta_text(&config.value, "name");
                return Err(Status::plain(format!(
                    "failed to convert new object ({namespace}/{name}; autoscaling/v1, Kind=Scale) {failed}"
                )));
            }
            let decoded = Decoded { value: applied.object, duplicates: Vec::new() };
            let checked = checked(decoded, FieldValidation::Ignore);
            let (scale, _) = checked.map_err(|problem| Status::plain(problem.to_string()))??;
            Ok((scale, config.findings(call.field_validation)?, Owners::Recorded))
        })
    }

    /// PATCH of a scale.
    pub(super) fn patch_scale(&self, call: &Call, kind: PatchType, body: &[u8]) -> Result<Answer, Status> {
        self.set_scale(call, &mut |current| {
            let patched = patch::apply(kind, "autoscaling", "v1", "Scale", current, body).map_err(Status::from)?;
            let decoded = Decoded { value: patched.clone(), duplicates: patch::findings(kind, body) };
            // Upstream blames the patch.
            let (scale, warnings) = checked(decoded, call.field_validation).map_err(|problem| {
                let blamed = patch::refused_result(kind, &SCALE_KIND, current, &patched, body, &problem.to_string());
                Status::invalid(GroupResource { group: "", resource: "" }, "", &[blamed])
            })??;
            Ok((scale, warnings, Owners::Changes))
        })
    }

    fn set_scale(&self, call: &Call, change: &mut Change<'_>) -> Result<Answer, Status> {
        let row = &*call.row;
        let updated: Updated = self.update(call, Part::Whole, &mut |old| {
            let Some(old) = old else { return Err(Status::not_found(row.target(), &call.name)) };
            let mut current = scale_of(row, old)?;
            let paths = self.replicas_paths(row);
            let paths: Vec<_> = paths.iter().map(|(version, path)| (version.as_str(), path.clone())).collect();
            let api_version = row.resource.api_version();
            let unreadable = |error: ManagedError| Status::plain(error.to_string());
            let managers = ScaleManagers::new(old["metadata"].get("managedFields"), &api_version, &paths);
            let managers = managers.map_err(unreadable)?;
            set_managed_fields(&mut current, managers.to_scale());
            if row.custom.is_some() && current["spec"]["replicas"].is_null() {
                current["spec"]["replicas"] = REPLICAS_UNSET.into();
            }
            schema::complete("autoscaling", "v1", "Scale", &mut current);
            let (mut scale, warnings, owners) = change(&current)?;
            if owners == Owners::Changes {
                self.record_owners_of_scale(call, &current, &mut scale);
            }
            let scale = self.ask_about_body(call, scale, Some(&current))?;
            check_name(call, &scale)?;
            let uid = meta_text(&scale, "uid");
            let held = meta_text(old, "uid");
            if !uid.is_empty() && uid != held {
                return Err(uid_conflict(call, uid, held));
            }
            // The schema has refused everything but an int32, or nothing, which is Go's zero.
            let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
            check_replicas(call, replicas)?;
            let mut object = convert::to_version(row, old.clone())?;
            let version = meta_text(&scale, "resourceVersion").to_owned();
            if !version.is_empty() {
                metadata(&mut object).insert("resourceVersion".into(), version.into());
            }
            set_at(&mut object, &fields(row).0, replicas)?;
            let list = managers.to_parent(scale["metadata"].get("managedFields")).map_err(unreadable)?;
            set_managed_fields(&mut object, list);
            Ok(Computed { object: Checked::composed(row, object)?, warnings, owners: Owners::Recorded })
        })?;
        let object = match &updated.content {
            Content::Stored(stored) => stored.parse().map_err(Status::internal)?,
            Content::Value(value) => value.clone(),
            _ => Value::Null,
        };
        Ok(Answer::ok(Content::Value(shown(scale_of(row, &object)?))).warning(updated.warnings))
    }

    /// Gives the replicas to the manager of the request, if it changes them.
    fn record_owners_of_scale(&self, call: &Call, live: &Value, scale: &mut Value) {
        let now = self.clock.now().to_string();
        let writer = Writer { manager: &call.manager, now: &now };
        schema::complete("autoscaling", "v1", "Scale", scale);
        if let Err(error) = scale_managers(|managers| managers.update(Some(live), scale, writer)) {
            tracing::warn!(namespace = call.namespace, name = call.name, %error, "managedFields could not be updated");
        }
    }

    /// Returns the path of the replicas in each version of a kind; none for a version without scale.
    fn replicas_paths(&self, row: &Row) -> Vec<(String, Option<merge::Path>)> {
        let path = |row: &Row| {
            let has_scale = row.custom.as_ref().is_none_or(|custom| custom.scale.is_some());
            let field = fields(row).0;
            let names = field.split('.').filter(|name| !name.is_empty());
            (row.resource.api_version().into_owned(), has_scale.then(|| merge::Path::of_fields(names)))
        };
        let others = self.other_versions(row);
        others.iter().map(|other| path(other)).chain([path(row)]).collect()
    }
}

/// Hands over what keeps the owners of a Scale.
fn scale_managers<T>(work: impl FnOnce(FieldManager<'_>) -> T) -> T {
    static VERSIONS: LazyLock<OneVersion> = LazyLock::new(|| OneVersion {
        api_version: "autoscaling/v1".to_owned(),
        schema: built_in_schema("autoscaling", "v1", "Scale").unwrap_or_else(Schema::deduced),
    });
    let versions: &OneVersion = &VERSIONS;
    let api_version = &versions.api_version;
    work(FieldManager { api_version, kind: "Scale", subresource: SCALE, versions, filters: &[] })
}

/// A new scale, computed from the present one; it has been through [`checked`].
type Change<'a> = dyn FnMut(&Value) -> Result<(Value, Vec<String>, Owners), Status> + 'a;

/// Checks a decoded Scale: its kind (the inner result), and the types of its fields (the outer one).
fn checked(decoded: Decoded, validation: FieldValidation) -> Result<Result<(Value, Vec<String>), Status>, Problem> {
    let Decoded { value: mut scale, duplicates } = decoded;
    if let Err(status) = super::subresource::check_kind(&scale, "autoscaling", "v1", "Scale") {
        return Ok(Err(status));
    }
    let warnings = schema::check_with("autoscaling", "v1", "Scale", &mut scale, duplicates, validation)?;
    Ok(Ok((scale, warnings)))
}

/// Nobody can have less than nothing. A custom resource is blamed itself.
fn check_replicas(call: &Call, replicas: i64) -> Result<(), Status> {
    let row = &*call.row;
    if replicas >= 0 {
        return Ok(());
    }
    if row.custom.is_some() && replicas == REPLICAS_UNSET {
        let message = format!("the spec replicas field {:?} cannot be empty", fields(row).0);
        return Err(Status::bad_request(message));
    }
    let (kind, path, detail) = match row.custom {
        Some(_) => (row.kind(), Path::new(&fields(row).0), "should be a non-negative integer"),
        None => {
            let kind = GroupResource { group: "autoscaling", resource: "Scale" };
            (kind, Path::new("spec").child("replicas"), "must be greater than or equal to 0")
        }
    };
    Err(Status::invalid(kind, &call.name, &[FieldError::invalid(&path, replicas, detail)]))
}

/// Paths of replicas wanted, replicas there and, for custom resources, the selector.
fn fields(row: &Row) -> (String, String, Option<String>) {
    match row.custom.as_ref().and_then(|custom| custom.scale.clone()) {
        Some(scale) => (scale.spec, scale.status, Some(scale.selector)),
        None => (".spec.replicas".to_owned(), ".status.replicas".to_owned(), None),
    }
}

/// Sets a number; maps on the way are made, and anything else on the way is an error.
fn set_at(object: &mut Value, path: &str, number: i64) -> Result<(), Status> {
    let mut held = object;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        if held.is_null() {
            *held = json!({});
        }
        let map = held.as_object_mut();
        held = map.ok_or_else(|| wrong_type(path, "a map is needed"))?.entry(name).or_insert(Value::Null);
    }
    *held = number.into();
    Ok(())
}

fn value_at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|name| !name.is_empty()).fold(object, |value, name| &value[name])
}

/// A number of a custom resource, which nobody has checked.
fn number_at(object: &Value, path: &str) -> Result<Option<i64>, Status> {
    match value_at(object, path) {
        Value::Null => Ok(None),
        value => value.as_i64().map(Some).ok_or_else(|| wrong_type(path, &format!("{value} is no int64"))),
    }
}

fn wrong_type(path: &str, why: &str) -> Status {
    Status::bad_request(format!("{path} accessor error: {why}"))
}

/// The scale of an object.
///
/// # Errors
/// What a custom resource has at its paths are no numbers.
fn scale_of(row: &Row, object: &Value) -> Result<Value, Status> {
    let (wanted, there, selector) = fields(row);
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {}, "status": {}});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            scale["metadata"][field] = value.clone();
        }
    }
    if let Some(replicas) = number_at(object, &wanted)? {
        scale["spec"]["replicas"] = replicas.into();
    }
    scale["status"]["replicas"] = number_at(object, &there)?.unwrap_or(0).into();
    let selector = match selector {
        Some(path) if path.is_empty() => None,
        Some(path) => value_at(object, &path).as_str().map(str::to_owned),
        None => Some(selector_text(&object["spec"]["selector"])),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    Ok(scale)
}

/// A scale as Go writes it: no replicas are not written.
fn shown(mut scale: Value) -> Value {
    if scale["spec"]["replicas"] == 0
        && let Some(spec) = scale["spec"].as_object_mut()
    {
        spec.remove("replicas");
    }
    scale
}

/// A selector as a query has it. A ReplicationController's is a plain map.
fn selector_text(selector: &Value) -> String {
    let is_plain = selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let declared = if is_plain { json!({"matchLabels": selector}) } else { selector.clone() };
    let declared: Option<LabelSelector> = serde_json::from_value(declared).ok();
    declared.and_then(|declared| declared.compile().ok()).map(|selector| selector.to_string()).unwrap_or_default()
}
