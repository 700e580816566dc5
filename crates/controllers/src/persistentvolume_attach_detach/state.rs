//! Pure: what is known of a volume and of a node that it concerns.

use std::collections::BTreeMap;
use std::time::Duration;

use steersman_base::{ConditionStatus, Istr, MicroTime, ObjectKey, Uid};
use steersman_model::View;
use steersman_model::core::NodeView;
use steersman_model::storage::VolumeAttachmentView;

use crate::volume_spec::{Plugin, VolumeSpec};

/// The facts of a volume that decide.
#[derive(Clone, Debug, Default)]
pub(super) struct Volume {
    /// Whether a CSI driver attaches it. Otherwise there is nothing to do but to record that it is attached.
    pub(super) is_csi: bool,
    pub(super) driver: Istr,
    pub(super) handle: Istr,
    /// Whether it may be attached to one node only.
    pub(super) is_exclusive: bool,
}

/// A volume on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct OnNode {
    /// Whether a pod on the node needs it.
    pub(super) is_wanted: bool,
    /// The request to its CSI driver.
    pub(super) attachment: Option<Attachment>,
    /// Whether the node's list shall have it.
    pub(super) is_reported: bool,
    /// Whether the node's list has it, or may have it.
    pub(super) is_listed: bool,
    pub(super) facts: NodeFacts,
    /// Since when it shall be detached.
    pub(super) requested: Option<MicroTime>,
    /// The operation that was begun, and its time.
    pub(super) doing: Option<(Doing, MicroTime)>,
    /// The last failure.
    pub(super) failure: Option<Failure>,
    /// Whether an event was recorded at the pods: it is attached elsewhere.
    pub(super) is_refusal_reported: bool,
    /// Whether a detach has failed, so that nobody knows whether it is attached.
    pub(super) is_uncertain: bool,
}

/// The state of a VolumeAttachment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Attachment {
    pub(super) is_attached: bool,
    pub(super) is_terminating: bool,
    pub(super) attach_error: Option<String>,
    pub(super) detach_error: Option<String>,
}

/// The facts of a node that decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeFacts {
    pub(super) is_ready: bool,
    /// Whether it was declared to be shut down.
    pub(super) is_out_of_service: bool,
    /// Whether it says that it uses the volume.
    pub(super) is_mounted: bool,
}

/// The operation on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Attach,
    Detach,
}

/// A failure, and when the next attempt is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) of: Doing,
    pub(super) delay: Duration,
    pub(super) until: MicroTime,
}

/// The state that is kept of a volume on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) requested: Option<MicroTime>,
    pub(super) doing: Option<(Doing, MicroTime)>,
    pub(super) failure: Option<Failure>,
    pub(super) is_refusal_reported: bool,
    pub(super) is_uncertain: bool,
    /// Whether it was reported as attached: by events at the pods, and in the status of the node.
    pub(super) is_reported: bool,
    /// The pods that need it. They do until they end, whatever becomes of claim and volume.
    pub(super) pods: BTreeMap<ObjectKey, Uid>,
}

/// The taint of nodes that were declared to be shut down.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The annotation of nodes whose volumes this controller attaches.
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// The delays between attempts: upstream's.
const DELAY_MIN: Duration = Duration::from_millis(500);
const DELAY_MAX: Duration = Duration::from_secs(122);

// === impl Volume ===

impl From<&VolumeSpec> for Volume {
    fn from(spec: &VolumeSpec) -> Self {
        let is_exclusive = spec.is_exclusive;
        match &spec.plugin {
            Plugin::Csi(csi) => {
                Self { is_csi: true, driver: csi.driver.clone(), handle: csi.handle.clone(), is_exclusive }
            }
            Plugin::Iscsi | Plugin::Fc => Self { is_exclusive, ..Self::default() },
        }
    }
}

