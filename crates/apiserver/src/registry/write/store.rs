//! The end of a write: the processed object is stored, compared with the state from which it was computed.

use std::sync::Arc;

use serde_json::Value;
use steersman_base::{ObjectKey, StringMap};

use super::{Compute, Computed, Owners, Part, Updated};
use crate::auth::rbac;
use crate::registry::checked::Checked;
use crate::registry::object_meta::{meta_text, metadata};
use crate::registry::query::strings;
use crate::registry::request_match::{check_version, uid_conflict};
use crate::registry::{Call, Content, Registry, Row, admission, convert};
use crate::status::Status;
use crate::store::{Change, Draft, Expect, NewState, Object, WriteConflict};

/// The maximum number of times that an update is computed because other writes come between; more does not happen by
/// chance.
const ATTEMPTS_MAX: usize = 64;
/// The bytes of objects after which [`ATTEMPTS_MIN`] attempts are enough.
const ATTEMPTS_BYTES_MAX: usize = 16 << 20;
/// The number of times that the largest updates are computed: as often as upstream applies a patch.
const ATTEMPTS_MIN: usize = 5;

impl Registry {
    /// Processes and stores a new object.
    pub(super) fn create_once(
        &self,
        call: &Call,
        object: Checked,
        owners: Owners,
    ) -> Result<(Content, Vec<String>), Status> {
        let row = &*call.row;
        let has_version = !meta_text(&object, "resourceVersion").is_empty();
        let mut processed = self.process(call, object, owners, None, Part::Whole)?;
        let warnings = std::mem::take(&mut processed.warnings);
        let name = meta_text(&processed.object, "name").to_owned();
        let key = ObjectKey::new(&call.namespace, &name);
        if call.dry_run {
            self.check_quotas(call, &processed.object, None)?;
            return match self.store.get(&row.collection, &key) {
                Some(_) => Err(self.already_there(row, &key).warning(&warnings)),
                None => Ok((Content::Value(convert::to_version(row, processed.object)?), warnings)),
            };
        }
        // Upstream's store refuses it, which is not asked in a dry run.
        if has_version {
            return Err(Status::plain("resourceVersion should not be set on objects to be created"));
        }
        let write = (&key, Expect::Absent, processed.state(row));
        let committed = self.commit_charged(call, write, &processed.object, None)?;
        let stored = committed.map_err(|_| self.already_there(row, &key).warning(&warnings))?;
        processed.keep_reservation(self);
        (row.rules.after_write)(self, &stored);
        Ok((content(row, stored), warnings))
    }

    /// Returns the answer to a create of what exists: whoever waits for a deletion learns that it is under way.
    fn already_there(&self, row: &Row, key: &ObjectKey) -> Status {
        let mut status = Status::already_exists(row.target(), &key.name);
        let stored = self.store.get(&row.collection, key).and_then(|stored| stored.parse().ok());
        if stored.is_some_and(|stored| !meta_text(&stored, "deletionTimestamp").is_empty()) {
            status.message.insert_str(0, "object is being deleted: ");
        }
        status
    }

