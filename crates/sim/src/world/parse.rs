//! Reads objects from JSON, once each, when their change comes in.

use std::hash::Hasher;

use serde::Deserialize;
use serde_json::Value;
use steersman_base::int_or_string::Rounding;
use steersman_base::names::{annotations, labels, taints};
use steersman_base::{
    Condition, IntOrString, Istr, LabelSelector, ObjectKey, Selector, StringMap, Time, Uid, condition,
};

use super::object::{
    Body, Deployment, DeploymentStatus, Endpoint, Endpoints, Namespace, Node, Object, Owner, Phase, Pod, Secret,
    Service, Set, SetStatus, Slice, Taint, Toleration,
};
use super::others::{Attachment, Autoscaler, Claim, Request, Volume, claims_of_pod};
use super::quotas::{DeviceClaim, Quota, device_claims_of_pod};
use super::workloads::{Budget, CronJob, DaemonSet, Job, StatefulSet};

/// Kinds that are looked up by name, for recorders that leave them out of list items.
const KINDS: [(&str, &str); 15] = [
    ("pods", "Pod"),
    ("replicasets.apps", "ReplicaSet"),
    ("replicationcontrollers", "ReplicationController"),
    ("deployments.apps", "Deployment"),
    ("statefulsets.apps", "StatefulSet"),
    ("daemonsets.apps", "DaemonSet"),
    ("jobs.batch", "Job"),
    ("cronjobs.batch", "CronJob"),
    ("poddisruptionbudgets.policy", "PodDisruptionBudget"),
    ("services", "Service"),
    ("namespaces", "Namespace"),
    ("nodes", "Node"),
    ("serviceaccounts", "ServiceAccount"),
    ("secrets", "Secret"),
    ("configmaps", "ConfigMap"),
];

// === impl Object ===

impl Object {
    /// Parses an object. What cannot be read counts as absent.
    #[must_use]
    pub fn parse(resource: &Istr, key: &ObjectKey, value: &Value) -> Self {
        let meta = &value["metadata"];
        Self {
            resource: resource.clone(),
            key: key.clone(),
            kind: kind(resource, value),
            uid: Uid::new(meta["uid"].as_str().unwrap_or_default()),
            generation: meta["generation"].as_i64().unwrap_or_default(),
            created: time(&meta["creationTimestamp"]),
            deleted: time(&meta["deletionTimestamp"]),
            labels: map(&meta["labels"]),
            owners: list(&meta["ownerReferences"]).map(Owner::parse).collect(),
            finalizers: list(&meta["finalizers"]).map(text).collect(),
            body: Body::parse(resource, value),
        }
    }
}

fn kind(resource: &str, value: &Value) -> Istr {
    let told = text(&value["kind"]);
    if !told.is_empty() {
        return told;
    }
    KINDS.iter().find(|(known, _)| *known == resource).map(|(_, kind)| Istr::interned(kind)).unwrap_or_default()
}

// === impl Owner ===

impl Owner {
    fn parse(value: &Value) -> Self {
        Self {
            uid: Uid::new(value["uid"].as_str().unwrap_or_default()),
            kind: text(&value["kind"]),
            name: text(&value["name"]),
            controller: value["controller"] == true,
            blocks: value["blockOwnerDeletion"] == true,
        }
    }
}

// === impl Body ===

