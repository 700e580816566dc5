//! Who owns which fields: `metadata.managedFields` of every write, and server-side apply.
//!
//! 1. Every write that a request makes, through whichever path, ends with the owners that kube-apiserver would record for
//!    it: see [`steersman_structured_merge::manager`]. What the server does on its own moves nothing.
//! 2. A write never fails because owners cannot be recorded; it keeps those that there were. An apply fails.
//! 3. The types of a resource's fields are read when it is first written, once for all requests.
//!
//! Objects are compared in the form in which Go has them ([`schema::complete`]), in the version of the request. Follows
//! `apiserver/pkg/endpoints/handlers/{create,update,patch}.go` of Kubernetes 1.37.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use steersman_base::Resource;
use steersman_structured_merge::{
    ApplyError, Conflicts, Definitions, FieldManager, FieldSet, Filter, Path, PathElement, Pattern, Schema, Versions,
    Writer,
};

use super::checked::Checked;
use super::object_meta::{meta_text, metadata};
use super::request_match::{check_name, check_namespace};
use super::write::{Computed, Owners, Part};
use super::{Answer, Call, Registry, Row, built_in, convert};
use crate::decode::{self, Decoded};
use crate::kinds::Resets;
use crate::schema::{self, FieldValidation};
use crate::status::{Cause, Details, Status};

/// The manager of what the server writes as a client of itself.
pub(crate) const SERVER_ITSELF: &str = "kube-apiserver";
const MANAGED_FIELDS: &str = "managedFields";

/// The types of a resource's fields, read when they are first asked for.
#[derive(Debug, Default)]
pub(crate) struct FieldTypes(OnceLock<Option<Schema>>);

/// The kind of a row in all its versions.
struct Kind<'a> {
    registry: &'a Registry,
    row: &'a Row,
    /// The rows of the other versions, looked up when somebody owns a field in one of them.
    others: OnceCell<Vec<Arc<Row>>>,
}

/// A configuration that is applied.
pub(super) struct Config {
    pub(super) value: Value,
    duplicates: Vec<String>,
}

impl Registry {
    /// Answers an apply to an object or to a part of it; an object that is missing is created.
    pub(crate) fn apply(&self, call: &Call, part: Part, body: &[u8]) -> Result<Answer, Status> {
        let row = &*call.row;
        let config = Config::read(body)?;
        let now = self.clock.now().to_string();
        let updated = self.update_or_create(call, part, true, &mut |old| {
            let live = old.map(|old| served(row, old)).transpose()?;
            let writer = Writer { manager: &call.manager, now: &now };
            let applied = self.with_managers(call, part, |managers| {
                managers.apply(live.as_deref(), &config.value, writer, call.force).map_err(refused)
            })?;
            let decoded = Decoded { value: applied.object, duplicates: Vec::new() };
            let checked = Checked::applied(row, decoded);
            let (mut object, _) = checked.map_err(|error| error.of_apply(row, &config.value))?;
            let mut warnings = config.findings(call.field_validation)?;
            let uid = meta_text(&object, "uid");
            if old.is_none() && !uid.is_empty() {
                let why =
                    format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(Status::conflict(row.target(), &call.name, &why));
            }
            check_namespace(call, &mut object)?;
            check_name(call, &object)?;
            warnings.extend(object.dedup_owners(true));
            Ok(Computed { object, warnings, owners: Owners::Recorded })
        })?;
        Ok(updated.into())
    }

    /// Gives the fields that a write changes to its manager. `stored` is the object before it, and none for a create.
    ///
    /// # Errors
    /// The stored object cannot be converted to the version of the request.
    pub(crate) fn record_owners(
        &self,
        call: &Call,
        part: Part,
        stored: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), Status> {
        let row = &*call.row;
        let live = stored.map(|stored| served(row, stored)).transpose()?;
        let live = live.as_deref();
        let now = self.clock.now().to_string();
        let writer = Writer { manager: &call.manager, now: &now };
        let recorded = self.with_managers(call, part, |managers| {
            if row.rules.converted.is_none() && is_complete(row, object) {
                return managers.update(live, object, writer);
            }
            let given = take_managed_fields(object);
            let mut new = object.clone();
            set_managed_fields(&mut new, given);
            if let Some(add) = row.rules.converted {
                add(&mut new);
            }
            complete(row, &mut new);
            let recorded = managers.update(live, &mut new, writer);
            set_managed_fields(object, take_managed_fields(&mut new));
            recorded
        });
        if let Err(error) = recorded {
            tracing::warn!(
                kind = &*row.resource.kind, namespace = call.namespace, name = call.name, %error,
                "managedFields could not be updated"
            );
        }
        Ok(())
    }

    /// Gives the fields of a status that the server writes on its own to the server.
    pub(super) fn record_own_status(&self, row: Arc<Row>, stored: &Value, object: &mut Value) {
        let call = Call::by_server(row, meta_text(object, "namespace"), meta_text(object, "name"), "status");
        // Definitions are not converted.
        let _ = self.record_owners(&call, Part::Status, Some(stored), object);
    }

