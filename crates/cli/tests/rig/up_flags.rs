//! What controllers get from flags and kubeconfig, on a real kube-apiserver.

use std::path::PathBuf;
use std::process::Command;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use serde_json::json;
use steersman_apiserver::ApiServer;
use steersman_testing::{Failure, TestCluster};

use crate::{ALONE, Binary};

/// The authority that the rig's kubeconfig names, as it is written there.
fn authority() -> Result<String, Failure> {
    let template = r#"{{index (index .clusters 0).cluster "certificate-authority-data" | base64decode}}"#;
    let output = Command::new(PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?).join("kubectl"))
        .args(["config", "view", "--raw", "-o", &format!("go-template={template}")])
        .env("KUBECONFIG", std::env::var("STEERSMAN_RIG_KUBECONFIG")?)
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn the_authority_and_the_key_reach_the_controllers() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let key = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("up-flags.key");
    let server = ApiServer::new(steersman_apiserver::Options::default());
    std::fs::write(&key, server.token_key_pem().ok_or_else(|| Failure::new("no key"))?)?;
    let binary = Binary::start(&[
        "controller-manager",
        "--controllers=namespace,serviceaccount,root-ca-cert-publisher",
        &format!("--service-account-private-key-file={}", key.display()),
        "--leader-elect=false",
        "--secure-port=0",
    ])?;

    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let metadata = ObjectMeta { generate_name: Some("flags-".into()), ..ObjectMeta::default() };
    let made = namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
    let name = made.metadata.name.unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), &name);
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), &name);
    let published = cluster
        .until("the authority is published", || async {
            let map = maps.get_opt("kube-root-ca.crt").await?;
            Ok(map.and_then(|map| map.data?.remove("ca.crt")).ok_or("no ConfigMap".to_owned()))
        })
        .await?;
    assert_eq!(published, authority()?, "byte by byte, so that the Go manager would not write it again");
    cluster
        .until("there is an account", || async {
            Ok(accounts.get_opt("default").await?.ok_or("no account".to_owned()))
        })
        .await?;

    let secrets: Api<Secret> = Api::namespaced(cluster.client(), &name);
    let secret = serde_json::from_value(json!({
        "metadata": { "name": "token", "annotations": { "kubernetes.io/service-account.name": "default" } },
        "type": "kubernetes.io/service-account-token",
    }))?;
    secrets.create(&PostParams::default(), &secret).await?;
    let data = cluster
        .until("the secret has a token", || async {
            let data = secrets.get("token").await?.data.unwrap_or_default();
            Ok(if data.contains_key("token") { Ok(data) } else { Err(format!("{:?}", data.keys())) })
        })
        .await?;
    assert_eq!(String::from_utf8_lossy(&data["ca.crt"].0), published);
    assert_eq!(data["token"].0.split(|byte| *byte == b'.').count(), 3, "a signed token");

    namespaces.delete(&name, &DeleteParams::default()).await?;
    cluster
        .until("the namespace is gone", || async {
            Ok(namespaces.get_opt(&name).await?.map_or(Ok(()), |left| Err(format!("{:?}", left.status))))
        })
        .await?;
    assert!(binary.terminate().await?, "SIGTERM ends it with success");
    cluster.stop().await
}
