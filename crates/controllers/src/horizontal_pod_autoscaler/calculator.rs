//! Pure: a metric and its target → the number of pods.
//!
//! Amounts are in thousandths. Follows `replica_calculator.go` of Kubernetes 1.37.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::Istr;
use steersman_model::core::PodView;

use super::readiness::{Reading, Readings, Youth, grouped, ready_count};

/// The deviation from the target that is ignored, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerances {
    pub(super) down: f64,
    pub(super) up: f64,
}

/// A number of pods, and the measured usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// The value, or the average per pod.
    pub(super) usage: i64,
    /// The percentage of the requests.
    pub(super) utilization: Option<i32>,
}

/// The target of a metric of pods.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A percentage of what the pods request.
    Utilization { percent: i32, requests: BTreeMap<Istr, i64> },
    /// An average per pod.
    Average(i64),
}

/// The pods of an autoscaler, and what is known about them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pods<'a> {
    /// The current number of replicas of the target.
    pub(super) current: i32,
    pub(super) pods: &'a [Arc<PodView>],
    pub(super) youth: Youth,
    pub(super) tolerances: Tolerances,
}

/// The measured usage in relation to a target.
struct Usage {
    ratio: f64,
    average: i64,
    utilization: Option<i32>,
}

const NO_PODS: &str = "no pods returned by selector while calculating replica count";
const NO_READINGS: &str = "did not receive metrics for targeted pods (pods might be unready)";

// === impl Tolerances ===

impl Tolerances {
    fn allow(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}

// === impl Target ===

impl Target {
    fn usage(&self, readings: &Readings) -> Result<Usage, String> {
        match self {
            Self::Utilization { percent, requests } => {
                let mut used = 0_i128;
                let mut requested = 0_i128;
                let mut count = 0_i128;
                // A reading without a request is of a pod that nobody asked for.
                for (reading, request) in readings.iter().filter_map(|(name, of)| Some((of, requests.get(name)?))) {
                    used += i128::from(reading.value);
                    requested += i128::from(*request);
                    count += 1;
                }
                if requested == 0 {
                    return Err("no metrics returned matched known pods".to_owned());
                }
                let utilization = clamped(used * 100 / requested);
                let ratio = f64::from(utilization) / f64::from(*percent);
                Ok(Usage { ratio, average: long(used / count), utilization: Some(utilization) })
            }
            Self::Average(target) => {
                let used: i128 = readings.values().map(|reading| i128::from(reading.value)).sum();
                let average = long(used / readings.len().max(1) as i128);
                Ok(Usage { ratio: average as f64 / *target as f64, average, utilization: None })
            }
        }
    }

    /// Returns the usage of a pod without a reading that keeps the number of pods from falling.
    fn cautious(&self, pod: &Istr) -> i64 {
        match self {
            Self::Utilization { percent, requests } => {
                let request = i128::from(requests.get(pod).copied().unwrap_or_default());
                long(request * i128::from((*percent).max(100)) / 100)
            }
            Self::Average(target) => *target,
        }
    }
}

// === impl Pods ===

impl Pods<'_> {
    /// Returns the number of pods at which every pod meets the target: for metrics of pods.
    ///
    /// Pods without a reading are assumed to need no change at most: nothing where more pods seem to be needed, the
    /// target where fewer do. If that would turn the direction around, nothing changes.
    pub(super) fn by_readings(
        &self,
        mut readings: Readings,
        resource: &str,
        target: impl FnOnce() -> Result<Target, String>,
    ) -> Result<Proposal, String> {
        if self.pods.is_empty() {
            return Err(NO_PODS.to_owned());
        }
        let grouped = grouped(self.pods, &readings, resource, &self.youth);
        readings.retain(|name, _| !grouped.ignored.contains(name) && !grouped.unready.contains(name));
        if readings.is_empty() {
            return Err(NO_READINGS.to_owned());
        }
        let target = target()?;
        let Usage { ratio, average, utilization } = target.usage(&readings)?;
        let propose = |replicas| Ok(Proposal { replicas, usage: average, utilization });
        let counts_unready = !grouped.unready.is_empty() && ratio > 1.0;
        if !counts_unready && grouped.missing.is_empty() {
            let is_enough = self.tolerances.allow(ratio);
            return propose(if is_enough { self.current } else { ceil(ratio * grouped.ready as f64) });
        }
        for name in grouped.missing.iter().filter(|_| ratio != 1.0) {
            let value = if ratio < 1.0 { target.cautious(name) } else { 0 };
            readings.insert(name.clone(), Reading { value, ..Reading::default() });
        }
        for name in grouped.unready.iter().filter(|_| counts_unready) {
            readings.insert(name.clone(), Reading::default());
        }
        let cautious = target.usage(&readings)?.ratio;
        let turns = (ratio < 1.0 && cautious > 1.0) || (ratio > 1.0 && cautious < 1.0);
        if self.tolerances.allow(cautious) || turns {
            return propose(self.current);
        }
        let replicas = ceil(cautious * readings.len() as f64);
        let turns = (cautious < 1.0 && replicas > self.current) || (cautious > 1.0 && replicas < self.current);
        propose(if turns { self.current } else { replicas })
    }

    /// Returns the number of pods by a value that all pods cause together: for objects and external metrics.
    pub(super) fn by_value(&self, usage: i64, target: i64) -> Result<Proposal, String> {
        let ratio = usage as f64 / target as f64;
        let propose = |replicas| Ok(Proposal { replicas, usage, utilization: None });
        if self.current == 0 {
            return propose(ceil(ratio));
        }
        if self.tolerances.allow(ratio) {
            return propose(self.current);
        }
        if self.pods.is_empty() {
            return Err(format!("unable to calculate ready pods: {NO_PODS}"));
        }
        propose(ceil(ratio * ready_count(self.pods) as f64))
    }

    /// Returns the number of pods by a value that is divided by the number of pods. `counted` is that of the target's
    /// status. The average over no pods is the value itself.
    pub(super) fn by_share(&self, usage: i64, target: i64, counted: i32) -> Proposal {
        let ratio = usage as f64 / (target as f64 * f64::from(counted));
        let replicas = if self.tolerances.allow(ratio) { counted } else { ceil(usage as f64 / target as f64) };
        let usage = match counted {
            _ if usage == i64::MAX => usage,
            0 => usage,
            counted => (usage as f64 / f64::from(counted)).ceil() as i64,
        };
        Proposal { replicas, usage, utilization: None }
    }
}

/// Returns the sum of the series of an external metric, at most the largest number.
pub(super) fn total(values: &[i64]) -> i64 {
    values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value))
}

/// Rounds up; beyond the range of the API the result stays at its end.
fn ceil(replicas: f64) -> i32 {
    replicas.ceil() as i32
}

fn clamped(number: i128) -> i32 {
    number.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

fn long(number: i128) -> i64 {
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
