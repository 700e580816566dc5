//! Writes that change nothing but the time of a manager.

use serde_json::{Map, Value};

use super::managed_fields;
use crate::value;

/// Puts the old times back if a write would change nothing else, so that it is no write at all. To be called when the
/// object is otherwise ready to be stored. Follows `endpoints/handlers/fieldmanager/equality.go` of k8s.io/apiserver.
pub fn keep_times_of_unchanged(old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (managed_fields(old), managed_fields(new)) else {
        return;
    };
    // Most writes change the object, which is seen sooner.
    if !same_but_managers(old, new) || before == after || !same_but_times(before, after) {
        return;
    }
    let before = before.clone();
    super::set_managed_fields(new, Some(before));
}

fn same_but_times(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_array(), b.as_array()) else {
        return false;
    };
    let same = |(a, b): (&Value, &Value)| match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => same_members(a, b, "time", |_, _| true),
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

fn same_but_managers(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return false;
    };
    same_members(a, b, "metadata", |a, b| match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => same_members(a, b, "managedFields", |_, _| true),
        _ => a == b,
    })
}

/// Whether two objects have the same members, one of which is compared in its own way and may be absent.
fn same_members(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    special: &str,
    same: impl Fn(&Value, &Value) -> bool,
) -> bool {
    let count = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(special));
    let others =
        |(name, value): (&String, &Value)| name == special || b.get(name).is_some_and(|b| value::equal(value, b));
    count(a) == count(b)
        && a.iter().all(others)
        && match (a.get(special), b.get(special)) {
            (Some(a), Some(b)) => same(a, b),
            // Only times may come and go.
            (None, None) => true,
            _ => special == "time",
        }
}
