//! What is read off objects.

use steersman_base::{Condition, Selector, StringMap, Time, Uid};

use super::{
    Body, Deployment, Endpoints, Namespace, Node, Object, Owner, Phase, Pod, Secret, Service, Set, Slice, Taint,
    Toleration,
};
use crate::world::others::{Attachment, Autoscaler, Claim, Request, Volume};
use crate::world::quotas::{DeviceClaim, Quota};
use crate::world::workloads::{Budget, CronJob, DaemonSet, Job, StatefulSet};

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

    /// The ResourceQuota, if it is one.
    #[must_use]
    pub fn quota(&self) -> Option<&Quota> {
        if let Body::Quota(quota) = &self.body { Some(quota) } else { None }
    }

    /// The ResourceClaim, if it is one.
    #[must_use]
    pub fn device_claim(&self) -> Option<&DeviceClaim> {
        if let Body::DeviceClaim(claim) = &self.body { Some(claim) } else { None }
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
