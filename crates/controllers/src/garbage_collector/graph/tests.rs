//! Graph transitions, including contradictory data.

use steersman_base::meta::{Owners, RareMeta};
use steersman_base::{Meta, OwnerRef, Time, Uid};

use super::*;

/// A graph, and the work that its last change returned.
#[derive(Default)]
struct World {
    graph: Graph,
    work: Work,
}

const NAMESPACE: &str = "a";

fn kind(kind: &str) -> Kind {
    Kind { api_version: "v1".into(), kind: kind.into() }
}

/// Returns a reference to a Pod with this name and uid.
fn of(uid: &str) -> OwnerRef {
    OwnerRef { api_version: "v1".into(), kind: "Pod".into(), name: uid.into(), uid: uid.into(), ..OwnerRef::default() }
}

fn blocking(uid: &str) -> OwnerRef {
    OwnerRef { block_owner_deletion: Some(true), ..of(uid) }
}

fn object(uid: &str, owners: Vec<OwnerRef>) -> Meta {
    Meta {
        name: uid.into(),
        namespace: NAMESPACE.into(),
        uid: uid.into(),
        owner_references: Owners::new(owners),
        ..Meta::default()
    }
}

fn identity(uid: &str) -> Identity {
    Identity::observed(&kind("Pod"), &object(uid, vec![]))
}

fn deleted_with(finalizer: &str, object: Meta) -> Meta {
    let rare = RareMeta {
        deletion_timestamp: Some(Time::from_unix(1)),
        finalizers: [finalizer.into()].into(),
        ..RareMeta::default()
    };
    Meta { rare: Some(Box::new(rare)), ..object }
}

// === impl World ===

impl World {
    /// Returns a graph that has observed these Pods.
    fn with(objects: &[Meta]) -> Self {
        let mut world = Self::default();
        objects.iter().for_each(|object| world.observe(object));
        objects.iter().for_each(|object| drop(world.graph.take(&object.uid)));
        world.work = Work::default();
        world
    }

    fn observe(&mut self, object: &Meta) {
        self.change(|graph, work| graph.observed(&kind("Pod"), object, None, work));
    }

    fn update(&mut self, before: &Meta, object: &Meta) {
        self.change(|graph, work| graph.observed(&kind("Pod"), object, Some(before), work));
    }

    fn delete(&mut self, uid: &str) {
        self.change(|graph, work| graph.deleted(&kind("Pod"), &object(uid, vec![]), End::Observed, work));
    }

    fn mark_absent(&mut self, identity: &Identity) {
        self.change(|graph, work| graph.mark_absent(identity, work));
    }

    fn change(&mut self, change: impl FnOnce(&mut Graph, &mut Work)) {
        self.work = Work::default();
        change(&mut self.graph, &mut self.work);
        self.graph.check();
    }

    /// Returns the objects to check, in order.
    fn to_check(&self) -> Vec<String> {
        let mut uids: Vec<_> = self.work.to_check.iter().map(ToString::to_string).collect();
        uids.sort_unstable();
        uids.dedup();
        uids
    }

    fn known(&self, uid: &str) -> Option<bool> {
        self.graph.find(&uid.into()).map(|_| self.graph.is_virtual(&uid.into()))
    }
}

impl Graph {
    /// Checks that every edge is in both of its lists, and stands for a reference.
    fn check(&self) {
        for (uid, at) in &self.by_uid {
            assert_eq!(self.node(*at).identity.uid, *uid);
            for owner in self.owners(*at) {
                assert!(self.dependents(owner).any(|dependent| dependent == *at), "{uid} is a dependent of its owner");
                let held = &self.node(owner).identity.uid;
                assert!(self.node(*at).owners.iter().any(|reference| reference.uid == *held), "{uid} refers to {held}");
            }
            for dependent in self.dependents(*at) {
                assert!(self.owners(dependent).any(|owner| owner == *at), "{uid} is an owner of its dependent");
            }
            let distinct: HashSet<u32> = self.owners(*at).collect();
            assert_eq!(distinct.len(), self.owners(*at).count(), "{uid} has each owner once");
        }
    }
}

