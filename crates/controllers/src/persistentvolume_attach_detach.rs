#![doc = include_str!("../docs/persistentvolume-attach-detach-controller.md")]
//!
//! Follows `pkg/controller/volume/attachdetach` and `pkg/volume/csi/csi_attacher.go` of Kubernetes 1.37.1.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::Change;
use steersman_model::core::{NodeView, PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::{CsiDriverView, VolumeAttachmentView};
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::{Descriptor, source};
use steersman_workqueue::Priority;

use crate::{pod, pod_claims, table};

mod map;
mod memory;
mod messages;
mod metrics;
mod object;
mod plan;
mod resolve;
mod state;
mod sync;
#[cfg(test)]
mod tests;

use memory::Memory;
use resolve::Resolver;
pub use sync::Why;

/// The descriptor of the attach/detach controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "persistentvolume-attach-detach-controller",
    needs: const {
        &[
            PodView::RESOURCE,
            NodeView::RESOURCE,
            PersistentVolumeClaimView::RESOURCE,
            PersistentVolumeView::RESOURCE,
            CsiDriverView::RESOURCE,
            VolumeAttachmentView::RESOURCE,
        ]
    },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The period in which all volumes are looked at (`--attach-detach-reconcile-sync-period`).
    pub sync_period: Duration,
    /// Whether attachments that are gone are noticed (unless `--disable-attach-detach-reconcile-sync`).
    pub verifies: bool,
    /// Whether volumes are detached from unhealthy nodes after six minutes (unless `--disable-force-detach-on-timeout`).
    pub forces: bool,
}

/// The number of volumes processed concurrently. A pass that waits for a driver has ended.
const WORKERS: usize = 16;
/// The queue of nodes whose lists are to be written.
const LISTS: (&str, &str) = ("attach-detach-lists", "attachdetach_node_lists");
/// The time in which changes of a node's list are collected: upstream's period.
const COLLECTED_FOR: Duration = Duration::from_millis(100);
/// The period in which all volumes are looked at, if attachments are not verified: upstream's for pods.
const LOOK_PERIOD: Duration = Duration::from_mins(1);
/// The least period of verification.
const PERIOD_MIN: Duration = Duration::from_secs(1);

// === impl Options ===

impl Options {
    /// Returns the options that flags set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            sync_period: flags.duration("attach-detach-reconcile-sync-period", Duration::from_mins(1)),
            verifies: !flags.is_on("disable-attach-detach-reconcile-sync", false),
            forces: !flags.is_on("disable-force-detach-on-timeout", false),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    if options.sync_period < PERIOD_MIN {
        let why =
            "Duration time must be greater than one second as set via command line option reconcile-sync-loop-period.";
        return Err(Disabled::because(why));
    }
    let nodes = cx.informer::<NodeView>();
    let volumes = cx.informer::<PersistentVolumeView>();
    let attachments = cx.informer::<VolumeAttachmentView>();
    let scope = cx.informers.namespace().cloned();
    let memory = Arc::new(Memory::new(scope.is_some()));
    let resolver = resolver(cx, &memory);
    let of_pods = resolver.clone();
    let of_claims = resolver.clone();
    let of_attachments = resolver.clone();
    let of_volumes =
        cx.controller_of_keys()
            .workers(WORKERS)
            .watch(&cx.informer(), move |change: &Change<PodView>| {
                if map::changes_need(change) { of_pods.volumes_of(change.object()) } else { Vec::new() }
            })
            .watch(&cx.informer(), move |change: &Change<PersistentVolumeClaimView>| {
                if map::changes_binding(change) { of_claims.volume_of_claim(change.object()) } else { None }
            })
            .watch(&volumes, map::volume)
            .watch(&cx.informer(), volumes_of_drivers(cx))
            .watch(&attachments, move |change: &Change<VolumeAttachmentView>| {
                let volume = of_attachments.volume_of_attachment(change.object());
                if matches!(change, Change::Deleted { .. }) {
                    of_attachments.memory.forget_attachment(&change.key().name);
                }
                volume
            })
            .watch(&nodes, volumes_of_nodes(cx, &resolver))
            .source(waiting_volumes(&memory))
            .source(all_volumes(cx, &resolver, options))
            .reconcile(sync::Volumes {
                resolver,
                attachments: attachments.lister(),
                attachments_by_volume: attachments.shared_index(map::attached_volume),
                attachments_by_inline: attachments.shared_index(map::attached_inline),
                nodes_by_volume: nodes.shared_index(map::listed),
                scope,
                memory: Arc::clone(&memory),
                metrics: metrics::Metrics::new(cx.metrics())?,
                rules: plan::Rules { forces: options.forces, verifies: options.verifies },
            });
    Ok(of_volumes.and(lists(cx, memory)))
}

