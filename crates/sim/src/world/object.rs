//! Objects as invariants read them: the few fields they need.

mod read;

use steersman_base::{Condition, Istr, ObjectKey, Selector, StringMap, Time, Uid};

use super::others::{Attachment, Autoscaler, Claim, Request, Volume};
use super::quotas::{DeviceClaim, Quota};
use super::workloads::{Budget, CronJob, DaemonSet, Job, StatefulSet};

/// One version of an object.
#[derive(Clone, Debug)]
pub struct Object {
    /// The plural and group of the resource.
    pub resource: Istr,
    /// The namespace and name.
    pub key: ObjectKey,
    /// The kind, as in `ReplicaSet`.
    pub kind: Istr,
    /// The uid.
    pub uid: Uid,
    /// The generation; zero if the kind has none.
    pub generation: i64,
    /// When it was created.
    pub created: Option<Time>,
    /// The time at which it is to be deleted; if set, it is terminating.
    pub deleted: Option<Time>,
    /// The labels.
    pub labels: StringMap,
    /// The owners.
    pub owners: Vec<Owner>,
    /// The finalizers.
    pub finalizers: Vec<Istr>,
    /// What only this kind has.
    pub body: Body,
}

/// A reference to an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The uid of the owner.
    pub uid: Uid,
    /// The kind of the owner.
    pub kind: Istr,
    /// The name of the owner.
    pub name: Istr,
    /// Whether the owner manages the object.
    pub controller: bool,
    /// Whether the owner cannot go in the foreground before the object does.
    pub blocks: bool,
}

/// What only objects of one kind have.
#[derive(Clone, Debug)]
pub enum Body {
    /// A pod.
    Pod(Pod),
    /// A ReplicaSet or a ReplicationController.
    Set(Box<Set>),
    /// A Deployment.
    Deployment(Box<Deployment>),
    /// A service.
    Service(Service),
    /// An EndpointSlice.
    Slice(Slice),
    /// An Endpoints object.
    Endpoints(Endpoints),
    /// A namespace.
    Namespace(Namespace),
    /// A node.
    Node(Node),
    /// A lease.
    Lease {
        /// The holder; empty if there is none.
        holder: Istr,
    },
    /// A secret.
    Secret(Secret),
    /// A StatefulSet.
    StatefulSet(Box<StatefulSet>),
    /// A DaemonSet.
    DaemonSet(Box<DaemonSet>),
    /// A Job.
    Job(Box<Job>),
    /// A CronJob.
    CronJob(Box<CronJob>),
    /// A PodDisruptionBudget.
    Budget(Box<Budget>),
    /// A HorizontalPodAutoscaler.
    Autoscaler(Box<Autoscaler>),
    /// A CertificateSigningRequest.
    Request(Box<Request>),
    /// A PersistentVolumeClaim.
    Claim(Claim),
    /// A PersistentVolume.
    Volume(Volume),
    /// A VolumeAttachment.
    Attachment(Attachment),
    /// A ResourceQuota.
    Quota(Box<Quota>),
    /// A ResourceClaim.
    DeviceClaim(DeviceClaim),
    /// A DeviceTaintRule.
    DeviceTaint {
        /// Whether it ends pods that use the devices.
        ends_pods: bool,
    },
    /// Any other kind.
    Other,
}

/// What a pod does.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The phase.
    pub phase: Phase,
    /// The node it is bound to; empty if none.
    pub node: Istr,
    /// Whether its condition `Ready` is true.
    pub ready: bool,
    /// Since when the condition `Ready` is what it is.
    pub ready_since: Option<Time>,
    /// Its deletion cost, from the annotation.
    pub cost: i32,
    /// The most restarts of a container, and of a sidecar.
    pub restarts: (i64, i64),
    /// Its addresses.
    pub ips: Vec<Istr>,
    /// The node that it is bound to or, until then, pinned to; empty if there is none.
    pub made_for: Istr,
    /// Whether it has ended well.
    pub has_succeeded: bool,
    /// Its index in a Job.
    pub index: Option<i32>,
    /// The image of its first container.
    pub image: Istr,
    /// What it tolerates.
    pub tolerations: Vec<Toleration>,
    /// The claims of volumes that it uses.
    pub claims: Vec<Istr>,
    /// The claims of volumes that are made for it.
    pub own_claims: Vec<Istr>,
    /// How many claims of devices it has by templates.
    pub claims_by_template: usize,
    /// The claims of devices that were made for it.
    pub device_claims: Vec<Istr>,
}

/// The phase of a pod, in the order in which pods are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It has not started, or has no phase.
    Pending,
    /// Unknown.
    Unknown,
    /// Running.
    Running,
    /// Succeeded or failed.
    Ended,
}

