//! Objects as invariants read them: the few fields they need.

use steersman_base::{Condition, Istr, ObjectKey, Selector, StringMap, Time, Uid};

use super::others::{Attachment, Autoscaler, Claim, Request, Volume};
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

// === impl Node ===

impl Node {
    /// Returns the taints with an effect.
    pub fn taints_of(&self, effect: &'static str) -> impl Iterator<Item = &Taint> {
        self.taints.iter().filter(move |taint| *taint.effect == *effect)
    }
}

// === impl Toleration ===

impl Toleration {
    /// Whether it tolerates a taint, for a while or for ever.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        (self.key.is_empty() || self.key == taint.key)
            && (self.effect.is_empty() || self.effect == taint.effect)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
    }
}

// === impl Object ===

impl Object {
    /// Whether it is terminating.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.deleted.is_some()
    }

    /// The owner that manages the object, if one does.
    #[must_use]
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// Whether the owner with this uid manages the object.
    #[must_use]
    pub fn is_controlled_by(&self, uid: &Uid) -> bool {
        self.controller().is_some_and(|owner| owner.uid == *uid)
    }

    /// Whether this finalizer is on it.
    #[must_use]
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|held| held == name)
    }

    /// The pod, if it is one.
    #[must_use]
    pub fn pod(&self) -> Option<&Pod> {
        if let Body::Pod(pod) = &self.body { Some(pod) } else { None }
    }

    /// The ReplicaSet or ReplicationController, if it is one.
    #[must_use]
    pub fn set(&self) -> Option<&Set> {
        if let Body::Set(set) = &self.body { Some(set) } else { None }
    }

    /// The Deployment, if it is one.
    #[must_use]
    pub fn deployment(&self) -> Option<&Deployment> {
        if let Body::Deployment(deployment) = &self.body { Some(deployment) } else { None }
    }

    /// The service, if it is one.
    #[must_use]
    pub fn service(&self) -> Option<&Service> {
        if let Body::Service(service) = &self.body { Some(service) } else { None }
    }

    /// The EndpointSlice, if it is one.
    #[must_use]
    pub fn slice(&self) -> Option<&Slice> {
        if let Body::Slice(slice) = &self.body { Some(slice) } else { None }
    }

    /// The Endpoints object, if it is one.
    #[must_use]
    pub fn endpoints(&self) -> Option<&Endpoints> {
        if let Body::Endpoints(endpoints) = &self.body { Some(endpoints) } else { None }
    }

    /// The namespace, if it is one.
    #[must_use]
    pub fn namespace(&self) -> Option<&Namespace> {
        if let Body::Namespace(namespace) = &self.body { Some(namespace) } else { None }
    }

    /// The node, if it is one.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        if let Body::Node(node) = &self.body { Some(node) } else { None }
    }

    /// The secret, if it is one.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        if let Body::Secret(secret) = &self.body { Some(secret) } else { None }
    }

    /// The StatefulSet, if it is one.
    #[must_use]
    pub fn stateful_set(&self) -> Option<&StatefulSet> {
        if let Body::StatefulSet(set) = &self.body { Some(set) } else { None }
    }

    /// The DaemonSet, if it is one.
    #[must_use]
    pub fn daemon_set(&self) -> Option<&DaemonSet> {
        if let Body::DaemonSet(set) = &self.body { Some(set) } else { None }
    }

    /// The Job, if it is one.
    #[must_use]
    pub fn job(&self) -> Option<&Job> {
        if let Body::Job(job) = &self.body { Some(job) } else { None }
    }

    /// The CronJob, if it is one.
    #[must_use]
    pub fn cron_job(&self) -> Option<&CronJob> {
        if let Body::CronJob(cron_job) = &self.body { Some(cron_job) } else { None }
    }

    /// The PodDisruptionBudget, if it is one.
    #[must_use]
    pub fn budget(&self) -> Option<&Budget> {
        if let Body::Budget(budget) = &self.body { Some(budget) } else { None }
    }

    /// The HorizontalPodAutoscaler, if it is one.
    #[must_use]
    pub fn autoscaler(&self) -> Option<&Autoscaler> {
        if let Body::Autoscaler(autoscaler) = &self.body { Some(autoscaler) } else { None }
    }

    /// The CertificateSigningRequest, if it is one.
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        if let Body::Request(request) = &self.body { Some(request) } else { None }
    }

    /// The PersistentVolumeClaim, if it is one.
    #[must_use]
    pub fn claim(&self) -> Option<&Claim> {
        if let Body::Claim(claim) = &self.body { Some(claim) } else { None }
    }

    /// The PersistentVolume, if it is one.
    #[must_use]
    pub fn volume(&self) -> Option<&Volume> {
        if let Body::Volume(volume) = &self.body { Some(volume) } else { None }
    }

    /// The VolumeAttachment, if it is one.
    #[must_use]
    pub fn attachment(&self) -> Option<&Attachment> {
        if let Body::Attachment(attachment) = &self.body { Some(attachment) } else { None }
    }

    /// The selector of an owner of pods or ReplicaSets, if it can be used.
    #[must_use]
    pub fn selector(&self) -> Option<&Selector> {
        match &self.body {
            Body::Set(set) => set.selector.as_ref(),
            Body::Deployment(deployment) => deployment.selector.as_ref(),
            Body::StatefulSet(set) => set.selector.as_ref(),
            Body::DaemonSet(set) => set.selector.as_ref(),
            Body::Job(job) => job.selector.as_ref(),
            _ => None,
        }
    }

    /// The conditions of the status, of the kinds whose conditions are read.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        match &self.body {
            Body::Set(set) => &set.status.conditions,
            Body::Deployment(deployment) => &deployment.status.conditions,
            Body::Namespace(namespace) => &namespace.conditions,
            Body::Job(job) => &job.status.conditions,
            Body::Budget(budget) => &budget.status.conditions,
            _ => &[],
        }
    }

    /// Whether the pod is active: it has not ended, and is not terminating.
    #[must_use]
    pub fn is_active_pod(&self) -> bool {
        !self.is_terminating() && self.pod().is_some_and(|pod| pod.phase != Phase::Ended)
    }

    /// The pod, if it counts and is ready.
    #[must_use]
    pub fn is_ready_pod(&self) -> bool {
        self.is_active_pod() && self.pod().is_some_and(|pod| pod.ready)
    }

    /// Whether the pod is active and has been ready for this many seconds.
    #[must_use]
    pub fn is_available_pod(&self, min_ready: i64, now: Time) -> bool {
        let Some(pod) = self.pod().filter(|_| self.is_ready_pod()) else { return false };
        min_ready <= 0 || pod.ready_since.is_some_and(|since| since.plus_seconds(min_ready) <= now)
    }
}

/// Resource, namespace and name, as messages name objects.
impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.resource, self.key)
    }
}

// === impl Deployment ===

impl Deployment {
    /// How many pods must be available.
    #[must_use]
    pub fn available_min(&self) -> i32 {
        self.replicas.saturating_sub(self.unavailable).max(0)
    }

    /// Returns the maximum number of pods over all ReplicaSets.
    #[must_use]
    pub fn total_max(&self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }
}

// === impl Service ===

impl Service {
    /// Whether the controllers keep its endpoints.
    #[must_use]
    pub fn has_endpoints(&self) -> bool {
        !self.external && !self.selector.is_empty()
    }

    /// Whether it selects a pod with these labels.
    #[must_use]
    pub fn selects(&self, labels: &StringMap) -> bool {
        self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}
