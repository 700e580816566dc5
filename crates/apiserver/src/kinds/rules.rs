//! The rule set of a kind: all that the server knows about a kind besides its schema.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::core::service::{AllocateError, Reservation};
use super::shared::meta::{NameRule, validate_meta};
use crate::auth::User;
use crate::decode::ContentType;
use crate::field::Errors;
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::registry::{Answer, Call, Registry};
use crate::status::Status;
use crate::store::Object;
use crate::table::Printer;

/// The rule set of a kind. A kind without rules of its own has [`Rules::DEFAULT`] and its schema.
///
/// Functions over objects are pure and take objects of any shape: a value of the wrong type counts as absent, because the
/// schema has refused it before. `old` is the stored object, none for a create.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The rule for names of objects.
    pub(crate) name: NameRule,
    /// Whether an update checks all of the metadata that a create checks.
    pub(crate) rechecks_meta: bool,
    /// Sets fields that the object leaves out. Idempotent: it runs on creates, updates and after patches, as upstream's
    /// decoding does.
    pub(crate) default: fn(&mut Value),
    /// Sets the times that the object leaves out, in a create and in an update.
    pub(crate) timed: Option<fn(&mut Value, now: &str)>,
    /// Adds what upstream's conversion from its internal form adds to an object: its owners are recorded, too.
    pub(crate) converted: Option<fn(&mut Value)>,
    /// Sets, keeps or drops the fields that are not the client's, before validation. On a create, `metadata.uid` and
    /// `metadata.creationTimestamp` are set.
    pub(crate) prepare: fn(new: &mut Value, old: Option<&Value>),
    /// Refuses what the user of a request may not write, whatever their role says of the kind. Runs before validation.
    pub(crate) confirm: fn(&Registry, &Call, new: &Value, old: Option<&Value>) -> Result<(), Status>,
    /// Records in a new object which user creates it.
    pub(crate) record_user: fn(new: &mut Value, user: &User),
    /// Reserves what there is only one of in the cluster: addresses and ports of Services.
    pub(crate) allocate: Option<Allocate>,
    /// Checks the object, and the change from the old one, in upstream's order and words; metadata is checked before.
    pub(crate) validate: fn(new: &Value, old: Option<&Value>, errors: &mut Errors),
    /// Adds the warnings about a valid object, or about the change from the old one.
    pub(crate) warn: fn(new: &Value, old: Option<&Value>, warnings: &mut Vec<String>),
    /// Checks an object that the server has composed on behalf of a subresource (a binding, an eviction); metadata is
    /// checked before.
    pub(crate) validate_composed: fn(new: &Value, errors: &mut Errors),
    /// The rules of a write of the status.
    pub(crate) status: PartRules,
    /// Checks a valid status by what only the server knows: who writes it, and the time.
    pub(crate) judge_status: fn(&Registry, &Call, new: &Value, old: &Value, errors: &mut Errors),
    /// The fields that a write of the object leaves as they are, if the status is written through its subresource.
    pub(crate) resets: &'static [&'static str],
    /// The admission plug-ins of the kind.
    pub(crate) admission: Admission,
    /// The strategy: the ways in which creates, updates and deletions differ from the usual ones.
    pub(crate) strategy: Strategy,
    /// The stored form, if it is not the served one.
    pub(crate) stored_as: Option<StoredAs>,
    /// The part of upstream's etcd keys that stands for the resource, if it is not the plural. Some errors show it.
    pub(crate) etcd_prefix: Option<&'static str>,
    /// The subresources besides `status` and `scale`.
    pub(crate) subresources: &'static [(&'static str, Handler)],
    /// Handles a POST, for kinds that are not stored: reviews and bindings.
    pub(crate) create: Option<Create>,
    /// Whether a write is heavy, however few bytes it has.
    pub(crate) is_heavy: bool,
    /// Runs after an object has been stored.
    pub(crate) after_write: fn(&Registry, &Arc<Object>),
    /// Runs after an object has been deleted.
    pub(crate) after_delete: fn(&Registry, &Value),
    /// The columns and cells in tables.
    pub(crate) printer: Printer,
}

/// The rules of a write of one part of an object, through its subresource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartRules {
    /// Takes the part from the new object and the rest from the old one; `now` is the time of the write.
    pub(crate) prepare: fn(new: &mut Value, old: &Value, now: &str),
    /// Checks the changed object, metadata included.
    pub(crate) validate: fn(new: &Value, old: &Value, errors: &mut Errors),
    /// Whether a change increments the generation.
    pub(crate) raises_generation: bool,
    /// The fields that such a write leaves as they are.
    pub(crate) resets: Resets,
}

