//! The annotation of nodes.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster};

use crate::scenarios::support::controllers;

scenarios! {
    a_node_says_how_long_objects_may_be_cached_and_says_it_again on cluster,
}

const TTL: &str = "node.alpha.kubernetes.io/ttl";

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::TTL])
}

/// A new node gets the annotation, and gets it back.
pub(crate) async fn a_node_says_how_long_objects_may_be_cached_and_says_it_again(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let name = format!("{}-node", cluster.namespace());
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = objects::node(&name).annotation("example.com/mine", "stays");
    nodes.create(&PostParams::default(), &node).await?;
    let says = async || {
        let annotations = nodes.get(&name).await?.metadata.annotations.unwrap_or_default();
        Ok((annotations.get(TTL).cloned(), annotations.get("example.com/mine").cloned()))
    };
    let want = || (Some("0".to_owned()), Some("stays".to_owned()));
    cluster.until_eq("the node says it", says, want()).await?;
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { TTL: "soon" } } }));
    nodes.patch(&name, &PatchParams::default(), &patch).await?;
    cluster.until_eq("the node says it again", says, want()).await?;
    nodes.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}
