//! The admin port behind TLS, with a real kube-apiserver to delegate to.

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use prometheus::Registry;
use serde_json::json;
use steersman_base::Clock;
use steersman_runtime::__internal::admin::{Guard, GuardOptions};
use steersman_runtime::__internal::metrics::ProcessMetrics;
use steersman_runtime::admin::Admin;
use steersman_runtime::health::Health;
use steersman_runtime::metrics::Exposition;
use steersman_runtime::serving::{CertificateSource, ClientCertificates, ServeOptions, Serving, Tls};
use tokio_util::sync::CancellationToken;

use super::{Outcome, Place};

/// What a client gets: the code, and what a refusal says, or how the page begins.
async fn get(client: &Client, path: &str) -> Result<(u16, String), Box<dyn std::error::Error>> {
    let request = http::Request::get(path).body(kube::client::Body::empty())?;
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    let body = http_body_util::BodyExt::collect(response.into_body()).await?.to_bytes();
    let status: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let message = status.and_then(|status| Some(status["message"].as_str()?.to_owned()));
    let line = || String::from_utf8_lossy(&body).lines().next().unwrap_or_default().to_owned();
    Ok((code, message.unwrap_or_else(line)))
}

#[tokio::test]
async fn the_admin_port_believes_what_the_api_server_says() -> Outcome {
    let place = Place::new("admin").await?;
    let guard = Guard::new(GuardOptions::delegated_to(place.client.clone(), Clock::system()))?;
    guard.look_up().await?;
    let registry = Registry::new();
    ProcessMetrics::register(&registry)?;
    let admin = Admin::new("test", Clock::system());
    admin.serve_metrics(&Exposition::of(&registry))?;
    admin.serve_health(&Health::new())?;
    admin.guard(guard);
    let certificate = CertificateSource::SelfSigned { names: Vec::new() };
    let mut tls = Tls::new(certificate);
    tls.clients = ClientCertificates::Requested;
    let serving = Serving::bind(ServeOptions::default().with_tls(tls)).await?;
    let address = serving.address();
    let stop = CancellationToken::new();
    let _ends = stop.clone().drop_guard();
    let server = tokio::spawn(serving.run(admin, stop.clone()));

    let kubeconfig = Kubeconfig::read_from(std::env::var("STEERSMAN_RIG_KUBECONFIG")?)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = |auth_info: AuthInfo| -> Result<Client, Box<dyn std::error::Error>> {
        let mut config = config.clone();
        config.cluster_url = format!("https://{address}").parse()?;
        config.accept_invalid_certs = true;
        config.root_cert = None;
        config.auth_info = auth_info;
        Ok(Client::try_from(config)?)
    };
    let by_token = |token: &str| client(AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() });

    let anonymous = client(AuthInfo::default())?;
    let refused = r#"forbidden: User "system:anonymous" cannot get path "/metrics""#;
    assert_eq!(get(&anonymous, "/metrics").await?, (403, refused.to_owned()));
    assert_eq!(get(&anonymous, "/healthz").await?, (200, "ok".to_owned()));
    assert_eq!(get(&by_token("made-up")?, "/metrics").await?, (401, "Unauthorized".to_owned()));
    let figures = (200, "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.".to_owned());
    assert_eq!(get(&client(config.auth_info.clone())?, "/metrics").await?, figures, "the rig's administrator");

    let path = place.path("serviceaccounts");
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
    let request = place.post(&format!("{path}/default/token"), request).await?;
    let account = by_token(request["status"]["token"].as_str().ok_or("no token")?)?;
    let name = format!("system:serviceaccount:{}:default", place.namespace);
    assert_eq!(
        get(&account, "/metrics/slis").await?.1,
        format!("forbidden: User {name:?} cannot get path \"/metrics/slis\"")
    );
    let binding = json!({
        "metadata": {"name": place.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:monitoring"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": place.namespace}],
    });
    place.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await?;
    // Another path than before, because a refusal is remembered; the API server's own caches may lag a little.
    let allowed = async {
        while get(&account, "/readyz/ping").await?.0 != 200 {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    tokio::time::timeout(super::PATIENCE, allowed).await??;
    assert_eq!(get(&account, "/metrics").await?, figures);
    stop.cancel();
    server.await?;
    Ok(())
}
