//! Small hand-written streams of changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey, Time};

use crate::invariants::{Count, Options, Suite, Violation};
use crate::record::{Actor, Change, Shown};
use crate::world::World;

/// A world under construction: every write is judged.
pub(super) struct Story {
    pub(super) world: World,
    suite: Suite,
    revision: u64,
    now: Time,
    objects: BTreeMap<(Istr, ObjectKey), Arc<Value>>,
    /// Resources whose watches are stalled, and since which revision.
    frozen: BTreeMap<Istr, u64>,
    sent: Option<Time>,
    manager: usize,
    pub(super) violations: Vec<Violation>,
    /// What was expected of the counts, and is not so.
    pub(super) unmet: Vec<String>,
}

/// The resource of each kind.
const RESOURCES: [(&str, &str); 31] = [
    ("Pod", "pods"),
    ("ReplicaSet", "replicasets.apps"),
    ("ReplicationController", "replicationcontrollers"),
    ("Deployment", "deployments.apps"),
    ("Service", "services"),
    ("EndpointSlice", "endpointslices.discovery.k8s.io"),
    ("Endpoints", "endpoints"),
    ("Namespace", "namespaces"),
    ("Node", "nodes"),
    ("Lease", "leases.coordination.k8s.io"),
    ("ServiceAccount", "serviceaccounts"),
    ("Secret", "secrets"),
    ("ConfigMap", "configmaps"),
    ("Job", "jobs.batch"),
    ("CronJob", "cronjobs.batch"),
    ("StatefulSet", "statefulsets.apps"),
    ("DaemonSet", "daemonsets.apps"),
    ("PodDisruptionBudget", "poddisruptionbudgets.policy"),
    ("PersistentVolumeClaim", "persistentvolumeclaims"),
    ("ClusterRole", "clusterroles.rbac.authorization.k8s.io"),
    ("HorizontalPodAutoscaler", "horizontalpodautoscalers.autoscaling"),
    ("CertificateSigningRequest", "certificatesigningrequests.certificates.k8s.io"),
    ("PersistentVolume", "persistentvolumes"),
    ("VolumeAttachment", "volumeattachments.storage.k8s.io"),
    ("ResourceQuota", "resourcequotas"),
    ("ResourceClaim", "resourceclaims.resource.k8s.io"),
    ("DeviceTaintRule", "devicetaintrules.resource.k8s.io"),
    ("ServiceCIDR", "servicecidrs.networking.k8s.io"),
    ("IPAddress", "ipaddresses.networking.k8s.io"),
    ("VolumeAttributesClass", "volumeattributesclasses.storage.k8s.io"),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies.admissionregistration.k8s.io"),
];

pub(super) const NS: &str = "shop";

// === impl Story ===

impl Story {
    pub(super) fn new() -> Self {
        Self {
            world: World::default(),
            suite: Suite::new(Options::default()),
            revision: 0,
            now: Time::from_unix(1_000_000),
            objects: BTreeMap::new(),
            frozen: BTreeMap::new(),
            sent: None,
            manager: 0,
            violations: Vec::new(),
            unmet: Vec::new(),
        }
    }

    /// With other options, before anything was written.
    pub(super) fn options(&mut self, options: Options) {
        self.suite = Suite::new(options);
    }

