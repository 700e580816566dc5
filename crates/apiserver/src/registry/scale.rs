//! `scale`: replicas wanted and there, the same for every kind that has them.

use serde_json::{Value, json};
use steersman_base::LabelSelector;

use super::fit::wrong_uid;
use super::life::{meta_text, metadata};
use super::write::{Part, Updated};
use super::{Answer, Call, Content, Registry, Row};
use crate::decode::{self, ContentType};
use crate::field::{FieldError, Path};
use crate::patch::{self, PatchType};
use crate::schema;
use crate::status::{GroupResource, Status};

impl Registry {
    /// GET of a scale.
    pub(super) fn get_scale(&self, call: &Call) -> Result<Answer, Status> {
        let row = &*call.row;
        let stored = self.store.get(&row.shelf, &call.key());
        let object = stored.ok_or_else(|| Status::not_found(row.target(), &call.name))?.parse();
        Ok(Answer::ok(Content::Value(scale_of(row, &object.map_err(Status::internal)?))))
    }

    /// PUT of a scale.
    pub(super) fn put_scale(&self, call: &Call, body: &[u8], content_type: ContentType) -> Result<Answer, Status> {
        let decoded =
            decode::object(body, content_type).map_err(|error| Status::bad_request(error.message("Scale")))?;
        let mut scale = decoded.value;
        super::subresource::check_kind(&scale, "autoscaling", "v1", "Scale")?;
        let checked =
            schema::check_with("autoscaling", "v1", "Scale", &mut scale, decoded.duplicates, call.field_validation);
        let warnings = checked.map_err(|problem| Status::bad_request(problem.message("v1", "Scale")))?;
        self.set_scale(call, &mut |_| Ok(scale.clone())).map(|answer| answer.warning(warnings))
    }

    /// PATCH of a scale.
    pub(super) fn patch_scale(&self, call: &Call, kind: PatchType, body: &[u8]) -> Result<Answer, Status> {
        self.set_scale(call, &mut |current| {
            patch::apply(kind, "autoscaling", "v1", "Scale", current, body).map_err(Status::from)
        })
    }

    fn set_scale(
        &self,
        call: &Call,
        change: &mut dyn FnMut(&Value) -> Result<Value, Status>,
    ) -> Result<Answer, Status> {
        let row = &*call.row;
        let updated: Updated = self.update(call, Part::Whole, &mut |old| {
            let Some(old) = old else { return Err(Status::not_found(row.target(), &call.name)) };
            let scale = change(&scale_of(row, old))?;
            let name = meta_text(&scale, "name");
            if !name.is_empty() && name != call.name {
                let message =
                    format!("the name of the object ({name}) does not match the name on the URL ({})", call.name);
                return Err(Status::bad_request(message));
            }
            let (uid, held) = (meta_text(&scale, "uid"), meta_text(old, "uid"));
            if !uid.is_empty() && uid != held {
                return Err(wrong_uid(call, uid, held));
            }
            let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
            check_replicas(call, replicas)?;
            let mut object = old.clone();
            let version = meta_text(&scale, "resourceVersion").to_owned();
            if !version.is_empty() {
                metadata(&mut object).insert("resourceVersion".into(), version.into());
            }
            *at_path(&mut object, &paths(row).0) = replicas.into();
            Ok((object, Vec::new()))
        })?;
        let object = match &updated.content {
            Content::Stored(stored) => stored.parse().map_err(Status::internal)?,
            Content::Value(value) => value.clone(),
            _ => Value::Null,
        };
        Ok(Answer::ok(Content::Value(scale_of(row, &object))).warning(updated.warnings))
    }
}

/// Nobody can have less than nothing. A custom resource is blamed itself.
fn check_replicas(call: &Call, replicas: i64) -> Result<(), Status> {
    let row = &*call.row;
    if replicas >= 0 {
        return Ok(());
    }
    let (kind, path, detail) = match row.custom {
        Some(_) => (row.kind(), Path::new(&paths(row).0), "should be a non-negative integer"),
        None => {
            let kind = GroupResource { group: "autoscaling", resource: "Scale" };
            (kind, Path::new("spec").child("replicas"), "must be greater than or equal to 0")
        }
    };
    Err(Status::invalid(kind, &call.name, &[FieldError::invalid(&path, replicas, detail)]))
}

/// Paths of replicas wanted, replicas there and, for custom resources, the selector.
fn paths(row: &Row) -> (String, String, Option<String>) {
    match row.custom.as_ref().and_then(|custom| custom.scale.clone()) {
        Some(scale) => (scale.spec, scale.status, Some(scale.selector)),
        None => (".spec.replicas".to_owned(), ".status.replicas".to_owned(), None),
    }
}

fn at_path<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').filter(|name| !name.is_empty()).fold(object, |value, name| {
        if !value.is_object() {
            *value = json!({});
        }
        &mut value[name]
    })
}

fn value_at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|name| !name.is_empty()).fold(object, |value, name| &value[name])
}

fn scale_of(row: &Row, object: &Value) -> Value {
    let (wanted, there, selector) = paths(row);
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {}, "status": {}});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            scale["metadata"][field] = value.clone();
        }
    }
    if let Some(replicas) = value_at(object, &wanted).as_i64() {
        scale["spec"]["replicas"] = replicas.into();
    }
    scale["status"]["replicas"] = value_at(object, &there).as_i64().unwrap_or(0).into();
    let selector = match selector {
        Some(path) if path.is_empty() => None,
        Some(path) => value_at(object, &path).as_str().map(str::to_owned),
        None => Some(selector_text(&object["spec"]["selector"])),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        scale["status"]["selector"] = selector.into();
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
