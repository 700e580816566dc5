//! A large cluster: nodes with leases, and pods of ReplicaSets that run on them.
//!
//! One of each is made by the API server and our simulated node, so that it has every field; the others are copies with names,
//! uids and addresses of their own, written to etcd.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use steersman_base::MicroTime;

use crate::api::{Api, Call, until, until_within};
use crate::etcd::{Entry, Etcd};
use crate::load;
use crate::managers::Rig;
use crate::process::Scratch;
use crate::rig::simulated_nodes;

const PODS_PER_SET: usize = 100;
const SETS_PER_NAMESPACE: usize = 30;
const TEMPLATES: &str = "bench-templates";
const SET: &str = "template";
const LEASES: &str = "kube-node-lease";
/// What is in memory at once while it is written.
const CHUNK: usize = 10_000;
/// For kube-apiserver to see all that was written to etcd.
const SEEN_WITHIN: Duration = Duration::from_secs(300);
/// The first address of nodes, and the first range of pods with the number of its addresses.
const HOSTS: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 10);
const RANGES: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);
const RANGE: usize = 1024;
/// The time of kubelets between two renewals of a lease, and in how many parts the leases are renewed.
const RENEW_EVERY: Duration = Duration::from_secs(10);
const PARTS: usize = 100;
/// The times that the TTL controller gives to nodes of clusters that grew beyond so many.
const TTLS: [(usize, &str); 5] = [(2_000, "300"), (1_000, "60"), (500, "30"), (100, "15"), (0, "0")];

/// How large.
#[derive(Clone, Copy)]
pub(crate) struct Population {
    pub(crate) nodes: usize,
    pub(crate) pods_per_node: usize,
}

/// One of each kind.
struct Templates {
    node: Value,
    lease: Value,
    set: Value,
    pod: Value,
}

// === impl Population ===

impl Population {
    fn pods(self) -> usize {
        self.nodes * self.pods_per_node
    }

    fn sets(self) -> usize {
        self.pods().div_ceil(PODS_PER_SET)
    }

    /// Fills the rig, and returns when kube-apiserver shows everything. The nodes send heartbeats until the task is aborted.
    pub(crate) async fn fill(self, api: &Api, rig: &Rig, scratch: &Scratch) -> tokio::task::JoinHandle<()> {
        let since = Instant::now();
        let progress = |what: &str| eprintln!("  {:.0} s: {what}", since.elapsed().as_secs_f64());
        let templates = Templates::make(api, rig, scratch).await;
        progress("one of each made");
        let etcd = Etcd::at(&rig.file("etcd.sock"));
        for number in 0..self.sets().div_ceil(SETS_PER_NAMESPACE) {
            api.create_namespace(&namespace_name(number)).await;
        }
        etcd.fill((0..self.nodes).map(|at| templates.node(at, self.nodes)).collect()).await;
        let leases: Vec<Value> = (0..self.nodes).map(|at| templates.lease(at)).collect();
        etcd.fill((0..self.nodes).map(|at| renewed(at, &leases[at])).collect()).await;
        let heartbeats = tokio::spawn(heartbeats(etcd.clone(), leases));
        progress(&format!("{} nodes written", self.nodes));
        etcd.fill((0..self.sets()).map(|at| templates.set(at, self)).collect()).await;
        for first in (0..self.pods()).step_by(CHUNK) {
            let last = (first + CHUNK).min(self.pods());
            etcd.fill((first..last).map(|at| templates.pod(at, self)).collect()).await;
            progress(&format!("{last} pods of {} written", self.pods()));
        }
        for (path, wanted) in [("/api/v1/nodes", self.nodes), ("/api/v1/pods", self.pods())] {
            let shown = || async { api.count(path).await == wanted };
            until_within(SEEN_WITHIN, &format!("{wanted} objects at {path}"), shown).await;
            progress(&format!("kube-apiserver shows {wanted} objects at {path}"));
        }
        heartbeats
    }
}

// === impl Templates ===

impl Templates {
    /// Lets a simulated node run a pod, and takes both away again.
    async fn make(api: &Api, rig: &Rig, scratch: &Scratch) -> Self {
        let nodes = simulated_nodes(rig, 1, scratch);
        api.create_namespace(TEMPLATES).await;
        let sets = load::replica_sets(TEMPLATES);
        let set = api.send(Call::create(&sets, &load::replica_set(SET, PODS_PER_SET))).await;
        let uid = text(&set["metadata"]["uid"]);
        let pods = load::pods(TEMPLATES);
        api.send(Call::create(&pods, &load::owned_pod(SET, &uid, 0))).await;
        let pod_path = format!("{pods}/{SET}-0");
        until("the template runs", || async {
            let pod = api.get(&pod_path).await;
            pod["status"]["containerStatuses"][0]["ready"] == true
        })
        .await;
        let status = load::ready_set_status(PODS_PER_SET);
        api.send(Call::patch(format!("{sets}/{SET}/status"), &status)).await;
        let node_path = "/api/v1/nodes/node-0";
        let lease_path = format!("/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases/node-0");
        let set_path = format!("{sets}/{SET}");
        let templates = Self {
            node: stored(api.get(node_path).await),
            lease: stored(api.get(&lease_path).await),
            set: stored(api.get(&set_path).await),
            pod: stored(api.get(&pod_path).await),
        };
        nodes.end().await;
        for path in [&pod_path, &set_path, node_path, &lease_path] {
            api.send(Call::delete_now(path.to_owned())).await;
        }
        templates
    }