#[test]
fn an_owner_that_is_only_referred_to_is_virtual_and_looked_at_until_it_is_observed() {
    let mut world = World::default();
    world.observe(&object("child", vec![of("parent")]));
    assert_eq!((world.known("parent"), world.to_check()), (Some(true), vec!["parent".to_owned()]));
    assert!(world.graph.take(&"parent".into()).is_some(), "nobody observed it");
    assert!(world.graph.take(&"child".into()).is_none(), "nobody asked");
    world.observe(&object("parent", vec![]));
    assert_eq!((world.known("parent"), world.to_check()), (Some(false), vec![]));
    assert!(world.graph.take(&"parent".into()).is_none(), "it is there, so there is nothing to look for");
}

#[test]
fn a_failed_check_is_repeated() {
    let mut world = World::with(&[object("parent", vec![]), object("child", vec![of("parent")])]);
    world.delete("parent");
    assert_eq!(world.to_check(), ["child"]);
    assert!(world.graph.take(&"child".into()).is_some());
    assert!(world.graph.take(&"child".into()).is_none());
    world.graph.put_back(&"child".into());
    assert!(world.graph.take(&"child".into()).is_some());
}

#[test]
fn when_an_owner_goes_its_dependents_are_looked_at_and_its_absence_is_known() {
    let family = [object("parent", vec![]), object("a", vec![of("parent")]), object("b", vec![of("parent"), of("a")])];
    let mut world = World::with(&family);
    world.delete("parent");
    assert_eq!(world.to_check(), ["a", "b"]);
    assert!(world.graph.absent.has(&identity("parent")));
    world.delete("a");
    assert_eq!(world.to_check(), ["b"]);
    world.delete("b");
    assert_eq!((world.to_check(), world.graph.by_uid.len()), (vec![], 0));
    assert!(!world.graph.absent.has(&identity("b")), "nobody referred to it");
    world.delete("b");
    assert_eq!(world.work, Work::default(), "it has gone already");
}

#[test]
fn an_owner_that_is_missed_in_a_list_is_asked_for() {
    let mut world = World::with(&[object("parent", vec![]), object("child", vec![of("parent")])]);
    world.change(|graph, work| graph.deleted(&kind("Pod"), &object("parent", vec![]), End::Missed, work));
    assert_eq!(world.to_check(), ["child"]);
    assert!(!world.graph.absent.has(&identity("parent")));
}

#[test]
fn deletion_in_the_foreground_asks_the_dependents_and_then_the_owner() {
    let parent = object("parent", vec![]);
    let mut world =
        World::with(&[parent.clone(), object("a", vec![blocking("parent")]), object("b", vec![of("parent")])]);
    let waiting = deleted_with(finalizers::FOREGROUND_DELETION, parent.clone());
    world.update(&parent, &waiting);
    assert_eq!(world.to_check(), ["a", "b", "parent"]);
    world.update(&waiting, &waiting);
    assert_eq!(world.to_check(), [""; 0], "it was waiting before");
    world.delete("b");
    assert_eq!(world.to_check(), [""; 0], "the other one still blocks");
    world.delete("a");
    assert_eq!(world.to_check(), ["parent"]);
}

#[test]
fn a_dependent_that_comes_while_its_owner_waits_is_asked_too() {
    let mut world = World::with(&[deleted_with(finalizers::FOREGROUND_DELETION, object("parent", vec![]))]);
    world.observe(&object("late", vec![blocking("parent")]));
    assert_eq!(world.to_check(), ["late"]);
}

#[test]
fn blocking_ends_with_the_reference_or_with_its_blocking() {
    let check = |name: &str, owners: Vec<OwnerRef>, want: &[&str]| {
        let parent = deleted_with(finalizers::FOREGROUND_DELETION, object("parent", vec![]));
        let child = object("child", vec![blocking("parent")]);
        let mut world = World::with(&[parent, child.clone()]);
        world.update(&child, &object("child", owners));
        assert_eq!(world.to_check(), want, "{name}");
    };
    check("let go", vec![], &["parent"]);
    check("not blocking any more", vec![of("parent")], &["parent"]);
    let manages = OwnerRef { controller: Some(true), ..blocking("parent") };
    check("changed, and blocking", vec![manages], &[]);
    check("a second owner", vec![blocking("parent"), of("other")], &["other"]);
}