impl Body {
    fn parse(resource: &str, value: &Value) -> Self {
        match resource {
            "pods" => Self::Pod(Pod::parse(value)),
            "replicasets.apps" | "replicationcontrollers" => Self::Set(Box::new(Set::parse(resource, value))),
            "deployments.apps" => Self::Deployment(Box::new(Deployment::parse(value))),
            "services" => Self::Service(Service::parse(value)),
            "endpointslices.discovery.k8s.io" => Self::Slice(Slice::parse(value)),
            "endpoints" => Self::Endpoints(Endpoints::parse(value)),
            "namespaces" => Self::Namespace(Namespace {
                finalizers: list(&value["spec"]["finalizers"]).map(text).collect(),
                conditions: conditions(value),
            }),
            "statefulsets.apps" => Self::StatefulSet(Box::new(StatefulSet::parse(value))),
            "daemonsets.apps" => Self::DaemonSet(Box::new(DaemonSet::parse(value))),
            "jobs.batch" => Self::Job(Box::new(Job::parse(value))),
            "cronjobs.batch" => Self::CronJob(Box::new(CronJob::parse(value))),
            "poddisruptionbudgets.policy" => Self::Budget(Box::new(Budget::parse(value))),
            "horizontalpodautoscalers.autoscaling" => Self::Autoscaler(Box::new(Autoscaler::parse(value))),
            "certificatesigningrequests.certificates.k8s.io" => Self::Request(Box::new(Request::parse(value))),
            "persistentvolumeclaims" => Self::Claim(Claim::parse(value)),
            "persistentvolumes" => Self::Volume(Volume::parse(value)),
            "resourcequotas" => Self::Quota(Box::new(Quota::parse(value))),
            "resourceclaims.resource.k8s.io" => Self::DeviceClaim(DeviceClaim::parse(value)),
            "devicetaintrules.resource.k8s.io" => {
                Self::DeviceTaint { ends_pods: value["spec"]["taint"]["effect"] == "NoExecute" }
            }
            "volumeattachments.storage.k8s.io" => Self::Attachment(Attachment::parse(value)),
            "nodes" => Self::Node(Node {
                taints: list(&value["spec"]["taints"]).map(Taint::parse).collect(),
                ready: condition::is_true(&conditions(value), "Ready"),
                ready_since: list(&value["status"]["conditions"])
                    .find(|condition| condition["type"] == "Ready")
                    .and_then(|condition| time(&condition["lastTransitionTime"])),
                ranges: list(&value["spec"]["podCIDRs"]).map(text).collect(),
                out_of_service: list(&value["spec"]["taints"]).any(|taint| taint["key"] == taints::OUT_OF_SERVICE),
            }),
            "leases.coordination.k8s.io" => Self::Lease { holder: text(&value["spec"]["holderIdentity"]) },
            "secrets" => Self::Secret(Secret::parse(value)),
            _ => Self::Other,
        }
    }
}

impl Pod {
    fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let status = &value["status"];
        let phase = match status["phase"].as_str() {
            Some("Running") => Phase::Running,
            Some("Unknown") => Phase::Unknown,
            Some("Succeeded" | "Failed") => Phase::Ended,
            _ => Phase::Pending,
        };
        let ready = list(&status["conditions"]).find(|condition| condition["type"] == "Ready");
        let cost = annotation(value, annotations::POD_DELETION_COST).and_then(parse_cost).unwrap_or(0);
        let is_sidecar = |status: &&Value| {
            list(&spec["initContainers"])
                .any(|container| container["name"] == status["name"] && container["restartPolicy"] == "Always")
        };
        let most = |counts: &mut dyn Iterator<Item = &Value>| {
            counts.filter_map(|status| status["restartCount"].as_i64()).max().unwrap_or(0)
        };
        let containers = most(&mut list(&status["containerStatuses"]));
        let sidecars = most(&mut list(&status["initContainerStatuses"]).filter(is_sidecar));
        let mut ips: Vec<Istr> = list(&status["podIPs"]).map(|ip| text(&ip["ip"])).collect();
        if ips.is_empty() {
            ips.extend(Some(text(&status["podIP"])));
        }
        ips.retain(|ip| !ip.is_empty());
        let (claims_by_template, device_claims) = device_claims_of_pod(value);
        let (claims, own_claims) = claims_of_pod(value);
        Self {
            phase,
            node: text(&spec["nodeName"]),
            ready: ready.is_some_and(|ready| ready["status"] == "True"),
            ready_since: ready.and_then(|ready| time(&ready["lastTransitionTime"])),
            cost,
            restarts: (containers, sidecars),
            ips,
            made_for: made_for(spec),
            has_succeeded: status["phase"] == "Succeeded",
            index: annotation(value, annotations::JOB_COMPLETION_INDEX).and_then(|index| index.parse().ok()),
            image: text(&spec["containers"][0]["image"]),
            tolerations: list(&spec["tolerations"]).map(Toleration::parse).collect(),
            claims,
            own_claims,
            claims_by_template,
            device_claims,
        }
    }
}

impl Taint {
    fn parse(value: &Value) -> Self {
        Self {
            key: text(&value["key"]),
            value: text(&value["value"]),
            effect: text(&value["effect"]),
            added: time(&value["timeAdded"]),
        }
    }
}

impl Toleration {
    fn parse(value: &Value) -> Self {
        Self {
            key: text(&value["key"]),
            value: (value["operator"] != "Exists").then(|| text(&value["value"])),
            effect: text(&value["effect"]),
            seconds: value["tolerationSeconds"].as_i64(),
        }
    }
}

/// The node that a pod is bound to or, until then, pinned to by affinity.
fn made_for(spec: &Value) -> Istr {
    let node = text(&spec["nodeName"]);
    if !node.is_empty() {
        return node;
    }
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let fields = list(&required["nodeSelectorTerms"]).flat_map(|term| list(&term["matchFields"]));
    let mut names = fields.filter(|field| field["key"] == "metadata.name").map(|field| text(&field["values"][0]));
    names.next().unwrap_or_default()
}

