//! Nodes that are lost, one, many or all, under faults: rates, timers, clocks, crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use prometheus::Registry;
use serde_json::json;
use steersman_base::MicroTime;
use steersman_controllers::node_lifecycle::Options;
use steersman_runtime::__internal::health::Ask;
use steersman_runtime::health::Probe;
use steersman_runtime::{Build, Manager};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Builder, Failure, Fault, Faults, NodesOptions, TestCluster, Verb, expect, expect_eq};

use crate::scenarios::node_ipam;
use crate::scenarios::node_lifecycle::{condition, keys, moving_set, node_says, ready_on, report};
use crate::scenarios::node_outages::Evictions;
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};
use crate::scenarios::taint_eviction::{self, create_node, maintenance, on, taint, tolerating};
use crate::signing::readiness;

const BOTH: &[Controller] = &[controllers::NODE_LIFECYCLE, controllers::TAINT_EVICTION];
const MINUTE: Duration = Duration::from_secs(60);
const ZONE: &str = "topology.kubernetes.io/zone";

/// No pod that tolerates the loss of its node for ever is gone, or going.
async fn expect_tolerating_pods(cluster: &TestCluster, want: usize) -> Result<(), Failure> {
    let pods = cluster.api::<Pod>().list(&ListParams::default().labels("tolerates=forever")).await?.items;
    let stays = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
    expect_eq("pods that tolerate", &stays, &want)
}

/// Nodes that have reported once, in a zone, and never will again.
async fn dead_nodes(cluster: &TestCluster, zone: &str, count: usize) -> Result<Vec<String>, Failure> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let mut names = Vec::new();
    for number in 0..count {
        let name = format!("{zone}-{number:03}");
        nodes.create(&PostParams::default(), &objects::node(&name).label(ZONE, zone)).await?;
        report(&nodes, &name, &[("Ready", "True")]).await?;
        names.push(name);
    }
    Ok(names)
}

/// A cluster with one node that is well, in a zone of its own.
fn with_one_well(controllers: &[Controller]) -> Builder {
    let nodes = NodesOptions::count(1).zones(["well"]);
    TestCluster::builder().controllers(controllers).nodes_with(nodes)
}