#[test]
fn what_blocks_an_owner_is_asked_unless_it_is_going_already() {
    let parent = deleted_with(finalizers::FOREGROUND_DELETION, object("parent", vec![blocking("parent")]));
    let going = deleted_with("example.com/hold", object("going", vec![blocking("parent")]));
    let mut world = World::with(&[parent, going, object("free", vec![of("parent")])]);
    let mut work = Work::default();
    assert!(world.graph.want_blocking(&"parent".into(), &mut work), "one blocks");
    assert_eq!(work.to_check, [], "but it is going");
    world.observe(&object("staying", vec![blocking("parent"), blocking("parent")]));
    assert!(world.graph.want_blocking(&"parent".into(), &mut work));
    assert_eq!(work.to_check, ["staying".into()]);
    world.delete("staying");
    world.delete("going");
    assert!(!world.graph.want_blocking(&"parent".into(), &mut work), "nobody blocks itself");
}

#[test]
fn an_owner_that_leaves_its_dependents_behind_is_handed_out_once() {
    let parent = object("parent", vec![]);
    let mut world = World::with(&[parent.clone(), object("child", vec![of("parent")])]);
    let leaving = deleted_with(finalizers::ORPHAN, parent.clone());
    world.update(&parent, &leaving);
    assert_eq!((&world.work.orphan, world.to_check()), (&vec![Uid::from("parent")], vec![]));
    world.update(&leaving, &leaving);
    assert_eq!(world.work, Work::default());
    let (owner, dependents) = world.graph.family(&"parent".into()).unwrap();
    assert_eq!((owner, dependents), (identity("parent"), vec![identity("child")]));
}

#[test]
fn what_an_owner_is_waiting_with_is_seen_at_a_restart() {
    let mut world = World::default();
    world.observe(&object("child", vec![of("orphaning"), of("foreground")]));
    world.observe(&deleted_with(finalizers::ORPHAN, object("orphaning", vec![])));
    assert_eq!(world.work.orphan, ["orphaning".into()]);
    world.observe(&deleted_with(finalizers::FOREGROUND_DELETION, object("foreground", vec![])));
    assert_eq!(world.to_check(), ["child", "foreground"]);
}

#[test]
fn a_reference_into_another_namespace_is_reported_whoever_comes_first() {
    let elsewhere = Meta { namespace: "b".into(), ..object("parent", vec![]) };
    let child = object("child", vec![of("parent")]);
    let misplaced = || vec![Misplaced { dependent: identity("child"), reference: of("parent") }];

    let mut world = World::with(std::slice::from_ref(&elsewhere));
    world.observe(&child);
    assert_eq!((world.to_check(), &world.work.misplaced), (vec!["child".to_owned()], &misplaced()));

    let waiting = deleted_with(finalizers::FOREGROUND_DELETION, elsewhere.clone());
    let mut world = World::with(std::slice::from_ref(&waiting));
    world.observe(&child);
    assert_eq!((world.to_check(), &world.work.misplaced), (vec!["child".to_owned()], &misplaced()), "one that waits");

    let mut world = World::with(&[child]);
    world.observe(&elsewhere);
    assert_eq!((world.to_check(), &world.work.misplaced), (vec!["child".to_owned()], &misplaced()));
    let mut right = elsewhere;
    right.uid = "right".into();
    world.observe(&right);
    world.observe(&Meta {
        namespace: "b".into(),
        ..object("at home", vec![OwnerRef { name: "parent".into(), ..of("right") }])
    });
    assert_eq!(world.work, Work::default());
}

#[test]
fn a_cluster_wide_owner_is_one_from_anywhere() {
    let cluster_wide = Meta { namespace: "".into(), ..object("parent", vec![]) };
    let children = [object("a", vec![of("parent")]), Meta { namespace: "b".into(), ..object("b", vec![of("parent")]) }];
    let mut world = World::with(&[children.as_slice(), std::slice::from_ref(&cluster_wide)].concat());
    assert_eq!(world.known("parent"), Some(false));
    world.observe(&object("c", vec![of("parent")]));
    assert_eq!(world.work, Work::default());
    world.delete("parent");
    assert_eq!(world.to_check(), ["a", "b", "c"]);
}

