//! The provisioner: claims get volumes, without a cloud and without disks.
//!
//! 1. A claim of a class whose provisioner is [`NAME`] gets a volume `pvc-<uid>` with the capacity, access modes and mode
//!    that it asks for: at once, or, under `WaitForFirstConsumer`, when a pod that uses it has a node.
//! 2. Claim and volume are bound to each other, as the volume binder of kube-controller-manager does: phases, capacity,
//!    `volumeName` and the annotations. With [`ProvisionerOptions::binds`] off, that is left to a binder, and the provisioner
//!    waits until it is asked for by annotation, as external provisioners do.
//! 3. A volume whose claim is gone is released; and deleted, if its reclaim policy is `Delete`.
//! 4. Nothing is remembered: the next step follows from the claim, its volume and its pods. The name of a volume follows from
//!    the uid of its claim, so that there are never two.
//! 5. Volumes that others made, and claims of other classes, are left alone.
//!
//! Follows `pkg/controller/volume/persistentvolume` of Kubernetes 1.37.1 in what it writes.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_runtime::handler::Keys;
use steersman_runtime::{BuildContext, Controller};

mod map;
mod object;
mod plan;
mod sync;
#[cfg(test)]
mod tests;
mod view;

pub use sync::Why;
pub use view::{ClassView, VolumeView};

/// The name of the provisioner, for storage classes.
pub const NAME: &str = "nodes.steersman.dev/provisioner";
/// The name of the default class.
pub const DEFAULT_CLASS: &str = "standard";

/// The number of claims processed concurrently.
const WORKERS: usize = 8;

/// The options of the provisioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvisionerOptions {
    /// Whether it binds claims to volumes itself. A cluster with a volume binder needs that no more.
    pub binds: bool,
    /// Whether it creates a default class ([`DEFAULT_CLASS`]) when it starts.
    pub default_class: bool,
}

impl Default for ProvisionerOptions {
    fn default() -> Self {
        Self { binds: true, default_class: true }
    }
}

/// The key that stands for the default class.
fn default_class() -> ObjectKey {
    ObjectKey::cluster("default-class")
}

pub(crate) fn build(cx: &BuildContext, options: ProvisionerOptions) -> Controller {
    let claims = cx.informers.informer::<PersistentVolumeClaimView>();
    let volumes = cx.informers.informer::<VolumeView>();
    let classes = cx.informers.informer::<ClassView>();
    let pods = cx.informers.informer::<PodView>();
    // Whoever sees one namespace must not judge the claims of others.
    let scope = cx.informers.namespace().cloned();
    let in_scope = move |key: &ObjectKey| scope.as_ref().is_none_or(|scope| *scope == key.namespace);
    let of_scope = in_scope.clone();
    let by_claim = volumes.index(move |volume: &VolumeView| map::claim_of(volume).filter(&of_scope));
    let users = pods.index(map::placed_claims);
    let waiting = claims.lister();
    let builder = cx
        .controller_on("simulated-provisioner", &claims)
        .queue_name("provisioner")
        .workers(WORKERS)
        .watch(&volumes, move |change: &Change<VolumeView>| {
            let mut keys = Keys::default();
            map::claim_of(change.object()).filter(&in_scope).into_iter().for_each(|key| keys.add(key));
            keys
        })
        .watch(&pods, |change: &Change<PodView>| map::newly_placed(change))
        .watch(&classes, move |change: &Change<ClassView>| {
            let class = change.object();
            let mut keys = Keys::default();
            let claims = waiting.filter(|claim| map::waits_for(claim, class));
            claims.iter().for_each(|claim| keys.add(claim.meta().key()));
            keys
        });
    let controller = builder.reconcile_with(sync::Provisioner {
        claims: claims.lister(),
        classes: classes.lister(),
        by_claim,
        users,
        events: cx.events.for_component("simulated-provisioner"),
        options,
    });
    if options.default_class {
        controller.trigger(default_class());
    }
    controller
}
