//! The operator in a test cluster, and its webhooks without a socket.

use std::error::Error;
use std::sync::Mutex;

use bytes::Bytes;
use example_operator::{REPLICAS, REPLICAS_MAX, Site, SiteSpec, add_operator, definition, registrations, webhooks};
use http::Request;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman::runtime::LeaseOptions;
use steersman::runtime::serving::{CertificateSource, ServeOptions, Service, Tls};
use steersman::testing::{Failure, TestCluster};

#[tokio::test(start_paused = true)]
async fn a_site_becomes_a_deployment_that_follows_it() -> Result<(), Failure> {
    let cluster = TestCluster::builder()
        .with(|manager| drop(add_operator(manager)))
        .manager_options(|options| options.lease = Some(LeaseOptions::new("default", "site-operator")))
        .define(definition())
        .start()
        .await?;
    let site = cluster.create(Site::new("shop", SiteSpec { image: "example/web:1".into(), replicas: None })).await?;
    let deployment = cluster.until_exists::<Deployment>("shop").await?;
    let owner = &deployment.metadata.owner_references.unwrap_or_default()[0];
    assert_eq!(owner.uid, site.metadata.uid.unwrap_or_default());
    assert_eq!(deployment.spec.replicas, Some(REPLICAS));

    let three = json!({ "spec": { "replicas": 3 } });
    cluster.api::<Site>().patch("shop", &PatchParams::default(), &Patch::Merge(three)).await?;
    let replicas = async || Ok(cluster.api::<Deployment>().get("shop").await?.spec.replicas);
    cluster.until_eq("the deployment follows", replicas, Some(3)).await?;
    cluster.settle().await?;
    cluster.stop().await
}

/// The API server of a test cluster asks the webhooks over a socket of this machine, as any other does.
#[tokio::test]
async fn the_api_server_asks_the_webhooks() -> Result<(), Failure> {
    let tls = Tls::new(CertificateSource::SelfSigned { names: Vec::new() });
    let mut webhooks = webhooks(ServeOptions::default().with_tls(tls));
    let serving = webhooks.bind().await?;
    let url = format!("https://{}", serving.address());
    let [mutating, validating] = registrations(&url, &serving.certificate_pem().unwrap_or_default());
    let webhooks = Mutex::new(Some(webhooks));
    let cluster = TestCluster::builder()
        .with(move |manager| {
            webhooks.lock().into_iter().filter_map(|mut held| held.take()).for_each(|it| manager.add(it));
        })
        .define(definition())
        .start()
        .await?;
    let mutating: MutatingWebhookConfiguration = serde_json::from_value(mutating)?;
    let validating: ValidatingWebhookConfiguration = serde_json::from_value(validating)?;
    Api::all(cluster.client()).create(&PostParams::default(), &mutating).await?;
    Api::all(cluster.client()).create(&PostParams::default(), &validating).await?;

    let site = |replicas| Site::new("shop", SiteSpec { image: "example/web:1".into(), replicas });
    let refused = cluster.api::<Site>().create(&PostParams::default(), &site(Some(REPLICAS_MAX + 1))).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("it was not refused: {refused:?}") };
    assert_eq!(status.code, 422, "{}", status.message);
    let want = format!(
        "admission webhook \"sites.web.example.dev\" denied the request: a site has at most {REPLICAS_MAX} replicas, not {}",
        REPLICAS_MAX + 1
    );
    assert_eq!(status.message, want);
    let shop = cluster.create(site(None)).await?;
    assert_eq!(shop.spec.replicas, Some(REPLICAS));
    cluster.stop().await
}

/// What the webhook at this path answers about a site with this spec.
async fn ask(path: &str, spec: Value) -> Result<Value, Box<dyn Error>> {
    let site =
        json!({ "apiVersion": "web.example.dev/v1", "kind": "Site", "metadata": { "name": "shop" }, "spec": spec });
    let kind = json!({ "group": "web.example.dev", "version": "v1", "kind": "Site" });
    let resource = json!({ "group": "web.example.dev", "version": "v1", "resource": "sites" });
    let request = json!({ "uid": "1", "kind": kind, "resource": resource, "operation": "CREATE", "object": site });
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    let request = Request::post(path).header("content-type", "application/json").body(Bytes::from(review.to_string()));
    let response = webhooks(ServeOptions::default()).respond(request?).await;
    Ok(serde_json::from_slice::<Value>(response.body())?["response"].take())
}

#[tokio::test]
async fn webhooks_fill_in_warn_and_refuse() -> Result<(), Box<dyn Error>> {
    assert!(ask("/fill-in", json!({ "image": "i" })).await?["patch"].is_string());
    assert!(ask("/fill-in", json!({ "image": "i", "replicas": 1 })).await?["patch"].is_null());
    // replicas, allowed, warnings
    for (replicas, allowed, warnings) in [(1, true, 0), (0, true, 1), (6, false, 0), (-1, false, 0)] {
        let answer = ask("/check", json!({ "image": "i", "replicas": replicas })).await?;
        assert_eq!(answer["allowed"], allowed, "{replicas}: {answer}");
        assert_eq!(answer["warnings"].as_array().map_or(0, Vec::len), warnings, "{replicas}: {answer}");
    }
    Ok(())
}
