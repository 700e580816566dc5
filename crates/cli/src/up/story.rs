//! Pure: a description of the cluster's changes: which component did what, one line each.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::act::State;

/// A change of an object of the demo.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Set(Box<ReplicaSet>),
    SetGone(Box<ReplicaSet>),
    Pod(Box<Pod>),
    PodGone(Box<Pod>),
    Slice(Box<EndpointSlice>),
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) who: String,
    pub(super) what: String,
}

/// The state of the cluster that the demo follows.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    /// By name; the number is that of the pods it wants.
    sets: BTreeMap<String, i32>,
    pods: BTreeMap<String, Life>,
    addresses: BTreeSet<String>,
    /// The component that deletes pods in this part of the demo.
    deleter: &'static str,
    /// Pods whose deletion has been reported.
    shown: BTreeSet<String>,
}

/// The state of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Life {
    image: String,
    address: String,
    is_ready: bool,
    is_leaving: bool,
}

// === impl Line ===

impl Line {
    pub(super) fn new(who: &str, what: impl Into<String>) -> Self {
        Self { who: who.to_owned(), what: what.into() }
    }
}

// === impl Story ===

impl Story {
    /// Sets the component that deletes pods from now on.
    pub(super) fn deleted_by(&mut self, who: &'static str) {
        self.deleter = who;
    }

    /// The deletion of this pod is reported by the component that requested it.
    pub(super) fn shown(&mut self, pod: &str) {
        self.shown.insert(pod.to_owned());
    }

    /// The first pod there is.
    pub(super) fn any_pod(&self) -> Option<String> {
        self.pods.keys().next().cloned()
    }

    /// Whether there are exactly so many pods, all ready, all with this image, and the Service leads to them and to no
    /// other.
    pub(super) fn is_ready(&self, pods: usize, image: &str) -> bool {
        let is_well = |life: &Life| {
            life.is_ready && !life.is_leaving && life.image == image && self.addresses.contains(&life.address)
        };
        self.pods.len() == pods && self.pods.values().all(is_well) && self.addresses.len() == pods
    }

    /// Whether all pods and ReplicaSets are deleted.
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.sets.is_empty()
    }

    /// The addresses behind the Service.
    pub(super) fn addresses(&self) -> String {
        let addresses: Vec<_> = self.addresses.iter().map(String::as_str).collect();
        addresses.join(", ")
    }

    /// Applies a change; returns the line to print.
    pub(super) fn take(&mut self, change: &Change) -> Option<Line> {
        match change {
            Change::Set(set) => self.set(set),
            Change::SetGone(set) => {
                let name = set.metadata.name.as_deref().unwrap_or_default();
                self.sets.remove(name);
                Some(Line::new(self.deleter, format!("deleted replicaset/{name}")))
            }
            Change::Pod(pod) => self.pod(pod),
            Change::PodGone(pod) => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                self.pods.remove(name);
                self.leaves(name)
            }
            Change::Slice(slice) => {
                let addresses = slice.endpoints.iter().flatten().filter(|endpoint| {
                    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
                });
                self.addresses = addresses.flat_map(|endpoint| endpoint.addresses.iter().cloned()).collect();
                None
            }
        }
    }

    fn set(&mut self, set: &ReplicaSet) -> Option<Line> {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let wanted = set.spec.replicas.unwrap_or(1);
        let what = match self.sets.insert(name.to_owned(), wanted) {
            None => format!("created replicaset/{name} for {}", counted(wanted, "pod")),
            Some(before) if before != wanted => format!("scaled replicaset/{name} from {before} to {wanted}"),
            Some(_) => return None,
        };
        Some(Line::new("deployment", what))
    }

    fn pod(&mut self, pod: &Pod) -> Option<Line> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
        let now = Life {
            image: container.and_then(|container| container.image.clone()).unwrap_or_default(),
            address: pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default(),
            is_ready: is_ready(pod),
            is_leaving: pod.metadata.deletion_timestamp.is_some(),
        };
        let before = self.pods.insert(name.to_owned(), now.clone());
        let Some(before) = before else {
            return Some(Line::new("replicaset", format!("created pod/{name}")));
        };
        if now.is_leaving {
            return self.leaves(name);
        }
        (now.is_ready && !before.is_ready).then(|| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("a node");
            Line::new(node, format!("runs pod/{name} at {}", now.address))
        })
    }

    fn leaves(&mut self, pod: &str) -> Option<Line> {
        self.shown.insert(pod.to_owned()).then(|| Line::new(self.deleter, format!("deleted pod/{pod}")))
    }
}

impl State for Story {
    type Change = Change;

    fn apply(&mut self, change: &Change) -> Vec<Line> {
        self.take(change).into_iter().collect()
    }

