//! The metrics APIs of a test: in process on the embedded server, behind an `APIService` on another.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use steersman_apiserver::aggregated::Aggregated as _;
use steersman_nodes::Metrics;
use steersman_runtime::serving::{self, CertificateSource, ServeOptions, Serving, Tls};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Failure;

/// The namespace and the name of the Service of the metrics.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "simulated-metrics";
/// The time after which a server does not see an API that was registered with it.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Serves the metrics on the loopback interface, and registers them with a kube-apiserver, which runs on the same machine. Returns
/// when they are available.
pub(super) async fn register(client: &Client, metrics: &Metrics, stop: CancellationToken) -> Result<(), Failure> {
    let certificate = CertificateSource::SelfSigned { names: vec!["localhost".to_owned()] };
    let options = ServeOptions::at(([127, 0, 0, 1], 0).into()).with_tls(Tls::new(certificate));
    let serving = Serving::bind(options).await.map_err(|error| Failure::new(error.to_string()))?;
    let port = serving.address().port();
    let source = metrics.clone();
    let service = move |request: serving::Request| {
        let (code, body) = source.get(request.uri().path(), request.uri().query().unwrap_or_default());
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        std::future::ready(serving::with_type(code, "application/json", Bytes::from(body.to_string())))
    };
    tokio::spawn(serving.run(service, stop));

    // A server on the same machine finds it by this name, without a network for pods.
    let service = json!({
        "metadata": { "name": NAME },
        "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }] },
    });
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    services.create(&PostParams::default(), &serde_json::from_value(service)?).await?;
    let apis: Api<APIService> = Api::all(client.clone());
    for name in names(metrics) {
        let (version, group) = name.split_once('.').unwrap_or_default();
        let api = json!({
            "metadata": { "name": name },
            "spec": {
                "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true, "service": { "namespace": NAMESPACE, "name": NAME, "port": port },
            },
        });
        apis.create(&PostParams::default(), &serde_json::from_value(api)?).await?;
    }
    for name in names(metrics) {
        until_available(&apis, &name).await?;
    }
    Ok(())
}

/// Removes what [`register`] made.
pub(super) async fn unregister(client: &Client, metrics: &Metrics) -> Result<(), Failure> {
    let apis: Api<APIService> = Api::all(client.clone());
    for name in names(metrics) {
        apis.delete(&name, &DeleteParams::default()).await?;
    }
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    services.delete(NAME, &DeleteParams::default()).await?;
    Ok(())
}

fn names(metrics: &Metrics) -> Vec<String> {
    metrics.versions().iter().map(|held| format!("{}.{}", held.version, held.group)).collect()
}

async fn until_available(apis: &Api<APIService>, name: &str) -> Result<(), Failure> {
    let deadline = Instant::now() + SEEN_WITHIN;
    loop {
        let conditions = apis.get(name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
        let available = conditions.into_iter().find(|condition| condition.type_ == "Available");
        match available {
            Some(condition) if condition.status == "True" => return Ok(()),
            found if Instant::now() > deadline => {
                return Err(Failure::new(format!("the API {name} is not available: {found:?}")));
            }
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}
