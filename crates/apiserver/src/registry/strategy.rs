//! The strategy of a kind: how creates, updates and deletions of its objects differ from the usual ones.
//!
//! A strategy is part of a kind's [rule set](crate::kinds::Rules). Follows `pkg/registry/*/*/strategy.go` and `storage.go` of
//! Kubernetes 1.37.

use serde_json::Value;
use steersman_base::{Istr, Time};

use super::delete::{DeleteOptions, Deletion};
use crate::store::{Collection, HISTORY_EVENTS_MAX, HISTORY_EVENTS_SHORT};

/// The strategy of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strategy {
    /// The rule by which the generation is incremented.
    pub(crate) generation: Generation,
    /// The treatment of dependents if a DELETE has no propagation policy.
    pub(crate) dependents: Dependents,
    /// The warning of a DELETE without a propagation policy.
    pub(crate) propagation_warning: Option<&'static str>,
    /// Starts the deletion of an object: a grace period, or a mark that this kind alone has.
    pub(crate) begin_deletion: fn(object: &mut Value, options: &DeleteOptions, now: Time) -> Deletion,
    /// Whether a terminating object waits for more than `metadata.finalizers`.
    pub(crate) has_other_finalizers: fn(object: &Value) -> bool,
    /// Whether a DELETE returns the object instead of a status.
    pub(crate) returns_deleted: bool,
    /// Whether a PUT of a missing object creates it.
    pub(crate) create_on_update: bool,
    /// Whether a PUT without a resource version is accepted.
    pub(crate) unconditional_update: bool,
    /// Whether a POST keeps the status.
    pub(crate) status_on_create: bool,
    /// The fields of metadata that a write of the status does not change.
    pub(crate) status_keeps_metadata: &'static [&'static str],
    /// Whether an object without a name gets a random one.
    pub(crate) defaults_name: bool,
    /// The fields by which objects can be selected, besides name and namespace.
    pub(crate) selectable_fields: &'static [SelectableField],
    /// Old names of selectable fields, each with its present name.
    pub(crate) field_aliases: &'static [(&'static str, &'static str)],
    /// The seconds after which objects expire.
    pub(crate) ttl_seconds: Option<i64>,
    /// Whether objects change so often that their history is kept short.
    pub(crate) has_short_history: bool,
    /// The warning of every request.
    pub(crate) warning: Option<&'static str>,
    /// Whether the objects are namespaces: a request about one is authorized within it.
    pub(crate) is_namespace: bool,
}

/// The rule by which the generation of an object is incremented, besides at its deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// There is none.
    None,
    /// It stays 1.
    Once,
    /// Incremented when anything but metadata and status changes.
    Content,
    /// Incremented when anything but metadata and status changes; a new object has none.
    ContentFromNone,
    /// Incremented when anything but metadata and status, or an annotation changes.
    ContentOrAnnotations,
    /// Incremented when anything but metadata and status, or a label changes.
    ContentOrLabels,
}

/// The treatment of dependents when an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// They are deleted in the background.
    Delete,
    /// They become orphans.
    Orphan,
    /// There are none.
    Unsupported,
}

/// A field by which objects can be selected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectableField {
    /// The name in a field selector.
    pub(crate) name: &'static str,
    /// The path of the value in a stored object.
    path: &'static str,
    /// The value of an object that does not have the field.
    absent: &'static str,
}

/// The fields of metadata that belong to users: a status that is written alone leaves them as they are.
pub(crate) const USER_METADATA: &[&str] = &["labels", "annotations", "finalizers", "ownerReferences"];

// === impl Strategy ===

impl Strategy {
    /// The usual strategy.
    pub(crate) const DEFAULT: Self = Self {
        generation: Generation::None,
        dependents: Dependents::Delete,
        propagation_warning: None,
        begin_deletion: |_, _, _| Deletion::Immediate,
        has_other_finalizers: |_| false,
        returns_deleted: false,
        create_on_update: false,
        unconditional_update: true,
        status_on_create: false,
        status_keeps_metadata: &[],
        defaults_name: false,
        selectable_fields: &[],
        field_aliases: &[],
        ttl_seconds: None,
        has_short_history: false,
        warning: None,
        is_namespace: false,
    };
    /// The strategy of kinds whose generation counts changes of the spec.
    pub(crate) const GENERATION: Self = Self { generation: Generation::Content, ..Self::DEFAULT };
    /// The strategy of kinds whose DELETE returns the object.
    pub(crate) const RETURNS_DELETED: Self = Self { returns_deleted: true, ..Self::DEFAULT };

    /// Returns where the objects of a resource are stored.
    pub(crate) fn collection(&self, group: &str, plural: &str) -> Collection {
        let name = if group.is_empty() { Istr::interned(plural) } else { Istr::interned(&format!("{plural}.{group}")) };
        let history_events_max = if self.has_short_history { HISTORY_EVENTS_SHORT } else { HISTORY_EVENTS_MAX };
        Collection { name, history_events_max, ttl_seconds: self.ttl_seconds }
    }

    /// Returns the values of the selectable fields of an object.
    pub(crate) fn field_values(&self, object: &Value) -> Box<[Istr]> {
        self.selectable_fields.iter().map(|field| field.value(object)).collect()
    }
}

// === impl SelectableField ===

impl SelectableField {
    /// The field with this path, empty if it is absent.
    pub(crate) const fn at(path: &'static str) -> Self {
        Self { name: path, path, absent: "" }
    }

    /// The field with this value if it is absent.
    pub(crate) const fn or(mut self, absent: &'static str) -> Self {
        self.absent = absent;
        self
    }

    /// The field under another name in selectors.
    pub(crate) const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    fn value(&self, object: &Value) -> Istr {
        let found = self.path.split('.').try_fold(object, |value, name| value.get(name));
        match found {
            Some(Value::String(text)) => Istr::interned(text),
            Some(Value::Bool(flag)) => Istr::new(if *flag { "true" } else { "false" }),
            Some(Value::Number(number)) => Istr::new(&number.to_string()),
            _ => Istr::new(self.absent),
        }
    }
}