/// A cost in upstream's strict form: no plus sign, no leading zeros. Anything else counts as no cost.
fn parse_cost(text: &str) -> Option<i32> {
    let plain = text == "0" || text.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
    plain.then(|| text.parse().ok()).flatten()
}

impl Set {
    fn parse(resource: &str, value: &Value) -> Self {
        let spec = &value["spec"];
        let status = &value["status"];
        let template_labels = map(&spec["template"]["metadata"]["labels"]);
        let selector = if resource == "replicationcontrollers" {
            Some(Selector::from_labels(&map(&spec["selector"])))
        } else {
            declared_selector(&spec["selector"])
        };
        Self {
            replicas: int(&spec["replicas"]).unwrap_or(1),
            min_ready: spec["minReadySeconds"].as_i64().unwrap_or(0),
            selector: usable(selector, &template_labels),
            template: fingerprint(&spec["template"]),
            template_labels,
            status: SetStatus {
                replicas: int(&status["replicas"]).unwrap_or(0),
                labelled: int(&status["fullyLabeledReplicas"]).unwrap_or(0),
                ready: int(&status["readyReplicas"]).unwrap_or(0),
                available: int(&status["availableReplicas"]).unwrap_or(0),
                terminating: int(&status["terminatingReplicas"]),
                observed: status["observedGeneration"].as_i64().unwrap_or(0),
                conditions: conditions(value),
            },
            revision: number(value, annotations::DEPLOYMENT_REVISION),
            sized_for: number(value, annotations::DEPLOYMENT_DESIRED_REPLICAS),
        }
    }
}

impl Deployment {
    fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let status = &value["status"];
        let replicas = int(&spec["replicas"]).unwrap_or(1);
        let rolling = matches!(spec["strategy"]["type"].as_str(), None | Some("" | "RollingUpdate"));
        let (surge, unavailable) = if rolling { limits(&spec["strategy"]["rollingUpdate"], replicas) } else { (0, 0) };
        Self {
            replicas,
            paused: spec["paused"] == true,
            rolling,
            surge,
            unavailable,
            min_ready: spec["minReadySeconds"].as_i64().unwrap_or(0),
            selector: usable(declared_selector(&spec["selector"]), &map(&spec["template"]["metadata"]["labels"])),
            template: fingerprint(&spec["template"]),
            history: int(&spec["revisionHistoryLimit"]).filter(|limit| *limit != i32::MAX),
            deadline: int(&spec["progressDeadlineSeconds"]).filter(|seconds| *seconds != i32::MAX).map(i64::from),
            revision: number(value, annotations::DEPLOYMENT_REVISION),
            status: DeploymentStatus {
                replicas: int(&status["replicas"]).unwrap_or(0),
                updated: int(&status["updatedReplicas"]).unwrap_or(0),
                ready: int(&status["readyReplicas"]).unwrap_or(0),
                available: int(&status["availableReplicas"]).unwrap_or(0),
                observed: status["observedGeneration"].as_i64().unwrap_or(0),
                conditions: conditions(value),
            },
        }
    }
}

/// `maxSurge` and `maxUnavailable` in pods, rounded and corrected as upstream does: both zero means one unavailable.
fn limits(rolling: &Value, replicas: i32) -> (i32, i32) {
    let scaled = |value: &Value, rounding| {
        let share = match value {
            Value::Number(_) => int(value).map(IntOrString::Int),
            Value::String(text) => Some(IntOrString::from(text.as_str())),
            _ => None,
        };
        share.and_then(|share| share.scaled(replicas, rounding).ok()).unwrap_or(0).max(0)
    };
    let surge = scaled(&rolling["maxSurge"], Rounding::Up);
    let unavailable = scaled(&rolling["maxUnavailable"], Rounding::Down);
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    (surge, unavailable.min(replicas))
}

impl Service {
    fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        Self {
            selector: map(&spec["selector"]),
            external: spec["type"] == "ExternalName",
            publish_all: spec["publishNotReadyAddresses"] == true,
            families: list(&spec["ipFamilies"]).map(text).collect(),
            has_ports: list(&spec["ports"]).next().is_some(),
        }
    }
}

impl Slice {
    fn parse(value: &Value) -> Self {
        let label = |name: &str| text(&value["metadata"]["labels"][name]);
        let endpoint = |endpoint: &Value| Endpoint {
            addresses: list(&endpoint["addresses"]).map(text).collect(),
            ready: endpoint["conditions"]["ready"] != false,
            pod: pod_of(endpoint),
        };
        Self {
            service: label(labels::SERVICE_NAME),
            managed_by: label(labels::ENDPOINTSLICE_MANAGED_BY),
            family: text(&value["addressType"]),
            ports: list(&value["ports"]).count(),
            endpoints: list(&value["endpoints"]).map(endpoint).collect(),
        }
    }
}

