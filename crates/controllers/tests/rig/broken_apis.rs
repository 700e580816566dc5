//! APIs that are broken, on a real server: each test has one for itself.

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::{Failure, TestCluster, expect_eq};

use crate::own;
use crate::scenarios::garbage_collector::{CONTROLLERS, cake, cakes, definition_of_cakes};
use crate::scenarios::issues::{collects_what_is_not_broken, until_discovery_failure};
use crate::scenarios::namespace;

/// The usual cause of the issue: objects that are stored in another version than is read, and a webhook, which would have to
/// convert them, that nobody answers.
#[tokio::test]
async fn issue_101078_a_broken_resource_stops_nothing() -> Result<(), Failure> {
    let rig = own::start("issue-101078").await?;
    let breaking = TestCluster::builder().define(definition_of_cakes()).start_on(rig.kubeconfig()).await?;
    cakes(&breaking).create(&PostParams::default(), &cake("stored", vec![])).await?;
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = |name: &str, storage| json!({ "name": name, "served": true, "storage": storage, "schema": schema });
    let nobody = json!({
        "strategy": "Webhook",
        "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": { "url": "https://127.0.0.1:1/convert" } },
    });
    let patch = json!({ "spec": { "versions": [version("v1", false), version("v2", true)], "conversion": nobody } });
    let definitions = Api::<CustomResourceDefinition>::all(breaking.client());
    let name = "cakes.garbage.example.com";
    definitions.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    breaking
        .until("cakes cannot be listed", async || {
            let list = Request::get("/apis/garbage.example.com/v2/cakes").body(Vec::new());
            let listed = breaking.client().request::<serde_json::Value>(list.map_err(kube::Error::HttpError)?).await;
            Ok(match listed {
                // 429 while the server tries to make a cache of them, which it does for ever.
                Err(kube::Error::Api(status)) if status.code == 500 || status.code == 429 => Ok(()),
                other => Err(format!("{other:?}")),
            })
        })
        .await?;

    let cluster = TestCluster::builder().controllers(CONTROLLERS).manager_options(|options| options.namespace = None);
    let cluster = cluster.start_on(rig.kubeconfig()).await?;
    collects_what_is_not_broken(&cluster).await?;
    cluster.stop().await?;
    breaking.stop().await
}

/// An aggregated API whose server is away keeps namespaces from going, and is reported; everything else goes at once, and the
/// namespace when the API is removed.
#[tokio::test]
async fn issue_60807_failed_discovery_of_one_group_stops_nothing_else_and_is_reported() -> Result<(), Failure> {
    let rig = own::start("issue-60807").await?;
    let cluster = namespace::cluster().start_on(rig.kubeconfig()).await?;
    let services = Api::<APIService>::all(cluster.client());
    let away: APIService = serde_json::from_value(json!({
        "metadata": { "name": "v1beta1.metrics.k8s.io" },
        "spec": {
            "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": { "namespace": "kube-system", "name": "nobody" },
        },
    }))?;
    services.create(&PostParams::default(), &away).await?;
    let groups = async || {
        let list = Request::get("/apis").header("accept", "application/json").body(Vec::new());
        let list = cluster.client().request::<serde_json::Value>(list.map_err(kube::Error::HttpError)?).await?;
        Ok(list.to_string())
    };
    cluster.until_right("discovery lists the group", groups, |list| list.contains("metrics.k8s.io")).await?;
    namespace::fill(&cluster, 2).await?;
    namespace::delete(&cluster).await?;
    until_discovery_failure(&cluster, "metrics.k8s.io/v1beta1").await?;
    let left = cluster.api::<Pod>().list(&ListParams::default()).await?.items.len();
    expect_eq("pods that are left, though nothing keeps them", &left, &0)?;
    namespace::namespaces(&cluster).get(cluster.namespace()).await?;
    services.delete("v1beta1.metrics.k8s.io", &DeleteParams::default()).await?;
    namespace::until_gone(&cluster).await?;
    cluster.stop().await
}
