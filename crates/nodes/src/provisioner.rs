//! The provisioner: claims get volumes, without a cloud and without disks.
//!
//! 1. It is an external provisioner, as sidecars of CSI drivers are: a volume binder asks it for a volume, by the annotation
//!    `volume.kubernetes.io/storage-provisioner` of a claim, and binds claim and volume to each other.
//! 2. A claim of a class whose provisioner is [`NAME`] gets a volume `pvc-<uid>` with the capacity, access modes and mode that
//!    it asks for: at once, or, under `WaitForFirstConsumer`, when a scheduler has chosen a node
//!    (`volume.kubernetes.io/selected-node`).
//! 3. A volume that was released is deleted, if its reclaim policy is `Delete`. Until then a finalizer keeps it.
//! 4. A claim that asks for more than it has gets it: see [`resizer`](crate::resizer).
//! 5. Nothing is remembered: the next step follows from the claim and its volumes. The name of a volume follows from the uid of
//!    its claim, so that there are never two.
//! 6. Volumes that others made, and claims of other classes, are left alone.
//!
//! Follows the controller of `sigs.k8s.io/sig-storage-lib-external-provisioner` in what it writes.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;
use steersman_runtime::handler::Keys;
use steersman_runtime::{BuildContext, Controller};

pub(crate) mod map;
mod object;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The name of the provisioner, for storage classes.
pub const NAME: &str = "nodes.steersman.dev/provisioner";
/// The name of the default class.
pub const DEFAULT_CLASS: &str = "standard";

/// The number of claims processed concurrently.
const WORKERS: usize = 8;

/// The options of the provisioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProvisionerOptions {
    /// Whether it creates a default class ([`DEFAULT_CLASS`]) when it starts.
    pub default_class: bool,
}

impl Default for ProvisionerOptions {
    fn default() -> Self {
        Self { default_class: true }
    }
}

impl ProvisionerOptions {
    /// Sets whether the provisioner creates a default class when it starts.
    #[must_use]
    pub fn default_class(mut self, default_class: bool) -> Self {
        self.default_class = default_class;
        self
    }
}

/// The key that stands for the default class.
fn default_class() -> ObjectKey {
    ObjectKey::cluster("default-class")
}

pub(crate) fn build(cx: &BuildContext, options: ProvisionerOptions) -> Controller {
    let claims = cx.informers.informer::<PersistentVolumeClaimView>();
    let volumes = cx.informers.informer::<PersistentVolumeView>();
    let classes = cx.informers.informer::<StorageClassView>();
    // Whoever sees one namespace must not judge the claims of others.
    let scope = cx.informers.namespace().cloned();
    let in_scope = move |key: &ObjectKey| scope.as_ref().is_none_or(|scope| *scope == key.namespace);
    let of_scope = in_scope.clone();
    let by_claim = volumes.index(move |volume: &PersistentVolumeView| map::claim_of(volume).filter(&of_scope));
    let waiting = claims.lister();
    let builder = cx
        .controller_on("simulated-provisioner", &claims)
        .queue_name("provisioner")
        .workers(WORKERS)
        .watch(&volumes, move |change: &Change<PersistentVolumeView>| {
            let mut keys = Keys::default();
            map::claim_of(change.object()).filter(&in_scope).into_iter().for_each(|key| keys.add(key));
            keys
        })
        .watch(&classes, move |change: &Change<StorageClassView>| {
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
        events: cx.events.for_component("simulated-provisioner"),
    });
    if options.default_class {
        controller.trigger(default_class());
    }
    controller
}
