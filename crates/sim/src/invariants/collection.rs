//! Garbage collection: what is deleted, what is kept, and in which order.

use steersman_base::names::finalizers::{FOREGROUND_DELETION, ORPHAN};

use super::{Case, Findings, GARBAGE, Rest, Verdict};
use crate::world::{Object, Owner, World};

/// The owner that a reference leads to, if it is there: of that uid, kind and name, in the namespace of the dependent
/// or cluster-wide.
pub(super) fn owner_of<'a>(world: &'a World, dependent: &Object, reference: &Owner) -> Option<&'a Object> {
    let owner = world.by_uid(&reference.uid)?;
    let is_near = owner.key.namespace.is_empty() || owner.key.namespace == dependent.key.namespace;
    (is_near && owner.key.name == reference.name && owner.kind == reference.kind).then_some(owner)
}

/// Whether an owner waits for its dependents to be deleted.
fn waits(owner: &Object) -> bool {
    owner.is_terminating() && owner.has_finalizer(FOREGROUND_DELETION)
}

/// Whether an owner waits for its dependents, or did so before. A deletion is not taken back: if another finalizer keeps
/// the owner when it waits no more, what was decided while it waited is still right.
fn ever_waited(case: &Case<'_>, owner: &Object) -> bool {
    let history = case.world.history(&owner.resource, &owner.key);
    let is_deleted_so = |before: &Object| before.uid == owner.uid && waits(before);
    waits(owner) || history.is_some_and(|history| history.since(0, None).ever(is_deleted_so))
}

/// "If ALL objects in the list have been deleted, this object will be garbage collected." (ObjectMeta, ownerReferences)
///
/// Asked when the garbage collector deletes an object: every owner must be gone, or be deleted in the foreground. "After
/// the owner object enters the deletion in progress state, the controller deletes dependents it knows about." (website:
/// Garbage Collection) That is so from the moment on at which it waited for its dependents. Judged against the store
/// alone: owners are looked up right before, and a uid that is gone does not come back.
pub(super) fn nothing_with_a_living_owner_is_collected(case: &Case<'_>) -> Verdict {
    let Some(object) = case.deleted().filter(|_| case.by(&[GARBAGE])) else { return Verdict::NotMine };
    let mut owners = object.owners.iter().filter_map(|reference| owner_of(case.world, object, reference));
    match owners.find(|owner| owner.uid != object.uid && !ever_waited(case, owner)) {
        None => Verdict::Holds,
        Some(owner) => Verdict::Violated(format!("{object} is collected, and its owner {owner} is there")),
    }
}

/// Objects without owner references are left alone. Follows `attemptToDeleteItem` in `garbagecollector.go` of
/// Kubernetes 1.37.
///
/// Asked when the garbage collector deletes an object: it must have owners. Judged against the store alone: the
/// deletion is on condition of the version that was read.
pub(super) fn nothing_without_owners_is_collected(case: &Case<'_>) -> Verdict {
    let Some(object) = case.deleted().filter(|_| case.by(&[GARBAGE])) else { return Verdict::NotMine };
    Verdict::at_store(!object.owners.is_empty(), || format!("{object} is collected, and has no owner"))
}

/// Whether the garbage collector took this finalizer off with the write; then, the object as it was.
fn takes_off<'a>(case: &Case<'a>, finalizer: &str) -> Option<&'a Object> {
    let before = case.step.before.as_ref().filter(|before| before.has_finalizer(finalizer))?;
    let is_off = case.step.after.as_ref().is_none_or(|after| !after.has_finalizer(finalizer));
    (is_off && case.by(&[GARBAGE])).then_some(before)
}

/// Judges the end of an owner: none of its dependents for which `hinders` holds may be left.
fn nothing_hinders(case: &Case<'_>, owner: &Object, hinders: impl Fn(&Object, &Owner) -> bool, what: &str) -> Verdict {
    let window = case.window();
    let is_held = |object: &Object| {
        let mut references = object.owners.iter().filter(|reference| reference.uid == owner.uid);
        object.uid != owner.uid && references.any(|reference| hinders(object, reference))
    };
    let mut verdict = Verdict::Holds;
    for dependent in case.world.dependents(&owner.uid).filter(|object| is_held(object)) {
        // References across namespaces lead nowhere.
        if !owner.key.namespace.is_empty() && dependent.key.namespace != owner.key.namespace {
            continue;
        }
        let versions = window.of_key(&dependent.resource, &dependent.key);
        if versions.is_some_and(|versions| versions.always(is_held)) {
            return Verdict::Violated(format!("{owner} is let go, and {dependent} {what}"));
        }
        verdict = Verdict::Stale;
    }
    verdict
}

/// With the finalizer `orphan`, the owner is removed from the owner references of its dependents first, and then the
/// finalizer from the owner. Follows `attemptToOrphanWorker` in `garbagecollector.go` of Kubernetes 1.37.
///
/// Asked when the garbage collector takes the finalizer `orphan` off: no dependent may name the owner any more. Judged
/// against the store; staleness excuses dependents that were not there all the time by what was shown.
pub(super) fn orphans_are_let_go_before_their_owner_goes(case: &Case<'_>) -> Verdict {
    let Some(owner) = takes_off(case, ORPHAN) else { return Verdict::NotMine };
    nothing_hinders(case, owner, |dependent, _| !dependent.is_terminating(), "still names it as its owner")
}

