//! Namespaces go when they are empty.

use steersman_base::{ConditionStatus, ObjectKey, condition, names::finalizers::KUBERNETES};

use super::{ACCOUNT, Case, Findings, NAMESPACE, ROOT_CA, Rest, Verdict};
use crate::world::{Object, PASS_SECONDS};

/// What is in a namespace and must go before it does. Events may come at any time, and go by themselves.
fn content<'a>(case: &Case<'a>, namespace: &str) -> Option<&'a Object> {
    let mut content = case.world.content(namespace).filter(|object| !object.resource.starts_with("events"));
    content.next().map(|object| &**object)
}

/// Whether an object was created so late that an earlier list cannot have shown it.
fn came_late(case: &Case<'_>, object: &Object) -> bool {
    object.created.is_some_and(|created| created.plus_seconds(PASS_SECONDS) >= case.change.at)
}

/// "Finalizers is an opaque list of values that must be empty to permanently remove object from storage."
/// (NamespaceSpec, finalizers)
///
/// Asked when the namespace controller takes its finalizer off a namespace: nothing is in it. Judged against the store
/// alone: it is emptied by live reads. What was created within the last minute excuses it: an API server may let
/// something in after the deletion for a moment.
pub(super) fn a_namespace_is_let_go_only_when_empty(case: &Case<'_>) -> Verdict {
    if !case.is("namespaces") || !case.by(&[NAMESPACE]) {
        return Verdict::NotMine;
    }
    let has = |object: &Object| {
        object.namespace().is_some_and(|namespace| namespace.finalizers.iter().any(|name| name == KUBERNETES))
    };
    let was_held = case.step.before.as_ref().is_some_and(|before| has(before));
    let is_held = case.step.after.as_ref().is_some_and(|after| has(after));
    if !was_held || is_held {
        return Verdict::NotMine;
    }
    match content(case, &case.change.key.name) {
        None => Verdict::Holds,
        Some(object) if came_late(case, object) => Verdict::Excused,
        Some(object) => {
            Verdict::Violated(format!("namespace {} is let go, and {object} is in it", case.change.key.name))
        }
    }
}

/// "NamespaceContentRemaining contains information about resources remaining in a namespace." (NamespaceConditionType)
///
/// Asked when the namespace controller begins to say that nothing remains, and that nothing failed: nothing is in the
/// namespace. Judged against the store alone, as above.
pub(super) fn a_namespace_tells_what_is_left(case: &Case<'_>) -> Verdict {
    if !case.is("namespaces") || !case.by(&[NAMESPACE]) {
        return Verdict::NotMine;
    }
    let Some((before, after)) = case.updated() else { return Verdict::NotMine };
    let is = |object: &Object, type_: &str, status: ConditionStatus| {
        condition::find(object.conditions(), type_).is_some_and(|condition| condition.status == status)
    };
    let says_empty = |object: &Object| is(object, "NamespaceContentRemaining", ConditionStatus::False);
    let failures = ["NamespaceDeletionDiscoveryFailure", "NamespaceDeletionContentFailure"];
    let failed = failures.iter().any(|type_| is(after, type_, ConditionStatus::True));
    if !says_empty(after) || says_empty(before) || failed {
        return Verdict::NotMine;
    }
    match content(case, &case.change.key.name) {
        None => Verdict::Holds,
        Some(object) if came_late(case, object) => Verdict::Excused,
        Some(object) => Verdict::Violated(format!("{after} says that nothing remains, and {object} is in it")),
    }
}

/// `Terminating`: "the namespace is being deleted, and cannot be used for new objects". (website: Share a Cluster with
/// Namespaces)
///
/// Asked when the service account controller or the root CA publisher creates something: the namespace is there and
/// active. Judged against the store; staleness excuses a namespace that was so by what was shown.
pub(super) fn nothing_is_published_into_a_namespace_that_goes(case: &Case<'_>) -> Verdict {
    let Some(made) = case.created().filter(|_| case.by(&[ACCOUNT, ROOT_CA])) else { return Verdict::NotMine };
    let key = ObjectKey::cluster(&made.key.namespace);
    let is_active = |namespace: &Object| !namespace.is_terminating();
    let at_store = case.world.get("namespaces", &key).is_some_and(|namespace| is_active(namespace));
    let window = case.window();
    let as_shown = || window.of_key("namespaces", &key).is_some_and(|versions| versions.ever(is_active));
    Verdict::judge(at_store, as_shown, || format!("{made} is created in a namespace that is gone or terminating"))
}

/// "This delete is asynchronous, so for a time you will see the namespace in the `Terminating` state." (website: Share
/// a Cluster with Namespaces)
///
/// At rest: a terminating namespace is still there only while something in it waits for finalizers, or while others
/// hold it.
pub(super) fn deleted_namespaces_are_gone(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(NAMESPACE) {
        return;
    }
    for object in rest.world.all("namespaces") {
        if !object.is_terminating() {
            found.expect(true, String::new);
            continue;
        }
        let mut content = rest.world.content(&object.key.name).filter(|object| !object.resource.starts_with("events"));
        let is_held =
            object.namespace().is_some_and(|namespace| namespace.finalizers.iter().any(|name| name != KUBERNETES));
        let waits = content.any(|object| object.is_terminating() && !object.finalizers.is_empty());
        if is_held || waits || !object.finalizers.is_empty() {
            found.excuse();
            continue;
        }
        found.expect(false, || format!("{object} is terminating, and nothing holds it"));
    }
}

/// "This deletes everything under the namespace!" (website: Share a Cluster with Namespaces)
///
/// At rest: every object is in a namespace that is there.
pub(super) fn nothing_is_left_of_a_namespace_that_is_gone(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(NAMESPACE) {
        return;
    }
    for object in rest.world.everything() {
        if object.key.namespace.is_empty() || object.resource.starts_with("events") {
            continue;
        }
        let key = ObjectKey::cluster(&object.key.namespace);
        // A namespace that the recorder never saw may be there all the same.
        if rest.world.history("namespaces", &key).is_none() {
            continue;
        }
        let is_there = rest.world.get("namespaces", &key).is_some();
        found.expect(is_there, || format!("{object} is left of a namespace that is gone"));
    }
}
