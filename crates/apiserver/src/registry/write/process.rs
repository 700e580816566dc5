//! The middle of a write: what becomes of an object between its decoding and its storing.

use serde_json::Value;
use steersman_base::ObjectKey;
use steersman_structured_merge::keep_times_of_unchanged;

use super::{Owners, Part};
use crate::field::Errors;
use crate::kinds::core::service::{AllocateError, Reservation};
use crate::registry::admission::{self, Attributes};
use crate::registry::checked::{Checked, Processed};
use crate::registry::object_meta::{self, meta_text, metadata};
use crate::registry::owners::{set_managed_fields, take_managed_fields};
use crate::registry::scale::SCALE;
use crate::registry::strategy::Generation;
use crate::registry::{Call, Registry, Row, convert};
use crate::schema;
use crate::status::Status;
use crate::store::{DEPTH_MAX, is_too_deep};

/// The maximum number of generated names that are tried.
const GENERATED_NAMES_MAX: usize = 8;

impl Registry {
    /// Takes an object that has been decoded, checked and defaulted to the form in which it is stored.
    pub(crate) fn process(
        &self,
        call: &Call,
        checked: Checked,
        owners: Owners,
        stored: Option<&Value>,
        part: Part,
    ) -> Result<Processed<'_>, Status> {
        let row = &*call.row;
        let old = stored.map(|stored| Checked::stored(row, stored)).transpose()?;
        let old = old.as_deref();
        let mut object = checked.into_value();
        if let (Part::Whole, Some(set)) = (part, row.rules.timed) {
            set(&mut object, &self.clock.now().to_string());
        }
        if owners == Owners::Changes {
            if stored.is_none() {
                object_meta::remove_system_fields(&mut object);
            }
            self.record_owners(call, part, stored, &mut object)?;
        }
        if asks_webhooks(call, part) {
            object = self.mutated_by_webhooks(call, object, old, stored, part)?;
        }
        if matches!(part, Part::Whole) {
            (row.rules.confirm)(self, call, &object, old)?;
        }
        if stored.is_none() && meta_text(&object, "name").is_empty() && !meta_text(&object, "generateName").is_empty() {
            let name = self.free_name(call, meta_text(&object, "generateName"));
            metadata(&mut object).insert("name".into(), name.into());
        }

        let reservation = self.prepare_and_mutate(call, &mut object, old, part)?;
        if let Some(stored) = stored {
            // Owners are no content, and may be large.
            let owners = take_managed_fields(&mut object);
            let is_next = part.raises_generation() && is_next_generation(row, &object, stored, old)?;
            set_managed_fields(&mut object, owners);
            object_meta::keep_system_fields(&mut object, stored, is_next);
        }
        object_meta::normalize(&mut object);

        let mut warnings = Vec::new();
        let mut errors = errors(row, &object, old, part, &mut warnings);
        if let (Part::Status, Some(old), true) = (part, old, errors.is_empty()) {
            (row.rules.judge_status)(self, call, &object, old, &mut errors);
        }
        if !errors.is_empty() {
            return Err(Status::invalid(row.kind(), meta_text(&object, "name"), &errors));
        }
        if matches!(part, Part::Whole) {
            (row.rules.warn)(&object, old, &mut warnings);
        }
        let admitted = admission::validate(self, call, &object, old, &mut warnings);
        admitted.map_err(|status| status.warning(&warnings))?;
        if asks_webhooks(call, part) {
            let before = stored.map(|stored| convert::to_version(row, stored.clone())).transpose()?;
            self.ask_validating(call, &Attributes::written(call, object.clone(), before))?;
        }

