//! What every namespace has, and what the secrets of service accounts hold.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret, ServiceAccount};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    a_namespace_has_a_default_account_and_gets_it_back on accounts,
    a_namespace_has_the_root_certificate_and_gets_it_back on certificates,
    a_secret_gets_a_token_and_is_deleted_with_its_account on tokens,
    a_deleted_secret_is_taken_off_the_list_of_its_account on tokens,
}

/// The certificate that is published.
pub(crate) const ROOT_CA: &str = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
/// The ConfigMap that it is published in.
pub(crate) const MAP: &str = "kube-root-ca.crt";
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
/// The annotation that says which account of the name is meant.
pub(crate) const UID: &str = "kubernetes.io/service-account.uid";

pub(crate) fn accounts() -> Builder {
    TestCluster::builder().controllers(&[controllers::SERVICE_ACCOUNT])
}

pub(crate) fn certificates() -> Builder {
    TestCluster::builder().controllers(&[controllers::ROOT_CA_WITH_CERTIFICATE])
}

pub(crate) fn tokens() -> Builder {
    TestCluster::builder().controllers(&[controllers::SERVICE_ACCOUNT_TOKEN_WITH_KEY])
}

/// Every namespace has an account called `default`, whatever people do.
pub(crate) async fn a_namespace_has_a_default_account_and_gets_it_back(cluster: &TestCluster) -> Result<(), Failure> {
    let first = cluster.until_exists::<ServiceAccount>("default").await?;
    cluster.delete::<ServiceAccount>("default").await?;
    until_another::<ServiceAccount>(cluster, "default", first.metadata.uid).await
}

/// Every namespace has the root certificate, and nothing else in its place.
pub(crate) async fn a_namespace_has_the_root_certificate_and_gets_it_back(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let first = cluster.until_exists::<ConfigMap>(MAP).await?;
    until_published(cluster).await?;
    let patch = json!({
        "metadata": { "annotations": { "kubernetes.io/description": null, "mine": "stays" } },
        "data": { "ca.crt": "forged", "more": "of it" },
        "binaryData": { "raw": "AAEC" },
    });
    cluster.api::<ConfigMap>().patch(MAP, &PatchParams::default(), &Patch::Merge(patch)).await?;
    let mended = until_published(cluster).await?;
    let annotations = mended.metadata.annotations.unwrap_or_default();
    let raw = mended.binary_data.unwrap_or_default();
    expect_eq("somebody else's annotation", &annotations.get("mine").map(String::as_str), &Some("stays"))?;
    expect(raw.contains_key("raw"), "somebody else's data stays", &raw)?;
    cluster.delete::<ConfigMap>(MAP).await?;
    until_another::<ConfigMap>(cluster, MAP, first.metadata.uid).await
}

/// A secret that asks for a token gets one, and goes with its account.
pub(crate) async fn a_secret_gets_a_token_and_is_deleted_with_its_account(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let account = cluster.create(objects::service_account("robot")).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    let secret = until_filled(cluster, "robot-token").await?;
    let data = secret.data.unwrap_or_default();
    let text =
        |key: &str| data.get(key).map(|value| String::from_utf8_lossy(&value.0).into_owned()).unwrap_or_default();
    let uid = secret.metadata.annotations.unwrap_or_default().remove(UID);
    expect_eq("certificate", &text("ca.crt").as_str(), &ROOT_CA)?;
    expect_eq("namespace", &text("namespace").as_str(), &cluster.namespace())?;
    expect_eq("uid of the account", &uid, &account.metadata.uid)?;

    cluster.delete::<ServiceAccount>("robot").await?;
    cluster.until_gone::<Secret>("robot-token").await
}

/// An account does not list a secret that is gone, and keeps the others.
pub(crate) async fn a_deleted_secret_is_taken_off_the_list_of_its_account(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let listed = |name: &str| ObjectReference { name: Some(name.into()), ..ObjectReference::default() };
    let secrets = Some(vec![listed("mine"), listed("robot-token"), listed("other")]);
    cluster.create(ServiceAccount { secrets, ..objects::service_account("robot") }).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    until_filled(cluster, "robot-token").await?;
    cluster.delete::<Secret>("robot-token").await?;
    cluster
        .until_eq(
            "the account lists the two others",
            async || {
                let account = cluster.api::<ServiceAccount>().get("robot").await?;
                let listed = account.secrets.unwrap_or_default();
                let names: Vec<_> = listed.into_iter().filter_map(|listed| listed.name).collect();
                Ok(names)
            },
            ["mine", "other"],
        )
        .await
}

/// A secret that asks for the token of an account; of that uid, if one is said.
pub(crate) fn token_secret(name: &str, account: &str, uid: Option<&str>) -> Secret {
    let secret = Secret { type_: Some(TYPE.into()), ..objects::secret(name) }.annotation(NAME, account);
    match uid {
        Some(uid) => secret.annotation(UID, uid),
        None => secret,
    }
}

/// Waits until a secret has a token.
pub(crate) async fn until_filled(cluster: &TestCluster, name: &str) -> Result<Secret, Failure> {
    cluster
        .until("the secret has a token", async || {
            let secret = cluster.api::<Secret>().get_opt(name).await?;
            let is_filled = |secret: &Secret| secret.data.as_ref().is_some_and(|data| data.contains_key("token"));
            Ok(secret.filter(is_filled).ok_or_else(|| "it has none".to_owned()))
        })
        .await
}

async fn until_published(cluster: &TestCluster) -> Result<ConfigMap, Failure> {
    let is_published = |map: &ConfigMap| {
        let mut annotations = map.metadata.annotations.iter().flatten();
        let is_described = annotations.any(|(key, _)| key == "kubernetes.io/description");
        is_described && map.data == Some(BTreeMap::from([("ca.crt".to_owned(), ROOT_CA.to_owned())]))
    };
    let map = async || Ok(cluster.api::<ConfigMap>().get(MAP).await?);
    cluster.until_right("the root certificate is published", map, is_published).await
}

async fn until_another<K>(cluster: &TestCluster, name: &str, than: Option<String>) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
{
    let uid = async || Ok(cluster.api::<K>().get_opt(name).await?.and_then(|it| it.meta().uid.clone()));
    cluster.until_right("there is another one", uid, |uid| uid.is_some() && *uid != than).await.map(drop)
}
