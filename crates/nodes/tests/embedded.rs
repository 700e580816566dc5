//! The scenarios on the embedded server, under the paused clock.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_nodes::{Nodes, NodesOptions};
use steersman_runtime::{Manager, ManagerOptions};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};
use tokio_util::sync::CancellationToken;

#[path = "scenarios/lives.rs"]
mod lives;

use lives::{address_of, condition, node_of, pod, running, until, until_gone, until_ready};

const MINUTE: Duration = Duration::from_secs(60);

macro_rules! embedded {
    ($($scenario:ident),* $(,)?) => {$(
        #[tokio::test(start_paused = true)]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = TestCluster::builder().nodes(2).start().await?;
            lives::$scenario(&cluster).await?;
            cluster.settle().await?;
            cluster.expect_quiet(10 * MINUTE).await?;
            cluster.stop().await
        }
    )*};
}

lives::scenarios!(embedded);

/// Counts the writes of the cluster's controllers, except events.
fn writes(cluster: &TestCluster) -> Vec<String> {
    let writes = cluster.last_writes();
    let reported = writes.iter().filter(|write| write.resource != "events");
    reported.map(|write| format!("{:?} {}", write.verb, write.resource)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_life_of_a_pod_is_three_writes() -> Result<(), Failure> {
    let cluster = TestCluster::builder().nodes(1).start().await?;
    cluster.settle().await?;
    let before = writes(&cluster).len();
    cluster.create(pod("web", &json!({}))).await?;
    until_ready(&cluster, "web").await?;
    cluster.delete::<Pod>("web").await?;
    until_gone(&cluster, "web").await?;
    cluster.settle().await?;
    assert_eq!(writes(&cluster)[before..], ["Create pods/binding", "Patch pods/status", "Delete pods"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_thousand_pods_on_twenty_nodes_have_addresses_of_their_own() -> Result<(), Failure> {
    let cluster = TestCluster::builder().nodes(20).start().await?;
    for number in 0..1000 {
        cluster.create(pod(&format!("web-{number}"), &json!({}))).await?;
    }
    cluster.settle().await?;
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    assert!(pods.iter().all(|pod| condition(pod, "Ready").0 == "True"));
    let addresses: BTreeSet<_> = pods.iter().map(address_of).collect();
    assert_eq!(addresses.len(), 1000);
    for node in cluster.nodes().names() {
        let count = pods.iter().filter(|pod| node_of(pod) == node.as_str()).count();
        assert_eq!(count, 50, "{node}");
    }
    cluster.expect_quiet(10 * MINUTE).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_renews_nothing_and_does_nothing_until_it_is_well_again() -> Result<(), Failure> {
    let cluster = TestCluster::builder().nodes(1).start().await?;
    let leases = Api::<Lease>::namespaced(cluster.client(), "kube-node-lease");
    let renewed = || async {
        let lease = leases.get("node-0").await?;
        Ok::<_, Failure>(lease.spec.and_then(|spec| spec.renew_time))
    };
    cluster.settle().await?;
    let first = renewed().await?;
    cluster.advance(MINUTE).await;
    let second = renewed().await?;
    assert!(second > first, "{second:?} {first:?}");

    cluster.nodes().stop_heartbeats("node-0")?;
    cluster.settle().await?;
    let silent = renewed().await?;
    cluster.create(pod("web", &json!({ "nodeName": "node-0" }))).await?;
    cluster.advance(10 * MINUTE).await;
    assert_eq!(renewed().await?, silent);
    assert_eq!(lives::phase(&cluster.api::<Pod>().get("web").await?), "Pending");

    cluster.nodes().resume("node-0")?;
    until_ready(&cluster, "web").await?;
    assert!(renewed().await? > silent);
    assert!(cluster.nodes().resume("node-7").unwrap_err().to_string().contains("there are node-0"));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_fault_makes_a_pod_unready() -> Result<(), Failure> {
    let cluster = TestCluster::builder().nodes(1).start().await?;
    cluster.create(pod("web", &json!({}))).await?;
    until_ready(&cluster, "web").await?;
    cluster.nodes().set_unready(cluster.namespace(), "web", true);
    let web = until(&cluster, "web", "unready", |pod| condition(pod, "Ready").0 == "False").await?;
    assert_eq!(condition(&web, "Ready").1, "containers with unready status: [main]");
    cluster.nodes().set_unready(cluster.namespace(), "web", false);
    until_ready(&cluster, "web").await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_backs_off_and_says_so() -> Result<(), Failure> {
    let cluster = TestCluster::builder().nodes(1).start().await?;
    cluster.create(running("bad", &["false"], "Always")).await?;
    cluster.advance(10 * MINUTE).await;
    let bad = cluster.api::<Pod>().get("bad").await?;
    let container = bad.status.unwrap_or_default().container_statuses.unwrap_or_default().remove(0);
    // At once, then after 10 s, 20 s, 40 s, 80 s, 160 s; the next would be five minutes later.
    assert_eq!(container.restart_count, 6);
    let waiting = container.state.and_then(|state| state.waiting).unwrap_or_default();
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
    let events = cluster.api::<Event>().list(&ListParams::default()).await?;
    let backs_off = |event: &&Event| event.reason.as_deref() == Some("BackOff");
    let reported = events.iter().find(backs_off).and_then(|event| event.message.clone()).unwrap_or_default();
    assert!(reported.starts_with("Back-off restarting failed container main in pod bad_"), "{reported}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_a_binding_binds_once() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(1)));
    faults.on(Verb::Create, "pods/binding").nth(1).lose_reply();
    let cluster = TestCluster::builder().nodes(3).faults(&faults).start().await?;
    cluster.create(pod("web", &json!({}))).await?;
    until_ready(&cluster, "web").await?;
    cluster.settle().await?;
    cluster.expect_quiet(10 * MINUTE).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn of_those_who_wait_the_most_important_gets_the_room() -> Result<(), Failure> {
    let options = NodesOptions::count(1).capacity([("cpu".into(), "4".into()), ("pods".into(), "1".into())].into());
    let cluster = TestCluster::builder().nodes_with(options).start().await?;
    let with_priority = |name: &str, class: &str| pod(name, &json!({ "priorityClassName": class }));
    cluster.create(pod("first", &json!({}))).await?;
    until_ready(&cluster, "first").await?;
    cluster.create(pod("usual", &json!({}))).await?;
    cluster.create(with_priority("important", "system-cluster-critical")).await?;
    until(&cluster, "important", "refused", |pod| condition(pod, "PodScheduled").0 == "False").await?;
    cluster.delete::<Pod>("first").await?;
    until_ready(&cluster, "important").await?;
    cluster.settle().await?;
    let usual = cluster.api::<Pod>().get("usual").await?;
    assert_eq!(node_of(&usual), "");
    assert!(condition(&usual, "PodScheduled").1.contains("1 Too many pods"), "{}", condition(&usual, "PodScheduled").1);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn pods_that_were_there_before_the_nodes_are_scheduled() -> Result<(), Failure> {
    let options = NodesOptions::count(2).zones(["a", "b"]);
    let faults = Faults::default();
    faults.on(Verb::Create, "nodes").next(2).refuse(http::StatusCode::SERVICE_UNAVAILABLE);
    let cluster = TestCluster::builder().nodes_with(options).faults(&faults).start().await?;
    let zone = json!({ "nodeSelector": { "topology.kubernetes.io/zone": "b" } });
    cluster.create(pod("web", &zone)).await?;
    let web = until_ready(&cluster, "web").await?;
    assert_eq!(node_of(&web), "node-1");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_where_the_last_one_stopped() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let begin = || {
        let options = ManagerOptions::default().clock(cluster.clock().clone());
        let manager = Manager::new(cluster.client(), options)?;
        Nodes::build(&manager.context(), NodesOptions::count(2))?;
        let stop = CancellationToken::new();
        let ended = stop.clone();
        let running = tokio::spawn(async move { manager.run(ended).await });
        Ok::<_, Failure>((stop, running))
    };
    let (stop, running_manager) = begin()?;
    for number in 0..4 {
        cluster.create(running(&format!("job-{number}"), &["sleep", "100"], "Never")).await?;
    }
    let before = until_ready(&cluster, "job-3").await?;
    cluster.advance(MINUTE).await;
    stop.cancel();
    drop(running_manager.await);
    cluster.create(pod("late", &json!({}))).await?;
    cluster.advance(MINUTE).await;
    assert_eq!(lives::phase(&cluster.api::<Pod>().get("job-3").await?), "Running", "nobody looked");

    let (stop, running_manager) = begin()?;
    let through = until(&cluster, "job-3", "through", |pod| lives::phase(pod) == "Succeeded").await?;
    assert_eq!(address_of(&through), address_of(&before));
    let late = until_ready(&cluster, "late").await?;
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    let same = |pod: &&Pod| lives::phase(pod) == "Running" && address_of(pod) == address_of(&late);
    assert_eq!(pods.iter().filter(same).count(), 1);
    stop.cancel();
    drop(running_manager.await);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_without_a_range_wait_for_one() -> Result<(), Failure> {
    let options = NodesOptions::count(1).pod_ranges(false);
    let cluster = TestCluster::builder().nodes_with(options).start().await?;
    let mut kept = pod("kept", &json!({}));
    kept.metadata.finalizers = Some(vec!["example.dev/keep".into()]);
    cluster.create(kept).await?;
    cluster.create(pod("web", &json!({}))).await?;
    until(&cluster, "web", "scheduled", |pod| condition(pod, "PodScheduled").0 == "True").await?;
    cluster.advance(MINUTE).await;
    assert_eq!(lives::phase(&cluster.api::<Pod>().get("web").await?), "Pending");

    cluster.delete::<Pod>("kept").await?;
    let ended = until(&cluster, "kept", "over", |pod| lives::phase(pod) == "Failed").await?;
    assert_eq!(address_of(&ended), "", "it needs none any more");

    let range = "10.9.8.0/24";
    let patch = Patch::Merge(json!({ "spec": { "podCIDR": range, "podCIDRs": [range] } }));
    Api::<Node>::all(cluster.client()).patch("node-0", &PatchParams::default(), &patch).await?;
    let web = until_ready(&cluster, "web").await?;
    assert!(address_of(&web).starts_with("10.9.8."), "{}", address_of(&web));
    cluster.stop().await
}

/// Requests a path of the metrics APIs.
async fn raw(cluster: &TestCluster, path: &str) -> Result<serde_json::Value, Failure> {
    let request = http::Request::get(path).body(Vec::new())?;
    Ok(cluster.client().request(request).await?)
}

#[tokio::test(start_paused = true)]
async fn the_server_serves_the_metrics_of_pods_and_nodes() -> Result<(), Failure> {
    let cluster = TestCluster::builder().nodes(2).metrics().start().await?;
    let mut web = pod("web", &json!({}));
    web.metadata.annotations = Some([("nodes.steersman.dev/cpu-usage".to_owned(), "250m".to_owned())].into());
    cluster.create(web).await?;
    until_ready(&cluster, "web").await?;
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods", cluster.namespace());
    let pods = raw(&cluster, &path).await?;
    assert_eq!(pods["items"][0]["containers"][0]["usage"]["cpu"], "250m", "{pods}");
    let nodes = raw(&cluster, "/apis/metrics.k8s.io/v1beta1/nodes").await?;
    assert_eq!(nodes["items"].as_array().map(Vec::len), Some(2), "{nodes}");

    let groups = cluster.client().list_api_groups().await?.groups;
    let group = groups.iter().find(|group| group.name == "custom.metrics.k8s.io").expect("it is listed");
    assert_eq!(group.preferred_version.as_ref().map(|version| version.version.as_str()), Some("v1beta2"));
    let service = raw(&cluster, "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io").await?;
    assert_eq!(service["status"]["conditions"][0]["status"], "True", "{service}");
    let missing = raw(&cluster, &format!("{path}/none")).await.expect_err("there is no such pod");
    let missing = format!("{missing:?}");
    assert!(missing.contains("podmetrics.metrics.k8s.io") && missing.contains("not found"), "{missing}");
    let written = http::Request::delete(&path).body(Vec::new())?;
    let refused = cluster.client().request::<serde_json::Value>(written).await.expect_err("it is read-only");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 405), "{refused}");
    cluster.stop().await
}