    /// [`update`](Self::update) that may create an object that is missing.
    pub(crate) fn update_or_create(
        &self,
        call: &Call,
        part: Part,
        may_create: bool,
        compute: &mut Compute<'_>,
    ) -> Result<Updated, Status> {
        let row = &*call.row;
        let key = call.key();
        let mut bytes = 0;
        for attempt in 0..ATTEMPTS_MAX {
            if attempt >= ATTEMPTS_MIN && bytes > ATTEMPTS_BYTES_MAX {
                break;
            }
            let Some(stored) = self.store.get(&row.collection, &key) else {
                if !may_create || !call.subresource.is_empty() {
                    return Err(Status::not_found(row.target(), &call.name));
                }
                return self.create_by_update(call, compute);
            };
            let old = stored.parse().map_err(Status::internal)?;
            let Computed { mut object, mut warnings, owners } = compute(Some(&old))?;
            let processed = check_version(call, &mut object, &stored)
                .and_then(|()| self.process(call, object, owners, Some(&old), part));
            let mut processed = processed.map_err(|status| status.warning(&warnings))?;
            warnings.append(&mut processed.warnings);
            let updated = |content: Content| Ok(Updated { content, is_new: false, warnings });
            let is_released = is_released(row, &processed.object, &old);
            if call.dry_run {
                self.check_quotas(call, &processed.object, Some(&old))?;
                return updated(Content::Value(convert::to_version(row, processed.object)?));
            }
            let expect = Expect::Revision(stored.revision);
            if is_released {
                if self.store.commit(&row.collection, &key, expect, Change::Delete(None)).is_err() {
                    continue;
                }
                let mut object = processed.object;
                (row.rules.after_delete)(self, &object);
                metadata(&mut object).insert("resourceVersion".into(), stored.revision.to_string().into());
                return updated(Content::Value(convert::to_version(row, object)?));
            }
            let state = processed.state(row);
            bytes += stored.len() + state.draft.len();
            if state.draft.is_unchanged_from(&stored) {
                return updated(content(row, stored));
            }
            match self.commit_charged(call, (&key, expect, state), &processed.object, Some(&old))? {
                Ok(stored) => {
                    processed.keep_reservation(self);
                    (row.rules.after_write)(self, &stored);
                    return updated(content(row, stored));
                }
                Err(WriteConflict::Gone) => return Err(Status::not_found(row.target(), &call.name)),
                // Another write came between: compute again from the new state, which is a conflict if the client named
                // the one it saw.
                Err(_) => {}
            }
        }
        Err(Status::modified(row.target(), &call.name))
    }

    /// Creates the object of a PUT or an apply.
    fn create_by_update(&self, call: &Call, compute: &mut Compute<'_>) -> Result<Updated, Status> {
        let row = &*call.row;
        let Computed { mut object, mut warnings, owners } = compute(None)?;
        if !meta_text(&object, "uid").is_empty() {
            return Err(uid_conflict(call, meta_text(&object, "uid"), ""));
        }
        // Whoever may update objects may not therefore create them.
        self.authorize(&call.user, &rbac::Attributes::create(row, &call.namespace, &call.name))?;
        object.unset_metadata("resourceVersion");
        admission::check_namespace(self, call, &object)?;
        let created = self.create_once(call, object, owners);
        let (content, of_kind) = created.map_err(|status| status.warning(&warnings))?;
        warnings.extend(of_kind);
        Ok(Updated { content, is_new: true, warnings })
    }
}

/// Whether a change removes the last finalizer of a terminating object.
fn is_released(row: &Row, object: &Value, old: &Value) -> bool {
    let before = &old["metadata"];
    !before["deletionTimestamp"].is_null()
        && before["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && strings(&object["metadata"]["finalizers"]).is_empty()
        && !(row.rules.strategy.has_other_finalizers)(object)
}

/// Returns an object as the store takes it. For objects that the server changes on its own: terminating objects, conditions
/// of definitions, and the objects that every cluster has. What a request stores is [`Processed`](crate::registry::checked::Processed).
pub(crate) fn new_state(row: &Row, object: &Value) -> NewState {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: StringMap = labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    NewState {
        draft: Draft::encode(object, row.custom.is_none()),
        labels,
        fields: row.rules.strategy.field_values(object),
    }
}

/// Returns a stored object in the form that the row serves.
pub(crate) fn content(row: &Row, stored: Arc<Object>) -> Content {
    if convert::is_storage_version(row) {
        return Content::Stored(stored);
    }
    match stored.parse() {
        Ok(value) => match convert::to_version(row, value) {
            Ok(value) => Content::Value(value),
            Err(status) => Content::Status(status),
        },
        Err(error) => Content::Status(Status::internal(error)),
    }
}