fn resolver(cx: &ControllerContext, memory: &Arc<Memory>) -> Resolver {
    let pods = cx.informer::<PodView>();
    let volumes = cx.informer::<PersistentVolumeView>();
    Resolver {
        pods: pods.lister(),
        nodes: cx.informer::<NodeView>().lister(),
        claims: cx.informer::<PersistentVolumeClaimView>().lister(),
        volumes: volumes.lister(),
        drivers: cx.informer::<CsiDriverView>().lister(),
        pods_by_claim: pods.shared_index(pod_claims::claims_of),
        pods_by_inline: pods.shared_index(map::inline_names),
        volumes_by_name: volumes.shared_index(map::unique_name),
        memory: Arc::clone(memory),
    }
}

/// Returns a source of volumes that waited for the list of a node.
fn waiting_volumes(memory: &Arc<Memory>) -> source::Source {
    let memory = Arc::clone(memory);
    source::task(move |feed, stop| async move {
        while stop.run_until_cancelled(memory.waiting_volumes.changed()).await.is_some() {
            feed.add_all(&memory.waiting_volumes.take(), Priority::Live);
        }
    })
}

/// Returns a handler that enqueues the volumes of a driver.
fn volumes_of_drivers(
    cx: &ControllerContext,
) -> impl Fn(&Change<CsiDriverView>) -> Vec<ObjectKey> + Send + Sync + use<> {
    let by_driver = cx.informer::<PersistentVolumeView>().shared_index(map::driver);
    move |change| {
        let volumes = by_driver.get(&change.key().name);
        let names = volumes.iter().filter_map(|volume| map::unique_name(volume));
        names.map(|name| ObjectKey::cluster(&name)).collect()
    }
}

/// Returns the queue of nodes whose lists are written.
fn lists(cx: &ControllerContext, memory: Arc<Memory>) -> Built {
    let nodes = cx.informer::<NodeView>();
    let stale = Arc::clone(&memory);
    let stale_nodes = source::task(move |feed, stop| async move {
        while stop.run_until_cancelled(stale.stale_nodes.changed()).await.is_some() {
            tokio::time::sleep(COLLECTED_FOR).await;
            feed.add_all(&stale.stale_nodes.take(), Priority::Live);
        }
    });
    let known = Arc::clone(&memory);
    let (name, queue) = LISTS;
    cx.another(name, &nodes)
        .queue_name(queue)
        .workers(WORKERS)
        .watch_main(move |change: &Change<NodeView>| {
            let is_there = !matches!(change, Change::Deleted { .. });
            let has_list = || {
                let has = |node: &NodeView| !node.status.volumes_attached.is_empty();
                has(change.object()) || change.before().is_some_and(|old| has(old)) || known.knows(&change.key().name)
            };
            (is_there && map::changes_node(change) && has_list()).then(|| change.key())
        })
        .source(stale_nodes)
        .reconcile(sync::Lists { nodes: nodes.lister(), memory })
}

/// Returns a handler that enqueues the volumes that a change of a node concerns.
fn volumes_of_nodes(
    cx: &ControllerContext,
    resolver: &Resolver,
) -> impl Fn(&Change<NodeView>) -> Vec<ObjectKey> + Send + Sync + use<> {
    let by_node = cx.informer::<PodView>().shared_index(pod::node);
    let attachments = cx.informer::<VolumeAttachmentView>().shared_index(attached_to);
    let resolver = resolver.clone();
    move |change| {
        let name = &change.object().meta().name;
        match change {
            Change::Deleted { last, .. } => resolver.memory.lost(last, attachments.count(name) > 0),
            _ => resolver.memory.found(name),
        }
        if !map::changes_node(change) {
            return Vec::new();
        }
        let mut keys = map::volumes_of_node(change);
        let attachments = attachments.get(name);
        keys.extend(attachments.iter().filter_map(|attachment| resolver.volume_of_attachment(attachment)));
        if map::becomes_managed(change) {
            keys.extend(by_node.get(name).iter().flat_map(|pod| resolver.volumes_of(pod)));
        }
        keys
    }
}

/// Returns a source that enqueues all volumes at regular times: a change without an event is found then.
fn all_volumes(cx: &ControllerContext, resolver: &Resolver, options: Options) -> source::Ticker {
    let attachments = cx.informer::<VolumeAttachmentView>();
    let by_node = attachments.shared_index(attached_to);
    let listed = cx.informer::<NodeView>().shared_index(map::listed);
    let lister = attachments.lister();
    let resolver = resolver.clone();
    let period = if options.verifies { options.sync_period } else { LOOK_PERIOD };
    source::ticker(period, move || {
        resolver.memory.forget_lost(|node| by_node.count(node) > 0);
        let known = resolver.memory.volumes().into_iter().chain(listed.keys());
        let known = known.map(|name| ObjectKey::cluster(&name));
        let attached = lister.list();
        let attached = attached.iter().filter_map(|attachment| resolver.volume_of_attachment(attachment));
        known.chain(attached).collect()
    })
}

/// Index function: the node that a volume is attached to.
fn attached_to(attachment: &VolumeAttachmentView) -> Option<Istr> {
    Some(attachment.spec.node_name.clone())
}
