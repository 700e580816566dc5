//! What a write does to the owners of fields.
//!
//! 1. **An update owns what it changes.** Fields that it adds or modifies go to its manager, and from all others; fields
//!    that it removes are nobody's. What stays as it was stays with its owners.
//! 2. **An apply owns what it says.** Its manager owns exactly the fields of the configuration. Fields that it owned before
//!    and no longer mentions are removed from the object, unless somebody else owns them.
//! 3. **Conflicts.** A field that an apply would change and others own fails the apply, with their names, unless it is
//!    forced; then they lose it. The same value is no conflict: it is owned together.
//! 4. **Time moves with change.** An entry's time is that of the last write that changed its fields by an update, or the
//!    object by an apply.
//! 5. **Never owned:** `apiVersion`, `kind`, and the metadata that the server sets.
//! 6. **Bounded.** More than [`UPDATE_MANAGERS_MAX`] managers of updates are folded into `ancient-changes`.
//! 7. **From client-side apply.** When `kubectl` applies, conflicts over fields that its last-applied annotation explains
//!    are no conflicts, and the annotation is kept up to date, so that `kubectl apply` works both ways. An object that
//!    nobody was recorded for gets `before-first-apply` as the manager of all it has.
//!
//! Follows `managedfields/` of apimachinery v0.37 and `merge/update.go` of structured-merge-diff v6.

mod cap;
mod last_applied;
mod owners;
mod prune;
mod times;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::conflict::Conflicts;
use crate::filter::Filter;
use crate::managed::{Entry, Managed, ManagedError, ManagerId, Operation};
use crate::path::Path;
use crate::set::FieldSet;
use crate::typed::{Duplicates, ValidationErrors};
use crate::value;
use crate::versions::Versions;

pub use cap::UPDATE_MANAGERS_MAX;
pub use times::keep_times_of_unchanged;

/// The manager of all that an object has when it is applied for the first time and nobody is known.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The longest name of a manager.
pub const MANAGER_BYTES_MAX: usize = 128;

/// Fields that are never owned.
static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let top = ["apiVersion", "kind", "metadata"].map(|name| Path::of_fields([name]));
    FieldSet::from_paths(top.into_iter().chain(metadata.map(|name| Path::of_fields(["metadata", name]))))
});

/// Keeps `metadata.managedFields` of one kind, written in one version through one subresource.
#[derive(Clone, Copy)]
pub struct FieldManager<'a> {
    /// The API version of the request: `apps/v1`.
    pub api_version: &'a str,
    /// The kind of the request's object.
    pub kind: &'a str,
    /// The subresource of the request; empty for the object itself.
    pub subresource: &'a str,
    /// The kind in all its versions.
    pub versions: &'a dyn Versions,
    /// The fields that such a request changes, by API version; all of them where there is no filter.
    pub filters: &'a [(&'a str, Filter)],
}

/// The writer, and the time of the write.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The name of the manager ([`manager_name`]).
    pub manager: &'a str,
    /// The time, as RFC 3339 text in seconds and UTC.
    pub now: &'a str,
}

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object to store, with its `managedFields`; defaults are not set yet.
    pub object: Value,
    /// Whether it differs from the live object, `managedFields` aside.
    pub changed: bool,
}

/// Why the owners of fields could not be brought up to date. The write itself goes on, and keeps the owners it had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The version of the request has no schema.
    #[error("no corresponding type for {0}")]
    NoSchema(String),
    /// An object does not fit its schema.
    #[error("failed to compare objects: {0}")]
    Compare(ValidationErrors),
    /// An object cannot be converted to the version in which somebody owns its fields.
    #[error("failed to convert object: {0}")]
    Convert(String),
}

/// Why an apply fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The request is malformed: 400.
    #[error("{0}")]
    BadRequest(String),
    /// Others own what would change: 409, with a cause for each conflict.
    #[error("{0}")]
    Conflict(Conflicts),
    /// The configuration does not fit the schema: upstream answers 500.
    #[error("failed to create typed patch object ({object}): {errors}")]
    Config {
        /// Namespace, name and kind.
        object: String,
        /// The errors.
        errors: ValidationErrors,
    },
    /// The live object does not fit the schema, or cannot be converted: upstream answers 500.
    #[error("{0}")]
    Internal(String),
}

