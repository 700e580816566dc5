//! Pure: how far the number of pods may change at once.

use steersman_base::MicroTime;

use super::behavior::{Direction, Rules, Select, period};
use super::history::History;

/// The current and the desired number of pods, and the limits of the spec.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) current: i32,
    pub(super) desired: i32,
    pub(super) min: i32,
    pub(super) max: i32,
}

/// An allowed number of pods, and why it is this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) replicas: i32,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

/// Without rules of its own, an autoscaler at most doubles the pods, or makes four of fewer: a wrong measurement does
/// little harm.
const FACTOR: i32 = 2;
const MINIMUM: i32 = 4;

const TOO_FEW: (&str, &str) = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_MANY: (&str, &str) = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const UP: (&str, &str) = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const DOWN: (&str, &str) =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");
const WITHIN: (&str, &str) = ("DesiredWithinRange", "the desired count is within the acceptable range");

// === impl Wish ===

impl Wish {
    /// Returns the allowed number of pods of an autoscaler without rules of its own.
    pub(super) fn limited(self) -> Limited {
        let limit = self.current.saturating_mul(FACTOR).max(MINIMUM);
        if self.desired < self.min {
            return limited(self.min, TOO_FEW);
        }
        let (max, why) = if self.max > limit { (limit, UP) } else { (self.max, TOO_MANY) };
        if self.desired > max { limited(max, why) } else { limited(self.desired, WITHIN) }
    }

    /// Returns the allowed number of pods by the rules of the autoscaler.
    pub(super) fn limited_by(self, rules: &Rules, history: &History, now: MicroTime) -> Limited {
        if self.desired > self.current {
            let limit = up_limit(self.current, &rules.up, history, now);
            let (max, why) = if self.max > limit { (limit, UP) } else { (self.max, TOO_MANY) };
            if self.desired > max {
                return limited(max, why);
            }
        } else if self.desired < self.current {
            let limit = down_limit(self.current, &rules.down, history, now);
            let (min, why) = if self.min < limit { (limit, DOWN) } else { (self.min, TOO_FEW) };
            if self.desired < min {
                return limited(min, why);
            }
        }
        limited(self.desired, WITHIN)
    }
}

fn limited(replicas: i32, (reason, message): (&'static str, &'static str)) -> Limited {
    Limited { replicas, reason, message }
}

/// Returns the highest number of pods that the policies allow. A percentage is rounded up, so that one pod can become two.
fn up_limit(current: i32, rules: &Direction, history: &History, now: MicroTime) -> i32 {
    let each = rules.policies.iter().map(|policy| {
        let before = history.before(current, period(policy), now);
        match &*policy.type_ {
            "Percent" => (before as f64 * (1.0 + f64::from(policy.value) / 100.0)).ceil() as i64,
            _ => before + i64::from(policy.value),
        }
    });
    let limit = match rules.select {
        Select::Disabled => None,
        Select::Min => each.min(),
        Select::Max => each.max(),
    };
    // More may have been added than a policy allows now: then there is nothing to add, and nothing to remove.
    clamped(limit.unwrap_or_default()).max(current)
}

/// Returns the lowest number of pods that the policies allow.
fn down_limit(current: i32, rules: &Direction, history: &History, now: MicroTime) -> i32 {
    let each = rules.policies.iter().map(|policy| {
        let before = history.before(current, period(policy), now);
        match &*policy.type_ {
            "Percent" => (before as f64 * (1.0 - f64::from(policy.value) / 100.0)) as i64,
            _ => before - i64::from(policy.value),
        }
    });
    let limit = match rules.select {
        Select::Disabled => None,
        Select::Min => each.max(),
        Select::Max => each.min(),
    };
    clamped(limit.unwrap_or(i64::MAX)).min(current)
}

fn clamped(replicas: i64) -> i32 {
    replicas.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}
