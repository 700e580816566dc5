//! `steersman nodes` and `steersman controller-manager` on a real kube-apiserver: a Deployment becomes pods that run.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;
use steersman_testing::{Failure, TestCluster};

use crate::{ALONE, Binary};

#[tokio::test]
async fn on_a_real_api_server_a_deployment_becomes_pods_that_run() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let nodes = Binary::start(&["nodes", "--count=2", "--prefix=sim", "--zones=a,b"])?;
    let flags = ["--controllers=deployment,replicaset", "--leader-elect=false", "--secure-port=0"];
    let manager = Binary::start(&[&["controller-manager"][..], &flags].concat())?;

    let labels = json!({ "app": "web" });
    let web: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 4,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "example/web:1" }] }
            }
        }
    }))?;
    let deployments: Api<Deployment> = cluster.api();
    deployments.create(&PostParams::default(), &web).await?;
    cluster
        .until("the Deployment is available", || async {
            let status = deployments.get("web").await?.status.unwrap_or_default();
            Ok(if status.available_replicas == Some(4) { Ok(()) } else { Err(format!("{status:?}")) })
        })
        .await?;
    let pods = cluster.api::<Pod>().list(&ListParams::default()).await?;
    let on = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    assert!(
        pods.items.iter().all(|pod| on(pod).starts_with("sim-")),
        "{:?}",
        pods.items.iter().map(on).collect::<Vec<_>>()
    );

    deployments.delete("web", &DeleteParams::default()).await?;
    assert!(manager.terminate().await?, "SIGTERM ends the manager with success");
    assert!(nodes.terminate().await?, "SIGTERM ends the nodes with success");
    let nodes: Api<Node> = Api::all(cluster.client());
    for node in ["sim-0", "sim-1"] {
        nodes.delete(node, &DeleteParams::default()).await?;
    }
    cluster.stop().await
}