    /// Advances the time, so that no earlier request is in flight.
    pub(super) fn wait(&mut self, seconds: i64) {
        self.now = self.now.plus_seconds(seconds);
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// From now on managers are shown nothing new of a kind.
    pub(super) fn freeze(&mut self, kind: &str) {
        self.frozen.insert(resource(kind), self.revision);
    }

    /// From now on another manager writes.
    pub(super) fn manager(&mut self, manager: usize) {
        self.manager = manager;
    }

    /// The requests from now on were sent at this time.
    pub(super) fn sent(&mut self, time: Time) {
        self.sent = Some(time);
    }

    pub(super) fn count(&self, invariant: &str) -> Count {
        self.suite.counts()[invariant]
    }

    /// The counts of an invariant should be such that `holds`.
    pub(super) fn expect(&mut self, invariant: &str, holds: fn(Count) -> bool) {
        let count = self.count(invariant);
        if !holds(count) {
            self.unmet.push(format!("{invariant}: {count:?}"));
        }
    }

    /// A user writes an object, or changes it.
    #[allow(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
    pub(super) fn user(&mut self, object: Value) {
        self.put(Actor::User, &object);
    }

    /// A node writes an object, or changes it.
    #[allow(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
    pub(super) fn node(&mut self, object: Value) {
        self.put(Actor::Node, &object);
    }

    /// A controller writes an object, or changes it.
    #[allow(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
    pub(super) fn write(&mut self, controller: &str, object: Value) {
        let actor = self.actor(controller);
        self.put(actor, &object);
    }

    /// A user deletes an object at once.
    pub(super) fn user_deletes(&mut self, kind: &str, name: &str) {
        self.remove(Actor::User, kind, name);
    }

    /// A controller deletes an object at once.
    pub(super) fn deletes(&mut self, controller: &str, kind: &str, name: &str) {
        let actor = self.actor(controller);
        self.remove(actor, kind, name);
    }

    /// The world is quiet.
    pub(super) fn rest(&mut self) {
        let found = self.suite.healed(&self.world);
        self.violations.extend(found);
    }

    fn actor(&self, controller: &str) -> Actor {
        Actor::Controller { manager: self.manager, name: controller.into() }
    }

    fn put(&mut self, by: Actor, patch: &Value) {
        let (resource, key) = address(patch["kind"].as_str().unwrap(), patch["metadata"]["name"].as_str().unwrap());
        let before = self.objects.get(&(resource.clone(), key.clone())).cloned();
        let mut after = before.as_deref().cloned().unwrap_or_else(|| {
            let kind = patch["kind"].as_str().unwrap();
            json!({ "metadata": {
                "uid": format!("{kind}-{}-{}", key.name, self.revision + 1), "generation": 1, "creationTimestamp": self.now,
            } })
        });
        merge(&mut after, patch);
        if before.as_ref().is_some_and(|before| before["spec"] != after["spec"])
            && patch["metadata"]["generation"].is_null()
        {
            after["metadata"]["generation"] = json!(after["metadata"]["generation"].as_i64().unwrap() + 1);
        }
        if after["metadata"]["namespace"].is_null() && !key.namespace.is_empty() {
            after["metadata"]["namespace"] = json!(NS);
        }
        self.commit(by, resource, key, before, Some(Arc::new(after)));
    }

    fn remove(&mut self, by: Actor, kind: &str, name: &str) {
        let (resource, key) = address(kind, name);
        let before = self.objects.get(&(resource.clone(), key.clone())).cloned();
        assert!(before.is_some(), "{resource} {key} is there");
        self.commit(by, resource, key, before, None);
    }

    fn commit(
        &mut self,
        by: Actor,
        resource: Istr,
        key: ObjectKey,
        before: Option<Arc<Value>>,
        after: Option<Arc<Value>>,
    ) {
        let shown = by.controller().map(|_| {
            let all = RESOURCES.iter().map(|(_, resource)| {
                let resource = Istr::from(*resource);
                let revision = self.frozen.get(&resource).copied().unwrap_or(self.revision);
                (resource, revision)
            });
            Arc::new(Shown { revisions: Arc::new(all.collect()), sent: self.sent, ..Shown::default() })
        });
        self.revision += 1;
        match &after {
            Some(after) => self.objects.insert((resource.clone(), key.clone()), Arc::clone(after)),
            None => self.objects.remove(&(resource.clone(), key.clone())),
        };
        let change = Change { revision: self.revision, at: self.now, resource, key, before, after, by, shown };
        self.world.apply(&change);
        let found = self.suite.check(&self.world, &change);
        self.violations.extend(found);
    }

    /// The uid of an object that is there.
    pub(super) fn uid(&self, kind: &str, name: &str) -> String {
        let object = &self.objects[&address(kind, name)];
        object["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// An object that is owned by another one that is there.
    pub(super) fn owned(&self, mut object: Value, kind: &str, name: &str) -> Value {
        let owner = json!({
            "apiVersion": "v1", "kind": kind, "name": name, "uid": self.uid(kind, name),
            "controller": true, "blockOwnerDeletion": true,
        });
        object["metadata"]["ownerReferences"] = json!([owner]);
        object
    }
}

fn resource(kind: &str) -> Istr {
    RESOURCES.iter().find(|(known, _)| *known == kind).unwrap().1.into()
}

fn address(kind: &str, name: &str) -> (Istr, ObjectKey) {
    let namespace = match kind {
        "Namespace"
        | "Node"
        | "ClusterRole"
        | "CertificateSigningRequest"
        | "PersistentVolume"
        | "VolumeAttachment"
        | "DeviceTaintRule"
        | "ServiceCIDR"
        | "IPAddress"
        | "VolumeAttributesClass"
        | "ValidatingAdmissionPolicy" => "",
        "Lease" => "kube-system",
        "ConfigMap" if name == "cluster-info" => "kube-public",
        _ => NS,
    };
    (resource(kind), ObjectKey::new(namespace, name))
}

/// A JSON merge patch.
fn merge(onto: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            if !onto.is_object() {
                *onto = json!({});
            }
            for (name, value) in fields {
                if value.is_null() {
                    onto.as_object_mut().unwrap().remove(name);
                } else {
                    merge(&mut onto[name.as_str()], value);
                }
            }
        }
        other => *onto = other.clone(),
    }
}

/// An object with a patch on top.
pub(super) fn with(mut object: Value, patch: &Value) -> Value {
    merge(&mut object, patch);
    object
}

/// The shortest form of an object: kind and name. A node has a range for its pods.
pub(super) fn named(kind: &str, name: &str) -> Value {
    let made = json!({ "kind": kind, "metadata": { "name": name } });
    if kind == "Node" { with(made, &json!({ "spec": { "podCIDRs": [format!("10.0.0.0/{name}")] } })) } else { made }
}

/// A change to an object that is there.
pub(super) fn patch(kind: &str, name: &str, change: &Value) -> Value {
    with(json!({ "kind": kind, "metadata": { "name": name } }), change)
}

fn template(image: &str, hash: Option<&str>) -> Value {
    let mut labels = json!({ "app": "web" });
    if let Some(hash) = hash {
        labels["pod-template-hash"] = json!(hash);
    }
    json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": image }] } })
}

/// A Deployment with the template of an image, a quarter of surge, and a quarter that may be unavailable.
pub(super) fn deployment(name: &str, replicas: i32, image: &str) -> Value {
    with(
        named("Deployment", name),
        &json!({ "spec": {
        "replicas": replicas,
        "selector": { "matchLabels": { "app": "web" } },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
        "template": template(image, None),
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 1,
    } }),
    )
}

/// A ReplicaSet for the template of an image.
pub(super) fn set(name: &str, replicas: i32, image: &str) -> Value {
    with(
        named("ReplicaSet", name),
        &json!({
            "metadata": { "labels": { "app": "web", "pod-template-hash": image } },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web", "pod-template-hash": image } },
                "template": template(image, Some(image)),
            },
        }),
    )
}