    /// Returns what is missing for [`is_ready`](Self::is_ready).
    fn so_far(&self) -> String {
        let ready = self.pods.values().filter(|life| life.is_ready).count();
        format!(
            "{}, {}, {ready} of them ready, {} behind the Service",
            counted(self.sets.len(), "ReplicaSet"),
            counted(self.pods.len(), "pod"),
            counted(self.addresses.len(), "address"),
        )
    }
}

/// Formats a count with its noun.
fn counted(count: impl std::fmt::Display, what: &str) -> String {
    let count = count.to_string();
    match (count.as_str(), what.ends_with('s')) {
        ("1", _) => format!("1 {what}"),
        (many, true) => format!("{many} {what}es"),
        (many, false) => format!("{many} {what}s"),
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, ready: bool, leaving: bool) -> Box<Pod> {
        let mut value = json!({
            "metadata": { "name": name },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "main", "image": "web:1" }] },
            "status": { "podIP": "10.0.0.1", "conditions": [{ "type": "Ready", "status": if ready { "True" } else { "False" } }] },
        });
        if leaving {
            value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Box::new(serde_json::from_value(value).unwrap())
    }

    fn set(name: &str, replicas: i32) -> Box<ReplicaSet> {
        let value = json!({ "metadata": { "name": name }, "spec": { "replicas": replicas, "selector": {} } });
        Box::new(serde_json::from_value(value).unwrap())
    }

    fn slice(addresses: &[(&str, bool)]) -> Box<EndpointSlice> {
        let endpoint =
            |(address, ready): &(&str, bool)| json!({ "addresses": [address], "conditions": { "ready": ready } });
        let endpoints: Vec<_> = addresses.iter().map(endpoint).collect();
        let value =
            json!({ "metadata": { "name": "web-x" }, "addressType": "IPv4", "endpoints": endpoints, "ports": [] });
        Box::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn every_change_is_shown_once_with_the_one_who_made_it() {
        let mut story = Story::default();
        story.deleted_by("replicaset");
        let mut check = |change: Change, want: Option<(&str, &str)>| {
            let shown = story.take(&change);
            assert_eq!(shown, want.map(|(who, what)| Line::new(who, what)), "{change:?}");
        };
        check(Change::Set(set("web-a", 3)), Some(("deployment", "created replicaset/web-a for 3 pods")));
        check(Change::Set(set("web-a", 3)), None);
        check(Change::Set(set("web-a", 2)), Some(("deployment", "scaled replicaset/web-a from 3 to 2")));
        check(Change::Pod(pod("web-a-1", false, false)), Some(("replicaset", "created pod/web-a-1")));
        check(Change::Pod(pod("web-a-1", false, false)), None);
        check(Change::Pod(pod("web-a-1", true, false)), Some(("node-1", "runs pod/web-a-1 at 10.0.0.1")));
        check(Change::Pod(pod("web-a-1", true, false)), None);
        check(Change::Pod(pod("web-a-1", true, true)), Some(("replicaset", "deleted pod/web-a-1")));
        check(Change::PodGone(pod("web-a-1", true, true)), None);
        check(Change::SetGone(set("web-a", 0)), Some(("replicaset", "deleted replicaset/web-a")));
        check(Change::Set(set("web-b", 1)), Some(("deployment", "created replicaset/web-b for 1 pod")));
    }

    #[test]
    fn a_deletion_that_was_shown_is_not_shown_again() {
        let mut story = Story::default();
        story.take(&Change::Pod(pod("web-a-1", true, false)));
        story.shown("web-a-1");
        assert_eq!(story.take(&Change::Pod(pod("web-a-1", true, true))), None);
        assert_eq!(story.take(&Change::PodGone(pod("web-a-1", true, true))), None);
        assert!(story.is_empty());
    }

    #[test]
    fn ready_means_all_of_it() {
        let mut story = Story::default();
        story.take(&Change::Pod(pod("web-a-1", true, false)));
        assert!(!story.is_ready(1, "web:1"), "the Service does not know it");
        assert_eq!(story.so_far(), "0 ReplicaSets, 1 pod, 1 of them ready, 0 addresses behind the Service");
        story.take(&Change::Slice(slice(&[("10.0.0.1", false)])));
        assert!(!story.is_ready(1, "web:1"), "the Service does not lead to it");
        story.take(&Change::Slice(slice(&[("10.0.0.7", true)])));
        assert!(!story.is_ready(1, "web:1"), "the Service leads to another one, which has gone");
        story.take(&Change::Slice(slice(&[("10.0.0.1", true)])));
        assert!(story.is_ready(1, "web:1"));
        assert!(!story.is_ready(1, "web:2") && !story.is_ready(2, "web:1"));
        story.take(&Change::Pod(pod("web-a-1", true, true)));
        assert!(!story.is_ready(1, "web:1"), "it is leaving");
    }
}
