//! The recorder of a real cluster: it watches every resource concerned, over an API server that nothing happens to.
//!
//! The revisions of a store are those of all its resources, so what was seen is put in order by them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use parking_lot::Mutex;
use serde_json::Value;
use steersman_base::{Clock, Istr, MicroTime, ObjectKey};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Problem;

/// What is recorded: resource and path.
const RESOURCES: [(&str, &str); 23] = [
    ("namespaces", "/api/v1/namespaces"),
    ("nodes", "/api/v1/nodes"),
    ("pods", "/api/v1/pods"),
    ("services", "/api/v1/services"),
    ("endpoints", "/api/v1/endpoints"),
    ("configmaps", "/api/v1/configmaps"),
    ("secrets", "/api/v1/secrets"),
    ("serviceaccounts", "/api/v1/serviceaccounts"),
    ("replicationcontrollers", "/api/v1/replicationcontrollers"),
    ("deployments.apps", "/apis/apps/v1/deployments"),
    ("replicasets.apps", "/apis/apps/v1/replicasets"),
    ("statefulsets.apps", "/apis/apps/v1/statefulsets"),
    ("daemonsets.apps", "/apis/apps/v1/daemonsets"),
    ("controllerrevisions.apps", "/apis/apps/v1/controllerrevisions"),
    ("jobs.batch", "/apis/batch/v1/jobs"),
    ("cronjobs.batch", "/apis/batch/v1/cronjobs"),
    ("poddisruptionbudgets.policy", "/apis/policy/v1/poddisruptionbudgets"),
    ("persistentvolumeclaims", "/api/v1/persistentvolumeclaims"),
    ("persistentvolumes", "/api/v1/persistentvolumes"),
    ("clusterroles.rbac.authorization.k8s.io", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("endpointslices.discovery.k8s.io", "/apis/discovery.k8s.io/v1/endpointslices"),
    ("leases.coordination.k8s.io", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"),
    ("cakes.garbage.example.com", "/apis/garbage.example.com/v1/cakes"),
];

/// How long the first lists may take: a definition of a kind is served a moment after it was made.
const LISTED_WITHIN: Duration = Duration::from_secs(30);
/// Before a watch that ended is begun again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// One change, as it was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The store's revision.
    pub revision: u64,
    /// When it was seen.
    pub at: MicroTime,
    /// Plural and group of the resource.
    pub resource: Istr,
    /// The object.
    pub key: ObjectKey,
    /// The object after the change; none if it is deleted.
    pub after: Option<Arc<Value>>,
}

/// What was seen, and what there is. Clones are the same recorder.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    seen: Vec<Seen>,
    now: BTreeMap<(Istr, ObjectKey), Seen>,
    /// When something changed last that is no heartbeat.
    changed: Option<Instant>,
}

// === impl Recorder ===

impl Recorder {
    /// Begins to record: all that there is has been read when this returns.
    ///
    /// # Errors
    /// A resource cannot be listed.
    pub async fn begin(client: &Client, tasks: &mut JoinSet<()>) -> Result<Self, Problem> {
        let recorder = Self::default();
        for (resource, path) in RESOURCES {
            let began = Instant::now();
            let revision = loop {
                match recorder.list(client, resource, path).await {
                    Ok(revision) => break revision,
                    Err(error) if began.elapsed() > LISTED_WITHIN => return Err(error),
                    Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
                }
            };
            let recorder = recorder.clone();
            let client = client.clone();
            tasks.spawn(async move { recorder.follow(&client, resource, path, revision).await });
        }
        Ok(recorder)
    }

    /// All that was seen, in the order of the revisions.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        let mut seen = self.0.lock().seen.clone();
        seen.sort_by_key(|seen| seen.revision);
        seen
    }

    /// What there is now.
    #[must_use]
    pub fn now(&self) -> Vec<Seen> {
        let mut now: Vec<Seen> = self.0.lock().now.values().cloned().collect();
        now.sort_by_key(|seen| seen.revision);
        now
    }

    /// When something changed last that is no heartbeat.
    #[must_use]
    pub fn changed(&self) -> Option<Instant> {
        self.0.lock().changed
    }

    /// Reads all of a resource. What is not there any more was removed meanwhile.
    async fn list(&self, client: &Client, resource: &'static str, path: &str) -> Result<u64, Problem> {
        let request = Request::get(path).body(Vec::new())?;
        let list: Value = client.request(request).await?;
        let revision = revision_of(&list).ok_or_else(|| Problem::new("a list has no revision"))?;
        let mut left: Vec<ObjectKey> = {
            let state = self.0.lock();
            state.now.keys().filter(|(of, _)| *of == *resource).map(|(_, key)| key.clone()).collect()
        };
        for item in list["items"].as_array().into_iter().flatten() {
            left.retain(|key| *key != key_of(item));
            self.note(resource, item.clone(), false);
        }
        for key in left {
            let meta = serde_json::json!({
                "name": &*key.name, "namespace": &*key.namespace, "resourceVersion": revision.to_string(),
            });
            self.note(resource, serde_json::json!({ "metadata": meta }), true);
        }
        Ok(revision)
    }

    async fn follow(&self, client: &Client, resource: &'static str, path: &str, mut revision: u64) {
        loop {
            if !self.watch(client, resource, path, &mut revision).await
                && let Ok(listed) = self.list(client, resource, path).await
            {
                revision = listed;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Watches until the watch ends. False if its revision is not known any more.
    async fn watch(&self, client: &Client, resource: &'static str, path: &str, revision: &mut u64) -> bool {
        let path = format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={revision}");
        let Ok(request) = Request::get(path).body(Vec::new()) else { return false };
        let events = match client.request_events::<Value>(request).await {
            Ok(events) => events,
            Err(kube::Error::Api(status)) => return status.code != 410,
            Err(_) => return true,
        };
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let (object, is_gone) = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
                Ok(WatchEvent::Deleted(object)) => (object, true),
                Ok(WatchEvent::Bookmark(_)) => continue,
                Ok(WatchEvent::Error(status)) => return status.code != 410,
                Err(_) => return true,
            };
            *revision = revision_of(&object).unwrap_or(*revision).max(*revision);
            self.note(resource, object, is_gone);
        }
        true
    }

    fn note(&self, resource: &'static str, mut object: Value, is_gone: bool) {
        let Some(revision) = revision_of(&object) else { return };
        let resource = Istr::interned(resource);
        let key = key_of(&object);
        if let Some(meta) = object["metadata"].as_object_mut() {
            // Half of each object, and of no use here.
            meta.remove("managedFields");
        }
        let after = (!is_gone).then(|| Arc::new(object));
        let at = Clock::system().now_micros();
        let seen = Seen { revision, at, resource, key, after };
        let place = (seen.resource.clone(), seen.key.clone());
        let mut state = self.0.lock();
        if state.now.get(&place).is_some_and(|now| now.revision >= revision) {
            return;
        }
        if !matches!(&*seen.resource, "leases.coordination.k8s.io" | "nodes") {
            state.changed = Some(Instant::now());
        }
        if is_gone {
            state.now.remove(&place);
        } else {
            state.now.insert(place, seen.clone());
        }
        state.seen.push(seen);
    }
}

fn revision_of(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    match text("namespace") {
        "" => ObjectKey::cluster(text("name")),
        namespace => ObjectKey::new(namespace, text("name")),
    }
}
