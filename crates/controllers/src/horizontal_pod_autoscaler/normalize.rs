//! Pure: from what the metrics recommend to what is done: stabilisation windows, then limits.

use std::time::Duration;

use steersman_base::MicroTime;

use super::behavior::Rules;
use super::history::{Edge, History};
use super::limits::{Limited, Wish};

/// A number of pods, and what the conditions say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Normalized {
    /// The stabilised and limited number.
    pub(super) limited: Limited,
    /// Whether a limit applies.
    pub(super) is_limited: bool,
    /// Reason and message of `AbleToScale`.
    pub(super) able: (&'static str, &'static str),
}

const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILIZED: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);

/// Normalises a recommendation without rules of its own: the highest one of the window counts.
pub(super) fn plain(wish: Wish, window: Duration, history: &mut History, now: MicroTime) -> Normalized {
    let recent = history.highest(window, Edge::Inside, now);
    let stabilized = recent.map_or(wish.desired, |recent| recent.max(wish.desired));
    history.recommend(wish.desired, window, now);
    let able = if stabilized == wish.desired { READY } else { DOWN_STABILIZED };
    let limited = Wish { desired: stabilized, ..wish }.limited();
    Normalized { limited, is_limited: limited.replicas != stabilized, able }
}

/// Normalises a recommendation by rules: the current number stays unless it is below every recommendation of the upper
/// window, or above every one of the lower window.
pub(super) fn by_rules(wish: Wish, rules: &Rules, history: &mut History, now: MicroTime) -> Normalized {
    let lowest = history.lowest(rules.up.window, Edge::Outside, now);
    let highest = history.highest(rules.down.window, Edge::Outside, now);
    let floor = lowest.map_or(wish.desired, |lowest| lowest.min(wish.desired));
    let roof = highest.map_or(wish.desired, |highest| highest.max(wish.desired));
    let stabilized = wish.current.max(floor).min(roof);
    history.recommend(wish.desired, rules.longest_window(), now);
    let able = match stabilized == wish.desired {
        true => READY,
        false if wish.desired >= wish.current => UP_STABILIZED,
        false => DOWN_STABILIZED,
    };
    let limited = Wish { desired: stabilized, ..wish }.limited_by(rules, history, now);
    Normalized { limited, is_limited: limited.replicas != stabilized, able }
}
