#![doc = include_str!("../docs/horizontal-pod-autoscaler-controller.md")]
//!
//! Follows `pkg/controller/podautoscaler` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::autoscaling::HorizontalPodAutoscalerView;
use steersman_model::core::PodView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_workqueue::limiter::Fixed;

use crate::service_pods::SelectedPods;
use crate::table;

mod answer;
mod behavior;
mod calculator;
mod history;
mod limits;
mod map;
mod memory;
mod metric;
mod metrics;
mod normalize;
mod path;
mod plan;
mod readiness;
mod requests;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the autoscaler of pods.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "horizontal-pod-autoscaler-controller",
    needs: const { &[HorizontalPodAutoscalerView::RESOURCE, PodView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags and feature gates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The time between two passes over an autoscaler: `--horizontal-pod-autoscaler-sync-period`.
    pub sync_period: Duration,
    /// The time for which a recommendation keeps the number of pods up, where an autoscaler has no window of its own:
    /// `--horizontal-pod-autoscaler-downscale-stabilization`.
    pub downscale_stabilization: Duration,
    /// The deviation from the target that is ignored, where an autoscaler has none of its own:
    /// `--horizontal-pod-autoscaler-tolerance`.
    pub tolerance: f64,
    /// The time after the start of a pod in which its CPU usage counts only if it was measured after the pod became
    /// ready: `--horizontal-pod-autoscaler-cpu-initialization-period`.
    pub cpu_initialization_period: Duration,
    /// The time after the start of a pod in which a change of its readiness counts as the first one:
    /// `--horizontal-pod-autoscaler-initial-readiness-delay`.
    pub initial_readiness_delay: Duration,
    /// Whether an autoscaler may scale to zero and back: `HPAScaleToZero`.
    pub scale_to_zero: bool,
    /// Whether autoscalers may have a tolerance of their own: `HPAConfigurableTolerance`.
    pub configurable_tolerance: bool,
    /// Whether a change of the spec starts a pass at once, and the status has the observed generation:
    /// `HPAGeneration`.
    pub generation: bool,
    /// Whether requests at pod level count: `PodLevelResources`.
    pub pod_level_resources: bool,
}

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        let duration = |name, default| flags.duration(name, Duration::from_secs(default));
        Self {
            sync_period: duration("horizontal-pod-autoscaler-sync-period", 15),
            downscale_stabilization: duration("horizontal-pod-autoscaler-downscale-stabilization", 300),
            tolerance: flags.float("horizontal-pod-autoscaler-tolerance", 0.1),
            cpu_initialization_period: duration("horizontal-pod-autoscaler-cpu-initialization-period", 300),
            initial_readiness_delay: duration("horizontal-pod-autoscaler-initial-readiness-delay", 30),
            scale_to_zero: flags.gate("HPAScaleToZero", true),
            configurable_tolerance: flags.gate("HPAConfigurableTolerance", true),
            generation: flags.gate("HPAGeneration", true),
            pod_level_resources: flags.gate("PodLevelResources", true),
        }
    }

    /// Sets the time between two passes over an autoscaler.
    #[must_use]
    pub fn sync_period(mut self, sync_period: Duration) -> Self {
        self.sync_period = sync_period;
        self
    }

    /// Sets how long a recommendation keeps the number of pods up, where an autoscaler has no window of its own.
    #[must_use]
    pub fn downscale_stabilization(mut self, downscale_stabilization: Duration) -> Self {
        self.downscale_stabilization = downscale_stabilization;
        self
    }

    /// Sets the time after the start of a pod in which its CPU usage counts only if it was measured after the pod
    /// became ready.
    #[must_use]
    pub fn cpu_initialization_period(mut self, cpu_initialization_period: Duration) -> Self {
        self.cpu_initialization_period = cpu_initialization_period;
        self
    }

    /// Sets whether an autoscaler may scale to zero and back.
    #[must_use]
    pub fn scale_to_zero(mut self, scale_to_zero: bool) -> Self {
        self.scale_to_zero = scale_to_zero;
        self
    }

    /// Sets whether a change of the spec starts a pass at once, and the status has the observed generation.
    #[must_use]
    pub fn generation(mut self, generation: bool) -> Self {
        self.generation = generation;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let autoscalers = cx.informer::<HorizontalPodAutoscalerView>();
    let pods = cx.informer::<PodView>();
    let concerns = move |change: &Change<HorizontalPodAutoscalerView>| map::concerns(change, options.generation);
    let builder = cx.controller(&autoscalers).watch_main(concerns).needs_cache(&pods).reads_live();
    // Failed or not, a key comes back after the period.
    Ok(builder.limiter(Fixed(options.sync_period)).reconcile(sync::Autoscalers {
        autoscalers: autoscalers.lister(),
        pods: SelectedPods::new(&pods),
        mapper: cx.manager().mapper().clone(),
        fetch: sync::fetch::Fetch::new(cx.client.clone()),
        memory: memory::Memory::default(),
        metrics: metrics::Metrics::new(cx.metrics())?,
        options,
    }))
}