#[tokio::test(start_paused = true)]
async fn a_zone_of_500_dead_nodes_is_tainted_at_the_configured_rate() -> Result<(), Failure> {
    const RATE: f64 = 0.5;
    const EVERY: Duration = Duration::from_secs(2);
    let options = Options::default().eviction_rate(RATE);
    let cluster = with_one_well(&[controllers::NODE_LIFECYCLE]).options(options).start().await?;
    dead_nodes(&cluster, "dead", 500).await?;
    let evictions = Evictions::of(&cluster).await?;
    cluster.advance(2 * MINUTE + 500 * EVERY).await;
    let seen = evictions.all();
    assert_eq!(seen.len(), 500);
    let first = seen[0].0;
    for (number, (at, name)) in seen.iter().enumerate() {
        let want = EVERY * u32::try_from(number).unwrap();
        let off = at.since(first).abs_diff(want);
        assert!(off <= Duration::from_millis(100), "{name}, number {number}, is {off:?} off");
    }
    evictions.expect_apart(EVERY)?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn pods_of_500_nodes_that_are_lost_at_once_leave_in_turn_and_those_that_tolerate_stay() -> Result<(), Failure> {
    const EVERY: Duration = Duration::from_secs(10);
    let cluster = with_one_well(BOTH).start().await?;
    for (number, node) in dead_nodes(&cluster, "dead", 500).await?.iter().enumerate().step_by(10) {
        let tolerations = json!([{ "operator": "Exists" }]);
        let stays = on(node, &format!("stays-{number}"), &tolerations).label("tolerates", "forever");
        cluster.create(stays).await?;
        cluster.create(on(node, &format!("leaves-{number:03}"), &json!([])).label("tolerates", "default")).await?;
    }
    let evictions = Evictions::of(&cluster).await?;
    // The numbers of the nodes whose pods are still there.
    let there = async || {
        let pods = cluster.api::<Pod>().list(&ListParams::default().labels("tolerates=default")).await?.items;
        let names = pods.into_iter().filter_map(|pod| pod.metadata.name);
        Ok::<BTreeSet<String>, Failure>(names.map(|name| name.replace("leaves-", "dead-")).collect())
    };
    // All are unknown within a minute; their pods are not ready, and none has left.
    cluster.advance(Duration::from_secs(68)).await;
    let nodes = Api::<Node>::all(cluster.client()).list(&ListParams::default()).await?.items;
    let unknown = nodes.iter().filter(|node| json!(node.status)["conditions"][0]["status"] == "Unknown");
    expect_eq("unknown nodes", &unknown.count(), &500)?;
    expect(evictions.count() <= 2, "few are tainted yet", &evictions.all())?;
    // The default toleration is five minutes.
    cluster.advance(4 * MINUTE).await;
    expect_eq("pods that are there", &there().await?.len(), &50)?;
    cluster.advance(10 * MINUTE).await;
    expect((83..=91).contains(&evictions.count()), "one in ten seconds", &evictions.count())?;
    let now = cluster.clock().now_micros();
    let there = there().await?;
    let tainted: BTreeMap<String, Duration> =
        evictions.all().into_iter().map(|(at, name)| (name, now.since(at))).collect();
    for number in (0..500).step_by(10) {
        let node = format!("dead-{number:03}");
        let since = tainted.get(&node).copied().unwrap_or_default();
        // To the second: that is how exact the times of taints are.
        if since.abs_diff(5 * MINUTE) > Duration::from_secs(1) {
            expect_eq(&node, &there.contains(&node), &(since < 5 * MINUTE))?;
        }
    }
    evictions.expect_apart(EVERY)?;
    expect_tolerating_pods(&cluster, 50).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn nothing_is_evicted_while_every_zone_is_down_and_little_afterwards() -> Result<(), Failure> {
    let nodes = NodesOptions::count(10).zones(["a", "b"]);
    let cluster = TestCluster::builder().controllers(BOTH).nodes_with(nodes).start().await?;
    let names = cluster.nodes().names();
    cluster.create(moving_pod("pod", &names[0])).await?;
    cluster.settle().await?;
    let evictions = Evictions::of(&cluster).await?;
    // One is lost, and tainted; then all are.
    cluster.nodes().stop_heartbeats(&names[1])?;
    cluster.advance(2 * MINUTE).await;
    expect_eq("one is tainted", &evictions.count(), &1)?;
    for name in &names {
        cluster.nodes().stop_heartbeats(name)?;
    }
    cluster.advance(30 * MINUTE).await;
    let all = async || {
        let mut says = BTreeSet::new();
        for name in &names {
            says.insert(node_says(&cluster, name).await?);
        }
        Ok::<_, Failure>(says)
    };
    // The nodes fell silent within fifteen seconds: until all had, each zone may have had two turns.
    let unknown = ("Unknown".to_owned(), "NodeStatusUnknown".to_owned(), keys(&["NoSchedule"]));
    expect_eq("all are unknown, and none evicts", &all().await?, &[unknown].into())?;
    expect(evictions.count() <= 5, "hardly any was tainted", &evictions.all())?;
    cluster.api::<Pod>().get("pod").await?;
    // One node of each zone is back: the zones are disrupted and small, so nothing is evicted.
    let before = evictions.count();
    cluster.nodes().resume(&names[2])?;
    cluster.nodes().resume(&names[3])?;
    cluster.advance(30 * MINUTE).await;
    expect_eq("evictions", &evictions.count(), &before)?;
    // All are back.
    for name in &names {
        cluster.nodes().resume(name)?;
    }
    cluster.advance(MINUTE).await;
    let well = ("True".to_owned(), "KubeletReady".to_owned(), BTreeSet::new());
    expect_eq("all are well", &all().await?, &[well].into())?;
    expect_eq("evictions", &evictions.count(), &before)?;
    cluster.api::<Pod>().get("pod").await?;
    cluster.stop().await
}

fn moving_pod(name: &str, node: &str) -> Pod {
    objects::pod(name).on_node(node)
}

#[tokio::test(start_paused = true)]
async fn nodes_that_flap_lose_no_pods_and_cost_no_more_evictions_than_the_rate() -> Result<(), Failure> {
    let nodes = NodesOptions::count(20).zones(["a"]);
    let cluster = TestCluster::builder().controllers(BOTH).nodes_with(nodes).start().await?;
    let names = cluster.nodes().names();
    for name in &names[..5] {
        cluster.create(moving_pod(&format!("pod-{name}"), name)).await?;
    }
    cluster.settle().await?;
    let evictions = Evictions::of(&cluster).await?;
    for _ in 0..10 {
        for name in &names[..5] {
            cluster.nodes().stop_heartbeats(name)?;
        }
        cluster.advance(80 * Duration::from_secs(1)).await;
        for name in &names[..5] {
            cluster.nodes().resume(name)?;
        }
        cluster.advance(Duration::from_secs(20)).await;
    }
    evictions.expect_apart(Duration::from_secs(10))?;
    for name in &names[..5] {
        let pod = cluster.api::<Pod>().get(&format!("pod-{name}")).await?;
        expect(pod.metadata.deletion_timestamp.is_none(), "it tolerates a node that is soon back", &pod.metadata)?;
        expect_eq("readiness", &condition(&pod, "Ready").0, &"True".to_owned())?;
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_and_starts_every_second_is_left_alone() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(BOTH).nodes(3).start().await?;
    let name = cluster.nodes().names()[0].clone();
    let evictions = Evictions::of(&cluster).await?;
    for _ in 0..150 {
        cluster.nodes().stop_heartbeats(&name)?;
        cluster.advance(Duration::from_secs(1)).await;
        cluster.nodes().resume(&name)?;
        cluster.advance(Duration::from_secs(1)).await;
    }
    expect_eq("evictions", &evictions.count(), &0)?;
    expect_eq("the node is ready", &node_says(&cluster, &name).await?.0, &"True".to_owned())?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn clocks_of_nodes_that_are_an_hour_off_or_are_set_back_lose_no_node() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(BOTH).start().await?;
    let nodes: Api<Node> = Api::all(cluster.client());
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    let hour = 3600;
    let skews: BTreeMap<&str, i64> = [("ahead", hour), ("behind", -hour), ("exact", 0)].into();
    for name in skews.keys() {
        nodes.create(&PostParams::default(), &objects::node(name)).await?;
        report(&nodes, name, &[("Ready", "True")]).await?;
        let lease = json!({ "metadata": { "name": name, "namespace": "kube-node-lease" }, "spec": {} });
        leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await?;
    }
    let evictions = Evictions::of(&cluster).await?;
    for round in 0..60 {
        for (name, skew) in &skews {
            // Halfway, the clocks are set.
            let skew = if round < 30 { *skew } else { -*skew };
            let now = MicroTime::from(cluster.clock().now().plus_seconds(skew));
            let patch = Patch::Merge(json!({ "spec": { "renewTime": now } }));
            leases.patch(name, &PatchParams::default(), &patch).await?;
        }
        cluster.advance(Duration::from_secs(10)).await;
    }
    for name in skews.keys() {
        expect_eq(name, &node_says(&cluster, name).await?.0, &"True".to_owned())?;
    }
    expect_eq("evictions", &evictions.count(), &0)?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_renewals_only_the_cache_misses_is_not_called_unhealthy() -> Result<(), Failure> {
    // In the first minutes the watch of leases delivers nothing.
    let faults = Faults::default();
    faults.on(Verb::Watch, "leases").happens(Fault::Lag(5 * MINUTE));
    let cluster = TestCluster::builder().faults(&faults).controllers(BOTH).nodes(3).start().await?;
    let evictions = Evictions::of(&cluster).await?;
    cluster.advance(4 * MINUTE).await;
    for name in cluster.nodes().names() {
        expect_eq(&name, &node_says(&cluster, &name).await?.0, &"True".to_owned())?;
    }
    cluster.faults().heal();
    cluster.advance(10 * MINUTE).await;
    for name in cluster.nodes().names() {
        expect_eq(&name, &node_says(&cluster, &name).await?.0, &"True".to_owned())?;
    }
    expect_eq("evictions", &evictions.count(), &0)?;
    // A node that is really lost is found.
    let lost = cluster.nodes().names()[0].clone();
    cluster.nodes().stop_heartbeats(&lost)?;
    cluster.advance(10 * MINUTE).await;
    expect_eq("the lost node", &node_says(&cluster, &lost).await?.0, &"Unknown".to_owned())?;
    cluster.stop().await
}

/// A policy, or a webhook, that refuses the status of one pod does not let the others of a lost node look ready.
#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_marked_does_not_hold_back_the_others_of_a_lost_node() -> Result<(), Failure> {
    // The order of the pods of a node is not known.
    for refused in ["a", "b"] {
        let cluster = TestCluster::builder().controllers(&[controllers::NODE_LIFECYCLE]).nodes(3).start().await?;
        let lost = cluster.nodes().names()[0].clone();
        for name in ["a", "b"] {
            cluster.create(moving_pod(name, &lost)).await?;
        }
        let ready = async || {
            let mut ready = Vec::new();
            for name in ["a", "b"] {
                ready.push(condition(&cluster.api::<Pod>().get(name).await?, "Ready").0);
            }
            Ok::<_, Failure>(ready)
        };
        cluster.until_eq("both are ready", ready, vec!["True".to_owned(), "True".to_owned()]).await?;
        refuse_status_of(&cluster, refused).await?;
        cluster.nodes().stop_heartbeats(&lost)?;
        cluster.advance(5 * MINUTE).await;
        let want = if refused == "a" { ["True", "False"] } else { ["False", "True"] };
        expect_eq("they are ready", &ready().await?, &want.map(str::to_owned).to_vec())?;
        cluster.stop().await?;
    }
    Ok(())
}

/// Lets a policy refuse all changes of a pod's status.
async fn refuse_status_of(cluster: &TestCluster, pod: &str) -> Result<(), Failure> {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"],
    });
    let spec = json!({
        "matchConstraints": { "resourceRules": [rule] },
        "validations": [{ "expression": format!("object.metadata.name != '{pod}'") }],
    });
    let policy = json!({ "metadata": { "name": "refused" }, "spec": spec });
    let binding = json!({
        "metadata": { "name": "refused" }, "spec": { "policyName": "refused", "validationActions": ["Deny"] },
    });
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cluster.client());
    let to = PostParams::default();
    policies.create(&to, &serde_json::from_value(policy).map_err(Failure::new)?).await?;
    bindings.create(&to, &serde_json::from_value(binding).map_err(Failure::new)?).await?;
    Ok(())
}

