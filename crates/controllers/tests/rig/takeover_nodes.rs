//! Nodes that are alive, requests for certificates and bootstrap tokens, for the take-over.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::{Failure, TestCluster};
use tokio::task::JoinHandle;

use crate::scenarios::bootstrap::{cluster_info, maps, signatures, token, tokens};
use crate::scenarios::certificates::{CLIENT, KUBELET, decide, named, request, requests, until_issued};

/// The heartbeats of nodes, as their kubelets send them, until this is dropped.
pub(crate) struct Heartbeats(JoinHandle<()>);

/// As kubelets do.
const EVERY: Duration = Duration::from_secs(10);
const LEASES: &str = "kube-node-lease";

/// Creates requests in every state and tokens that sign, and waits until they are dealt with.
pub(crate) async fn create(cluster: &TestCluster) -> Result<(), Failure> {
    maps(cluster).create(&PostParams::default(), &cluster_info()).await?;
    let soon = cluster.clock().now().plus_seconds(3).to_string();
    for (id, expires) in [("abcdef", None), ("later0", Some("2099-01-01T00:00:00Z")), ("soon00", Some(soon.as_str()))] {
        tokens(cluster).create(&PostParams::default(), &token(id, expires)).await?;
    }
    until_signed(cluster, &["abcdef", "later0"]).await?;

    for name in ["ann", "denied", "waits"] {
        ask(cluster, name, CLIENT, name, "devs", &["client auth"]).await?;
    }
    decide(cluster, &named(cluster, "denied"), "Denied").await?;
    decide(cluster, &named(cluster, "ann"), "Approved").await?;
    until_issued(cluster, &named(cluster, "ann")).await?;
    // The user of the test may have this one, and so nobody need approve it.
    let usages = ["client auth", "digital signature", "key encipherment"];
    ask(cluster, "node", KUBELET, "system:node:new", "system:nodes", &usages).await?;
    until_issued(cluster, &named(cluster, "node")).await.map(drop)
}

/// What happens while we are in charge: another request, another token, another content to sign.
pub(crate) async fn change(cluster: &TestCluster) -> Result<(), Failure> {
    tokens(cluster).create(&PostParams::default(), &token("ghijkl", None)).await?;
    tokens(cluster).delete("bootstrap-token-later0", &DeleteParams::default()).await?;
    let content = Patch::Merge(json!({ "data": { "kubeconfig": "another" } }));
    maps(cluster).patch("cluster-info", &PatchParams::default(), &content).await?;
    until_signed(cluster, &["abcdef", "ghijkl"]).await?;
    ask(cluster, "bob", CLIENT, "bob", "devs", &["client auth"]).await?;
    decide(cluster, &named(cluster, "bob"), "Approved").await?;
    until_issued(cluster, &named(cluster, "bob")).await.map(drop)
}

async fn ask(
    cluster: &TestCluster,
    name: &str,
    signer: &str,
    user: &str,
    group: &str,
    usages: &[&str],
) -> Result<(), Failure> {
    let request = request(&named(cluster, name), signer, user, group, usages);
    requests(cluster).create(&PostParams::default(), &request).await?;
    Ok(())
}

/// Waits until these tokens have signed, and there are no others.
async fn until_signed(cluster: &TestCluster, ids: &[&str]) -> Result<(), Failure> {
    let look = async || {
        let all = tokens(cluster).list(&ListParams::default()).await?.items;
        let names = all.into_iter().filter_map(|secret| secret.metadata.name);
        let left = names.filter_map(|name| Some(name.strip_prefix("bootstrap-token-")?.to_owned()));
        Ok((left.collect::<Vec<_>>(), signatures(cluster).await?.into_keys().collect::<Vec<_>>()))
    };
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    cluster.until_eq("tokens, and signatures", look, (ids.clone(), ids)).await
}

// === impl Heartbeats ===

impl Heartbeats {
    /// Starts the heartbeats of nodes, which may come later.
    pub(crate) fn start(cluster: &TestCluster, nodes: [String; 2]) -> Self {
        let leases: Api<Lease> = Api::namespaced(cluster.client(), LEASES);
        let clock = cluster.clock().clone();
        Self(tokio::spawn(async move {
            loop {
                for node in &nodes {
                    let lease = json!({
                        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": node },
                        "spec": { "holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": clock.now_micros() },
                    });
                    // One that is lost is followed by the next.
                    let kubelet = PatchParams::apply("kubelet").force();
                    let _ = leases.patch(node, &kubelet, &Patch::Apply(&lease)).await;
                }
                tokio::time::sleep(EVERY).await;
            }
        }))
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        self.0.abort();
    }
}