    fn node(&self, at: usize, nodes: usize) -> Entry {
        let name = node_name(at);
        let mut node = self.node.clone();
        named(&mut node, &name, &uid("a000", at));
        let range = format!("{}/22", offset(RANGES, at * RANGE));
        let ttl = TTLS.iter().find(|(more_than, _)| nodes > *more_than).map_or("0", |(_, ttl)| ttl);
        node["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
        node["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"] = json!(ttl);
        node["spec"] = json!({"podCIDR": range, "podCIDRs": [range], "providerID": format!("steersman://{name}")});
        node["status"]["addresses"] = json!([
            {"type": "InternalIP", "address": offset(HOSTS, at)}, {"type": "Hostname", "address": name},
        ]);
        (format!("/minions/{name}"), node)
    }

    fn lease(&self, at: usize) -> Value {
        let name = node_name(at);
        let mut lease = self.lease.clone();
        named(&mut lease, &name, &uid("b000", at));
        lease["spec"]["holderIdentity"] = json!(name);
        if !lease["metadata"]["ownerReferences"].is_null() {
            let owner = &mut lease["metadata"]["ownerReferences"][0];
            owner["name"] = json!(name);
            owner["uid"] = json!(uid("a000", at));
        }
        lease
    }

    fn set(&self, at: usize, population: Population) -> Entry {
        let (namespace, name) = set_name(at);
        let replicas = PODS_PER_SET.min(population.pods() - at * PODS_PER_SET);
        let mut set = self.set.clone();
        named(&mut set, &name, &uid("8000", at));
        set["metadata"]["namespace"] = json!(namespace);
        set["spec"]["replicas"] = json!(replicas);
        set["spec"]["selector"]["matchLabels"]["app"] = json!(name);
        set["spec"]["template"]["metadata"]["labels"]["app"] = json!(name);
        set["status"] = load::ready_set_status(replicas)["status"].take();
        (format!("/replicasets/{namespace}/{name}"), set)
    }

    fn pod(&self, at: usize, population: Population) -> Entry {
        let set_number = at / PODS_PER_SET;
        let (namespace, set) = set_name(set_number);
        let name = format!("{set}-{}", at % PODS_PER_SET);
        let mut pod = self.pod.clone();
        named(&mut pod, &name, &uid("9000", at));
        pod["metadata"]["namespace"] = json!(namespace);
        pod["metadata"]["labels"]["app"] = json!(set);
        let owner = &mut pod["metadata"]["ownerReferences"][0];
        owner["name"] = json!(set);
        owner["uid"] = json!(uid("8000", set_number));
        // Neighbours of a set are on different nodes.
        let node = at % population.nodes;
        pod["spec"]["nodeName"] = json!(node_name(node));
        let host = offset(HOSTS, node);
        let address = offset(RANGES, node * RANGE + 2 + at / population.nodes);
        let status = &mut pod["status"];
        status["hostIP"] = json!(host);
        status["hostIPs"] = json!([{"ip": host}]);
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
        (format!("/pods/{namespace}/{name}"), pod)
    }
}

/// Renews every lease once in [`RENEW_EVERY`], in parts.
async fn heartbeats(etcd: Etcd, leases: Vec<Value>) {
    let mut ticks = tokio::time::interval(RENEW_EVERY / u32::try_from(PARTS).expect("few parts"));
    for part in (0..PARTS).cycle() {
        ticks.tick().await;
        for (at, lease) in leases.iter().enumerate().skip(part).step_by(PARTS) {
            etcd.put(&renewed(at, lease)).await;
        }
    }
}

fn renewed(at: usize, lease: &Value) -> Entry {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let now = MicroTime::from_unix_micros(i64::try_from(now.as_micros()).expect("a time of this age"));
    let mut lease = lease.clone();
    lease["spec"]["renewTime"] = json!(now);
    (format!("/leases/{LEASES}/{}", node_name(at)), lease)
}

/// As it is in etcd: without its version.
fn stored(mut object: Value) -> Value {
    object["metadata"].as_object_mut().expect("an object").remove("resourceVersion");
    object
}

fn named(object: &mut Value, name: &str, uid: &str) {
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!(uid);
}

fn uid(kind: &str, at: usize) -> String {
    format!("00000000-0000-4000-{kind}-{at:012x}")
}

fn node_name(at: usize) -> String {
    format!("node-{at}")
}

fn namespace_name(number: usize) -> String {
    format!("bench-large-{number}")
}

fn set_name(at: usize) -> (String, String) {
    (namespace_name(at / SETS_PER_NAMESPACE), format!("set-{at}"))
}

fn offset(first: Ipv4Addr, by: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(first.to_bits() + u32::try_from(by).expect("fewer addresses than there are"))
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