        complete(row, &mut object)?;
        if let Some(stored) = stored {
            keep_times_of_unchanged(stored, &mut object);
        }
        Ok(Processed { object, reservation, warnings })
    }

    /// Returns what mutating webhooks make of an object.
    fn mutated_by_webhooks(
        &self,
        call: &Call,
        mut object: Value,
        old: Option<&Value>,
        stored: Option<&Value>,
        part: Part,
    ) -> Result<Value, Status> {
        if stored.is_none() {
            object_meta::remove_system_fields(&mut object);
        }
        let before = stored.map(|stored| convert::to_version(&call.row, stored.clone())).transpose()?;
        let mut attributes = Attributes::written(call, object, before);
        self.ask_mutating(call, &mut attributes, &mut |object| match part {
            Part::Whole => admission::mutate(self, call, object, old),
            _ => Ok(()),
        })?;
        let mut object = attributes.object.unwrap_or_default();
        if let (Some(warning), Some(session)) = (object_meta::dedup_owners(&mut object, true), &call.session) {
            session.warn(vec![warning]);
        }
        Ok(object)
    }

    /// Prepares the part that is written: sets and keeps the fields that are not the client's. A write of the whole goes
    /// through the mutating plug-ins, and reserves what the object needs.
    fn prepare_and_mutate(
        &self,
        call: &Call,
        object: &mut Value,
        old: Option<&Value>,
        part: Part,
    ) -> Result<Option<Reservation<'_>>, Status> {
        let row = &*call.row;
        let now = || self.clock.now().to_string();
        match (part, old) {
            (Part::Whole, _) => {
                match old {
                    Some(old) => object_meta::keep_status(row, object, old),
                    None => object_meta::initialize(row, object, self.clock.now()),
                }
                admission::mutate(self, call, object, old)?;
                (row.rules.prepare)(object, old);
                if old.is_none() {
                    (row.rules.record_user)(object, &call.user);
                }
                return self.reserve(row, object, old);
            }
            (Part::Status, Some(old)) => {
                *object = object_meta::merge_status(row, object, old);
                (row.rules.status.prepare)(object, old, &now());
            }
            (Part::Subresource(rules), Some(old)) => {
                let owners = take_managed_fields(object);
                (rules.prepare)(object, old, &now());
                set_managed_fields(object, owners);
            }
            (Part::Composed, _) | (_, None) => {}
        }
        Ok(None)
    }

    /// Reserves what the object needs: addresses and node ports of Services.
    fn reserve(&self, row: &Row, object: &mut Value, old: Option<&Value>) -> Result<Option<Reservation<'_>>, Status> {
        let Some(allocate) = row.rules.allocate else { return Ok(None) };
        match allocate(self, object, old) {
            Ok(reservation) => Ok(Some(reservation)),
            Err(AllocateError::Invalid(errors)) => Err(Status::invalid(row.kind(), meta_text(object, "name"), &errors)),
            Err(AllocateError::Full(message)) => Err(Status::internal(message)),
        }
    }

    /// Returns a generated name that no object has.
    fn free_name(&self, call: &Call, prefix: &str) -> String {
        let mut name = object_meta::generate_name(prefix);
        for _ in 1..GENERATED_NAMES_MAX {
            let key = ObjectKey::new(&call.namespace, &name);
            if self.store.get(&call.row.collection, &key).is_none() {
                break;
            }
            name = object_meta::generate_name(prefix);
        }
        name
    }
}

/// Whether webhooks are asked about the object itself. They are asked about the body of the request otherwise, or not at all.
fn asks_webhooks(call: &Call, part: Part) -> bool {
    call.session.is_some() && !matches!(part, Part::Composed) && call.subresource != SCALE
}

/// Returns all that is wrong with an object, or with the change of the part that is written; adds warnings about what was
/// wrong before.
fn errors(row: &Row, object: &Value, old: Option<&Value>, part: Part, warnings: &mut Vec<String>) -> Errors {
    let rules = row.rules;
    match (part, &row.custom, old) {
        (_, Some(custom), _) => custom.validate(object, old, matches!(part, Part::Status), warnings),
        (Part::Whole, None, _) | (_, None, None) => rules.errors(object, old),
        (Part::Status, None, Some(old)) => rules.status.errors(object, old),
        (Part::Subresource(part), None, Some(old)) => part.errors(object, old),
        (Part::Composed, None, Some(old)) => rules.composed_errors(object, old),
    }
}

/// Changes an object to its stored form, in which all fields are present that Go writes.
fn complete(row: &Row, object: &mut Value) -> Result<(), Status> {
    convert::to_storage(row, object)?;
    if row.custom.is_none() {
        let (group, version, kind) = convert::storage_kind(row);
        schema::complete(group, version, kind, object);
    }
    if is_too_deep(object) {
        let kind = &*row.resource.kind;
        let message = format!("{kind} cannot be stored: it is nested more than {DEPTH_MAX} levels deep");
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Whether a change increments the generation. Stored objects are complete, so the new one is completed before it is
/// compared.
fn is_next_generation(row: &Row, object: &Value, stored: &Value, old: Option<&Value>) -> Result<bool, Status> {
    let generation = row.rules.strategy.generation;
    if row.custom.is_some() || generation == Generation::None {
        // What a webhook converts is compared in the version of the request.
        let is_converted = row.custom.as_ref().is_some_and(|custom| custom.conversion.is_some());
        let before = old.filter(|_| is_converted).unwrap_or(stored);
        return Ok(object_meta::is_next_generation(generation, object, before, object_meta::content_differs));
    }
    let kind = convert::storage_kind(row);
    let differs = |object: &Value, stored: &Value| !schema::completes_to(kind, object, stored, object_meta::is_content);
    if convert::is_storage_version(row) {
        return Ok(object_meta::is_next_generation(generation, object, stored, differs));
    }
    let mut converted = object.clone();
    convert::to_storage(row, &mut converted)?;
    Ok(object_meta::is_next_generation(generation, &converted, stored, differs))
}

// === impl Part ===

impl Part {
    /// Whether a change of this part increments the generation.
    fn raises_generation(self) -> bool {
        match self {
            Self::Whole => true,
            Self::Subresource(rules) => rules.raises_generation,
            Self::Status | Self::Composed => false,
        }
    }
}
