//! The bodies of patches. Each contains the uid of its object, so that another object of the same name is not changed.

use std::collections::HashSet;

use serde_json::{Value, json};
use steersman_base::{Meta, OwnerRef, Uid};

/// Removes owners from an object, by uid. For built-in kinds: concurrent changes by others do not conflict.
pub(crate) fn remove_owners(object: &Uid, owners: &[Uid]) -> Value {
    let owners: Vec<_> = owners.iter().map(|uid| json!({ "$patch": "delete", "uid": uid })).collect();
    json!({ "metadata": { "uid": object, "ownerReferences": owners } })
}

/// Removes owners from a custom resource, whose lists cannot be merged: the whole list, on condition of the version.
pub(crate) fn let_go_merge(object: &Meta, owners: &[Uid]) -> Value {
    let owners: HashSet<&Uid> = owners.iter().collect();
    let kept = object.owner_references.iter().filter(|owner| !owners.contains(&owner.uid));
    whole_list(object, &kept.cloned().collect::<Vec<_>>())
}

/// Makes references of an object stop blocking the deletion of its owners.
pub(crate) fn unblock(object: &Meta) -> Value {
    let blocking = object.owner_references.iter().filter(|owner| owner.block_owner_deletion == Some(true));
    let owners: Vec<OwnerRef> = blocking.cloned().map(not_blocking).collect();
    json!({ "metadata": { "uid": object.uid, "ownerReferences": owners } })
}

/// Makes references of a custom resource stop blocking.
pub(crate) fn unblock_merge(object: &Meta) -> Value {
    whole_list(object, &object.owner_references.iter().cloned().map(not_blocking).collect::<Vec<_>>())
}

/// Removes a finalizer from an object, on condition of the version. `None` if the object does not have it.
pub(crate) fn without_finalizer(object: &Meta, finalizer: &str) -> Option<Value> {
    if !object.has_finalizer(finalizer) {
        return None;
    }
    let kept: Vec<_> = object.finalizers().iter().filter(|held| **held != *finalizer).collect();
    let version = &object.resource_version;
    let uid = &object.uid;
    Some(json!({ "metadata": { "uid": uid, "resourceVersion": version, "finalizers": kept } }))
}

fn not_blocking(owner: OwnerRef) -> OwnerRef {
    OwnerRef { block_owner_deletion: Some(false), ..owner }
}

fn whole_list(object: &Meta, owners: &[OwnerRef]) -> Value {
    // A merge patch removes fields that are null.
    let owners = if owners.is_empty() { Value::Null } else { json!(owners) };
    let version = &object.resource_version;
    let uid = &object.uid;
    json!({ "metadata": { "uid": uid, "resourceVersion": version, "ownerReferences": owners } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use steersman_base::meta::{Owners, RareMeta};

    fn owner(uid: &str, block: Option<bool>) -> OwnerRef {
        OwnerRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            name: uid.into(),
            uid: uid.into(),
            controller: None,
            block_owner_deletion: block,
        }
    }

    fn object() -> Meta {
        let rare = RareMeta { finalizers: ["orphan".into(), "a/b".into()].into(), ..RareMeta::default() };
        Meta {
            uid: "me".into(),
            resource_version: "7".into(),
            owner_references: Owners::new(vec![owner("a", Some(true)), owner("b", None), owner("a", None)]),
            rare: Some(Box::new(rare)),
            ..Meta::default()
        }
    }

    #[test]
    fn owners_are_let_go_by_uid() {
        let want = json!({"metadata": {"uid": "me", "ownerReferences": [{"$patch": "delete", "uid": "a"}]}});
        assert_eq!(remove_owners(&"me".into(), &["a".into()]), want);
        let kept = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "b"}]);
        let want = json!({"metadata": {"uid": "me", "resourceVersion": "7", "ownerReferences": kept}});
        assert_eq!(let_go_merge(&object(), &["a".into()]), want, "of one uid, all references go");
        let want = json!({"metadata": {"uid": "me", "resourceVersion": "7", "ownerReferences": null}});
        assert_eq!(let_go_merge(&object(), &["a".into(), "b".into()]), want);
    }

    #[test]
    fn what_blocks_is_unblocked_and_nothing_else_is_touched() {
        let unblocked = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "blockOwnerDeletion": false});
        assert_eq!(unblock(&object()), json!({"metadata": {"uid": "me", "ownerReferences": [unblocked("a")]}}));
        let all = [unblocked("a"), unblocked("b"), unblocked("a")];
        let want = json!({"metadata": {"uid": "me", "resourceVersion": "7", "ownerReferences": all}});
        assert_eq!(unblock_merge(&object()), want);
    }

    #[test]
    fn a_finalizer_goes_alone_and_once() {
        let want = json!({"metadata": {"uid": "me", "resourceVersion": "7", "finalizers": ["a/b"]}});
        assert_eq!(without_finalizer(&object(), "orphan"), Some(want));
        assert_eq!(without_finalizer(&object(), "foregroundDeletion"), None);
    }
}