/// A pod that found no node for longer than it tolerates a taint has all of its time when it comes to one.
#[tokio::test(start_paused = true)]
async fn a_toleration_is_counted_from_the_binding_of_a_pod() -> Result<(), Failure> {
    let cluster = taint_eviction::cluster().start().await?;
    let node = create_node(&cluster, "node").await?;
    taint(&cluster, &node, &json!([maintenance(None)])).await?;
    cluster.create(on("", "pod", &tolerating(Some(60)))).await?;
    cluster.advance(10 * MINUTE).await;
    let path = format!("/api/v1/namespaces/{}/pods/pod/binding", cluster.namespace());
    let binding = json!({ "metadata": { "name": "pod" }, "target": { "kind": "Node", "name": node } });
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(binding.to_string().into_bytes()).map_err(Failure::new)?;
    cluster.client().request_text(request).await?;
    cluster.advance(Duration::from_secs(57)).await;
    let pod = cluster.api::<Pod>().get("pod").await?;
    expect(pod.metadata.deletion_timestamp.is_none(), "it has a minute", &pod.metadata)?;
    cluster.advance(Duration::from_secs(5)).await;
    expect(cluster.api::<Pod>().get_opt("pod").await?.is_none(), "its minute is over", &cluster.clock().now())?;
    cluster.stop().await
}