impl Volume {
    /// Returns upstream's message about a driver that does not answer.
    pub(super) fn timed_out(&self, driver: &str, what: &str) -> String {
        let handle = &self.handle;
        format!("timed out waiting for external-attacher of {driver} CSI driver to {what} volume {handle}")
    }
}

// === impl OnNode ===

impl OnNode {
    /// Whether this is under way.
    pub(super) fn is_doing(&self, what: Doing) -> bool {
        self.begun(what).is_some()
    }

    /// Returns when this was begun, if it is under way.
    pub(super) fn begun(&self, what: Doing) -> Option<MicroTime> {
        self.doing.filter(|(doing, _)| *doing == what).map(|(_, begun)| begun)
    }

    /// Returns when the next attempt is due, if it is not yet.
    pub(super) fn waits_to(&self, what: Doing, now: MicroTime) -> Option<MicroTime> {
        self.failure.filter(|failure| failure.of == what && now < failure.until).map(|failure| failure.until)
    }

    /// Whether it is attached, and may be used there.
    pub(super) fn is_attached(&self, is_csi: bool, verifies: bool) -> bool {
        match &self.attachment {
            _ if !is_csi => self.is_reported,
            Some(attachment) if attachment.is_attached => !attachment.is_terminating || self.is_reported,
            _ => self.is_reported && !verifies,
        }
    }

    /// Whether it is known to be attached, or was when it was last seen.
    pub(super) fn is_confirmed(&self, is_csi: bool, verifies: bool) -> bool {
        let is_attached = self.attachment.as_ref().is_some_and(|attachment| attachment.is_attached);
        !self.is_uncertain && (is_csi && is_attached || self.is_reported && !(is_csi && verifies))
    }

    /// Whether nothing is remembered that its attachment ends.
    pub(super) fn is_settled(&self) -> bool {
        self.requested.is_none() && self.doing.is_none() && self.failure.is_none() && !self.is_uncertain
    }
}

// === impl Attachment ===

impl From<&VolumeAttachmentView> for Attachment {
    fn from(view: &VolumeAttachmentView) -> Self {
        let status = &view.status;
        Self {
            is_attached: status.attached,
            is_terminating: view.meta().is_terminating(),
            attach_error: status.attach_error.as_ref().map(|error| error.message.to_string()),
            detach_error: status.detach_error.as_ref().map(|error| error.message.to_string()),
        }
    }
}

// === impl NodeFacts ===

impl NodeFacts {
    pub(super) fn of(node: &NodeView, volume: &str) -> Self {
        Self {
            is_ready: is_ready(node),
            is_out_of_service: is_out_of_service(node),
            is_mounted: node.status.volumes_in_use.iter().any(|name| name == volume),
        }
    }
}

pub(super) fn is_ready(node: &NodeView) -> bool {
    let ready = node.status.conditions.iter().find(|condition| condition.type_ == "Ready");
    ready.is_some_and(|ready| ready.status == ConditionStatus::True)
}

pub(super) fn is_out_of_service(node: &NodeView) -> bool {
    node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

/// Whether this controller attaches the volumes of the node.
pub(super) fn is_managed(node: &NodeView) -> bool {
    node.meta().annotations.contains_key(MANAGED)
}

// === impl Failure ===

impl Failure {
    /// Returns the failure that follows another.
    pub(super) fn after(last: Option<Self>, of: Doing, now: MicroTime) -> Self {
        let last = last.filter(|last| last.of == of);
        let delay = last.map_or(DELAY_MIN, |last| (last.delay * 2).min(DELAY_MAX));
        Self { of, delay, until: now + delay }
    }
}

// === impl Known ===

impl Known {
    /// Whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        let Self { requested, doing, failure, is_refusal_reported, is_uncertain, is_reported, pods } = self;
        let is_idle = requested.is_none() && doing.is_none() && failure.is_none();
        is_idle && !is_refusal_reported && !is_uncertain && !is_reported && pods.is_empty()
    }
}
