//! Bootstrap tokens: they sign the cluster's information, and go when they expire.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    the_cluster_information_is_signed_by_every_token on cluster alone,
    a_token_is_deleted_when_it_expires on cluster alone,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::BOOTSTRAP_SIGNER, controllers::TOKEN_CLEANER])
}

/// As Python's `hmac` signs the header and the content `kubeconfig of a test`.
const SIGNATURE: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..dSZUcLFOF9jJf8HXiEqf3TopNTQqZ8qCJ_6ddrUoyWo";
const CONTENT: &str = "kubeconfig of a test";

pub(crate) fn maps(cluster: &TestCluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(), "kube-public")
}

pub(crate) fn tokens(cluster: &TestCluster) -> Api<Secret> {
    Api::namespaced(cluster.client(), "kube-system")
}

/// A token that signs, and expires then.
pub(crate) fn token(id: &str, expiration: Option<&str>) -> Secret {
    let mut data = json!({
        "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true",
    });
    if let Some(expiration) = expiration {
        data["expiration"] = expiration.into();
    }
    let more = json!({ "type": "bootstrap.kubernetes.io/token", "stringData": data });
    objects::secret(&format!("bootstrap-token-{id}")).in_namespace("kube-system").with(more)
}

pub(crate) fn cluster_info() -> ConfigMap {
    let data = json!({ "data": { "kubeconfig": CONTENT, "other": "stays" } });
    objects::config_map("cluster-info").in_namespace("kube-public").with(data)
}

/// The signatures, by the id of the token.
pub(crate) async fn signatures(cluster: &TestCluster) -> Result<BTreeMap<String, String>, Failure> {
    let data = maps(cluster).get("cluster-info").await?.data.unwrap_or_default();
    let all =
        data.into_iter().filter_map(|(key, value)| Some((key.strip_prefix("jws-kubeconfig-")?.to_owned(), value)));
    Ok(all.collect())
}

pub(crate) async fn the_cluster_information_is_signed_by_every_token(cluster: &TestCluster) -> Result<(), Failure> {
    tokens(cluster).create(&PostParams::default(), &token("abcdef", None)).await?;
    maps(cluster).create(&PostParams::default(), &cluster_info()).await?;
    let look = async || signatures(cluster).await;
    let want = BTreeMap::from([("abcdef".to_owned(), SIGNATURE.to_owned())]);
    cluster.until_eq("it is signed", look, want.clone()).await?;
    tokens(cluster).create(&PostParams::default(), &token("ghijkl", None)).await?;
    cluster.until_right("it is signed twice", look, |signatures| signatures.len() == 2).await?;
    let forged = Patch::Merge(json!({ "data": { "jws-kubeconfig-abcdef": "forged", "jws-kubeconfig-zzzzzz": "x" } }));
    maps(cluster).patch("cluster-info", &PatchParams::default(), &forged).await?;
    let is_right = |signatures: &BTreeMap<String, String>| {
        signatures.len() == 2 && signatures.get("abcdef").map(String::as_str) == Some(SIGNATURE)
    };
    cluster.until_right("forged signatures are replaced", look, is_right).await?;
    tokens(cluster).delete("bootstrap-token-ghijkl", &DeleteParams::default()).await?;
    cluster.until_eq("the signature of a deleted token is removed", look, want).await?;
    let changed = Patch::Merge(json!({ "data": { "kubeconfig": "another" } }));
    maps(cluster).patch("cluster-info", &PatchParams::default(), &changed).await?;
    let is_another = |signatures: &BTreeMap<String, String>| {
        signatures.get("abcdef").is_some_and(|signature| signature != SIGNATURE)
    };
    cluster.until_right("another content is signed anew", look, is_another).await?;
    let data = maps(cluster).get("cluster-info").await?.data.unwrap_or_default();
    expect_eq("the rest", &data.get("other").map(String::as_str), &Some("stays"))
}

pub(crate) async fn a_token_is_deleted_when_it_expires(cluster: &TestCluster) -> Result<(), Failure> {
    maps(cluster).create(&PostParams::default(), &cluster_info()).await?;
    let soon = cluster.clock().now().plus_seconds(4).to_string();
    tokens(cluster).create(&PostParams::default(), &token("soon00", Some(&soon))).await?;
    tokens(cluster).create(&PostParams::default(), &token("never0", None)).await?;
    tokens(cluster).create(&PostParams::default(), &token("later0", Some("2099-01-01T00:00:00Z"))).await?;
    let signed = async || Ok(signatures(cluster).await?.into_keys().collect::<Vec<_>>());
    let all = ["later0", "never0", "soon00"].map(str::to_owned).to_vec();
    cluster.until_eq("all sign", signed, all.clone()).await?;
    let left = async || {
        let all = tokens(cluster).list(&kube::api::ListParams::default()).await?.items.into_iter();
        let names = all.filter_map(|secret| Some(secret.metadata.name?.strip_prefix("bootstrap-token-")?.to_owned()));
        Ok(names.collect::<Vec<_>>())
    };
    cluster.until_eq("it is deleted", left, all[..2].to_vec()).await?;
    cluster.until_eq("its signature is removed", signed, all[..2].to_vec()).await
}