/// A pod of the template of an image, running and ready since a time.
pub(super) fn pod(name: &str, image: &str, ready: Option<Time>) -> Value {
    let status = if ready.is_some() { "True" } else { "False" };
    with(
        named("Pod", name),
        &json!({
            "metadata": { "labels": { "app": "web", "pod-template-hash": image } },
            "spec": { "nodeName": "node-1" },
            "status": {
                "phase": "Running",
                "podIPs": [{ "ip": "10.0.0.1" }],
                "conditions": [{ "type": "Ready", "status": status, "lastTransitionTime": ready }],
            },
        }),
    )
}

/// What makes an object terminating.
pub(super) fn terminating(story: &Story) -> Value {
    json!({ "metadata": { "deletionTimestamp": story.now() } })
}

/// A Deployment `web` and its ReplicaSets; each with all its pods, ready for long.
pub(super) fn rolled_out(story: &mut Story, replicas: i32, sets: &[(&str, i32)]) {
    let newest = sets.last().unwrap().0;
    story.user(deployment("web", replicas, newest));
    for (image, count) in sets {
        let name = format!("web-{image}");
        let made = story.owned(set(&name, *count, image), "Deployment", "web");
        story.user(made);
        pods(story, &name, image, 0..*count, true);
        said(story, &name, *count, *count);
    }
    story.wait(1000);
}

/// Pods of a ReplicaSet, made by a user as far as anybody knows.
pub(super) fn pods(story: &mut Story, set: &str, image: &str, numbers: std::ops::Range<i32>, ready: bool) {
    for number in numbers {
        let since = ready.then(|| story.now());
        let made = story.owned(pod(&format!("{set}-{number}"), image, since), "ReplicaSet", set);
        story.node(made);
    }
}

/// A ReplicaSet's status, as a user might have written it.
pub(super) fn said(story: &mut Story, set: &str, replicas: i32, available: i32) {
    story.user(patch("ReplicaSet", set, &json!({ "status": {
        "replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": available, "availableReplicas": available,
    } })));
}