/// Of a taint with a time, whose seconds are whole.
#[tokio::test(start_paused = true)]
async fn a_toleration_ends_within_a_tenth_of_a_second() -> Result<(), Failure> {
    const SECONDS: [i64; 4] = [2, 7, 60, 300];
    const TENTH: Duration = Duration::from_millis(100);
    let cluster = taint_eviction::cluster().start().await?;
    let node = create_node(&cluster, "node").await?;
    for seconds in SECONDS {
        cluster.create(on(&node, &format!("pod-{seconds}"), &tolerating(Some(seconds)))).await?;
    }
    let added = cluster.clock().now();
    taint(&cluster, &node, &json!([maintenance(Some(&added.to_string()))])).await?;
    let added = MicroTime::from(added).unix_micros();
    for seconds in SECONDS {
        let pod = async || cluster.api::<Pod>().get_opt(&format!("pod-{seconds}")).await;
        let left = added + seconds * 1_000_000 - cluster.clock().now_micros().unix_micros();
        cluster.advance(Duration::from_micros(u64::try_from(left).unwrap_or(0)) - TENTH).await;
        expect(pod().await?.is_some(), "its time is not over", &seconds)?;
        cluster.advance(2 * TENTH).await;
        expect(pod().await?.is_none(), "its time is over", &seconds)?;
    }
    cluster.stop().await
}

