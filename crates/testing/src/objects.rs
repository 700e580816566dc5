//! Objects for tests, in the words of a test: `pod("a").ready().owned_by(&web)`.
//!
//! A function makes the plain object, and methods say what is special about it: those of [`ObjectBuilder`] for objects of
//! any kind, those of [`PodBuilder`] and [`WorkloadBuilder`] for some. They are the types of `k8s-openapi`, so a test can
//! change whatever else it wants, or merge JSON into one ([`ObjectBuilder::with`]); and where a decision takes a view,
//! [`ObjectBuilder::view`] decodes it as an informer would.
//!
//! ```
//! use steersman_testing::objects::{ObjectBuilder as _, PodBuilder as _, WorkloadBuilder as _, pod, replica_set};
//!
//! let web = replica_set("web").replicas(3).uid("u-1");
//! let pod = pod("web-a").app("web").ready().owned_by(&web);
//! assert_eq!(pod.metadata.owner_references.unwrap()[0].uid, "u-1");
//! ```

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, Pod, ReplicationController, Secret, Service, ServiceAccount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steersman_model::{Encoded, View};

/// The label that workloads of this module select by and its pods have.
pub const APP: &str = "app";
/// The image of all containers of this module, unless said otherwise.
pub const IMAGE: &str = "example/main:1";
/// The time of everything that a test does not date.
pub const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// Properties of an object of any kind.
pub trait ObjectBuilder: Resource<DynamicType = ()> + Serialize + DeserializeOwned {
    /// Merges JSON into the object; a `null` removes a field.
    ///
    /// # Panics
    /// The result is not an object of its kind any more.
    #[must_use]
    fn with(self, more: Value) -> Self {
        let object = serde_json::to_value(&self).expect("an object can be written as JSON");
        serde_json::from_value(merged(object, more)).expect("what is merged in belongs to the object's kind")
    }

    /// Sets the namespace. Without one, a cluster uses the test's own.
    #[must_use]
    fn in_namespace(mut self, namespace: &str) -> Self {
        self.meta_mut().namespace = Some(namespace.into());
        self
    }

    /// Sets the uid, for tests without a server.
    #[must_use]
    fn uid(mut self, uid: &str) -> Self {
        self.meta_mut().uid = Some(uid.into());
        self
    }

