//! Passes, metrics and desired replicas, under upstream's names.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts};
use steersman_base::ObjectKey;
use steersman_runtime::metrics::{Families, FamilyError};

/// The action of a pass, or the one that a metric asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Nothing,
    ScaleUp,
    ScaleDown,
}

/// Why it failed, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    No,
    /// The spec is invalid.
    Spec,
    /// Anything else.
    Internal,
}

/// The metrics of the controller.
pub(super) struct Metrics {
    passes: IntCounterVec,
    pass_seconds: HistogramVec,
    computations: IntCounterVec,
    computation_seconds: HistogramVec,
    autoscalers: IntGauge,
    desired: IntGaugeVec,
}

const ACTIONS: &str = "The label 'action' should be either 'scale_down', 'scale_up', or 'none'.";
const ERRORS: &str = "the label 'error' should be either 'spec', 'internal', or 'none'.";
const FIRST: &str = "Note that if both spec and internal errors happen during a reconciliation, the first one to occur is reported in \
     `error` label.";
const TYPES: &str = "The label 'metric_type' corresponds to HPA.spec.metrics[*].type";

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let name = |name: &str| format!("horizontal_pod_autoscaler_controller_{name}");
        let counters = |of: &str, help: &str, labels: &[&str]| {
            families.counters(Opts::new(name(of), format!("[BETA] {help}")), labels)
        };
        let histograms = |of: &str, help: &str, labels: &[&str]| {
            // 1 ms, doubled fourteen times.
            let buckets = (0..15).map(|step| 0.001 * f64::from(1 << step)).collect();
            let options = HistogramOpts::new(name(of), format!("[BETA] {help}")).buckets(buckets);
            families.histograms(options, labels)
        };
        let of_pass = &["action", "error"];
        let of_metric = &["action", "error", "metric_type"];
        let autoscalers =
            Opts::new(name("num_horizontal_pod_autoscalers"), "[ALPHA] Current number of controlled HPA objects.");
        let desired = Opts::new(name("desired_replicas"), "[ALPHA] Current desired replica count for HPA objects.");
        Ok(Self {
            passes: counters(
                "reconciliations_total",
                &format!("Number of reconciliations of HPA controller. {ACTIONS} Also, {ERRORS} {FIRST}"),
                of_pass,
            )?,
            pass_seconds: histograms(
                "reconciliation_duration_seconds",
                &format!(
                    "The time(seconds) that the HPA controller takes to reconcile once. {ACTIONS} Also, {ERRORS} {FIRST}"
                ),
                of_pass,
            )?,
            computations: counters(
                "metric_computation_total",
                &format!("Number of metric computations. {ACTIONS} Also, {ERRORS} {TYPES}"),
                of_metric,
            )?,
            computation_seconds: histograms(
                "metric_computation_duration_seconds",
                // Upstream's words differ from those of the others.
                &format!(
                    "The time(seconds) that the HPA controller takes to calculate one metric. {ACTIONS} T{} {TYPES}",
                    &ERRORS[1..]
                ),
                of_metric,
            )?,
            autoscalers: families.gauge(autoscalers)?,
            desired: families.gauges(desired, &["namespace", "hpa_name"])?,
        })
    }

    /// Counts a pass.
    pub(super) fn pass(&self, did: Did, fault: Fault, time: Duration) {
        let labels = [did.label(), fault.label()];
        self.passes.with_label_values(&labels).inc();
        self.pass_seconds.with_label_values(&labels).observe(time.as_secs_f64());
    }

    /// Counts the computation of a metric.
    pub(super) fn computed(&self, type_: &str, did: Did, fault: Fault, time: Duration) {
        let labels = [did.label(), fault.label(), type_];
        self.computations.with_label_values(&labels).inc();
        self.computation_seconds.with_label_values(&labels).observe(time.as_secs_f64());
    }

    /// Records the number of autoscalers.
    pub(super) fn autoscalers(&self, count: usize) {
        self.autoscalers.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Records the desired number of replicas.
    pub(super) fn desired(&self, autoscaler: &ObjectKey, replicas: i32) {
        self.desired.with_label_values(&[&*autoscaler.namespace, &*autoscaler.name]).set(replicas.into());
    }

    /// Forgets an autoscaler that was deleted.
    pub(super) fn forget(&self, autoscaler: &ObjectKey) {
        // There may be none: no pass came so far.
        let _ = self.desired.remove_label_values(&[&*autoscaler.namespace, &*autoscaler.name]);
    }
}

// === impl Did ===

impl Did {
    /// Returns the direction of a change.
    pub(super) fn of(from: i32, to: i32) -> Self {
        match to.cmp(&from) {
            std::cmp::Ordering::Less => Self::ScaleDown,
            std::cmp::Ordering::Equal => Self::Nothing,
            std::cmp::Ordering::Greater => Self::ScaleUp,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::ScaleUp => "scale_up",
            Self::ScaleDown => "scale_down",
        }
    }
}

// === impl Fault ===

impl Fault {
    fn label(self) -> &'static str {
        match self {
            Self::No => "none",
            Self::Spec => "spec",
            Self::Internal => "internal",
        }
    }
}