#[test]
fn references_that_disagree_are_looked_at() {
    let other_kind = OwnerRef { kind: "Secret".into(), ..of("parent") };
    let check = |name: &str, objects: &[Meta], last: Meta, want: &[&str]| {
        let mut world = World::with(objects);
        world.observe(&last);
        assert_eq!(
            (world.to_check(), &world.work.misplaced),
            (want.iter().map(|uid| (*uid).to_owned()).collect(), &vec![]),
            "{name}"
        );
    };
    let parent = object("parent", vec![]);
    let wrong = object("wrong", vec![other_kind.clone()]);
    check("right parent, wrong child", std::slice::from_ref(&parent), wrong.clone(), &["wrong"]);
    check("wrong child, right parent", std::slice::from_ref(&wrong), parent.clone(), &["wrong"]);
    check("virtual parent, a child that disagrees", &[object("right", vec![of("parent")])], wrong.clone(), &["wrong"]);
    let both = object("both", vec![of("parent"), other_kind]);
    check("a child that disagrees with itself", &[parent], both, &["both"]);
    let cluster_wide = Meta { namespace: "".into(), ..object("role", vec![of("parent")]) };
    check("a virtual parent in no namespace (98040)", &[cluster_wide], object("late", vec![of("parent")]), &["late"]);
}

#[test]
fn an_owner_that_the_server_does_not_have_is_forgotten() {
    let mut world = World::with(&[object("child", vec![of("parent")])]);
    world.mark_absent(&identity("parent"));
    assert_eq!((world.known("parent"), world.to_check()), (None, vec!["child".to_owned()]));
    assert!(world.graph.absent.has(&identity("parent")));
    world.mark_absent(&identity("parent"));
    assert_eq!(world.work, Work::default());
}

#[test]
fn all_that_a_virtual_owner_may_be_is_tried_in_turn() {
    let as_secret = OwnerRef { kind: "Secret".into(), ..of("parent") };
    let as_config = OwnerRef { kind: "ConfigMap".into(), ..of("parent") };
    let identity_of = |reference: &OwnerRef| Identity::referred_to(reference, &NAMESPACE.into());
    let child = |uid: &str, owner: &OwnerRef| object(uid, vec![owner.clone()]);
    let mut world = World::with(&[child("p", &of("parent")), child("s", &as_secret), child("c", &as_config)]);
    let current = |world: &World| world.graph.family(&"parent".into()).unwrap().0;
    assert_eq!(current(&world), identity("parent"), "what the first said");

    world.mark_absent(&identity("parent"));
    assert_eq!(
        (world.to_check(), current(&world)),
        (vec!["p".to_owned()], identity_of(&as_secret)),
        "the next in order"
    );
    assert!(world.graph.absent.has(&identity("parent")));
    world.mark_absent(&identity_of(&as_secret));
    assert_eq!((world.to_check(), current(&world)), (vec!["s".to_owned()], identity_of(&as_config)), "and round");
    world.delete("p");
    world.delete("s");
    world.mark_absent(&identity_of(&as_config));
    assert_eq!((world.to_check(), world.known("parent")), (vec!["c".to_owned()], None), "all agree by now");
}

#[test]
fn an_observed_owner_is_not_forgotten_because_of_a_wrong_reference() {
    let as_secret = OwnerRef { kind: "Secret".into(), ..of("parent") };
    let objects =
        [object("parent", vec![]), object("right", vec![of("parent")]), object("wrong", vec![as_secret.clone()])];
    let mut world = World::with(&objects);
    world.mark_absent(&Identity::referred_to(&as_secret, &NAMESPACE.into()));
    assert_eq!((world.known("parent"), world.to_check()), (Some(false), vec!["wrong".to_owned()]));
    world.mark_absent(&identity("parent"));
    assert_eq!((world.known("parent"), world.to_check()), (None, vec!["right".to_owned(), "wrong".to_owned()]));
}

#[test]
fn another_version_of_a_kind_follows_what_is_served_and_another_name_does_not() {
    let apps = |api_version: &str| Kind { api_version: api_version.into(), kind: "ReplicaSet".into() };
    let set = object("set", vec![]);
    let mut world = World::default();
    world.change(|graph, work| graph.observed(&apps("apps/v1beta1"), &set, None, work));
    world.change(|graph, work| graph.observed(&apps("apps/v1"), &set, None, work));
    assert_eq!(&*world.graph.family(&"set".into()).unwrap().0.api_version, "apps/v1");
    world.change(|graph, work| graph.observed(&apps("extensions/v1beta1"), &set, None, work));
    assert_eq!(&*world.graph.family(&"set".into()).unwrap().0.api_version, "apps/v1");
}

