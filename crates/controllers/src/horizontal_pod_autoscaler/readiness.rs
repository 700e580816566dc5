//! Pure: which pods count for a metric.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use steersman_base::{ConditionStatus, Istr, MicroTime, Time};
use steersman_model::View;
use steersman_model::core::PodView;

/// The value of a metric for one pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// In thousandths.
    pub(super) value: i64,
    /// The time at which it was measured; absent if the source does not report it.
    pub(super) at: Option<Time>,
    /// The time over which it was averaged, before `at`.
    pub(super) window: Duration,
}

/// Readings by the names of the pods.
pub(super) type Readings = BTreeMap<Istr, Reading>;

/// The periods after the start of a pod in which its CPU usage does not always count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Youth {
    pub(super) cpu_initialization_period: Duration,
    pub(super) initial_readiness_delay: Duration,
    pub(super) now: MicroTime,
}

/// The pods of an autoscaler, by what their readings are worth.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Grouped {
    /// The number of pods whose readings count.
    pub(super) ready: usize,
    /// Pods that are not ready yet: they use nothing, if more pods would be needed.
    pub(super) unready: BTreeSet<Istr>,
    /// Pods without a reading.
    pub(super) missing: BTreeSet<Istr>,
    /// Pods that have failed or are terminating: they do not count at all.
    pub(super) ignored: BTreeSet<Istr>,
}

/// Groups pods. Young pods are treated differently for `cpu` only.
pub(super) fn grouped(pods: &[Arc<PodView>], readings: &Readings, resource: &str, youth: &Youth) -> Grouped {
    let mut grouped = Grouped::default();
    for pod in pods {
        let name = || pod.meta().name.clone();
        if pod.meta().is_terminating() || pod.status.phase == "Failed" {
            grouped.ignored.insert(name());
        } else if pod.status.phase == "Pending" {
            grouped.unready.insert(name());
        } else {
            match readings.get(&pod.meta().name) {
                None => drop(grouped.missing.insert(name())),
                Some(reading) if resource == "cpu" && is_unready(pod, reading, youth) => {
                    grouped.unready.insert(name());
                }
                Some(_) => grouped.ready += 1,
            }
        }
    }
    grouped
}

/// Whether the CPU usage of a pod says nothing yet.
fn is_unready(pod: &PodView, reading: &Reading, youth: &Youth) -> bool {
    let (Some(ready), Some(started)) = (pod.status.conditions.get("Ready"), pod.status.start_time) else { return true };
    let is_not_ready = ready.status == ConditionStatus::False;
    let started = MicroTime::from(started);
    // A condition without a time has always been so.
    let changed = ready.last_transition_time.map(MicroTime::from);
    if started + youth.cpu_initialization_period > youth.now {
        let read_at = reading.at.map(MicroTime::from);
        is_not_ready || changed.is_some_and(|changed| read_at.is_none_or(|at| at < changed + reading.window))
    } else {
        is_not_ready && changed.is_none_or(|changed| started + youth.initial_readiness_delay > changed)
    }
}

/// Returns the number of pods that run and are ready, whatever their readings.
pub(super) fn ready_count(pods: &[Arc<PodView>]) -> usize {
    pods.iter().filter(|pod| pod.status.phase == "Running" && crate::pod::is_ready(pod)).count()
}
