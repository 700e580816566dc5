//! Conditions in the status of a kind of one's own (`metav1.Condition` of `k8s-openapi`).
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! use steersman_base::Time;
//! use steersman_runtime::conditions;
//!
//! let mut held: Vec<Condition> = Vec::new();
//! let now = Time::from_unix(1_800_000_000);
//! assert!(conditions::set(&mut held, conditions::is("Ready", "Served", "2 of 2 pods are ready"), now));
//! assert!(!conditions::set(&mut held, conditions::is("Ready", "Served", "2 of 2 pods are ready"), now), "nothing changed");
//! assert!(conditions::set(&mut held, conditions::is_not("Ready", "TooFew", "1 of 2 pods is ready"), now));
//! assert!(!conditions::is_true(&held, "Ready"));
//! ```
//!
//! In a reconcile the time is `cx.clock.now()`. The rules are those of `meta.SetStatusCondition` of Kubernetes 1.37. Built-in kinds
//! use `steersman_base::condition`, which has the fields that only some of them have.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time as KubeTime};
use steersman_base::Time;

/// Returns a condition whose status is `True`.
#[must_use]
pub fn is(type_: &str, reason: &str, message: &str) -> Condition {
    condition(type_, "True", reason, message)
}

/// Returns a condition whose status is `False`.
#[must_use]
pub fn is_not(type_: &str, reason: &str, message: &str) -> Condition {
    condition(type_, "False", reason, message)
}

/// Returns a condition whose status is `Unknown`.
#[must_use]
pub fn is_unknown(type_: &str, reason: &str, message: &str) -> Condition {
    condition(type_, "Unknown", reason, message)
}

/// Returns a condition with the status `True` or `False`.
#[must_use]
pub fn when(holds: bool, type_: &str, reason: &str, message: &str) -> Condition {
    if holds { is(type_, reason, message) } else { is_not(type_, reason, message) }
}

/// Replaces the condition of the same type, or appends it. Returns whether anything changed.
///
/// The transition time becomes `now` if the status changes, and stays as it is otherwise.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition, now: Time) -> bool {
    condition.last_transition_time = kube_time(now);
    let Some(held) = conditions.iter_mut().find(|held| held.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if held.status == condition.status {
        condition.last_transition_time = held.last_transition_time.clone();
    }
    let is_changed = *held != condition;
    *held = condition;
    is_changed
}

/// Returns the condition of this type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type exists and is `True`.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// Removes the condition of this type. Returns whether it existed.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() < before
}

/// Returns the time as the type of `k8s-openapi`. A time out of its range becomes the nearest one in it.
#[must_use]
pub fn kube_time(time: Time) -> KubeTime {
    let seconds = time.unix().clamp(Time::MIN.unix(), Time::MAX.unix());
    KubeTime(jiff::Timestamp::from_second(seconds).unwrap_or_default())
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: None,
        last_transition_time: kube_time(Time::from_unix(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_changes_with_the_status_alone() {
        let start = Time::from_unix(1_800_000_000);
        let later = start.plus_seconds(60);
        let mut held = Vec::new();
        assert!(set(&mut held, is_not("Ready", "Starting", "no pods"), start));
        assert!(set(&mut held, is_not("Ready", "Starting", "1 pod"), later), "another message is a change");
        assert_eq!(held[0].last_transition_time, kube_time(start));
        assert!(set(&mut held, is("Ready", "Served", "2 pods"), later));
        assert_eq!(held[0].last_transition_time, kube_time(later));
        assert!(!set(&mut held, is("Ready", "Served", "2 pods"), later.plus_seconds(60)));
        assert_eq!(held[0].last_transition_time, kube_time(later));
        let observed = Condition { observed_generation: Some(2), ..is("Ready", "Served", "2 pods") };
        assert!(set(&mut held, observed, later), "another generation is a change");
        assert!(set(&mut held, is_unknown("Synced", "Unreachable", ""), later));
        assert_eq!(held.len(), 2);
        assert!(remove(&mut held, "Synced") && !remove(&mut held, "Synced"));
    }

    #[test]
    fn a_time_beyond_the_calendar_is_written_as_the_last_one() {
        assert_eq!(kube_time(Time::from_unix(i64::MAX)), kube_time(Time::MAX));
    }
}
