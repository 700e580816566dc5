//! Who loses and who gains fields.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{ApplyError, FieldManager, OwnersError, UpdateError};
use crate::conflict::Conflicts;
use crate::managed::{Entry, Managed, ManagerId};
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::Comparison;

impl FieldManager<'_> {
    pub(super) fn schema(&self) -> Result<&Schema, UpdateError> {
        let missing = || UpdateError::NoSchema(super::gvk(self.api_version, self.kind));
        self.versions.schema(self.api_version).ok_or_else(missing)
    }

    /// The object in a version that has a schema.
    pub(super) fn convert<'v>(
        &self,
        object: &'v Value,
        from: &str,
        api_version: &str,
    ) -> Result<Cow<'v, Value>, UpdateError> {
        if from == api_version {
            return Ok(Cow::Borrowed(object));
        }
        self.versions.convert(object, api_version).map(Cow::Owned).map_err(UpdateError::Convert)
    }

    /// Takes the fields that differ between two objects from all managers; they are returned. `live` is `None` for an
    /// object that is new.
    pub(super) fn take_changed(
        &self,
        live: Option<&Value>,
        new: &Value,
        managed: &mut Managed,
    ) -> Result<FieldSet, OwnersError> {
        self.follow_schemas(managed);
        let comparison = self.take_from_others(live, new, managed, None, true)?;
        // Of a create nothing is modified.
        let Comparison { added, modified, .. } = comparison;
        Ok(if modified.is_empty() { added } else { modified.union(&added) })
    }

    /// The live object with a configuration applied, whose fields the manager owns from now on.
    pub(super) fn apply_owned(
        &self,
        live: &Value,
        config: &Value,
        managed: &mut Managed,
        id: &ManagerId,
        force: bool,
    ) -> Result<Value, ApplyError> {
        self.follow_schemas(managed);
        let schema = self.schema().map_err(OwnersError::Failed)?;
        let internal = |what: &str, error: &dyn std::fmt::Display| ApplyError::Internal(format!("{what}: {error}"));
        let merged = schema.merge(live, config).map_err(|error| internal("failed to merge config", &error))?;
        let mut fields = schema.to_field_set(config).map_err(|error| internal("failed to get field set", &error))?;
        if let Some(filter) = self.filter(self.api_version) {
            fields = filter.apply(fields);
        }
        let last = managed.entries.remove(id);
        let time = last.as_ref().and_then(|last| last.time.clone());
        managed.entries.insert(id.clone(), Entry { api_version: self.api_version.to_owned(), fields, time });
        let merged = match last {
            None => merged,
            Some(last) => {
                let pruned = self.prune(merged, managed, id, &last);
                pruned.map_err(|error| internal("failed to prune fields", &error))?
            }
        };
        self.take_from_others(Some(live), &merged, managed, Some(id), force)?;
        Ok(merged)
    }

    /// Adapts all field sets to their schemas. Managers in versions that are gone are forgotten.
    fn follow_schemas(&self, managed: &mut Managed) {
        managed.entries.retain(|_, entry| match self.versions.schema(&entry.api_version) {
            None => false,
            Some(schema) => {
                entry.fields = schema.reconcile(std::mem::take(&mut entry.fields));
                true
            }
        });
    }

    /// Takes what differs between two objects from all managers but one, or fails if it is theirs and not forced.
    fn take_from_others(
        &self,
        live: Option<&Value>,
        new: &Value,
        managed: &mut Managed,
        except: Option<&ManagerId>,
        force: bool,
    ) -> Result<Comparison, OwnersError> {
        let own = self.compare_in(live, new, self.api_version)?;
        // The usual case: an object is created.
        if managed.entries.is_empty() {
            return Ok(own);
        }
        let mut comparisons = BTreeMap::from([(self.api_version.to_owned(), own)]);
        let mut conflicts = BTreeMap::new();
        for (id, entry) in managed.entries.iter().filter(|(id, _)| Some(*id) != except) {
            if !comparisons.contains_key(&entry.api_version) {
                let comparison = self.compare_in(live, new, &entry.api_version)?;
                comparisons.insert(entry.api_version.clone(), comparison);
            }
            let comparison = &comparisons[&entry.api_version];
            let modified = entry.fields.intersection(&comparison.modified);
            let conflict = modified.union(&entry.fields.intersection(&comparison.added));
            if !conflict.is_empty() {
                conflicts.insert(id.clone(), conflict);
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(OwnersError::Conflicts(Conflicts::from_sets(&conflicts)));
        }
        managed.entries.retain(|id, entry| {
            if Some(id) != except {
                if let Some(conflict) = conflicts.get(id) {
                    entry.fields = entry.fields.difference(conflict);
                }
                let removed = &comparisons[&entry.api_version].removed;
                if !removed.is_empty() {
                    entry.fields = entry.fields.difference(removed);
                }
            }
            !entry.fields.is_empty()
        });
        Ok(comparisons.remove(self.api_version).unwrap_or_default())
    }

    /// Returns the difference between two objects of the request's version, in terms of another version.
    fn compare_in(&self, live: Option<&Value>, new: &Value, api_version: &str) -> Result<Comparison, UpdateError> {
        let missing = || UpdateError::NoSchema(super::gvk(api_version, self.kind));
        let schema = self.versions.schema(api_version).ok_or_else(missing)?;
        let new = self.convert(new, self.api_version, api_version)?;
        let comparison = match live {
            None => schema.compare(schema.zero(), &new),
            Some(live) => schema.compare(&*self.convert(live, self.api_version, api_version)?, &new),
        };
        let comparison = comparison.map_err(UpdateError::Compare)?;
        Ok(match self.filter(api_version) {
            Some(filter) => comparison.map(|set| filter.apply(set)),
            None => comparison,
        })
    }
}
