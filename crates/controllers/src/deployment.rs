#![doc = include_str!("../docs/deployment-controller.md")]
//!
//! Follows `pkg/controller/deployment` of Kubernetes 1.37.1.

use steersman_base::Selector;
use steersman_model::Kind;
use steersman_model::apps::{DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::Descriptor;

use crate::claim::Selecting;
use crate::claim::map::Owners;
use crate::table;

mod history;
mod map;
mod plan;
mod progress;
mod recreate;
mod rollback;
mod rolling;
mod scale;
mod sets;
mod status;
mod sync;
mod template;
#[cfg(test)]
mod tests;

pub use sync::Why;
pub(crate) use template::hash as template_hash;

/// The descriptor of the deployment controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "deployment-controller",
    needs: const { &[DeploymentView::RESOURCE, ReplicaSetView::RESOURCE, PodView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether the status counts terminating pods: `DeploymentReplicaSetTerminatingReplicas`.
    pub terminating_replicas: bool,
}

/// The reason of the condition and of the event that report a ReplicaSet that cannot be created.
const FAILED_CREATE: &str = "ReplicaSetCreateError";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self { terminating_replicas: flags.gate("DeploymentReplicaSetTerminatingReplicas", true) }
    }

    /// Sets whether the status counts terminating pods.
    #[must_use]
    pub fn terminating_replicas(mut self, terminating_replicas: bool) -> Self {
        self.terminating_replicas = terminating_replicas;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let deployments = cx.informer::<DeploymentView>();
    let sets = cx.informer::<ReplicaSetView>();
    let pods = cx.informer::<PodView>();
    let owners = Owners::new(&deployments);
    let recreated = map::Recreated { deployments: deployments.lister(), sets: sets.lister() };
    cx.controller(&deployments)
        .watch(&sets, move |change| owners.of(change))
        .watch(&pods, move |change| recreated.by(change))
        .reads_live()
        .reconcile(sync::Deployments {
            deployments: deployments.lister(),
            sets: sets.lister(),
            sets_of: cx.children(&sets),
            pods_of: cx.children(&pods),
            options,
        })
}

impl Selecting for DeploymentView {
    fn selector(&self) -> Option<Selector> {
        Selector::from_declared(self.spec.selector.as_ref()).ok()
    }
}
