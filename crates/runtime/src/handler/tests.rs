use std::sync::Arc;

use steersman_base::meta::Owners;
use steersman_base::{Istr, Uid};
use steersman_informer::End;

use super::*;

const CAKES: Resource = Resource::namespaced("bakery.dev", "v1", "cakes", "Cake");
const NODES: Resource = Resource::cluster("", "v1", "nodes", "Node");

fn owned_by(owners: &[(&str, &str, &str, bool)]) -> Arc<Meta> {
    let owners = owners.iter().map(|&(api_version, kind, name, controller)| OwnerRef {
        api_version: Istr::new(api_version),
        kind: Istr::new(kind),
        name: Istr::new(name),
        uid: Uid::default(),
        controller: controller.then_some(true),
        block_owner_deletion: None,
    });
    let owners = Owners::new(owners.collect());
    Arc::new(Meta { namespace: "ns".into(), name: "child".into(), owner_references: owners, ..Meta::default() })
}

fn keys(handler: &impl Handler<Meta>, change: &Change<Meta>) -> Vec<String> {
    let keys: Keys = handler(change).into();
    keys.now.iter().map(ToString::to_string).collect()
}

fn updated(old: &Arc<Meta>, new: &Arc<Meta>) -> Change<Meta> {
    Change::Updated { old: Arc::clone(old), new: Arc::clone(new) }
}

#[test]
fn an_owner_is_found_by_group_and_kind_whatever_its_version() {
    let all = [
        ("bakery.dev/v1beta1", "Cake", "old", false),
        ("bakery.dev/v1", "Cake", "boss", true),
        ("other.dev/v1", "Cake", "foreign", true),
        ("bakery.dev/v1", "Pie", "pie", true),
        ("v1", "Node", "n1", false),
    ];
    let added = |owners: &[_]| Change::Added { new: owned_by(owners), initial: false };
    let none: [&str; 0] = [];
    assert_eq!(keys(&owner(CAKES), &added(&[])), none, "no owner");
    assert_eq!(keys(&owner(CAKES), &added(&all)), ["ns/old", "ns/boss"], "all of a kind");
    assert_eq!(keys(&controller_owner(CAKES), &added(&all)), ["ns/boss"], "the controlling one");
    assert_eq!(keys(&owner(NODES), &added(&all)), ["n1"], "a cluster-wide owner has no namespace");
}

#[test]
fn a_changed_owner_concerns_the_old_and_the_new_one() {
    let old = owned_by(&[("bakery.dev/v1", "Cake", "a", true)]);
    let new = owned_by(&[("bakery.dev/v1", "Cake", "b", true)]);
    assert_eq!(keys(&owner(CAKES), &updated(&old, &new)), ["ns/a", "ns/b"]);
    assert_eq!(keys(&owner(CAKES), &updated(&old, &old)), ["ns/a"], "each key once");
}

#[test]
fn a_handler_may_match_on_what_happened() {
    let handler = |change: &Change<Meta>| match change {
        Change::Added { .. } => Some(ObjectKey::cluster("created")),
        Change::Updated { .. } => Some(ObjectKey::cluster("updated")),
        Change::Deleted { .. } => None,
    };
    let object = owned_by(&[]);
    assert_eq!(keys(&handler, &Change::Added { new: Arc::clone(&object), initial: true }), ["created"]);
    assert_eq!(keys(&handler, &updated(&object, &object)), ["updated"]);
    let deleted = Change::Deleted { last: object, end: End::Observed };
    assert!(keys(&handler, &deleted).is_empty());
    assert_eq!(keys(&super::object(), &deleted), ["ns/child"]);
}

#[test]
fn a_mapping_sees_both_sides_of_a_change() {
    let old = owned_by(&[("bakery.dev/v1", "Cake", "a", true)]);
    let new = owned_by(&[]);
    let owner_count = mapped(|object: &Meta| [ObjectKey::cluster(&object.owner_references.len().to_string())]);
    assert_eq!(keys(&owner_count, &updated(&old, &new)), ["1", "0"]);
}

#[test]
fn keys_without_a_delay_are_enqueued_at_once() {
    let keys = || [ObjectKey::cluster("a")];
    assert_eq!(Keys::after(keys(), Duration::ZERO).now, keys());
    let delayed = Keys::after(keys(), Duration::from_secs(1));
    assert!(delayed.now.is_empty());
    assert_eq!(delayed.later, keys().map(|key| (key, Duration::from_secs(1))));
    assert_eq!(Keys::from([keys(), keys()].concat()).now, keys(), "each key once");
}
