//! What the controller remembers between passes: what is under way, what failed, and what nodes shall list.
//!
//! All of it can be lost: a new process reads the lists of nodes and the VolumeAttachments, and goes on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey, Uid};
use steersman_model::View;
use steersman_model::core::NodeView;
use tokio::sync::Notify;

use super::state::Known;

/// The state that is kept of volumes and nodes. Bounded by the number of attached and wanted volumes.
#[derive(Default)]
pub(super) struct Memory {
    /// Whether the manager sees one namespace only: lists that it has not changed are those of others.
    is_scoped: bool,
    volumes: Mutex<HashMap<Istr, BTreeMap<Istr, Known>>>,
    nodes: Mutex<HashMap<Istr, List>>,
    /// The volumes that nodes used when they were deleted.
    gone: Mutex<HashMap<Istr, BTreeSet<Istr>>>,
    /// The volumes of VolumeAttachments, by name: the object of the volume may be gone when one changes.
    attachments: Mutex<HashMap<Istr, Istr>>,
    /// Nodes whose lists have to be written.
    pub(super) stale_nodes: Pending,
    /// Volumes that waited for the list of a node.
    pub(super) waiting_volumes: Pending,
}

/// Keys that another queue is to process.
#[derive(Default)]
pub(super) struct Pending {
    keys: Mutex<BTreeSet<ObjectKey>>,
    changed: Notify,
}

/// The list of one node.
#[derive(Clone, Debug, Default)]
struct List {
    /// The node that it was read from.
    uid: Uid,
    /// The volumes that it shall have, with their paths.
    volumes: BTreeMap<Istr, Istr>,
    /// The volumes that it has, or may have.
    listed: BTreeSet<Istr>,
    /// Whether it was changed here.
    is_touched: bool,
}

/// The volumes that a node's list should have.
pub(super) type Volumes = BTreeMap<Istr, Istr>;

// === impl Memory ===

impl Memory {
    pub(super) fn new(is_scoped: bool) -> Self {
        Self { is_scoped, ..Self::default() }
    }

    /// Returns what is remembered of a volume.
    pub(super) fn volume(&self, volume: &Istr) -> BTreeMap<Istr, Known> {
        self.volumes.lock().get(volume).cloned().unwrap_or_default()
    }

    /// Changes what is remembered of a volume on a node.
    pub(super) fn change(&self, volume: &Istr, node: &Istr, change: impl FnOnce(&mut Known)) {
        let mut volumes = self.volumes.lock();
        let nodes = volumes.entry(volume.clone()).or_default();
        let known = nodes.entry(node.clone()).or_default();
        change(known);
        if known.is_empty() {
            nodes.remove(node);
        }
        if nodes.is_empty() {
            volumes.remove(volume);
        }
    }

    /// Forgets a volume on a node.
    pub(super) fn forget(&self, volume: &Istr, node: &Istr) {
        self.change(volume, node, |known| *known = Known::default());
        self.withdraw(volume, node);
    }

    /// Returns whether the list of a node shall have a volume, and whether it may have it. A node that is gone has no list.
    pub(super) fn is_on(&self, volume: &Istr, node: Option<&NodeView>) -> (bool, bool) {
        let Some(node) = node else { return (false, false) };
        let mut nodes = self.nodes.lock();
        let list = seen(&mut nodes, node);
        (list.volumes.contains_key(volume), list.listed.contains(volume))
    }

    /// Adds a volume to the list of a node, if there is such a node.
    pub(super) fn report(&self, volume: &Istr, node: &Istr) {
        let mut nodes = self.nodes.lock();
        if let Some(list) = nodes.get_mut(node)
            && !list.volumes.contains_key(volume)
        {
            list.volumes.insert(volume.clone(), Istr::default());
            list.is_touched = true;
            self.stale_nodes.add([ObjectKey::cluster(node)]);
        }
    }

    /// Removes a volume from the list of a node.
    pub(super) fn withdraw(&self, volume: &Istr, node: &Istr) {
        let mut nodes = self.nodes.lock();
        if let Some(list) = nodes.get_mut(node) {
            let was_there = list.volumes.remove(volume).is_some();
            if was_there || list.listed.contains(volume) {
                list.is_touched = true;
                self.stale_nodes.add([ObjectKey::cluster(node)]);
            }
        }
    }

