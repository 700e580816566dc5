//! Controllers with accounts of their own: the rights that Kubernetes gives each of them are enough for what it does.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use steersman_testing::{Failure, TestCluster};

use crate::ALONE;
use crate::manager::{Manager, client_of, rig_file, until, wanted};

const ROOT_CA: &str = "kube-root-ca.crt";

/// The publisher's account may create and update ConfigMaps, and not read them.
#[tokio::test]
async fn a_root_certificate_that_was_changed_is_put_right() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let admin = client_of(std::env::var("STEERSMAN_RIG_KUBECONFIG")?.into()).await?;
    let root_ca = rig_file("ca.crt")?;
    let certificate = std::fs::read_to_string(&root_ca)?;
    let manager = Manager::start(&[
        "--controllers=root-ca-certificate-publisher-controller",
        "--use-service-account-credentials",
        &format!("--root-ca-file={}", root_ca.display()),
    ])?;

    let maps: Api<ConfigMap> = Api::namespaced(admin, cluster.namespace());
    let until_right = || {
        until("the root certificate is right", || async {
            let held = maps.get_opt(ROOT_CA).await?.and_then(|map| map.data).unwrap_or_default();
            Ok(wanted(held, |held| held.len() == 1 && held.get("ca.crt") == Some(&certificate)))
        })
    };
    until_right().await?;
    for change in [json!({ "data": { "ca.crt": "forged" } }), json!({ "data": { "more": "of it" } })] {
        maps.patch(ROOT_CA, &PatchParams::default(), &Patch::Merge(change)).await?;
        until_right().await?;
    }

    manager.signal("TERM")?;
    let (code, said) = manager.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("forbidden"), "{said}");
    cluster.stop().await
}