impl Endpoints {
    fn parse(value: &Value) -> Self {
        let mut addresses = Vec::new();
        let mut twice = None;
        for subset in list(&value["subsets"]) {
            let begin = addresses.len();
            for (field, ready) in [("addresses", true), ("notReadyAddresses", false)] {
                let found = list(&subset[field]).map(|address| (text(&address["ip"]), ready, pod_of(address)));
                addresses.extend(found);
            }
            let mut here: Vec<_> = addresses[begin..].iter().map(|(ip, _, pod)| (ip.clone(), pod.clone())).collect();
            here.sort();
            let again = here.windows(2).find(|pair| pair[0] == pair[1]);
            twice = twice.or_else(|| again.map(|pair| pair[0].0.clone()));
        }
        Self { is_lock: annotation(value, annotations::LEADER).is_some(), addresses, twice }
    }
}

fn pod_of(endpoint: &Value) -> Option<Uid> {
    let target = &endpoint["targetRef"];
    (target["kind"] == "Pod").then(|| target["uid"].as_str().map(Uid::new)).flatten()
}

impl Secret {
    fn parse(value: &Value) -> Self {
        let is_token = value["type"] == "kubernetes.io/service-account-token";
        let name = annotation(value, annotations::SERVICE_ACCOUNT_NAME).filter(|_| is_token);
        Self {
            account: Istr::new(name.unwrap_or_default()),
            account_uid: annotation(value, annotations::SERVICE_ACCOUNT_UID).map(Uid::new),
            has_token: value["data"]["token"].as_str().is_some_and(|token| !token.is_empty()),
        }
    }
}

pub(super) fn declared_selector(value: &Value) -> Option<Selector> {
    let declared = LabelSelector::deserialize(value).ok()?;
    declared.compile().ok()
}

pub(super) fn usable(selector: Option<Selector>, template: &StringMap) -> Option<Selector> {
    selector.filter(|selector| !selector.is_everything() && selector.matches(template))
}

pub(crate) fn conditions(value: &Value) -> Vec<Condition> {
    list(&value["status"]["conditions"]).filter_map(|condition| Condition::deserialize(condition).ok()).collect()
}

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

pub(super) fn text(value: &Value) -> Istr {
    value.as_str().map(Istr::interned_if_seen).unwrap_or_default()
}

pub(super) fn int(value: &Value) -> Option<i32> {
    value.as_i64().map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}

pub(super) fn time(value: &Value) -> Option<Time> {
    value.as_str()?.parse().ok()
}

pub(super) fn map(value: &Value) -> StringMap {
    let pairs = value.as_object().into_iter().flatten();
    let mut pairs: Vec<_> = pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect();
    StringMap::from_texts(&mut pairs)
}

pub(super) fn annotation<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value["metadata"]["annotations"][name].as_str()
}

fn number<T: std::str::FromStr>(value: &Value, name: &str) -> Option<T> {
    annotation(value, name)?.parse().ok()
}

/// A hash of a pod template that is the same for the templates of a Deployment and of its ReplicaSet: without the label of
/// the template's hash, and without what is null. What is an empty text counts: it may be a value.
fn fingerprint(template: &Value) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash_value(template, &mut hash);
    hash.0
}

fn hash_value(value: &Value, hash: &mut Fnv) {
    match value {
        Value::Object(fields) => {
            hash.write_u8(b'{');
            let counts = |name: &str, value: &Value| {
                name != labels::POD_TEMPLATE_HASH
                    && !matches!(value, Value::Null)
                    && value.as_array().is_none_or(|list| !list.is_empty())
            };
            for (name, value) in fields.iter().filter(|(name, value)| counts(name, value)) {
                hash.write(name.as_bytes());
                hash.write_u8(0);
                hash_value(value, hash);
            }
            hash.write_u8(b'}');
        }
        Value::Array(items) => {
            hash.write_u8(b'[');
            items.iter().for_each(|item| hash_value(item, hash));
            hash.write_u8(b']');
        }
        Value::String(text) => {
            hash.write(text.as_bytes());
            hash.write_u8(1);
        }
        Value::Number(number) => hash.write_i64(number.as_i64().unwrap_or(i64::MAX)),
        Value::Bool(flag) => hash.write_u8(if *flag { 2 } else { 3 }),
        Value::Null => hash.write_u8(4),
    }
}

/// FNV-1a of 64 bits: the same in every run.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
