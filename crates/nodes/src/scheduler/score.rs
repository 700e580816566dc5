//! Which of several nodes is best: the one with the most resources left, with the fewest pods among equals. Nodes with
//! `PreferNoSchedule` taints come last.

use super::filter::untolerated_preferences;
use super::ledger::{NodeState, Used};
use super::request::Request;
use crate::view::SimPodSpec;

/// The score of a node; larger is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// Fewest untolerated `PreferNoSchedule` taints.
    welcome: std::cmp::Reverse<usize>,
    /// The percentage of CPU and memory that would be left.
    left: i64,
    /// Fewest pods.
    pods: std::cmp::Reverse<i64>,
}

/// The highest score.
const SCORE_MAX: i64 = 100;

pub(super) fn score(spec: &SimPodSpec, request: &Request, node: &NodeState, used: &Used) -> Score {
    let left = |used: i64, asked: i64, has: i64| {
        if has <= 0 { 0 } else { (has - used - asked).max(0).saturating_mul(SCORE_MAX) / has }
    };
    let has = &node.allocatable;
    let cpu = left(used.counted_milli_cpu, request.counted_milli_cpu, has.milli_cpu);
    let memory = left(used.counted_memory, request.counted_memory, has.memory);
    Score {
        welcome: std::cmp::Reverse(untolerated_preferences(spec, &node.view)),
        left: (cpu + memory) / 2,
        pods: std::cmp::Reverse(used.pods),
    }
}