/// A node that is shut down says that it is not ready, and is then silent.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_and_then_unreachable_loses_its_pods_after_five_minutes_in_all() -> Result<(), Failure>
{
    let cluster = taint_eviction::cluster().start().await?;
    let node = create_node(&cluster, "node").await?;
    cluster.create(on(&node, "pod", &json!([]))).await?;
    cluster.advance(MINUTE).await;
    for (key, seconds) in [("not-ready", 200), ("unreachable", 50), ("not-ready", 47)] {
        let added = cluster.clock().now().to_string();
        let away = json!({ "key": format!("node.kubernetes.io/{key}"), "effect": "NoExecute", "timeAdded": added });
        taint(&cluster, &node, &json!([away])).await?;
        cluster.advance(Duration::from_secs(seconds)).await;
    }
    cluster.api::<Pod>().get("pod").await?;
    cluster.advance(Duration::from_secs(5)).await;
    expect(cluster.api::<Pod>().get_opt("pod").await?.is_none(), "300 seconds are over", &cluster.clock().now())?;
    cluster.stop().await
}

/// 108268: after a restart of the manager every toleration began anew, and pods left minutes too late.
#[tokio::test(start_paused = true)]
async fn issue_108268_a_restart_of_the_manager_does_not_start_a_toleration_anew() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let first = Beside::start(&cluster, cluster.client(), taint_eviction::CONTROLLERS)?;
    let node = create_node(&cluster, "node").await?;
    cluster.create(on(&node, "pod", &tolerating(Some(300)))).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let added = cluster.clock().now();
    taint(&cluster, &node, &json!([maintenance(Some(&added.to_string()))])).await?;
    cluster.advance(Duration::from_secs(200)).await;
    first.kill().await;
    cluster.advance(Duration::from_secs(50)).await;
    let second = Beside::start(&cluster, cluster.client(), taint_eviction::CONTROLLERS)?;
    cluster.advance(Duration::from_secs(48)).await;
    cluster.api::<Pod>().get("pod").await?;
    cluster.advance(Duration::from_secs(4)).await;
    expect(cluster.api::<Pod>().get_opt("pod").await?.is_none(), "300 seconds are over", &cluster.clock().now())?;
    second.kill().await;
    cluster.stop().await
}

