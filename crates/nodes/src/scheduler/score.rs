//! Which of several nodes is best: the one with most room left, with the fewest pods among equals. Nodes that would rather
//! not have the pod come last.

use super::filter::unwelcome;
use super::ledger::{NodeState, Used};
use super::request::Request;
use crate::view::SimPodSpec;

/// How good a node is; larger is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// Fewest taints that the pod would rather avoid.
    welcome: std::cmp::Reverse<usize>,
    /// Percentage of CPU and memory that would be left.
    left: i64,
    /// Fewest pods.
    pods: std::cmp::Reverse<i64>,
}

/// The best a node can be.
const SCORE_MAX: i64 = 100;

pub(super) fn score(spec: &SimPodSpec, request: &Request, node: &NodeState, used: &Used) -> Score {
    let left = |used: i64, asked: i64, has: i64| {
        if has <= 0 { 0 } else { (has - used - asked).max(0).saturating_mul(SCORE_MAX) / has }
    };
    let has = &node.allocatable;
    let cpu = left(used.counted_milli_cpu, request.counted_milli_cpu, has.milli_cpu);
    let memory = left(used.counted_memory, request.counted_memory, has.memory);
    Score {
        welcome: std::cmp::Reverse(unwelcome(spec, &node.view)),
        left: (cpu + memory) / 2,
        pods: std::cmp::Reverse(used.pods),
    }
}
