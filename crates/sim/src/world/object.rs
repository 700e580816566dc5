//! Objects as invariants read them: the few fields they ask for, parsed once when the change comes in.

use std::hash::Hasher;

use serde::Deserialize;
use serde_json::Value;
use steersman_base::int_or_string::Rounding;
use steersman_base::names::{annotations, labels, taints};
use steersman_base::{
    Condition, IntOrString, Istr, LabelSelector, ObjectKey, Selector, StringMap, Time, Uid, condition,
};

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
    /// When it is to be gone; set, it is terminating.
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
        /// Who holds it; empty if nobody does.
        holder: Istr,
    },
    /// A secret.
    Secret(Secret),
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
    /// What its deletion costs, as the annotation says.
    pub cost: i32,
    /// The most restarts of a container, and of a sidecar.
    pub restarts: (i64, i64),
    /// Its addresses.
    pub ips: Vec<Istr>,
}

/// The phase of a pod, in the order in which pods are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It has not begun, or says nothing.
    Pending,
    /// Nobody knows.
    Unknown,
    /// It runs.
    Running,
    /// It has succeeded or failed.
    Ended,
}

/// What a ReplicaSet or ReplicationController asks for and says.
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

/// What a Deployment asks for and says.
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

/// What a service asks for.
#[derive(Clone, Debug)]
pub struct Service {
    /// The selector; empty if it has none.
    pub selector: StringMap,
    /// Whether its type is `ExternalName`.
    pub external: bool,
    /// Whether pods that are not ready are published, too.
    pub publish_all: bool,
    /// The families of its addresses; empty if the server did not say.
    pub families: Vec<Istr>,
    /// Whether it has ports.
    pub has_ports: bool,
}

/// What an EndpointSlice says.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Whose it is; empty if it does not say.
    pub service: Istr,
    /// Who keeps it.
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
    /// The pod it stands for, if it stands for one.
    pub pod: Option<Uid>,
}

/// What an Endpoints object says.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Whether it is the lock of an old leader election.
    pub is_lock: bool,
    /// The addresses, whether they are ready, and the pods behind them; one entry per subset.
    pub addresses: Vec<(Istr, bool, Option<Uid>)>,
    /// Whether one address stands twice in one subset.
    pub twice: Option<Istr>,
}

/// What a namespace says.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// `spec.finalizers`.
    pub finalizers: Vec<Istr>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// What a node says.
#[derive(Clone, Debug)]
pub struct Node {
    /// Whether its condition `Ready` is true.
    pub ready: bool,
    /// Whether it has the taint `node.kubernetes.io/out-of-service`.
    pub out_of_service: bool,
}

/// What a secret says, if it asks for the token of a service account.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The account it names; empty if the secret is of another type.
    pub account: Istr,
    /// The uid of the account, if it says it.
    pub account_uid: Option<Uid>,
    /// Whether there is a token in it.
    pub has_token: bool,
}

// === impl Object ===

impl Object {
    /// Parses an object. What cannot be read counts as absent.
    #[must_use]
    pub fn parse(resource: &Istr, key: &ObjectKey, value: &Value) -> Self {
        let meta = &value["metadata"];
        Self {
            resource: resource.clone(),
            key: key.clone(),
            kind: text(&value["kind"]),
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

    /// Whether somebody asked for its deletion.
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

    /// The selector of an owner of pods or ReplicaSets, if it can be used.
    #[must_use]
    pub fn selector(&self) -> Option<&Selector> {
        match &self.body {
            Body::Set(set) => set.selector.as_ref(),
            Body::Deployment(deployment) => deployment.selector.as_ref(),
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
            _ => &[],
        }
    }

    /// Whether the pod counts: it has not ended, and nobody asked it to.
    #[must_use]
    pub fn is_active_pod(&self) -> bool {
        !self.is_terminating() && self.pod().is_some_and(|pod| pod.phase != Phase::Ended)
    }

    /// The pod, if it counts and is ready.
    #[must_use]
    pub fn is_ready_pod(&self) -> bool {
        self.is_active_pod() && self.pod().is_some_and(|pod| pod.ready)
    }

    /// Whether the pod counts and has been ready for so many seconds.
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
            "nodes" => Self::Node(Node {
                ready: condition::is_true(&conditions(value), "Ready"),
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
        let (spec, status) = (&value["spec"], &value["status"]);
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
        Self {
            phase,
            node: text(&spec["nodeName"]),
            ready: ready.is_some_and(|ready| ready["status"] == "True"),
            ready_since: ready.and_then(|ready| time(&ready["lastTransitionTime"])),
            cost,
            restarts: (containers, sidecars),
            ips,
        }
    }
}

/// A cost in upstream's strict form: no plus sign, no leading zeros. Anything else counts as no cost.
fn parse_cost(text: &str) -> Option<i32> {
    let plain = text == "0" || text.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
    plain.then(|| text.parse().ok()).flatten()
}

impl Set {
    fn parse(resource: &str, value: &Value) -> Self {
        let (spec, status) = (&value["spec"], &value["status"]);
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
        let (spec, status) = (&value["spec"], &value["status"]);
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

    /// How many pods must be available.
    #[must_use]
    pub fn available_min(&self) -> i32 {
        self.replicas.saturating_sub(self.unavailable).max(0)
    }

    /// How many pods all ReplicaSets together may ask for.
    #[must_use]
    pub fn total_max(&self) -> i32 {
        self.replicas.saturating_add(self.surge)
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

fn declared_selector(value: &Value) -> Option<Selector> {
    let declared = LabelSelector::deserialize(value).ok()?;
    declared.compile().ok()
}

fn usable(selector: Option<Selector>, template: &StringMap) -> Option<Selector> {
    selector.filter(|selector| !selector.is_everything() && selector.matches(template))
}

fn conditions(value: &Value) -> Vec<Condition> {
    list(&value["status"]["conditions"]).filter_map(|condition| Condition::deserialize(condition).ok()).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

fn text(value: &Value) -> Istr {
    value.as_str().map(Istr::interned_if_seen).unwrap_or_default()
}

fn int(value: &Value) -> Option<i32> {
    value.as_i64().map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}

fn time(value: &Value) -> Option<Time> {
    value.as_str()?.parse().ok()
}

fn map(value: &Value) -> StringMap {
    let pairs = value.as_object().into_iter().flatten();
    let mut pairs: Vec<_> = pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect();
    StringMap::from_texts(&mut pairs)
}

fn annotation<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
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
