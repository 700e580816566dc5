//! The Deployment controller: one ReplicaSet per template, and pods that move from the old ones to the new one.
//!
//! 1. The ReplicaSet of the present template is found by comparing templates, whoever made it; if there is none, it is made.
//!    So taking over from another controller manager begins no roll-out.
//! 2. A rolling update never has more than `replicas + maxSurge` pods wanted, and takes no available pod away while there are
//!    `replicas - maxUnavailable` or fewer; pods that are not available go first. With `Recreate`, nothing new begins before
//!    all of the old has ended.
//! 3. A change of `replicas` in the middle of a roll-out scales all ReplicaSets in proportion. A paused Deployment is scaled,
//!    and not rolled out.
//! 4. Revisions count up; `revisionHistoryLimit` old ReplicaSets are kept for the way back, once the roll-out is through.
//! 5. A roll-out that gets nowhere for `progressDeadlineSeconds` says so in a condition.
//! 6. Every pass writes each object at most once, and decides from caches that show all that earlier passes wrote.
//!
//! Follows `pkg/controller/deployment` of Kubernetes 1.37.1.

use steersman_base::Selector;
use steersman_informer::Change;
use steersman_model::apps::{DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;
use steersman_model::{Kind, View};
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

use crate::claim::{Selecting, map as claims};

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

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "deployment-controller",
    aliases: &["deployment"],
    account: "deployment-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[DeploymentView::RESOURCE, ReplicaSetView::RESOURCE, PodView::RESOURCE],
    workers: Workers::flag("concurrent-deployment-syncs", 5),
    stage: Stage::Normal,
    build,
};

/// What feature gates set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether status tells how many pods terminate: `DeploymentReplicaSetTerminatingReplicas`.
    pub terminating_replicas: bool,
}

/// How often a Deployment is retried before it waits for its next change: upstream's figure.
const RETRIES_MAX: u32 = 15;
/// The reason of the condition and of the event that tell of a ReplicaSet that cannot be made.
const FAILED_CREATE: &str = "ReplicaSetCreateError";

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self { terminating_replicas: true }
    }
}

fn build(cx: &BuildContext, workers: usize) -> Build {
    let mut cx = cx.clone();
    cx.events = cx.events.for_component(DESCRIPTOR.name);
    let deployments = cx.informers.informer::<DeploymentView>();
    let sets = cx.informers.informer::<ReplicaSetView>();
    let pods = cx.informers.informer::<PodView>();

    let by_selector = deployments.shared_index(claims::selector_key);
    let sets_by_owner = sets.shared_index(claims::owner_key);
    let pods_by_owner = pods.shared_index(claims::owner_key);

    let lister = deployments.lister();
    let deployments_of_set = move |change: &Change<ReplicaSetView>| {
        let uid_of = |key: &_| lister.get(key).map(|deployment| deployment.meta().uid.clone());
        claims::owners_of(change, uid_of, |key| by_selector.get(key))
    };
    let (deployment_lister, set_lister) = (deployments.lister(), sets.lister());
    let deployments_of_pod = move |change: &Change<PodView>| {
        map::recreated_by(change, |key| set_lister.get(key), |key| deployment_lister.get(key))
    };
    cx.controller_on(DESCRIPTOR.name, &deployments)
        .queue_name("deployment")
        .watch(&sets, deployments_of_set)
        .watch(&pods, deployments_of_pod)
        .workers(workers)
        .reads_live()
        .give_up_after(RETRIES_MAX)
        .reconcile_with(sync::Deployments {
            client: cx.client.clone(),
            deployments: deployments.lister(),
            sets: sets.lister(),
            sets_by_owner,
            pods_by_owner,
            options: cx.options::<Options>(),
        });
    Build::Enabled
}

impl Selecting for DeploymentView {
    fn selector(&self) -> Option<Selector> {
        Selector::from_declared(self.spec.selector.as_ref()).ok()
    }
}