/// Spec and status of a ReplicaSet or ReplicationController.
#[derive(Clone, Debug)]
pub struct Set {
    /// `spec.replicas`.
    pub replicas: i32,
    /// `spec.minReadySeconds`.
    pub min_ready: i64,
    /// The selector; none if it is invalid, matches everything or not even the template.
    pub selector: Option<Selector>,
    /// A hash of the template, without the label of the template's hash.
    pub template: u64,
    /// The labels of the template.
    pub template_labels: StringMap,
    /// The status.
    pub status: SetStatus,
    /// The revision annotation, if it is a number.
    pub revision: Option<i64>,
    /// For how many replicas of its Deployment it was last sized.
    pub sized_for: Option<i32>,
}

/// The status of a ReplicaSet or ReplicationController.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetStatus {
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.fullyLabeledReplicas`.
    pub labelled: i32,
    /// `status.readyReplicas`.
    pub ready: i32,
    /// `status.availableReplicas`.
    pub available: i32,
    /// `status.terminatingReplicas`.
    pub terminating: Option<i32>,
    /// `status.observedGeneration`.
    pub observed: i64,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// Spec and status of a Deployment.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// `spec.replicas`.
    pub replicas: i32,
    /// `spec.paused`.
    pub paused: bool,
    /// Whether the strategy is `RollingUpdate`.
    pub rolling: bool,
    /// How many pods there may be beyond `replicas`.
    pub surge: i32,
    /// How many of `replicas` may be unavailable.
    pub unavailable: i32,
    /// `spec.minReadySeconds`.
    pub min_ready: i64,
    /// The selector; none if it is invalid, matches everything or not even the template.
    pub selector: Option<Selector>,
    /// A hash of the template.
    pub template: u64,
    /// `spec.revisionHistoryLimit`; none means no limit.
    pub history: Option<i32>,
    /// `spec.progressDeadlineSeconds`; none means no limit.
    pub deadline: Option<i64>,
    /// The revision annotation, if it is a number.
    pub revision: Option<i64>,
    /// The status.
    pub status: DeploymentStatus,
}

/// The status of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentStatus {
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.updatedReplicas`.
    pub updated: i32,
    /// `status.readyReplicas`.
    pub ready: i32,
    /// `status.availableReplicas`.
    pub available: i32,
    /// `status.observedGeneration`.
    pub observed: i64,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// The spec of a service.
#[derive(Clone, Debug)]
pub struct Service {
    /// The selector; empty if it has none.
    pub selector: StringMap,
    /// Whether its type is `ExternalName`.
    pub external: bool,
    /// Whether pods that are not ready are published, too.
    pub publish_all: bool,
    /// The address families; empty if the server did not set them.
    pub families: Vec<Istr>,
    /// Whether it has ports.
    pub has_ports: bool,
}

/// An EndpointSlice.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The name of its service; empty if it has none.
    pub service: Istr,
    /// The managing controller.
    pub managed_by: Istr,
    /// The family of its addresses.
    pub family: Istr,
    /// How many ports it has.
    pub ports: usize,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its addresses.
    pub addresses: Vec<Istr>,
    /// Whether new requests may be sent to it; absent means yes.
    pub ready: bool,
    /// The pod of the endpoint, if there is one.
    pub pod: Option<Uid>,
}

/// An Endpoints object.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Whether it is the lock of an old leader election.
    pub is_lock: bool,
    /// The addresses, whether they are ready, and the pods behind them; one entry per subset.
    pub addresses: Vec<(Istr, bool, Option<Uid>)>,
    /// Whether one address is listed twice in one subset.
    pub twice: Option<Istr>,
}

/// A namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// `spec.finalizers`.
    pub finalizers: Vec<Istr>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Whether its condition `Ready` is true.
    pub ready: bool,
    /// Since when the condition `Ready` is what it is.
    pub ready_since: Option<Time>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it has the taint `node.kubernetes.io/out-of-service`.
    pub out_of_service: bool,
    /// The ranges for its pods.
    pub ranges: Vec<Istr>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: Istr,
    /// The value.
    pub value: Istr,
    /// The effect.
    pub effect: Istr,
    /// When it was added, if it says so.
    pub added: Option<Time>,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// The key; empty for all.
    pub key: Istr,
    /// The value; none for all.
    pub value: Option<Istr>,
    /// The effect; empty for all.
    pub effect: Istr,
    /// For how long; none for ever.
    pub seconds: Option<i64>,
}

/// A secret that requests the token of a service account.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The account it names; empty if the secret is of another type.
    pub account: Istr,
    /// The uid of the account, if it is given.
    pub account_uid: Option<Uid>,
    /// Whether there is a token in it.
    pub has_token: bool,
}