#[test]
fn duplicate_and_many_references_are_one_edge_each() {
    let twice = OwnerRef { controller: Some(true), ..of("parent") };
    let child = object("child", vec![twice.clone(), twice, of("parent")]);
    let mut world = World::with(&[object("parent", vec![]), child.clone()]);
    assert_eq!(world.graph.dependents(0).count(), 1);
    world.update(&child, &object("child", vec![of("parent")]));
    assert_eq!(world.graph.dependents(0).count(), 1, "the uid is still referred to");
    world.delete("parent");
    assert_eq!(world.to_check(), ["child"]);

    let owners: Vec<_> = (0..10_000).map(|n| of(&format!("owner-{n}"))).collect();
    let many = object("many", owners);
    let mut graph = Graph::default();
    let mut work = Work::default();
    graph.observed(&kind("Pod"), &many, None, &mut work);
    assert_eq!((work.to_check.len(), graph.owners(0).count()), (10_000, 10_000));
    graph.observed(&kind("Pod"), &object("many", vec![of("owner-5000")]), Some(&many), &mut work);
    assert_eq!(graph.owners(0).count(), 1);
    graph.deleted(&kind("Pod"), &many, End::Observed, &mut work);
    assert_eq!(work.to_check.len(), 10_000, "nobody else is concerned");
}

#[test]
fn who_owns_itself_is_a_family_of_one() {
    let mut world = World::with(&[object("self", vec![blocking("self")])]);
    assert_eq!(world.graph.dependents_known(&"self".into()), Dependents::default());
    assert_eq!(world.graph.family(&"self".into()).unwrap().1, []);
    world.delete("self");
    assert_eq!((world.to_check(), world.graph.by_uid.len()), (vec![], 0));
}

#[test]
fn places_are_used_again() {
    let mut world = World::default();
    for round in 0..100 {
        world.observe(&object(&format!("child-{round}"), vec![of("parent"), of("other")]));
        world.delete(&format!("child-{round}"));
    }
    assert_eq!(
        (world.graph.nodes.len(), world.graph.by_uid.len()),
        (3, 0),
        "virtual owners go with the last reference"
    );
}

#[test]
fn a_leader_that_begins_finds_in_the_graph_what_is_to_be_done() {
    let leaving = deleted_with(finalizers::ORPHAN, object("leaving", vec![]));
    let mut world = World::with(&[object("owner", vec![]), object("other", vec![]), leaving]);
    world.observe(&object("child", vec![of("owner")]));
    world.observe(&object("left", vec![of("nobody")]));
    world.delete("owner");
    let shown = |uids: Vec<Uid>| {
        let mut uids: Vec<_> = uids.iter().map(ToString::to_string).collect();
        uids.sort_unstable();
        uids
    };
    assert_eq!(shown(world.graph.to_check()), ["child", "nobody"]);
    assert_eq!(shown(world.graph.to_orphan()), ["leaving"]);
    world.delete("leaving");
    drop(world.graph.take(&"child".into()));
    assert_eq!(shown(world.graph.to_check()), ["nobody"], "a look that was taken up is not wanted any more");
    assert!(world.graph.to_orphan().is_empty());
}

/// A standby checks nothing, so the server would never be asked about them.
#[test]
fn owners_that_were_only_referred_to_go_with_the_last_reference() {
    let mut world = World::default();
    for round in 0..100 {
        let one = format!("one-{round}");
        let two = format!("two-{round}");
        let owner = format!("owner-{round}");
        world.observe(&object(&one, vec![of(&owner)]));
        let before = object(&two, vec![of(&owner)]);
        world.observe(&before);
        world.delete(&one);
        assert_eq!(world.known(&owner), Some(true), "one refers to it");
        if round % 2 == 0 {
            world.update(&before, &object(&two, vec![]));
        }
        world.delete(&two);
        assert_eq!(world.known(&owner), None);
    }
    assert_eq!((world.graph.len(), world.graph.to_check().len()), (0, 0));
}

#[test]
fn an_object_that_is_seen_is_not_absent_whatever_was_said_before() {
    let mut world = World::with(&[object("owner", vec![]), object("child", vec![of("owner")])]);
    world.delete("owner");
    assert!(world.graph.absent.has(&identity("owner")));
    world.observe(&object("owner", vec![]));
    assert!(!world.graph.absent.has(&identity("owner")), "a restored server brings uids back");
}