/// The fields that a write leaves as they are, whatever it says of them: nobody comes to own them by it. Names are joined
/// by dots, and `*` stands for any element of a list. Upstream's `GetResetFields` and `GetResetFieldsFilter`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resets {
    /// These and all below them.
    These(&'static [&'static str]),
    /// All but these and what is below them.
    AllBut(&'static [&'static str]),
}

/// The stored form of a kind that is served in several forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredAs {
    /// The group under which objects are stored.
    pub(crate) group: &'static str,
    /// The version in which objects are stored.
    pub(crate) version: &'static str,
    /// Changes a served object to the stored form, `apiVersion` aside.
    pub(crate) to_storage: fn(&mut Map<String, Value>),
    /// Changes a stored object to the served form, `apiVersion` aside.
    pub(crate) to_version: fn(&mut Map<String, Value>),
    /// Returns the stored name of a selectable field; none if the served form does not have it.
    pub(crate) field: fn(&str) -> Option<Cow<'_, str>>,
}

/// The handler of a subresource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handler {
    /// GET returns the object; PUT and PATCH write one part of it.
    Part(&'static PartRules),
    /// GET is answered by this function.
    Get(fn(&Registry, &Call) -> Result<Answer, Status>),
    /// POST is answered by this function.
    Create(Create),
}

/// Handles the POST of a body.
pub(crate) type Create = fn(&Registry, &Call, body: &[u8], ContentType) -> Result<Answer, Status>;

/// Reserves what an object needs.
pub(crate) type Allocate =
    for<'a> fn(&'a Registry, &mut Value, Option<&Value>) -> Result<Reservation<'a>, AllocateError>;

// === impl Rules ===

impl Rules {
    /// The rules of a kind about which nothing is special.
    pub(crate) const DEFAULT: Self = Self::named(NameRule::Subdomain);

    /// The rules of a kind with this rule for names.
    pub(crate) const fn named(name: NameRule) -> Self {
        Self {
            name,
            rechecks_meta: false,
            default: |_| (),
            converted: None,
            timed: None,
            prepare: |_, _| (),
            confirm: |_, _, _, _| Ok(()),
            record_user: |_, _| (),
            allocate: None,
            validate: |_, _, _| (),
            warn: |_, _, _| (),
            validate_composed: |_, _| (),
            status: PartRules::DEFAULT,
            judge_status: |_, _, _, _, _| (),
            resets: &["status"],
            admission: Admission::NONE,
            strategy: Strategy::DEFAULT,
            stored_as: None,
            etcd_prefix: None,
            subresources: &[],
            create: None,
            is_heavy: false,
            after_write: |_, _| (),
            after_delete: |_, _| (),
            printer: Printer::DEFAULT,
        }
    }

    /// Checks all metadata on updates, too.
    pub(crate) const fn rechecked(mut self) -> Self {
        self.rechecks_meta = true;
        self
    }

    /// Sets the defaults.
    pub(crate) const fn defaulted(mut self, default: fn(&mut Value)) -> Self {
        self.default = default;
        self
    }

    /// Sets the times that the object leaves out.
    pub(crate) const fn timed(mut self, set: fn(&mut Value, &str)) -> Self {
        self.timed = Some(set);
        self
    }

    /// Sets what upstream's conversion adds.
    pub(crate) const fn converted(mut self, add: fn(&mut Value)) -> Self {
        self.converted = Some(add);
        self
    }

    /// Sets what a create or an update does before validation.
    pub(crate) const fn prepared(mut self, prepare: fn(&mut Value, Option<&Value>)) -> Self {
        self.prepare = prepare;
        self
    }

    /// Sets the validation.
    pub(crate) const fn validated(mut self, validate: fn(&Value, Option<&Value>, &mut Errors)) -> Self {
        self.validate = validate;
        self
    }

    /// Sets the warnings.
    pub(crate) const fn warned(mut self, warn: fn(&Value, Option<&Value>, &mut Vec<String>)) -> Self {
        self.warn = warn;
        self
    }

    /// Sets the validation of objects that the server has composed.
    pub(crate) const fn validated_when_composed(mut self, validate: fn(&Value, &mut Errors)) -> Self {
        self.validate_composed = validate;
        self
    }

    /// Sets what a write of the status does before validation.
    pub(crate) const fn status_prepared(mut self, prepare: fn(&mut Value, &Value, &str)) -> Self {
        self.status.prepare = prepare;
        self
    }

    /// Sets the validation of a written status; it includes the metadata.
    pub(crate) const fn status_validated(mut self, validate: fn(&Value, &Value, &mut Errors)) -> Self {
        self.status.validate = validate;
        self
    }

    /// Sets the checks of a valid status by what only the server knows.
    pub(crate) const fn status_judged(mut self, judge: fn(&Registry, &Call, &Value, &Value, &mut Errors)) -> Self {
        self.judge_status = judge;
        self
    }

