//! What every namespace has, and what the secrets of service accounts hold.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret, ServiceAccount};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;
use steersman_testing::{Failure, TestCluster, objects};

/// The certificate that is published.
pub(crate) const ROOT_CA: &str = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
/// The ConfigMap that it is published in.
pub(crate) const MAP: &str = "kube-root-ca.crt";
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
/// The annotation that says which account of the name is meant.
pub(crate) const UID: &str = "kubernetes.io/service-account.uid";

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
    if annotations.get("mine").map(String::as_str) != Some("stays") || !raw.contains_key("raw") {
        return Err(Failure::new(format!("what is somebody else's is lost: {annotations:?} {raw:?}")));
    }
    cluster.delete::<ConfigMap>(MAP).await?;
    until_another::<ConfigMap>(cluster, MAP, first.metadata.uid).await
}

/// A secret that asks for a token gets one, and goes with its account.
pub(crate) async fn a_secret_gets_a_token_and_goes_with_its_account(cluster: &TestCluster) -> Result<(), Failure> {
    let account = ServiceAccount { metadata: objects::named("robot"), ..ServiceAccount::default() };
    let account = cluster.create(account).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    let secret = until_filled(cluster, "robot-token").await?;
    let data = secret.data.unwrap_or_default();
    let text =
        |key: &str| data.get(key).map(|value| String::from_utf8_lossy(&value.0).into_owned()).unwrap_or_default();
    let uid = secret.metadata.annotations.unwrap_or_default().remove(UID);
    if (text("ca.crt").as_str(), text("namespace").as_str(), &uid)
        != (ROOT_CA, cluster.namespace(), &account.metadata.uid)
    {
        return Err(Failure::new(format!("{} {} {uid:?}", text("ca.crt"), text("namespace"))));
    }

    cluster.delete::<ServiceAccount>("robot").await?;
    cluster
        .until("the secret is gone", async || {
            let secret = cluster.api::<Secret>().get_opt("robot-token").await?;
            Ok(secret.map_or(Ok(()), |_| Err("it is there".to_owned())))
        })
        .await
}

/// An account does not list a secret that is gone, and keeps the others.
pub(crate) async fn a_deleted_secret_is_taken_off_the_list_of_its_account(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let listed = |name: &str| ObjectReference { name: Some(name.into()), ..ObjectReference::default() };
    let secrets = Some(vec![listed("mine"), listed("robot-token"), listed("other")]);
    cluster.create(ServiceAccount { metadata: objects::named("robot"), secrets, ..ServiceAccount::default() }).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    until_filled(cluster, "robot-token").await?;
    cluster.delete::<Secret>("robot-token").await?;
    cluster
        .until("the account lists the two others", async || {
            let account = cluster.api::<ServiceAccount>().get("robot").await?;
            let listed = account.secrets.unwrap_or_default();
            let names: Vec<_> = listed.into_iter().filter_map(|listed| listed.name).collect();
            Ok(if names == ["mine", "other"] { Ok(()) } else { Err(format!("{names:?}")) })
        })
        .await
}

/// A secret that asks for the token of an account; of that uid, if one is said.
pub(crate) fn token_secret(name: &str, account: &str, uid: Option<&str>) -> Secret {
    let mut annotations = BTreeMap::from([(NAME.to_owned(), account.to_owned())]);
    annotations.extend(uid.map(|uid| (UID.to_owned(), uid.to_owned())));
    let mut secret = Secret { metadata: objects::named(name), type_: Some(TYPE.into()), ..Secret::default() };
    secret.metadata.annotations = Some(annotations);
    secret
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
    cluster
        .until("the root certificate is published", async || {
            let map = cluster.api::<ConfigMap>().get(MAP).await?;
            let is_described =
                map.metadata.annotations.as_ref().is_some_and(|all| all.contains_key("kubernetes.io/description"));
            let data = map.data.clone().unwrap_or_default();
            let is_right = data == BTreeMap::from([("ca.crt".to_owned(), ROOT_CA.to_owned())]);
            Ok(if is_right && is_described { Ok(map) } else { Err(format!("{map:?}")) })
        })
        .await
}

async fn until_another<K>(cluster: &TestCluster, name: &str, than: Option<String>) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
{
    cluster
        .until("there is another one", async || {
            let uid = cluster.api::<K>().get_opt(name).await?.and_then(|it| it.meta().uid.clone());
            Ok(if uid.is_some() && uid != than { Ok(()) } else { Err(format!("{uid:?}")) })
        })
        .await
}