    /// Returns what the list of a node shall have, if it is not what it has.
    pub(super) fn stale_list(&self, node: &NodeView) -> Option<Volumes> {
        let mut nodes = self.nodes.lock();
        let list = seen(&mut nodes, node);
        let attached = &node.status.volumes_attached;
        let has: Volumes = attached.iter().map(|volume| (volume.name.clone(), volume.device_path.clone())).collect();
        if self.is_scoped && !list.is_touched {
            list.volumes = has.clone();
        }
        if has == list.volumes {
            let before = std::mem::replace(&mut list.listed, has.keys().cloned().collect());
            self.waiting_volumes.add(gone_from(&before, &list.listed));
            return None;
        }
        list.listed.extend(has.into_keys());
        list.listed.extend(list.volumes.keys().cloned());
        Some(list.volumes.clone())
    }

    /// Records that the list of a node was written. Returns whether it is to be written again.
    pub(super) fn wrote(&self, node: &Istr, written: &Volumes) -> bool {
        let mut nodes = self.nodes.lock();
        let Some(list) = nodes.get_mut(node) else { return false };
        let before = std::mem::replace(&mut list.listed, written.keys().cloned().collect());
        self.waiting_volumes.add(gone_from(&before, &list.listed));
        list.volumes != *written
    }

    /// Records that a node is gone. Its list went with it; the volumes that it used are remembered if some are attached.
    pub(super) fn lost(&self, node: &NodeView, has_attachments: bool) {
        let name = &node.meta().name;
        self.nodes.lock().remove(name);
        if has_attachments {
            self.gone.lock().insert(name.clone(), node.status.volumes_in_use.iter().cloned().collect());
        }
    }

    /// Whether the list of a node is known.
    pub(super) fn knows(&self, node: &Istr) -> bool {
        self.nodes.lock().contains_key(node)
    }

    /// Records that a node is there.
    pub(super) fn found(&self, node: &Istr) {
        self.gone.lock().remove(node);
    }

    /// Whether a node that is gone may still use a volume: it did when it was deleted, or nobody knows.
    pub(super) fn is_used_on_lost(&self, volume: &Istr, node: &Istr) -> bool {
        self.gone.lock().get(node).is_none_or(|used| used.contains(volume))
    }

    /// Forgets nodes that are gone, but for those that have something attached.
    pub(super) fn forget_lost(&self, has_attachments: impl Fn(&Istr) -> bool) {
        self.gone.lock().retain(|node, _| has_attachments(node));
    }

    /// Records the volume of a VolumeAttachment.
    pub(super) fn note_attachment(&self, attachment: &Istr, volume: &Istr) {
        let mut attachments = self.attachments.lock();
        if !attachments.contains_key(attachment) {
            attachments.insert(attachment.clone(), volume.clone());
        }
    }

    /// Returns the volume of a VolumeAttachment.
    pub(super) fn volume_of(&self, attachment: &Istr) -> Option<Istr> {
        self.attachments.lock().get(attachment).cloned()
    }

    /// Forgets a VolumeAttachment.
    pub(super) fn forget_attachment(&self, attachment: &Istr) {
        self.attachments.lock().remove(attachment);
    }

    /// Returns every volume of which something is remembered.
    pub(super) fn volumes(&self) -> BTreeSet<Istr> {
        let mut all: BTreeSet<Istr> = self.volumes.lock().keys().cloned().collect();
        for list in self.nodes.lock().values() {
            all.extend(list.volumes.keys().chain(&list.listed).cloned());
        }
        all
    }
}

/// Returns the list of a node. The first time, it is what the node has; another node of the same name begins with what it has,
/// too, and gets what shall be there.
fn seen<'a>(nodes: &'a mut HashMap<Istr, List>, node: &NodeView) -> &'a mut List {
    let meta = node.meta();
    let list = nodes.entry(meta.name.clone()).or_default();
    if list.uid != meta.uid {
        let attached = &node.status.volumes_attached;
        list.uid = meta.uid.clone();
        list.volumes.extend(attached.iter().map(|volume| (volume.name.clone(), volume.device_path.clone())));
        list.listed = attached.iter().map(|volume| volume.name.clone()).collect();
    }
    list
}

fn gone_from(before: &BTreeSet<Istr>, now: &BTreeSet<Istr>) -> Vec<ObjectKey> {
    before.difference(now).map(|volume| ObjectKey::cluster(volume)).collect()
}

// === impl Pending ===

impl Pending {
    /// Adds keys.
    pub(super) fn add(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        let mut held = self.keys.lock();
        let count = held.len();
        held.extend(keys);
        if held.len() != count {
            self.changed.notify_one();
        }
    }

    /// Waits until there are keys.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes the keys.
    pub(super) fn take(&self) -> Vec<ObjectKey> {
        std::mem::take(&mut *self.keys.lock()).into_iter().collect()
    }
}