    /// Adds a label.
    #[must_use]
    fn label(mut self, key: &str, value: &str) -> Self {
        self.meta_mut().labels.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Adds the label [`APP`], by which workloads select.
    #[must_use]
    fn app(self, app: &str) -> Self {
        self.label(APP, app)
    }

    /// Adds an annotation.
    #[must_use]
    fn annotation(mut self, key: &str, value: &str) -> Self {
        self.meta_mut().annotations.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Adds a finalizer.
    #[must_use]
    fn finalizer(mut self, finalizer: &str) -> Self {
        self.meta_mut().finalizers.get_or_insert_default().push(finalizer.into());
        self
    }

    /// Sets the controller.
    #[must_use]
    fn owned_by<K: Resource<DynamicType = ()>>(self, owner: &K) -> Self {
        self.owner(controller_ref(owner))
    }

    /// Adds an owner.
    #[must_use]
    fn owner(mut self, owner: OwnerReference) -> Self {
        self.meta_mut().owner_references.get_or_insert_default().push(owner);
        self
    }

    /// Sets the creation time, for tests without a server.
    #[must_use]
    fn created(self, time: &str) -> Self {
        self.with(json!({ "metadata": { "creationTimestamp": time } }))
    }

    /// Sets the deletion time, for tests without a server.
    #[must_use]
    fn terminating(self, since: &str) -> Self {
        self.with(json!({ "metadata": { "deletionTimestamp": since } }))
    }

    /// Returns a view of the object, as an informer shows it.
    ///
    /// # Panics
    /// The view is one of another kind.
    #[must_use]
    fn view<V: View>(&self) -> V {
        let object = serde_json::to_vec(self).expect("an object can be written as JSON");
        V::decode(Encoded::Json(&object)).expect("the view is one of this kind")
    }
}

/// Properties of a pod.
pub trait PodBuilder: Sized {
    /// Binds the pod to a node.
    #[must_use]
    fn on_node(self, node: &str) -> Self;

    /// Sets the phase.
    #[must_use]
    fn phase(self, phase: &str) -> Self;

    /// Makes the pod running and ready, for a long time.
    #[must_use]
    fn ready(self) -> Self {
        self.ready_since(LONG_AGO)
    }

    /// Makes the pod running and ready since then.
    #[must_use]
    fn ready_since(self, time: &str) -> Self;

    /// Makes the pod running, and not ready since then.
    #[must_use]
    fn unready_since(self, time: &str) -> Self;

    /// Sets the addresses.
    #[must_use]
    fn addresses(self, ips: &[&str]) -> Self;
}

/// Properties of an object with a pod template.
pub trait WorkloadBuilder: ObjectBuilder {
    /// Sets the number of pods.
    #[must_use]
    fn replicas(self, replicas: i32) -> Self {
        self.with(json!({ "spec": { "replicas": replicas } }))
    }

    /// Sets the image of the one container.
    #[must_use]
    fn image(self, image: &str) -> Self {
        self.with(json!({ "spec": { "template": { "spec": { "containers": containers(image) } } } }))
    }
}

/// Returns a pod of one container, labelled `app=<name>`, without an owner.
#[must_use]
pub fn pod(name: &str) -> Pod {
    Pod { metadata: ObjectMeta { labels: Some(app(name)), ..named(name) }, ..Pod::default() }
        .with(json!({ "spec": { "containers": containers(IMAGE) } }))
}

/// Returns a ReplicaSet of one pod labelled `app=<name>`.
#[must_use]
pub fn replica_set(name: &str) -> ReplicaSet {
    ReplicaSet { metadata: named(name), ..ReplicaSet::default() }.with(workload(name, &selector(name)))
}

/// Returns a ReplicationController of one pod labelled `app=<name>`.
#[must_use]
pub fn replication_controller(name: &str) -> ReplicationController {
    ReplicationController { metadata: named(name), ..ReplicationController::default() }
        .with(workload(name, &json!(app(name))))
}

/// Returns a Deployment of one pod labelled `app=<name>`.
#[must_use]
pub fn deployment(name: &str) -> Deployment {
    Deployment { metadata: named(name), ..Deployment::default() }.with(workload(name, &selector(name)))
}

/// Returns a StatefulSet of one pod labelled `app=<name>`, with the service `<name>`.
#[must_use]
pub fn stateful_set(name: &str) -> StatefulSet {
    StatefulSet { metadata: named(name), ..StatefulSet::default() }
        .with(workload(name, &selector(name)))
        .with(json!({ "spec": { "serviceName": name } }))
}

/// Returns a DaemonSet of pods labelled `app=<name>`.
#[must_use]
pub fn daemon_set(name: &str) -> DaemonSet {
    DaemonSet { metadata: named(name), ..DaemonSet::default() }.with(workload(name, &selector(name)))
}

/// Returns a Job of one completion, whose pods are not restarted.
#[must_use]
pub fn job(name: &str) -> Job {
    Job { metadata: named(name), ..Job::default() }.with(json!({ "spec": { "template": { "spec": one_off() } } }))
}

/// Returns a CronJob that is due every minute, with the Job of [`job`].
#[must_use]
pub fn cron_job(name: &str) -> CronJob {
    let job = json!({ "spec": { "template": { "spec": one_off() } } });
    CronJob { metadata: named(name), ..CronJob::default() }
        .with(json!({ "spec": { "schedule": "* * * * *", "jobTemplate": job } }))
}

/// Returns a service of the pods labelled `app=<name>`, with one port.
#[must_use]
pub fn service(name: &str) -> Service {
    let port = json!({ "name": "http", "port": 80 });
    Service { metadata: named(name), ..Service::default() }
        .with(json!({ "spec": { "selector": app(name), "ports": [port] } }))
}

/// Returns a ConfigMap without data.
#[must_use]
pub fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: named(name), ..ConfigMap::default() }
}

