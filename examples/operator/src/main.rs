//! Runs the operator: creates a site, waits for its deployment, and has a wrong site refused.
//!
//! `cargo run -p example-operator` starts an API server in this process. With `KUBECONFIG` set, the operator works in that
//! cluster, whose API server must be able to reach this machine's loopback interface: `steersman up`, or one that
//! `cargo xtask k8s run -- cargo run -p example-operator` starts.

use std::error::Error;
use std::time::Duration;

use example_operator::{REPLICAS, REPLICAS_MAX, Site, SiteSpec, add_operator, definition, registrations, webhooks};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;
use steersman::apiserver::{self, ApiServer};
use steersman::runtime::definition::install_value;
use steersman::runtime::serving::{CertificateSource, ServeOptions, Tls};
use steersman::runtime::{LeaseOptions, Manager, ManagerOptions, connection};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(50);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = if std::env::var_os("KUBECONFIG").is_some() {
        connection::connect(connection::Options::default()).await?
    } else {
        Client::new(ApiServer::new(apiserver::Options::default()), "default")
    };
    install_value(&client, &definition()).await?;
    let sites = Api::<Site>::default_namespaced(client.clone());

    // Several processes may run this; the one with the lease works, and releases it when it ends.
    let lease = LeaseOptions::new("default", "site-operator").release_on_exit();
    let manager = Manager::new(client.clone(), ManagerOptions::default().lease(lease))?;
    add_operator(&manager);

    // In a cluster, cert-manager writes files that are read again when they change: `CertificateSource::Files`.
    let tls = Tls::new(CertificateSource::SelfSigned { names: Vec::new() });
    let mut webhooks = webhooks(ServeOptions::default().with_tls(tls));
    let serving = webhooks.bind().await?;
    let url = format!("https://{}", serving.address());
    let [mutating, validating] = registrations(&url, &serving.certificate_pem().unwrap_or_default());
    manager.add(webhooks);

    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });
    apply(&client, "mutatingwebhookconfigurations", &mutating).await?;
    apply(&client, "validatingwebhookconfigurations", &validating).await?;

    let site = |name: &str, replicas| Site::new(name, SiteSpec { image: "example/web:1".into(), replicas });
    println!("refused: {}", refusal(&sites, &site("shop", Some(REPLICAS_MAX + 1))).await?);
    let shop = sites.create(&PostParams::default(), &site("shop", None)).await?;
    println!("created site shop with {:?} replicas", shop.spec.replicas);

    let deployments = Api::<Deployment>::default_namespaced(client.clone());
    let deployed = timeout(PATIENCE, until_exists(&deployments, "shop")).await??;
    let replicas = deployed.spec.replicas;
    println!("its deployment has {replicas:?} replicas");
    assert_eq!(replicas, Some(REPLICAS));

    sites.delete("shop", &DeleteParams::default()).await?;
    for (plural, object) in
        [("mutatingwebhookconfigurations", &mutating), ("validatingwebhookconfigurations", &validating)]
    {
        let (api, name) = api_of(&client, plural, object)?;
        api.delete(&name, &DeleteParams::default()).await?;
    }
    stop.cancel();
    running.await??;
    println!("the lease is given back");
    Ok(())
}

/// Returns the API server's refusal of a site. It notices new webhooks after a while; until then it accepts the site.
async fn refusal(sites: &Api<Site>, site: &Site) -> Result<String, Box<dyn Error>> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let refused = async {
        loop {
            match sites.create(&dry_run, site).await {
                Ok(_) => sleep(POLL_EVERY).await,
                Err(kube::Error::Api(status)) => return Ok(status.message),
                Err(error) => return Err(error),
            }
        }
    };
    Ok(timeout(PATIENCE, refused).await??)
}

async fn until_exists(deployments: &Api<Deployment>, name: &str) -> Result<Deployment, kube::Error> {
    loop {
        match deployments.get_opt(name).await? {
            Some(deployment) => return Ok(deployment),
            None => sleep(POLL_EVERY).await,
        }
    }
}

/// Creates a cluster-scoped object, or updates it.
async fn apply(client: &Client, plural: &str, object: &Value) -> Result<(), Box<dyn Error>> {
    let (api, name) = api_of(client, plural, object)?;
    match api.create(&PostParams::default(), &serde_json::from_value(object.clone())?).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            api.patch(&name, &PatchParams::default(), &Patch::Merge(object)).await?;
        }
        created => drop(created?),
    }
    Ok(())
}

fn api_of(client: &Client, plural: &str, object: &Value) -> Result<(Api<DynamicObject>, String), Box<dyn Error>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let kind = text(&object["kind"]);
    let (group, version) = api_version.split_once('/').ok_or("the API version has no group")?;
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &kind), plural);
    Ok((Api::all_with(client.clone(), &resource), text(&object["metadata"]["name"])))
}