    /// Returns the rows of the other versions of a kind.
    pub(super) fn other_versions(&self, row: &Row) -> Vec<Arc<Row>> {
        let is_other = |other: &&Arc<Row>| {
            other.collection.name == row.collection.name
                && other.resource.kind == row.resource.kind
                && other.resource.api_version() != row.resource.api_version()
        };
        match row.custom {
            Some(_) => self.custom.read().values().filter(is_other).cloned().collect(),
            None if row.rules.stored_as.is_none() => Vec::new(),
            None => built_in().iter().filter(is_other).cloned().collect(),
        }
    }

    /// Hands over what keeps the owners of this request's kind, seen through its subresource.
    fn with_managers<T>(&self, call: &Call, part: Part, work: impl FnOnce(FieldManager<'_>) -> T) -> T {
        let row = &*call.row;
        let api_version = row.resource.api_version();
        let versions = Kind { registry: self, row, others: OnceCell::new() };
        let filter = filter(row, part);
        let all = versions.names_of_built_in();
        // The definition of a custom resource is asked for the version of the request only.
        let names = if all.is_empty() { vec![&*api_version] } else { all.iter().map(|name| &**name).collect() };
        let filters: Vec<(&str, Filter)> =
            filter.into_iter().flat_map(|filter| names.iter().map(move |name| (*name, filter.clone()))).collect();
        work(FieldManager {
            api_version: &api_version,
            kind: &row.resource.kind,
            subresource: &call.subresource,
            versions: &versions,
            filters: &filters,
        })
    }
}

/// Returns a stored object as Go has it in the version that the row serves.
pub(super) fn served<'a>(row: &Row, stored: &'a Value) -> Result<Cow<'a, Value>, Status> {
    if convert::is_storage_version(row) {
        return Ok(Cow::Borrowed(stored));
    }
    let mut object = convert::to_version(row, stored.clone())?;
    complete(row, &mut object);
    Ok(Cow::Owned(object))
}

/// Adds what Go writes even if it is zero; a custom resource has no Go type.
fn complete(row: &Row, object: &mut Value) {
    if row.custom.is_none() {
        let Resource { group, version, kind, .. } = &row.resource;
        schema::complete(group, version, kind, object);
    }
}

/// Whether [`complete`] would change nothing: then no copy is needed to record owners.
fn is_complete(row: &Row, object: &Value) -> bool {
    let Resource { group, version, kind, .. } = &row.resource;
    row.custom.is_some() || schema::is_complete(group, version, kind, object)
}

/// Takes the owners out of an object.
pub(super) fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(MANAGED_FIELDS)
}

/// Returns an object without its owners, which are not copied.
pub(super) fn without_managed_fields(object: &Value) -> Value {
    let copied = |except: &str, map: &Map<String, Value>| -> Map<String, Value> {
        map.iter().filter(|(name, _)| *name != except).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let Some(map) = object.as_object() else { return object.clone() };
    let mut plain = copied("metadata", map);
    if let Some(metadata) = map.get("metadata") {
        let metadata = metadata.as_object().map_or_else(|| metadata.clone(), |map| copied(MANAGED_FIELDS, map).into());
        plain.insert("metadata".to_owned(), metadata);
    }
    Value::Object(plain)
}

/// Sets the owners of an object, or removes them.
pub(super) fn set_managed_fields(object: &mut Value, list: Option<Value>) {
    match list {
        Some(list) => metadata(object).insert(MANAGED_FIELDS.to_owned(), list),
        None => metadata(object).remove(MANAGED_FIELDS),
    };
}

/// Returns which fields a write of this part changes; none if all.
fn filter(row: &Row, part: Part) -> Option<Filter> {
    let resets = match part {
        Part::Whole if row.has_status() => Resets::These(row.rules.resets),
        Part::Whole | Part::Composed => return None,
        Part::Status => row.rules.status.resets,
        Part::Subresource(rules) => rules.resets,
    };
    Some(match resets {
        Resets::These(fields) => {
            Filter::Exclude(FieldSet::from_paths(fields.iter().map(|field| Path::of_fields(field.split('.')))))
        }
        Resets::AllBut(fields) => Filter::Include(fields.iter().map(|field| pattern(field)).collect()),
    })
}

fn pattern(field: &str) -> Pattern {
    let element = |name: &str| (name != "*").then(|| PathElement::Field(name.into()));
    Pattern(field.split('.').map(element).collect())
}

/// Returns what a refused apply answers.
pub(super) fn refused(error: ApplyError) -> Status {
    match error {
        ApplyError::BadRequest(message) => Status::bad_request(message),
        ApplyError::Conflict(conflicts) => conflict(&conflicts),
        error @ (ApplyError::Config { .. } | ApplyError::Internal(_)) => Status::plain(error.to_string()),
    }
}

fn conflict(conflicts: &Conflicts) -> Status {
    let cause = |conflict: &steersman_structured_merge::Conflict| Cause {
        reason: "FieldManagerConflict",
        message: conflict.message(),
        field: conflict.path.to_string(),
    };
    let mut status = Status::new(409, "Conflict", conflicts.to_string());
    let causes = conflicts.shown().iter().map(cause).collect();
    status.details = Some(Box::new(Details { causes, ..Details::default() }));
    status
}

// === impl Config ===

impl Config {
    /// Reads the body of an apply.
    pub(super) fn read(body: &[u8]) -> Result<Self, Status> {
        let Decoded { value, duplicates } =
            decode::yaml(body).map_err(|error| Status::bad_request(format!("error encoding patch: {error}")))?;
        let value = match value {
            Value::Null => Value::Object(Map::new()),
            Value::Object(_) => value,
            other => {
                let found = decode::type_name(&other);
                return Err(Status::bad_request(format!(
                    "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} \
                     into Go value of type map[string]interface {{}}"
                )));
            }
        };
        Ok(Self { value, duplicates })
    }

    /// Returns the warnings about keys that are written twice, or the error if the request wants none.
    pub(super) fn findings(&self, validation: FieldValidation) -> Result<Vec<String>, Status> {
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            _ if self.duplicates.is_empty() => Ok(Vec::new()),
            FieldValidation::Warn => Ok(self.duplicates.clone()),
            FieldValidation::Strict => {
                let message = format!("error strict decoding patch: {}", self.duplicates.join(", "));
                Err(Status::bad_request(message))
            }
        }
    }
}