/// The errors that end a change of owners.
pub(crate) enum OwnersError {
    Conflicts(Conflicts),
    Failed(UpdateError),
}

impl From<UpdateError> for OwnersError {
    fn from(error: UpdateError) -> Self {
        Self::Failed(error)
    }
}

impl From<OwnersError> for ApplyError {
    fn from(error: OwnersError) -> Self {
        match error {
            OwnersError::Conflicts(conflicts) => Self::Conflict(conflicts),
            OwnersError::Failed(error) => Self::Internal(error.to_string()),
        }
    }
}

/// Whether a character may be part of a manager's name: Go's `unicode.IsPrint`.
pub fn is_printable(c: char) -> bool {
    value::is_print(c)
}

/// The manager of a request: what it says, or what its user agent says before the first slash.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let mut name = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars().filter(|c| value::is_print(*c)) {
        if name.len() + c.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        name.push(c);
    }
    name
}

// === impl FieldManager ===

impl FieldManager<'_> {
    /// Brings `managedFields` of an object up to date that is created (`live` is `None`), replaced or patched. `new` is
    /// what will be stored, but for what admission and storage still set; its own `managedFields` count unless they are
    /// empty, broken, or came through a subresource. `[]` and `[{}]` give all fields up. Both objects are expected to
    /// fit their schema but for duplicates in lists: they are compared, not validated.
    ///
    /// # Errors
    ///
    /// The owners cannot be computed. `new` then has the `managedFields` of the live object, and is to be stored all the
    /// same.
    pub fn update(&self, live: Option<&Value>, new: &mut Value, writer: Writer<'_>) -> Result<(), UpdateError> {
        let given = take_managed_fields(new);
        let before = live.and_then(managed_fields);
        let mut managed = self.managers_to_start_from(before, given.as_ref());
        drop(given);
        // What nobody was recorded for stays so, but for new objects.
        if managed.is_empty() && live.is_some() {
            return Ok(());
        }
        let outcome = self.update_managed(live, new, &mut managed, writer);
        match outcome {
            Ok(()) => set_managed_fields(new, managed.encode()),
            Err(_) => set_managed_fields(new, before.cloned()),
        }
        outcome
    }

    /// The managers before a write: those of the live object, or those that the new one brings along.
    fn managers_to_start_from(&self, before: Option<&Value>, given: Option<&Value>) -> Managed {
        let live = || Managed::decode(before).unwrap_or_default();
        if !self.subresource.is_empty() {
            return live();
        }
        if given.is_some_and(is_reset) {
            return Managed::default();
        }
        match Managed::decode(given) {
            Ok(managed) if !managed.is_empty() => managed,
            _ => live(),
        }
    }

    /// Gives the fields that differ between two objects to a manager.
    fn update_managed(
        &self,
        live: Option<&Value>,
        new: &Value,
        managed: &mut Managed,
        writer: Writer<'_>,
    ) -> Result<(), UpdateError> {
        let taken = match self.take_changed(live, new, managed) {
            Ok(taken) => taken.without(&STRIPPED),
            Err(OwnersError::Failed(error)) => return Err(error),
            // Updates are forced.
            Err(OwnersError::Conflicts(_)) => FieldSet::default(),
        };
        if !taken.is_empty() {
            let id = self.id(writer.manager, Operation::Update);
            let fields = match managed.entries.get(&id) {
                Some(previous) => taken.union(&previous.fields),
                None => taken,
            };
            let time = Some(writer.now.to_owned());
            managed.entries.insert(id, Entry { api_version: self.api_version.to_owned(), fields, time });
        }
        cap::cap_update_managers(managed);
        Ok(())
    }

    /// Applies a configuration to the live object; `None` if there is none yet.
    ///
    /// # Errors
    ///
    /// The configuration is of another kind, does not fit the schema, or would change what others own.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        writer: Writer<'_>,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        self.check_config(config)?;
        let outcome = match live {
            Some(live) => self.apply_to(live, config, writer, force),
            None => {
                let nothing = json!({"apiVersion": self.api_version, "kind": self.kind});
                self.apply_managed(&nothing, config, Managed::default(), writer, force)
            }
        };
        if writer.manager != last_applied::KUBECTL {
            return outcome;
        }
        let mut applied = match (outcome, live) {
            (Err(ApplyError::Conflict(conflicts)), Some(live)) => {
                self.apply_over_last_applied(live, config, writer, conflicts)?
            }
            (outcome, _) => outcome?,
        };
        applied.changed |= last_applied::refresh(&mut applied.object, config);
        Ok(applied)
    }

    /// Applies once more by force, if the conflicts are over what client-side apply has set: its successor may take it.
    fn apply_over_last_applied(
        &self,
        live: &Value,
        config: &Value,
        writer: Writer<'_>,
        conflicts: Conflicts,
    ) -> Result<Applied, ApplyError> {
        let Some(explained) = self.explained_by_last_applied(live) else {
            return Err(ApplyError::Conflict(conflicts));
        };
        let left = conflicts.outside(&explained);
        if left.0.is_empty() { self.apply_to(live, config, writer, true) } else { Err(ApplyError::Conflict(left)) }
    }

    /// Applies a configuration to an object that exists.
    fn apply_to(&self, live: &Value, config: &Value, writer: Writer<'_>, force: bool) -> Result<Applied, ApplyError> {
        let mut managed = Managed::decode(managed_fields(live)).map_err(|error| undecodable(&error))?;
        if managed.is_empty() {
            let first = Writer { manager: BEFORE_FIRST_APPLY, ..writer };
            let failed = |error| ApplyError::Internal(format!("failed to create manager for existing fields: {error}"));
            self.update_managed(None, live, &mut managed, first).map_err(failed)?;
        }
        self.apply_managed(live, config, managed, writer, force)
    }

    fn apply_managed(
        &self,
        live: &Value,
        config: &Value,
        mut managed: Managed,
        writer: Writer<'_>,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let id = self.id(writer.manager, Operation::Apply);
        let merged = self.apply_owned(live, config, &mut managed, &id, force)?;
        if let Some(entry) = managed.entries.get_mut(&id) {
            entry.fields = std::mem::take(&mut entry.fields).without(&STRIPPED);
            if entry.fields.is_empty() {
                managed.entries.remove(&id);
            }
        }
        let changed = !value::equal(live, &merged);
        if let Some(entry) = managed.entries.get_mut(&id).filter(|_| changed) {
            entry.time = Some(writer.now.to_owned());
        }
        let mut object = merged;
        set_managed_fields(&mut object, managed.encode());
        Ok(Applied { object, changed })
    }

    fn check_config(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |name| config.get(name).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let kind = text("kind");
        if api_version != self.api_version || kind != self.kind {
            let message = format!("invalid object type: {}", gvk(api_version, kind));
            return Err(ApplyError::BadRequest(message));
        }
        if managed_fields(config).is_some_and(Value::is_array) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        let schema = self.schema().map_err(|error| ApplyError::Internal(error.to_string()))?;
        schema.validate(config, Duplicates::Refused).map_err(|errors| {
            let metadata = |name| config.get("metadata").and_then(|m| m.get(name)).and_then(Value::as_str);
            let namespace = metadata("namespace").unwrap_or_default();
            let name = metadata("name").unwrap_or_default();
            ApplyError::Config { object: format!("{namespace}/{name}; {}", gvk(api_version, kind)), errors }
        })
    }

    fn id(&self, manager: &str, operation: Operation) -> ManagerId {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        ManagerId::new(manager, operation, self.api_version, self.subresource)
    }

    fn filter(&self, api_version: &str) -> Option<&Filter> {
        self.filters.iter().find(|(version, _)| *version == api_version).map(|(_, filter)| filter)
    }
}

fn undecodable(error: &ManagedError) -> ApplyError {
    ApplyError::Internal(format!("failed to decode managed fields: {error}"))
}

/// Group, version and kind as Go prints them.
fn gvk(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') || api_version.is_empty() { "" } else { "/" };
    let api_version = if api_version.is_empty() { "/" } else { api_version };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Whether a list of managers means that all give up what they own: `[]` or `[{}]`.
fn is_reset(list: &Value) -> bool {
    match list.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn set_managed_fields(object: &mut Value, list: Option<Value>) {
    let Some(list) = list else {
        take_managed_fields(object);
        return;
    };
    let Some(object) = object.as_object_mut() else {
        return;
    };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), list);
    }
}