/// "If true, AND if the owner has the "foregroundDeletion" finalizer, then the owner cannot be deleted from the
/// key-value store until this reference is removed." (OwnerReference, blockOwnerDeletion)
///
/// Asked when the garbage collector takes the finalizer `foregroundDeletion` off: no dependent may block any more.
/// Judged against the store; staleness excuses dependents that were not there all the time by what was shown.
pub(super) fn foreground_owners_go_after_what_blocks_them(case: &Case<'_>) -> Verdict {
    let Some(owner) = takes_off(case, FOREGROUND_DELETION) else { return Verdict::NotMine };
    nothing_hinders(case, owner, |_, reference| reference.blocks, "blocks its deletion")
}

/// "Each entry is an identifier for the responsible component that will remove the entry from the list." (ObjectMeta,
/// finalizers)
///
/// Asked when the garbage collector changes an object. Judged against the store alone.
pub(super) fn the_collector_takes_off_its_own_finalizers_alone(case: &Case<'_>) -> Verdict {
    let Some(before) = case.step.before.as_ref().filter(|_| case.by(&[GARBAGE])) else { return Verdict::NotMine };
    let is_left = |name: &str| case.step.after.as_ref().is_some_and(|after| after.has_finalizer(name));
    let others = before.finalizers.iter().filter(|name| **name != ORPHAN && **name != FOREGROUND_DELETION);
    let lost: Vec<_> = others.filter(|name| !is_left(name)).map(ToString::to_string).collect();
    Verdict::at_store(lost.is_empty(), || format!("{before} loses the finalizers {}", lost.join(", ")))
}

/// "List of objects depended by this object." (ObjectMeta, ownerReferences) Which references are removed follows
/// `garbagecollector.go` of Kubernetes 1.37.
///
/// Asked when the garbage collector takes references out of an object: those owners must be gone, or be deleted with
/// `orphan` or in the foreground, now or before. Judged against the store alone.
pub(super) fn references_to_living_owners_stay(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&[GARBAGE])) else { return Verdict::NotMine };
    let mut removed =
        before.owners.iter().filter(|owner| !after.owners.iter().any(|left| left.uid == owner.uid)).peekable();
    if removed.peek().is_none() {
        return Verdict::NotMine;
    }
    let lives =
        |owner: &&Object| !(owner.is_terminating() && (owner.has_finalizer(ORPHAN) || ever_waited(case, owner)));
    match removed.filter_map(|reference| owner_of(case.world, before, reference)).find(lives) {
        None => Verdict::Holds,
        Some(owner) => Verdict::Violated(format!("{after} loses its reference to {owner}, which is there")),
    }
}

/// "If ALL objects in the list have been deleted, this object will be garbage collected." (ObjectMeta, ownerReferences)
///
/// At rest. Objects that are going and wait for finalizers are left out, and so are owners of a kind that nobody knows.
pub(super) fn all_garbage_is_collected(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(GARBAGE) {
        return;
    }
    for object in rest.world.everything().filter(|object| !object.owners.is_empty() && !is_event(object)) {
        if object.owners.iter().any(|owner| !is_decidable(rest.world, object, owner)) {
            found.excuse();
            continue;
        }
        let has_owner = object.owners.iter().any(|owner| owner_of(rest.world, object, owner).is_some());
        let goes = object.is_terminating() && !object.finalizers.is_empty();
        found
            .expect(has_owner || goes, || format!("{object} is still there, and its owners {} are not", names(object)));
    }
}

/// References to owners that are gone are removed from an object that has another owner. Follows `attemptToDeleteItem`
/// in `garbagecollector.go` of Kubernetes 1.37.
///
/// At rest.
pub(super) fn no_reference_leads_nowhere(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(GARBAGE) {
        return;
    }
    for object in rest.world.everything().filter(|object| object.owners.len() > 1 && !is_event(object)) {
        let there = |owner: &&Owner| owner_of(rest.world, object, owner).is_some();
        let decidable = object.owners.iter().all(|owner| is_decidable(rest.world, object, owner));
        if object.is_terminating() || !decidable || !object.owners.iter().any(|owner| there(&owner)) {
            continue;
        }
        let all = object.owners.iter().all(|owner| there(&owner));
        found.expect(all, || format!("{object} names owners that are gone: {}", names(object)));
    }
}

/// "Each time a finalizer condition is satisfied, the controller removes that key from the resource's `finalizers`
/// field." (website: Finalizers)
///
/// At rest: no terminating object waits for `orphan`, nor in the foreground for dependents that are not there.
pub(super) fn finalizers_of_the_collector_are_taken_off(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(GARBAGE) {
        return;
    }
    for object in rest.world.everything().filter(|object| !is_event(object)) {
        let blocks = |dependent: &Object| {
            dependent.uid != object.uid && dependent.owners.iter().any(|owner| owner.uid == object.uid && owner.blocks)
        };
        let is_blocked = rest.world.dependents(&object.uid).any(|dependent| blocks(dependent));
        let waits_in_vain = object.has_finalizer(ORPHAN) || (object.has_finalizer(FOREGROUND_DELETION) && !is_blocked);
        found.expect(!(object.is_terminating() && waits_in_vain), || {
            format!("{object} is terminating and waits for the garbage collector")
        });
    }
}

/// Whether anybody can tell if the owner is there: its kind is known, and a cluster-wide object names no namespaced
/// owner.
fn is_decidable(world: &World, object: &Object, owner: &Owner) -> bool {
    let is_known = world.knows_kind(&owner.kind);
    let is_namespaced = world.by_uid(&owner.uid).is_some_and(|owner| !owner.key.namespace.is_empty());
    is_known && !(object.key.namespace.is_empty() && is_namespaced)
}

fn is_event(object: &Object) -> bool {
    object.resource == "events" || object.resource == "events.events.k8s.io"
}

fn names(object: &Object) -> String {
    let names: Vec<_> = object.owners.iter().map(|owner| format!("{} {}", owner.kind, owner.name)).collect();
    names.join(", ")
}