/// 133650: a deletion that failed five times in a row was forgotten.
#[tokio::test(start_paused = true)]
async fn issue_133650_an_eviction_that_the_server_refuses_is_retried_until_the_pod_is_gone() -> Result<(), Failure> {
    let cluster = taint_eviction::cluster().start().await?;
    let node = create_node(&cluster, "node").await?;
    cluster.create(on(&node, "pod", &json!([]))).await?;
    cluster.faults().on(Verb::Delete, "pods").refuse(http::StatusCode::INTERNAL_SERVER_ERROR);
    taint(&cluster, &node, &json!([maintenance(None)])).await?;
    cluster.advance(10 * MINUTE).await;
    let pod = cluster.api::<Pod>().get("pod").await?;
    expect_eq("it says why", &condition(&pod, "DisruptionTarget").1, &"DeletionByTaintManager".to_owned())?;
    cluster.faults().heal();
    cluster.until_gone::<Pod>("pod").await?;
    taint_eviction::until_notes(&cluster, "pod", &["Marking for deletion Pod NAMESPACE/pod"]).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_about_a_lost_node_changes_nothing() -> Result<(), Failure> {
    const MOVING: &[Controller] = &[controllers::NODE_LIFECYCLE, controllers::TAINT_EVICTION, controllers::REPLICA_SET];
    let builder = || TestCluster::builder().nodes(3);
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        cluster.create(moving_set("web", 3)).await?;
        scene.rest().await?;
        let Some((lost, _)) = ready_on(cluster, "web").await?.pop() else {
            return Err(Failure::new("no pod is ready"));
        };
        cluster.nodes().stop_heartbeats(&lost)?;
        // Its silence is measured anew by another manager.
        cluster.advance(4 * MINUTE).await;
        scene.rest().await?;
        let says = node_says(cluster, &lost).await?;
        let want = ("Unknown".to_owned(), "NodeStatusUnknown".to_owned(), keys(&["NoExecute", "NoSchedule"]));
        expect_eq("the lost node", &says, &want)?;
        let ready = ready_on(cluster, "web").await?;
        expect(ready.len() == 3 && ready.iter().all(|(node, _)| *node != lost), "three pods elsewhere", &ready)?;
        cluster.nodes().resume(&lost)?;
        cluster.advance(MINUTE).await;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let mut seen = Vec::new();
        for name in cluster.nodes().names() {
            seen.push(format!("{name}: {:?}", node_says(cluster, &name).await?));
        }
        seen.push(format!("{} pods", cluster.api::<Pod>().list(&ListParams::default()).await?.items.len()));
        Ok(seen)
    };
    let crashes = crash_after_each_write(builder, MOVING, story, world).await?;
    assert!(crashes > 8, "the story takes {crashes} writes");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_ranges_gives_no_range_twice() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        for name in ["a", "b", "c"] {
            node_ipam::create(cluster, name, None).await?;
        }
        scene.rest().await?;
        node_ipam::delete(cluster, &["b"]).await?;
        node_ipam::create(cluster, "d", None).await
    };
    let world = async |cluster: &TestCluster| {
        let mut all = Vec::new();
        for name in ["a", "c", "d"] {
            all.extend(node_ipam::ranges(cluster, name).await?);
        }
        node_ipam::expect_apart(&all)?;
        Ok(vec![format!("{} ranges", all.len())])
    };
    let controllers = [controllers::NODE_IPAM_WITH_RANGES];
    let crashes = crash_after_each_write(TestCluster::builder, &controllers, story, world).await?;
    assert_eq!(crashes, 4, "one write for each node");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn ranges_that_are_too_small_or_make_no_sense_stop_their_controller_alone() -> Result<(), Failure> {
    for (range, services, problem) in [
        ("10.60.0.0/28", "", "the mask size 24 of nodes must be between 28"),
        ("10.60.0.0/16,10.60.1.0/24", "", "--cluster-cidr: 2 ranges are not one range, or one of each family"),
        ("10.60.0.0/22", "10.60.0.0", "--service-cluster-ip-range: \"10.60.0.0\" is not a range"),
    ] {
        let refused = move |manager: &Manager| {
            manager.set_options(node_ipam::options(range, services, 24));
            let Build::Disabled(why) = manager.build(&controllers::NODE_IPAM, None) else { panic!("{range} is built") };
            assert!(why.contains(problem), "{why}");
        };
        let cluster = TestCluster::builder().controllers(BOTH).nodes(1).with(refused).start().await?;
        cluster.settle().await?;
        expect_eq("the others work", &node_says(&cluster, "node-0").await?.0, &"True".to_owned())?;
        let said = readiness(&cluster);
        expect(said.contains(&format!("[-]node-ipam-flags failed: {problem}")), "it is not ready", &said)?;
        expect_eq("failed checks", &said.matches("[-]").count(), &1)?;
        let health = cluster.manager().health().report(Probe::Healthz, &Ask::default());
        expect(health.passed, "it is healthy: a restart does not help", &health)?;
        cluster.stop().await?;
    }
    Ok(())
}

/// The addresses of services are all that the cluster has: upstream's event says so, again and again.
#[tokio::test(start_paused = true)]
async fn where_services_have_all_addresses_no_node_gets_any() -> Result<(), Failure> {
    let options = node_ipam::options("10.60.0.0/22", "10.60.0.0/16", 24);
    let cluster = TestCluster::builder().controllers(node_ipam::CONTROLLERS).options(options).start().await?;
    node_ipam::create(&cluster, "a", None).await?;
    node_ipam::until_none_is_left(&cluster, "a").await?;
    cluster.advance(10 * MINUTE).await;
    expect_eq("its ranges", &node_ipam::ranges(&cluster, "a").await?, &Vec::<String>::new())?;
    cluster.stop().await
}

/// Upstream's metric of where the controller runs; of all managers of a cluster, one has to say so.
#[tokio::test(start_paused = true)]
async fn the_process_that_gives_ranges_says_so() -> Result<(), Failure> {
    let options = node_ipam::options("10.60.0.0/22", "", 24);
    let registry = Registry::new();
    let builder = TestCluster::builder().manager_options(move |options| options.metrics = Some(registry.clone()));
    let cluster = builder.controllers(node_ipam::CONTROLLERS).options(options).start().await?;
    node_ipam::create_with_ranges(&cluster, &["a"], 1).await?;
    let page = cluster.manager().exposition().text();
    let line = "running_managed_controllers{manager=\"kube-controller-manager\",name=\"nodeipam\"} 1\n";
    expect(page.contains(line), "it runs here", &page)?;
    cluster.stop().await
}
