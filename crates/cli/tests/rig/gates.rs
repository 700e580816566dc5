//! Feature gates on the command line of the program, each off and on, on a real kube-apiserver.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::rig::Setup;
use steersman_testing::{Failure, TestCluster, expect, expect_eq};

use crate::everything::{names, start, start_manager, until_answered};
use crate::{ALONE, Binary};

const MANAGER: [&str; 4] =
    ["controller-manager", "--controllers=replicaset,deployment", "--leader-elect=false", "--secure-port=0"];

/// What gates do: the table from which `docs/feature-gates.md` is written.
const EFFECTS: &str = include_str!("../../data/gate-effects.tsv");

/// Gates that are on by default, and cannot be without some of those that are off.
const DEPENDENT: [&str; 4] = [
    "ClusterTrustBundleProjection",
    "DRADeviceTaintRules",
    "NodeControllerLeaseCircuitBreaker",
    "UnknownVersionInteroperabilityProxy",
];

/// The gates that decide whether a controller runs, each off; `ours_runs_all_49_with_the_same_flags` has them on.
#[tokio::test]
async fn without_its_gate_a_controller_does_not_run_and_the_others_do() -> Result<(), Failure> {
    let mut decided: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut without_effect = BTreeSet::new();
    for line in EFFECTS.lines().skip(1) {
        match line.split('\t').collect::<Vec<_>>()[..] {
            [gate, controllers, "decides", _] => decided.entry(controllers).or_default().push(gate),
            [gate, _, "none", _] => drop(without_effect.insert(gate)),
            _ => {}
        }
    }
    expect(decided.len() >= 7 && without_effect.len() >= 10, "the table has both sorts", &(&decided, &without_effect))?;
    let rig = start("gates-off", Setup::ALL_CONTROLLERS).await?;
    let mut flags = rig.manager_flags();
    flags.retain(|flag| !flag.starts_with("--feature-gates="));
    let off = decided.values().flatten().chain(&without_effect).chain(&DEPENDENT).map(|gate| format!("{gate}=false"));
    flags.push(format!("--feature-gates={}", off.collect::<Vec<_>>().join(",")));
    let program = Path::new(env!("CARGO_BIN_EXE_steersman"));
    let (process, port) = start_manager(&rig, "ours", program, &["controller-manager"], flags).await?;
    until_answered(&process, &port, "/readyz").await?;
    let page: Value = serde_json::from_str(&until_answered(&process, &port, "/debug/controllers").await?)?;
    let is_enabled = |entry: &&Value| entry["state"] == "enabled";
    let enabled: BTreeSet<_> = page["controllers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(is_enabled)
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    let want: BTreeSet<_> = names().into_iter().filter(|name| !decided.contains_key(name)).collect();
    expect_eq("the controllers that run", &enabled, &want)?;
    let said = process.said()?;
    for gate in without_effect {
        let count = said.matches(&format!("feature gate {gate} has no effect here")).count();
        expect_eq(&format!("lines about {gate}"), &count, &1)?;
    }
    Ok(())
}

/// A cost counts, or the time for which a pod is ready.
#[tokio::test]
async fn pod_deletion_cost_decides_which_pod_goes() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    for (gate, want) in [("PodDeletionCost=true", 1), ("PodDeletionCost=false", 0)] {
        let cluster = TestCluster::builder().start_on_rig().await?;
        let flag = format!("--feature-gates={gate}");
        let binary = Binary::start(&[&MANAGER[..], &[&flag]].concat())?;
        let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
        let pods = cluster.pods_of(&set).until_count(2).await?;
        let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
        let cost = json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": "-5" } } });
        cluster.api::<Pod>().patch(&name(&pods[0]), &PatchParams::default(), &Patch::Merge(cost)).await?;
        for (pod, since) in pods.iter().zip(["2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"]) {
            let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": since });
            let status = json!({ "status": { "phase": "Running", "conditions": [ready] } });
            let patch = Patch::Strategic(&status);
            cluster.api::<Pod>().patch_status(&name(pod), &PatchParams::default(), &patch).await?;
        }
        let status = async || Ok(cluster.api::<ReplicaSet>().get("web").await?.status.unwrap_or_default());
        cluster.until_right("both are ready", status, |status| status.ready_replicas == Some(2)).await?;
        let scale = json!({ "spec": { "replicas": 1 } });
        cluster.api::<ReplicaSet>().patch("web", &PatchParams::default(), &Patch::Merge(scale)).await?;
        let left = name(&cluster.pods_of(&set).until_count(1).await?[0]);
        assert_eq!(left, name(&pods[want]), "{gate}");
        assert!(binary.terminate().await?);
        cluster.stop().await?;
    }
    Ok(())
}

/// Pods that terminate are counted in the status of both kinds, or in none.
#[tokio::test]
async fn terminating_replicas_are_reported_or_not() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    for (on, want) in [("true", Some(0)), ("false", None)] {
        let cluster = TestCluster::builder().start_on_rig().await?;
        let flag = format!("--feature-gates=DeploymentReplicaSetTerminatingReplicas={on}");
        let binary = Binary::start(&[&MANAGER[..], &[&flag]].concat())?;
        let web: Deployment = serde_json::from_value(json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
                },
            },
        }))?;
        cluster.create(web).await?;
        let seen = async || {
            let sets = cluster.api::<ReplicaSet>().list(&ListParams::default()).await?;
            let set = sets.items.into_iter().next().and_then(|set| set.status).unwrap_or_default();
            let web = cluster.api::<Deployment>().get("web").await?.status.unwrap_or_default();
            Ok((set.replicas, set.terminating_replicas, web.replicas, web.terminating_replicas))
        };
        let what = format!("with the gate {on}, both say how many terminate, or nothing");
        cluster.until_eq(&what, seen, (1, want, Some(1), want)).await?;
        assert!(binary.terminate().await?);
        cluster.stop().await?;
    }
    Ok(())
}
