use steersman_base::meta::Owners;
use steersman_base::{Istr, OwnerRef, Uid};

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

fn keys(handler: &impl Handler<Meta>, event: Event<'_, Meta>) -> Vec<String> {
    let mut keys = Keys::default();
    handler.handle(event, &mut keys);
    keys.now.iter().map(ToString::to_string).collect()
}

#[test]
fn an_owner_is_found_by_group_and_kind_whatever_its_version() {
    let check = |name: &str, handler: &ItsOwner, owners: &[(&str, &str, &str, bool)], want: &[&str]| {
        let object = owned_by(owners);
        assert_eq!(keys(handler, Event::Created { new: &object, initial: false }), want, "{name}");
    };
    let all = [
        ("bakery.dev/v1beta1", "Cake", "old", false),
        ("bakery.dev/v1", "Cake", "boss", true),
        ("other.dev/v1", "Cake", "foreign", true),
        ("bakery.dev/v1", "Pie", "pie", true),
        ("v1", "Node", "n1", false),
    ];
    check("no owner", &owner(CAKES), &[], &[]);
    check("all of a kind", &owner(CAKES), &all, &["ns/old", "ns/boss"]);
    check("the controlling one", &controller_owner(CAKES), &all, &["ns/boss"]);
    check("a cluster-wide owner has no namespace", &owner(NODES), &all, &["n1"]);
}

#[test]
fn a_changed_owner_concerns_the_old_and_the_new_one() {
    let old = owned_by(&[("bakery.dev/v1", "Cake", "a", true)]);
    let new = owned_by(&[("bakery.dev/v1", "Cake", "b", true)]);
    assert_eq!(keys(&owner(CAKES), Event::Updated { old: &old, new: &new }), ["ns/a", "ns/b"]);
    assert_eq!(keys(&owner(CAKES), Event::Updated { old: &old, new: &old }), ["ns/a"], "each key once");
}

#[test]
fn each_kind_of_event_has_its_function() {
    let handlers = Handlers::<Meta>::default()
        .created(|_, keys| keys.add(ObjectKey::cluster("created")))
        .updated(|_, _, keys| keys.add(ObjectKey::cluster("updated")))
        .generic(|_, keys| keys.add(ObjectKey::cluster("generic")));
    let object = owned_by(&[]);
    assert_eq!(keys(&handlers, Event::Created { new: &object, initial: true }), ["created"]);
    assert_eq!(keys(&handlers, Event::Updated { old: &object, new: &object }), ["updated"]);
    assert_eq!(keys(&handlers, Event::Generic { object: &object }), ["generic"]);
    let gone = Event::Deleted { last: &object, end: steersman_informer::End::Observed };
    assert!(keys(&handlers, gone).is_empty(), "what has no function is left alone");
    assert_eq!(keys(&ItsObject, gone), ["ns/child"]);
}

#[test]
fn a_mapping_sees_both_sides_of_a_change() {
    let old = owned_by(&[("bakery.dev/v1", "Cake", "a", true)]);
    let new = owned_by(&[]);
    let owner_count = mapped(|object: &Meta| [ObjectKey::cluster(&object.owner_references.len().to_string())]);
    assert_eq!(keys(&owner_count, Event::Updated { old: &old, new: &new }), ["1", "0"]);
}
