//! Feature gates on the command line of the program, each off and on, on a real kube-apiserver.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster};

use crate::{ALONE, Binary};

const MANAGER: [&str; 4] =
    ["controller-manager", "--controllers=replicaset,deployment", "--leader-elect=false", "--secure-port=0"];

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
async fn terminating_replicas_are_told_or_not() -> Result<(), Failure> {
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
