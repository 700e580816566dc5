//! Pure: the rules of scaling up and down, with their defaults.

use std::time::Duration;

use steersman_base::Istr;
use steersman_model::autoscaling::{Behavior, ScalingPolicy, ScalingRules};

use super::calculator::Tolerances;

/// The rules of both directions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rules {
    pub(super) up: Direction,
    pub(super) down: Direction,
}

/// The rules of one direction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Direction {
    pub(super) select: Select,
    pub(super) policies: Box<[ScalingPolicy]>,
    pub(super) window: Duration,
}

/// The rule that selects one of several policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Select {
    /// The one that allows the largest change.
    Max,
    /// The one that allows the smallest change.
    Min,
    /// None: there is no change in this direction.
    Disabled,
}

/// The percentage by which pods are added or removed by default.
const PERCENT: i32 = 100;
/// The number of pods that are added by default, if that is more.
const PODS: i32 = 4;
/// The period of the default policies.
const PERIOD_SECONDS: i32 = 15;

// === impl Rules ===

impl Rules {
    /// Returns the rules of an autoscaler. `down_window` counts where it has no window for scaling down. A server fills in
    /// the other defaults; this does it for one that does not.
    pub(super) fn of(behavior: &Behavior, down_window: Duration) -> Self {
        let percent = policy("Percent", PERCENT);
        let up = [policy("Pods", PODS), percent.clone()];
        Self {
            up: Direction::of(behavior.scale_up.as_ref(), &up, Duration::ZERO),
            down: Direction::of(behavior.scale_down.as_ref(), &[percent], down_window),
        }
    }

    /// Returns the longer window: older recommendations are of no use.
    pub(super) fn longest_window(&self) -> Duration {
        self.up.window.max(self.down.window)
    }

    /// Returns the longest period of a policy: older changes are of no use.
    pub(super) fn longest_period(&self) -> Duration {
        let policies = self.up.policies.iter().chain(&self.down.policies);
        policies.map(period).max().unwrap_or_default()
    }
}

// === impl Direction ===

impl Direction {
    fn of(rules: Option<&ScalingRules>, policies: &[ScalingPolicy], window: Duration) -> Self {
        let declared = rules.map(|rules| &rules.policies).filter(|policies| !policies.is_empty());
        let select = rules.and_then(|rules| rules.select_policy.as_deref());
        Self {
            select: match select {
                Some("Min") => Select::Min,
                Some("Disabled") => Select::Disabled,
                _ => Select::Max,
            },
            policies: declared.cloned().unwrap_or_else(|| policies.into()),
            window: rules.and_then(|rules| rules.stabilization_window_seconds).map_or(window, seconds),
        }
    }
}

fn policy(type_: &str, value: i32) -> ScalingPolicy {
    ScalingPolicy { type_: Istr::interned(type_), value, period_seconds: PERIOD_SECONDS }
}

/// Returns the period of a policy.
pub(super) fn period(policy: &ScalingPolicy) -> Duration {
    seconds(policy.period_seconds)
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Returns the tolerances of an autoscaler: its own where it has any and they are `configurable`, else the common one.
pub(super) fn tolerances(behavior: Option<&Behavior>, common: f64, configurable: bool) -> Tolerances {
    let own = |rules: Option<&ScalingRules>| rules?.tolerance.map(steersman_base::Quantity::to_f64);
    let behavior = behavior.filter(|_| configurable);
    Tolerances {
        down: behavior.and_then(|behavior| own(behavior.scale_down.as_ref())).unwrap_or(common),
        up: behavior.and_then(|behavior| own(behavior.scale_up.as_ref())).unwrap_or(common),
    }
}
