#![doc = include_str!("../docs/persistentvolume-binder-controller.md")]
//!
//! ```text
//! claims  ──▶ queue "claims"  ──▶ find on the shelf, or wait ──▶ bind: volume, its status, claim, its status
//! volumes ──▶ queue "volumes" ──▶ phase, release, reclaim
//!        └──▶ the shelf of free volumes ──▶ the claim that waited for it
//! ```
//!
//! Follows `pkg/controller/volume/persistentvolume` and `k8s.io/component-helpers/storage/volume` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steersman_informer::Change;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::StorageClassView;
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, FlagFile, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::source;

use crate::{pod_claims, table};

mod class;
mod edit;
mod map;
mod matching;
mod memory;
mod metrics;
mod plan;
mod plugin;
mod recycle;
mod shelf;
mod sync;
#[cfg(test)]
mod tests;

pub use recycle::Recycler;
pub use sync::Why;

/// The descriptor of the volume binder.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "persistentvolume-binder-controller",
    needs: const {
        &[
            PersistentVolumeClaimView::RESOURCE,
            PersistentVolumeView::RESOURCE,
            StorageClassView::RESOURCE,
            PodView::RESOURCE,
        ]
    },
    options: Options::from_flags,
    build,
});

/// The queue of volumes: its name, and its number in the row.
const OF_VOLUMES: (&str, usize) = ("persistentvolume-binder-volumes", 1);

/// Options of the controller, set by flags.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The interval at which claims without a volume and volumes that are reclaimed are looked at again
    /// (`--pvclaimbinder-sync-period`).
    pub sync_period: Duration,
    /// Whether provisioners are asked for volumes (`--enable-dynamic-provisioning`).
    pub provisions: bool,
    /// The recycler of host paths (`--pv-recycler-pod-template-filepath-hostpath` and its timeouts).
    pub host_path: Recycler,
    /// The recycler of NFS volumes (`--pv-recycler-pod-template-filepath-nfs` and its timeouts).
    pub nfs: Recycler,
}

// === impl Options ===

impl Options {
    /// Returns the options that flags set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        // Accepted, and without effect: see the page.
        let _ = flags.is_on("enable-hostpath-provisioner", false);
        let _ = flags.text("flex-volume-plugin-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/");
        let host_path = flags.file("pv-recycler-pod-template-filepath-hostpath", template);
        let nfs = flags.file("pv-recycler-pod-template-filepath-nfs", template);
        Self {
            sync_period: flags.duration("pvclaimbinder-sync-period", Duration::from_secs(15)),
            provisions: flags.is_on("enable-dynamic-provisioning", true),
            host_path: Recycler {
                template: host_path.unwrap_or_else(recycle::default_template),
                timeout_min: flags.int("pv-recycler-minimum-timeout-hostpath", 60),
                timeout_per_gib: flags.int("pv-recycler-timeout-increment-hostpath", 30),
            },
            nfs: Recycler {
                template: nfs.unwrap_or_else(recycle::default_template),
                timeout_min: flags.int("pv-recycler-minimum-timeout-nfs", 300),
                timeout_per_gib: flags.int("pv-recycler-increment-timeout-nfs", 30),
            },
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

/// Reads the pod of a recycler from a file.
fn template(file: &FlagFile) -> Result<Value, String> {
    let pod: Value = serde_saphyr::from_str(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
    let has_volume = pod["spec"]["volumes"].as_array().is_some_and(|volumes| !volumes.is_empty());
    if has_volume { Ok(pod) } else { Err(format!("pod specification ({}): does not contain any volume(s)", file.path)) }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let claims = cx.informer::<PersistentVolumeClaimView>();
    let volumes = cx.informer::<PersistentVolumeView>();
    let classes = cx.informer::<StorageClassView>();
    let pods = cx.informer::<PodView>();
    let memory = Arc::new(memory::Memory::new(metrics::Metrics::new(cx.metrics())?));
    cx.metrics().collector(metrics::Counts::new(volumes.lister(), claims.lister())?)?;
    let sync_period = options.sync_period;
    let binder = Arc::new(sync::Binder {
        claims: claims.lister(),
        volumes: volumes.lister(),
        classes: classes.lister(),
        pods: pods.lister(),
        volumes_by_claim: volumes.shared_index(map::claim_of),
        claims_by_volume: claims.shared_index(map::volume_of_bound),
        pods_by_claim: pods.shared_index(pod_claims::claims_of),
        memory: Arc::clone(&memory),
        scope: cx.informers.namespace().cloned(),
        options,
    });

    let waiting = claims.lister();
    let bound = claims.shared_index(map::volume_of_bound);
    let claims_of_volume = move |change: &Change<PersistentVolumeView>| {
        let mut keys = map::claims_of_volume(change, |volume| bound.get(volume));
        keys.extend(memory.note(change, |key| waiting.get(key)));
        keys
    };
    let known = claims.lister();
    let claims_of_class = move |change: &Change<StorageClassView>| match change {
        Change::Deleted { .. } => Vec::new(),
        _ => map::keys(&known.filter(|claim| map::waits_for(claim, change.object()))),
    };
    let unsettled = claims.lister();
    let of_claims = cx
        .controller(&claims)
        .watch(&volumes, claims_of_volume)
        .watch(&classes, claims_of_class)
        .needs_cache(&pods)
        .source(source::ticker(sync_period, move || map::keys(&unsettled.filter(map::is_unsettled_claim))))
        .reconcile(sync::Claims(Arc::clone(&binder)));

    let by_claim = volumes.shared_index(map::claim_of);
    let volumes_of_claim = move |change: &Change<PersistentVolumeClaimView>| {
        let claim = change.object();
        let mut keys = map::keys(&by_claim.get(&claim.meta().key()));
        keys.extend(map::volume_of_claim(claim));
        keys
    };
    let unsettled = volumes.lister();
    let (name, number) = OF_VOLUMES;
    let of_volumes = cx
        .another(name, &volumes)
        .queue(number)
        .watch(&claims, volumes_of_claim)
        .watch(&pods, map::recycled_volume)
        .needs_cache(&classes)
        .source(source::ticker(sync_period, move || map::keys(&unsettled.filter(map::is_unsettled_volume))))
        .reconcile(sync::Volumes(binder));
    Ok(of_claims.and(of_volumes))
}
