//! Fields that an applier no longer mentions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{FieldManager, UpdateError};
use crate::managed::{Entry, Managed, ManagerId};
use crate::set::FieldSet;

impl FieldManager<'_> {
    /// Removes from the merged object what the manager applied last time (`last`), does not apply now, and nobody else
    /// owns.
    pub(super) fn prune(
        &self,
        merged: Value,
        managed: &Managed,
        id: &ManagerId,
        last: &Entry,
    ) -> Result<Value, UpdateError> {
        let version = last.api_version.as_str();
        let Some(schema) = self.versions.schema(version).filter(|_| !last.fields.is_empty()) else {
            return Ok(merged);
        };
        // Applied again with all it had: the usual case, and nothing to remove. What leads to a field of a configuration
        // is in its set, so no parent of what stays can go. Only an empty object that others have filled may.
        let now = managed.entries.get(id);
        if version == self.api_version && now.is_some_and(|now| last.fields.difference(&now.fields).is_empty()) {
            // Most sets say so by themselves; all fields of an object take long.
            if !schema.may_fill(&last.fields) && schema.is_plain(&merged) {
                return Ok(merged);
            }
            let fields = schema.to_field_set(&merged).map_err(UpdateError::Compare)?;
            if !has_filled(&last.fields, &fields) {
                return Ok(merged);
            }
        }
        let mut merged = self.convert(&merged, self.api_version, version)?.into_owned();
        let last = schema.with_named_fields(&last.fields);
        let mut pruned = merged.clone();
        schema.remove(&mut pruned, &last);
        let pruned = self.add_back_owned(&merged, pruned, version, managed)?;
        let kept = schema.with_named_fields(&schema.to_field_set(&pruned).map_err(UpdateError::Compare)?);
        let had = schema.with_named_fields(&schema.to_field_set(&merged).map_err(UpdateError::Compare)?);
        // What the manager never owned is not its to remove.
        schema.remove(&mut merged, &had.difference(&kept).intersection(&last));
        Ok(self.convert(&merged, version, self.api_version)?.into_owned())
    }

    /// Puts back what was removed and is owned by somebody, the applier's new configuration included. Both objects are in
    /// the given version, and so is the result.
    fn add_back_owned(
        &self,
        merged: &Value,
        pruned: Value,
        version: &str,
        managed: &Managed,
    ) -> Result<Value, UpdateError> {
        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for entry in managed.entries.values() {
            let set = owned.entry(&entry.api_version).or_default();
            *set = set.union(&entry.fields);
        }
        // The version of the objects comes first: others may need for their conversion what it puts back.
        let own = owned.remove_entry(version);
        let mut merged = merged.clone();
        let mut pruned = pruned;
        let mut current = version.to_owned();
        for (version, owned) in own.into_iter().chain(owned) {
            let Some(schema) = self.versions.schema(version) else {
                continue;
            };
            merged = self.convert(&merged, &current, version)?.into_owned();
            pruned = self.convert(&pruned, &current, version)?.into_owned();
            version.clone_into(&mut current);
            let fields = |object: &Value| {
                let set = schema.to_field_set(object).map_err(UpdateError::Compare)?;
                Ok::<_, UpdateError>(schema.with_named_fields(&set))
            };
            let kept = fields(&pruned)?.union(&schema.with_named_fields(&owned));
            let gone = fields(&merged)?.difference(&kept);
            pruned = merged.clone();
            schema.remove(&mut pruned, &gone);
        }
        Ok(self.convert(&pruned, &current, version)?.into_owned())
    }
}

/// Whether a leaf of the first set has something below it in the second.
fn has_filled(leaves: &FieldSet, fields: &FieldSet) -> bool {
    leaves.nodes.iter().any(|node| match fields.node(&node.element) {
        None => false,
        Some(found) if node.children.is_empty() => !found.children.is_empty(),
        Some(found) => has_filled(&node.children, &found.children),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    fn schema() -> Schema {
        let text = json!({"type": "string"});
        let parts =
            json!({"type": "object", "properties": {"a": text, "b": {"type": "object", "properties": {"a": text}}}});
        let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": parts});
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text});
        let any = json!({"x-kubernetes-int-or-string": true});
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        Schema::custom_resource(Some(&json!({"type": "object", "properties": {
            "text": text, "parts": parts, "keyed": keyed, "set": set, "any": any, "free": free,
        }})))
        .expect("structural")
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), Just(json!(1)), "[ab]".prop_map(Value::from)];
        leaf.prop_recursive(4, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|map| json!(map)),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Value> {
        let name = prop::sample::select(&["text", "parts", "keyed", "set", "any", "free"][..]);
        prop::collection::btree_map(name, value(), 0..4).prop_map(|map| json!(map))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_cannot_be_filled_is_not(last in object(), merged in object()) {
            let schema = schema();
            let Ok(last) = schema.to_field_set(&last) else { return Ok(()) };
            if !schema.may_fill(&last) && schema.is_plain(&merged) {
                let fields = schema.to_field_set(&merged);
                prop_assert_eq!(fields.map(|fields| has_filled(&last, &fields)), Ok(false));
            }
        }
    }
}
