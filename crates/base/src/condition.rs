//! Conditions: what is true of an object right now, and since when.
//!
//! One type for all kinds. Some of them note when a condition was last looked at under a name of their own (Deployments
//! `lastUpdateTime`, pods and Jobs `lastProbeTime`, nodes `lastHeartbeatTime`); what a kind does not have stays absent.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Istr, Time, null};

/// One condition of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type, such as `Ready`; one of each type per object.
    #[serde(rename = "type", default)]
    pub type_: Istr,
    /// Whether it holds.
    #[serde(default)]
    pub status: ConditionStatus,
    /// Generation of the object that this was observed on; zero if unknown.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// The time of the last probe: pods and Jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// The time of the last report: nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,
    /// The time of the last write: Deployments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// The time at which its status changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, as one CamelCase word.
    #[serde(default, deserialize_with = "null::as_default")]
    pub reason: Istr,
    /// Why, for humans.
    #[serde(default, deserialize_with = "null::as_default")]
    pub message: Istr,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Unknown; any text but `True` and `False` is read as this.
    #[default]
    Unknown,
}

/// The condition of this type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type is there and holds.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Whether the condition of this type is there and does not hold.
#[must_use]
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::False)
}

/// Replaces the condition of the same type, or appends it, and returns whether anything changed.
///
/// 1. The transition time changes only when the status does: to the one given, else to `now`.
/// 2. Times of mere observation (probe, heartbeat, update) go along with a change, and are none by themselves.
///
/// Follows `meta.SetStatusCondition` of Kubernetes 1.37.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition, now: Time) -> bool {
    condition.last_transition_time.get_or_insert(now);
    let Some(held) = conditions.iter_mut().find(|held| held.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if held.same_but_for_times(&condition) {
        return false;
    }
    if held.status == condition.status {
        condition.last_transition_time = held.last_transition_time;
    }
    condition.last_probe_time = condition.last_probe_time.or(held.last_probe_time);
    condition.last_heartbeat_time = condition.last_heartbeat_time.or(held.last_heartbeat_time);
    condition.last_update_time = condition.last_update_time.or(held.last_update_time);
    *held = condition;
    true
}

/// Removes the condition of this type and returns whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() < before
}

/// Whether both lists are equal in the same order, except for times.
#[must_use]
pub fn same_but_for_times(left: &[Condition], right: &[Condition]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.same_but_for_times(right))
}

// === impl Condition ===

impl Condition {
    /// A condition without reason, message and times.
    #[must_use]
    pub fn new(type_: &str, status: ConditionStatus) -> Self {
        Self { type_: Istr::interned(type_), status, ..Self::default() }
    }

    /// With this reason and message. Reasons repeat over objects and are interned; messages are kept as they are.
    #[must_use]
    pub fn because(self, reason: &str, message: &str) -> Self {
        Self { reason: Istr::interned(reason), message: Istr::new(message), ..self }
    }

    /// Whether the condition holds.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

    /// Whether both are equal, except for times.
    #[must_use]
    pub fn same_but_for_times(&self, other: &Self) -> bool {
        self.type_ == other.type_
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.observed_generation == other.observed_generation
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

// === impl ConditionStatus ===

impl ConditionStatus {
    /// `True`, `False` or `Unknown`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<&str> for ConditionStatus {
    fn from(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for ConditionStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ConditionStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl de::Visitor<'_> for Reading {
            type Value = ConditionStatus;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("True, False or Unknown")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ConditionStatus, E> {
                Ok(ConditionStatus::from(text))
            }
        }
        deserializer.deserialize_str(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Time = Time::from_unix(1000);
    const NOW: Time = Time::from_unix(2000);

    fn held() -> Vec<Condition> {
        let ready = Condition::new("Ready", true.into()).because("Up", "all is well");
        vec![Condition { last_transition_time: Some(THEN), last_update_time: Some(THEN), ..ready }]
    }

    #[test]
    fn the_transition_time_changes_only_when_the_status_does() {
        let check = |name: &str, given: Condition, changed: bool, transition: Time| {
            let mut conditions = held();
            assert_eq!(set(&mut conditions, given, NOW), changed, "{name}");
            let ready = find(&conditions, "Ready").unwrap();
            assert_eq!((conditions.len(), ready.last_transition_time), (1, Some(transition)), "{name}");
            assert_eq!(ready.last_update_time, Some(THEN), "{name}");
        };
        let ready = |status| Condition::new("Ready", status).because("Up", "all is well");
        check("same", ready(ConditionStatus::True), false, THEN);
        check("other message", ready(ConditionStatus::True).because("Up", "still"), true, THEN);
        check("other reason", ready(ConditionStatus::True).because("Fine", "all is well"), true, THEN);
        check("other generation", Condition { observed_generation: 2, ..ready(ConditionStatus::True) }, true, THEN);
        check("other status", ready(ConditionStatus::False), true, NOW);
        let given = Condition { last_transition_time: Some(Time::from_unix(1500)), ..ready(ConditionStatus::False) };
        check("other status with its time", given, true, Time::from_unix(1500));
    }

    #[test]
    fn being_looked_at_again_is_no_change() {
        let mut conditions = held();
        let again = Condition { last_update_time: Some(NOW), ..held().remove(0) };
        assert!(!set(&mut conditions, again, NOW));
        assert_eq!(conditions, held());
    }

    #[test]
    fn a_new_condition_goes_to_the_end_and_a_removed_one_is_gone() {
        let mut conditions = held();
        assert!(set(&mut conditions, Condition::new("Scheduled", false.into()), NOW));
        assert_eq!(conditions[1].last_transition_time, Some(NOW));
        assert!(is_true(&conditions, "Ready") && is_false(&conditions, "Scheduled") && !is_true(&conditions, "Other"));
        assert!(remove(&mut conditions, "Ready"));
        assert!(!remove(&mut conditions, "Ready"));
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn every_kinds_json_reads_and_writes() {
        let check = |given: &str, want: &str| {
            let condition: Condition = serde_json::from_str(given).unwrap();
            assert_eq!(serde_json::to_string(&condition).unwrap(), want);
        };
        check(
            r#"{"type":"Ready","status":"True","observedGeneration":3,"lastProbeTime":null,
                "lastTransitionTime":"2026-11-15T22:04:07Z"}"#,
            r#"{"type":"Ready","status":"True","observedGeneration":3,"lastTransitionTime":"2026-11-15T22:04:07Z","reason":"","message":""}"#,
        );
        check(
            r#"{"type":"Available","status":"Maybe","lastUpdateTime":"2026-11-15T22:04:07Z","reason":null,"message":"m"}"#,
            r#"{"type":"Available","status":"Unknown","lastUpdateTime":"2026-11-15T22:04:07Z","reason":"","message":"m"}"#,
        );
        check("{}", r#"{"type":"","status":"Unknown","reason":"","message":""}"#);
    }
}
