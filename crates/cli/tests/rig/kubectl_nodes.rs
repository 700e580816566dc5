//! Real kubectl against `steersman up`: what people do to nodes.

use serde_json::Value;
use steersman_testing::Failure;

use crate::up::Up;

/// How many pods that run are on a node.
fn on_node(pods: &Value, node: &str) -> usize {
    let pods = pods["items"].as_array().into_iter().flatten();
    pods.filter(|pod| pod["spec"]["nodeName"] == node && pod["metadata"]["deletionTimestamp"].is_null()).count()
}

#[tokio::test]
async fn a_cordoned_node_gets_nothing_new_and_a_drained_one_is_empty() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web --replicas=6").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    let pods = up.json("get pods").await?;
    assert!(["node-0", "node-1", "node-2"].iter().all(|node| on_node(&pods, node) > 0), "they are spread");

    up.kubectl("cordon node-0").await?;
    assert!(up.kubectl("get node node-0 --no-headers").await?.contains("SchedulingDisabled"));
    let before = on_node(&pods, "node-0");
    up.kubectl("scale deployment web --replicas=12").await?;
    up.wait("deployment/web --for=jsonpath={.status.availableReplicas}=12").await?;
    assert_eq!(on_node(&up.json("get pods").await?, "node-0"), before);

    let said = up.kubectl("drain node-0 --timeout=40s").await?;
    assert!(said.contains("node/node-0 drained"), "{said}");
    up.wait("deployment/web --for=jsonpath={.status.availableReplicas}=12").await?;
    assert_eq!(on_node(&up.json("get pods").await?, "node-0"), 0);

    up.kubectl("uncordon node-0").await?;
    up.kubectl("scale deployment web --replicas=18").await?;
    up.wait("deployment/web --for=jsonpath={.status.availableReplicas}=18").await?;
    assert!(on_node(&up.json("get pods").await?, "node-0") > 0);
    up.down().await
}

#[tokio::test]
async fn a_disruption_budget_holds_a_drain_back() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web --replicas=3").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.kubectl("create pdb web --selector=app=web --min-available=3").await?;
    up.wait("pdb/web --for=jsonpath={.status.currentHealthy}=3").await?;
    let said = up.refused("drain node-0 --timeout=1s").await?;
    assert!(said.contains("would violate the pod's disruption budget"), "{said}");
    assert_eq!(on_node(&up.json("get pods").await?, "node-0"), 1);
    up.kubectl(r#"patch pdb web -p {"spec":{"minAvailable":2}}"#).await?;
    up.wait("pdb/web --for=jsonpath={.status.disruptionsAllowed}=1").await?;
    up.kubectl("drain node-0 --timeout=40s").await?;
    assert_eq!(on_node(&up.json("get pods").await?, "node-0"), 0);
    up.wait("deployment/web --for=jsonpath={.status.availableReplicas}=3").await?;
    up.down().await
}

/// One `kubectl drain`: the budget holds the second eviction back, kubectl tries again after five seconds, and by then another pod is
/// ready elsewhere.
#[tokio::test]
async fn a_drain_goes_on_when_the_budget_allows_it_again() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("create deployment web --image=example/web --replicas=6").await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.kubectl("create pdb web --selector=app=web --min-available=5").await?;
    up.wait("pdb/web --for=jsonpath={.status.disruptionsAllowed}=1").await?;
    assert_eq!(on_node(&up.json("get pods").await?, "node-0"), 2);
    let said = up.kubectl("drain node-0 --timeout=40s").await?;
    assert!(said.matches("evicting pod").count() > 2, "the second eviction was held back: {said}");
    assert_eq!(said.matches(" evicted\n").count(), 2, "{said}");
    up.wait("deployment/web --for=jsonpath={.status.availableReplicas}=6").await?;
    assert_eq!(on_node(&up.json("get pods").await?, "node-0"), 0);
    up.down().await
}

#[tokio::test]
async fn a_taint_keeps_pods_away_that_do_not_tolerate_it() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("taint nodes --all dedicated=batch:NoSchedule").await?;
    up.kubectl("create deployment web --image=example/web --replicas=2").await?;
    up.until("get events --field-selector=reason=FailedScheduling", "the reason", |events| {
        let said = events["items"].as_array()?.first()?["message"].as_str()?.to_owned();
        said.starts_with("0/3 nodes are available: 3 node(s) had untolerated taint").then_some(())
    })
    .await?;
    assert_eq!(up.json("get deployment web").await?["status"]["unavailableReplicas"], 2);
    let tolerated = r#"{"spec":{"template":{"spec":{"tolerations":[{"key":"dedicated","operator":"Exists"}]}}}}"#;
    up.kubectl(&format!("patch deployment web -p {tolerated}")).await?;
    up.kubectl("rollout status deployment/web --timeout=40s").await?;
    up.kubectl("run free --image=example/web").await?;
    up.kubectl("taint nodes node-1 dedicated-").await?;
    up.wait("pod/free --for=condition=Ready").await?;
    assert_eq!(up.json("get pod free").await?["spec"]["nodeName"], "node-1");
    up.down().await
}

#[tokio::test]
async fn describe_reads_as_on_a_real_cluster() -> Result<(), Failure> {
    let up = Up::whole().await?;
    up.kubectl("run web --image=example/web").await?;
    up.wait("pod/web --for=condition=Ready").await?;
    up.until("get events", "the last event", |events| {
        events["items"].as_array()?.iter().any(|event| event["reason"] == "Started").then_some(())
    })
    .await?;
    let said = up.kubectl("describe pod web").await?;
    let events: Vec<&str> = said.lines().skip_while(|line| !line.starts_with("Events:")).skip(3).collect();
    let shows = |number: usize, words: [&str; 3]| words.iter().all(|word| events[number].contains(word));
    assert!(shows(0, ["Scheduled", "default-scheduler", "Successfully assigned default/web to node-"]), "{said}");
    assert!(shows(1, ["Pulled", "kubelet", r#"image "example/web" already present on machine"#]), "{said}");
    assert!(shows(2, ["Created", "kubelet", "Container created"]), "{said}");
    assert!(shows(3, ["Started", "kubelet", "Container started"]), "{said}");
    up.down().await
}

/// Nobody here takes the finalizers of claims away, so there are none.
#[tokio::test]
async fn a_claim_can_be_deleted() -> Result<(), Failure> {
    let up = Up::start(&[]).await?;
    let claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: disk}, \
                 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}";
    up.kubectl_with("create -f -", claim).await?;
    up.kubectl("delete pvc disk --timeout=20s").await?;
    up.down().await
}

#[tokio::test]
async fn the_number_of_nodes_is_what_was_asked_for() -> Result<(), Failure> {
    let up = Up::start(&["--nodes=7"]).await?;
    up.until_count("nodes", 7).await?;
    up.wait("nodes --all --for=condition=Ready").await?;
    assert_eq!(up.json("get leases -n kube-node-lease").await?["items"].as_array().map(Vec::len), Some(7));
    up.down_by("INT").await?;

    let up = Up::start(&["--nodes=0"]).await?;
    up.kubectl("create deployment web --image=example/web --replicas=2").await?;
    up.until_count("pods", 2).await?;
    assert_eq!(up.names("nodes").await?, Vec::<String>::new());
    assert!(up.kubectl("get pods --no-headers").await?.lines().all(|line| line.contains("Pending")));
    up.down().await
}