/// Returns a secret without data.
#[must_use]
pub fn secret(name: &str) -> Secret {
    Secret { metadata: named(name), ..Secret::default() }
}

/// Returns a service account.
#[must_use]
pub fn service_account(name: &str) -> ServiceAccount {
    ServiceAccount { metadata: named(name), ..ServiceAccount::default() }
}

/// Returns a namespace.
#[must_use]
pub fn namespace(name: &str) -> Namespace {
    Namespace { metadata: named(name), ..Namespace::default() }
}

/// Returns a node without conditions.
#[must_use]
pub fn node(name: &str) -> Node {
    Node { metadata: named(name), ..Node::default() }
}

/// Returns metadata with a name.
#[must_use]
pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

/// Returns the reference to an owner that controls its object.
#[must_use]
pub fn controller_ref<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    owner.controller_owner_ref(&()).unwrap_or_else(|| {
        let name = owner.meta().name.clone().unwrap_or_default();
        OwnerReference {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            name,
            controller: Some(true),
            ..OwnerReference::default()
        }
    })
}

/// Merges one JSON object into another: objects key by key, everything else replaces what was there.
#[must_use]
pub fn merged(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        for (key, value) in more {
            let under = base.remove(&key).unwrap_or(json!({}));
            base.insert(key, if value.is_object() { merged(under, value) } else { value });
        }
    }
    base
}

fn app(app: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(APP.to_owned(), app.to_owned())])
}

fn selector(name: &str) -> Value {
    json!({ "matchLabels": app(name) })
}

/// One pod from a template. As JSON, because some fields are optional in one version of `k8s-openapi` and not in another.
fn workload(name: &str, selector: &Value) -> Value {
    let template = json!({ "metadata": { "labels": app(name) }, "spec": { "containers": containers(IMAGE) } });
    json!({ "spec": { "replicas": 1, "selector": selector, "template": template } })
}

/// The spec of a pod that is not restarted.
fn one_off() -> Value {
    json!({ "restartPolicy": "Never", "containers": containers(IMAGE) })
}

fn containers(image: &str) -> Value {
    json!([{ "name": "main", "image": image }])
}

fn readiness(status: &str, since: &str) -> Value {
    let condition = json!({ "type": "Ready", "status": status, "lastTransitionTime": since });
    json!({ "status": { "phase": "Running", "conditions": [condition] } })
}

// === impl ObjectBuilder ===

impl<K: Resource<DynamicType = ()> + Serialize + DeserializeOwned> ObjectBuilder for K {}

// === impl PodBuilder ===

impl PodBuilder for Pod {
    fn on_node(mut self, node: &str) -> Self {
        self.spec.get_or_insert_default().node_name = Some(node.into());
        self
    }

    fn phase(mut self, phase: &str) -> Self {
        self.status.get_or_insert_default().phase = Some(phase.into());
        self
    }

    fn ready_since(self, time: &str) -> Self {
        self.with(readiness("True", time))
    }

    fn unready_since(self, time: &str) -> Self {
        self.with(readiness("False", time))
    }

    fn addresses(self, ips: &[&str]) -> Self {
        let all: Vec<_> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
        self.with(json!({ "status": { "podIP": ips.first(), "podIPs": all } }))
    }
}

// === impl WorkloadBuilder ===

impl WorkloadBuilder for ReplicaSet {}
impl WorkloadBuilder for ReplicationController {}
impl WorkloadBuilder for Deployment {}
impl WorkloadBuilder for StatefulSet {}
impl WorkloadBuilder for DaemonSet {}