    /// Sets the fields that a write of the status leaves as they are.
    pub(crate) const fn status_resets(mut self, fields: &'static [&'static str]) -> Self {
        self.status.resets = Resets::These(fields);
        self
    }

    /// Sets the fields that a write of the object leaves as they are.
    pub(crate) const fn resets(mut self, fields: &'static [&'static str]) -> Self {
        self.resets = fields;
        self
    }

    /// Sets the admission plug-ins.
    pub(crate) const fn admitted(mut self, admission: Admission) -> Self {
        self.admission = admission;
        self
    }

    /// Sets the strategy.
    pub(crate) const fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets the stored form.
    pub(crate) const fn stored_as(mut self, form: StoredAs) -> Self {
        self.stored_as = Some(form);
        self
    }

    /// Sets the prefix of upstream's etcd keys.
    pub(crate) const fn etcd_prefix(mut self, prefix: &'static str) -> Self {
        self.etcd_prefix = Some(prefix);
        self
    }

    /// Sets the subresources.
    pub(crate) const fn with_subresources(mut self, subresources: &'static [(&'static str, Handler)]) -> Self {
        self.subresources = subresources;
        self
    }

    /// Sets the cells of tables.
    pub(crate) const fn printed(mut self, cells: &'static [crate::table::Cell]) -> Self {
        self.printer.cells = Some(cells);
        self
    }

    /// Sets the conditions of table rows.
    pub(crate) const fn row_conditions(mut self, conditions: fn(&Value) -> Option<Value>) -> Self {
        self.printer.conditions = conditions;
        self
    }

    /// Leaves an annotation out of tables.
    pub(crate) const fn hiding_annotation(mut self, annotation: &'static str) -> Self {
        self.printer.hidden_annotation = Some(annotation);
        self
    }

    /// Sets what the user of a request must hold to write the object.
    pub(crate) const fn confirmed(
        mut self,
        confirm: fn(&Registry, &Call, &Value, Option<&Value>) -> Result<(), Status>,
    ) -> Self {
        self.confirm = confirm;
        self
    }

    /// Records the user that creates an object.
    pub(crate) const fn recording_user(mut self, record: fn(&mut Value, &User)) -> Self {
        self.record_user = record;
        self
    }

    /// Reserves what an object needs before it is validated.
    pub(crate) const fn allocating(mut self, allocate: Allocate) -> Self {
        self.allocate = Some(allocate);
        self
    }

    /// Sets what runs after an object has been stored.
    pub(crate) const fn after_write(mut self, run: fn(&Registry, &Arc<Object>)) -> Self {
        self.after_write = run;
        self
    }

    /// With writes that are heavy, however few bytes they have.
    pub(crate) const fn heavy(mut self) -> Self {
        self.is_heavy = true;
        self
    }

    /// Sets what runs after an object has been deleted.
    pub(crate) const fn after_delete(mut self, run: fn(&Registry, &Value)) -> Self {
        self.after_delete = run;
        self
    }

    /// The rules of a kind that is not stored: a POST is answered by this function.
    pub(crate) const fn not_stored(create: Create) -> Self {
        let mut rules = Self::DEFAULT;
        rules.create = Some(create);
        rules
    }

    /// Returns the handler of a subresource.
    pub(crate) fn handler(&self, subresource: &str) -> Option<Handler> {
        self.subresources.iter().find(|(name, _)| *name == subresource).map(|(_, handler)| *handler)
    }

    /// Returns all that is wrong with an object, or with the change from the old one: metadata, then what the kind checks.
    #[must_use]
    pub(crate) fn errors(&self, new: &Value, old: Option<&Value>) -> Errors {
        let mut errors = Errors::default();
        validate_meta(new, old, self.name, &mut errors);
        if old.is_some() && self.rechecks_meta {
            validate_meta(new, None, self.name, &mut errors);
        }
        (self.validate)(new, old, &mut errors);
        errors.without_repeats()
    }

    /// Returns all that is wrong with an object that the server has composed on behalf of a subresource. Which fields may
    /// change is the subresource's decision; the result must be valid.
    #[must_use]
    pub(crate) fn composed_errors(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::default();
        validate_meta(new, Some(old), self.name, &mut errors);
        (self.validate_composed)(new, &mut errors);
        errors.without_repeats()
    }
}

// === impl PartRules ===

impl PartRules {
    const DEFAULT: Self = Self {
        prepare: |_, _, _| (),
        validate: |new, old, errors| validate_meta(new, Some(old), NameRule::Subdomain, errors),
        raises_generation: false,
        resets: Resets::These(&["spec"]),
    };

    /// Returns all that is wrong with an object whose part has been written.
    #[must_use]
    pub(crate) fn errors(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = Errors::default();
        (self.validate)(new, old, &mut errors);
        errors.without_repeats()
    }
}