// === impl FieldTypes ===

impl FieldTypes {
    /// Returns the types; none for a kind that has no schema.
    pub(super) fn of<'a>(&'a self, row: &Row) -> Option<&'a Schema> {
        self.0
            .get_or_init(|| match &row.custom {
                Some(custom) => Some(custom_schema(row, &custom.document, custom.preserves_unknown)),
                None => {
                    let Resource { group, version, kind, .. } = &row.resource;
                    built_in_schema(group, version, kind)
                }
            })
            .as_ref()
    }
}

/// Reads the types of a built-in kind: its schema, and all that it refers to.
pub(crate) fn built_in_schema(group: &str, version: &str, kind: &str) -> Option<Schema> {
    let name = schema::name_of(group, version, kind)?;
    let mut found: BTreeMap<&str, Value> = BTreeMap::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        if found.contains_key(name.as_str()) {
            continue;
        }
        let (name, text) = schema::document(&name)?;
        let document = serde_json::from_str(text).ok()?;
        schema::collect_references(&document, &mut open);
        found.insert(name, document);
    }
    let definitions = Definitions::from_schemas(found.iter().map(|(name, schema)| (*name, schema)));
    let schema = definitions.inspect_err(|error| tracing::error!(kind, %error, "the kind has no types")).ok()?;
    let mut zero = Value::Object(Map::new());
    schema::complete(group, version, kind, &mut zero);
    Some(schema.schema(name)?.with_zero(zero))
}

/// Reads the types of a custom resource. What cannot be read has none: objects are granular, lists are not.
fn custom_schema(row: &Row, declared: &Value, preserves_unknown: bool) -> Schema {
    if declared.is_null() {
        return Schema::deduced();
    }
    let mut declared = Cow::Borrowed(declared);
    if preserves_unknown && let Some(map) = declared.to_mut().as_object_mut() {
        map.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    }
    Schema::custom_resource(Some(&declared)).unwrap_or_else(|error| {
        tracing::warn!(kind = &*row.resource.kind, %error, "the schema says nothing of how fields are merged");
        Schema::deduced()
    })
}

// === impl Kind ===

impl Kind<'_> {
    /// The rows of the other versions.
    fn others(&self) -> &[Arc<Row>] {
        self.others.get_or_init(|| self.registry.other_versions(self.row))
    }

    /// The names of all versions of a built-in kind that has several.
    fn names_of_built_in(&self) -> Vec<Cow<'_, str>> {
        if self.row.custom.is_some() || self.row.rules.stored_as.is_none() {
            return Vec::new();
        }
        let others = self.others().iter().map(|row| row.resource.api_version());
        others.chain([self.row.resource.api_version()]).collect()
    }

    fn row_of(&self, api_version: &str) -> Option<&Row> {
        if self.row.resource.api_version() == api_version {
            return Some(self.row);
        }
        self.others().iter().find(|row| row.resource.api_version() == api_version).map(|row| &**row)
    }
}

impl Versions for Kind<'_> {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        let row = self.row_of(api_version)?;
        row.field_types.of(row)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let from = object["apiVersion"].as_str().and_then(|version| self.row_of(version)).unwrap_or(self.row);
        let to = self.row_of(api_version).ok_or_else(|| format!("no version {api_version:?} is served"))?;
        let mut object = object.clone();
        let failed = |status: Status| status.message;
        convert::to_storage(from, &mut object).map_err(failed)?;
        let mut object = convert::to_version(to, object).map_err(failed)?;
        complete(to, &mut object);
        Ok(object)
    }
}
