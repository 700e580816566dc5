//! Pure: finalizers that protect objects while they are in use. The server's admission adds them; a controller adds them
//! to objects that were created without it, and removes them from terminating objects that nothing uses.

use serde_json::Value;
use steersman_base::{Meta, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;

/// The action of a protecting controller on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// It is not terminating, and lacks the finalizer.
    Add,
    /// It is terminating and has the finalizer: remove it, unless the object is in use.
    Release,
}

/// Returns what there is to do with an object.
pub(crate) fn step(object: &Meta, finalizer: &str) -> Step {
    match (object.is_terminating(), object.has_finalizer(finalizer)) {
        (false, false) => Step::Add,
        (true, true) => Step::Release,
        (false, true) | (true, false) => Step::Nothing,
    }
}

/// Returns the changed object's key, if there is something to do with it.
pub(crate) fn key<V: View>(change: &Change<V>, finalizer: &str) -> Option<ObjectKey> {
    let (Change::Added { new: object, .. } | Change::Updated { new: object, .. }) = change else { return None };
    (step(object.meta(), finalizer) != Step::Nothing).then(|| object.meta().key())
}

/// Adds the finalizer; returns false if the object has it, or is terminating.
pub(crate) fn add(object: &mut Value, finalizer: &str) -> bool {
    let held = finalizers(object);
    if is_terminating(object) || held.iter().any(|held| held == finalizer) {
        return false;
    }
    object["metadata"]["finalizers"] = held.into_iter().chain([finalizer.into()]).collect();
    true
}

/// Removes the finalizer; returns false if the object does not have it, or is not terminating.
pub(crate) fn remove(object: &mut Value, finalizer: &str) -> bool {
    let held = finalizers(object);
    if !is_terminating(object) || !held.iter().any(|held| held == finalizer) {
        return false;
    }
    object["metadata"]["finalizers"] = held.into_iter().filter(|held| held != finalizer).collect();
    true
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn finalizers(object: &Value) -> Vec<Value> {
    object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_objects::{NOW, decode};

    const MINE: &str = "kubernetes.io/pv-protection";

    #[test]
    fn an_object_is_protected_until_it_terminates_and_released_once() {
        let check = |is_terminating: bool, held: &[&str], want: Step, then: Option<&[&str]>| {
            let mut object = json!({ "metadata": { "name": "a", "finalizers": held } });
            if is_terminating {
                object["metadata"]["deletionTimestamp"] = json!(NOW);
            }
            assert_eq!(step(&decode::<Meta>(object.clone()), MINE), want, "{object}");
            let mut added = object.clone();
            let mut removed = object.clone();
            let is_added = add(&mut added, MINE);
            let is_removed = remove(&mut removed, MINE);
            assert_eq!((is_added, is_removed), (want == Step::Add, want == Step::Release), "{object}");
            let written = if is_added { &added } else { &removed };
            if let Some(then) = then {
                assert_eq!(written["metadata"]["finalizers"], json!(then), "{object}");
            }
        };
        check(false, &[], Step::Add, Some(&[MINE]));
        check(false, &["other"], Step::Add, Some(&["other", MINE]));
        check(false, &["other", MINE], Step::Nothing, None);
        check(true, &["other", MINE], Step::Release, Some(&["other"]));
        check(true, &["other"], Step::Nothing, None);
        check(true, &[], Step::Nothing, None);
    }
}
