//! Delegated authentication and authorisation of the admin port, on the embedded API server under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a scenario that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authorization};
use steersman_base::{Clock, Time};
use steersman_runtime::__internal::admin::Lookup;
use steersman_runtime::__internal::admin::{Guard, GuardOptions, text_page};
use steersman_runtime::admin::Admin;
use steersman_runtime::health::{Health, Probe, Unhealthy};
use tower::{BoxError, ServiceExt, service_fn};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const NOW: Time = Time::from_unix(1_794_744_000);
/// How long an answer is remembered, by default.
const TTL: Duration = Duration::from_secs(10);

/// An API server with RBAC, an admin port that delegates to it, and how many requests that took.
struct Place {
    server: Client,
    admin: Admin,
    asked: Arc<AtomicUsize>,
}

impl Place {
    async fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let clock = Clock::starting_at(NOW);
        let options = steersman_apiserver::Options::default().clock(clock.clone()).authorization(Authorization::Rbac);
        let server = ApiServer::new(options);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let inner = server.clone();
        let counted = service_fn(move |request: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            inner.clone().oneshot(request)
        });
        let guard = Guard::new(GuardOptions::delegated_to(Client::new(counted, "default"), clock.clone()))?;
        guard.look_up().await?;
        assert_eq!(asked.swap(0, Ordering::Relaxed), 1, "one read of the ConfigMap");
        let admin = Admin::new("test", clock);
        admin.handle("/metrics", |_| text_page(StatusCode::OK, "figures"))?;
        let health = Health::new();
        health.add(&[Probe::Readyz], "caches", || Err(Unhealthy("pods cannot be read".into())));
        admin.serve_health(&health)?;
        admin.guard(guard);
        Ok(Self { server: Client::new(server, "default"), admin, asked })
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, kube::Error> {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(&body).unwrap_or_default()).map_err(kube::Error::HttpError)?;
        self.server.request(request).await
    }

    /// A token of a new service account.
    async fn token(&self, account: &str) -> Result<String, Box<dyn std::error::Error>> {
        let path = "/api/v1/namespaces/default/serviceaccounts";
        self.post(path, json!({"metadata": {"name": account}})).await?;
        let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
        let request = self.post(&format!("{path}/{account}/token"), request).await?;
        Ok(request["status"]["token"].as_str().ok_or("no token")?.to_owned())
    }

    /// Lets a service account monitor.
    async fn bind(&self, account: &str) -> Outcome {
        let binding = json!({
            "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:monitoring"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        });
        self.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await?;
        Ok(())
    }

    async fn get(&self, uri: &str, token: Option<&str>) -> (u16, String) {
        get(&self.admin, uri, token).await
    }
}

async fn get(admin: &Admin, uri: &str, token: Option<&str>) -> (u16, String) {
    let mut request = Request::get(uri);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let response = admin.respond(request.body(Bytes::new()).unwrap()).await;
    let code = response.status().as_u16();
    let body = String::from_utf8(response.into_body().to_vec()).unwrap();
    // Of a refusal, what it says.
    let status: Option<Value> = serde_json::from_str(&body).ok();
    (code, status.and_then(|status| Some(status["message"].as_str()?.to_owned())).unwrap_or(body))
}

#[tokio::test(start_paused = true)]
async fn metrics_are_shown_to_accounts_that_may_monitor_only() -> Outcome {
    let place = Place::new().await?;
    let may = place.token("prometheus").await?;
    let may_not = place.token("curious").await?;
    place.bind("prometheus").await?;
    let anonymous = r#"forbidden: User "system:anonymous" cannot get path "/metrics""#;
    let curious = r#"forbidden: User "system:serviceaccount:default:curious" cannot get path "/metrics""#;
    assert_eq!(place.get("/metrics", None).await, (403, anonymous.into()));
    assert_eq!(place.get("/metrics", Some("made-up")).await, (401, "Unauthorized".into()));
    assert_eq!(place.get("/metrics", Some(&may_not)).await, (403, curious.into()));
    assert_eq!(place.get("/metrics", Some(&may)).await, (200, "figures".into()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_remembered_for_ten_seconds() -> Outcome {
    let place = Place::new().await?;
    let token = place.token("prometheus").await?;
    assert_eq!(place.get("/metrics", Some(&token)).await.0, 403);
    assert_eq!(place.asked.load(Ordering::Relaxed), 2, "who is it, and may it");
    place.bind("prometheus").await?;
    tokio::time::sleep(TTL - Duration::from_secs(1)).await;
    assert_eq!(place.get("/metrics", Some(&token)).await.0, 403, "a no is remembered");
    assert_eq!(place.asked.load(Ordering::Relaxed), 2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(place.get("/metrics", Some(&token)).await.0, 200);
    assert_eq!(place.get("/metrics", Some(&token)).await.0, 200);
    assert_eq!(place.asked.load(Ordering::Relaxed), 4);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn health_is_public_and_reasons_need_rights() -> Outcome {
    let place = Place::new().await?;
    let token = place.token("prometheus").await?;
    place.bind("prometheus").await?;
    let withheld = "[-]caches failed: reason withheld\nreadyz check failed\n";
    let reported = "[-]caches failed: pods cannot be read\nreadyz check failed\n";
    assert_eq!(place.get("/readyz", None).await, (500, withheld.into()));
    assert_eq!(place.get("/livez", None).await, (200, "ok".into()));
    assert_eq!(place.asked.load(Ordering::Relaxed), 0, "probes ask nobody");
    assert_eq!(place.get("/readyz/caches", None).await.0, 403, "a single check shows its reason, so it is not open");
    assert_eq!(place.get("/readyz?verbose", Some(&token)).await, (500, reported.into()));
    assert_eq!(place.get("/readyz?verbose", Some(&place.token("curious").await?)).await, (500, withheld.into()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_api_server_grants_no_access() -> Outcome {
    let clock = Clock::starting_at(NOW);
    let away =
        service_fn(|_: Request<Body>| async { Err::<http::Response<Body>, BoxError>("connection refused".into()) });
    let mut options = GuardOptions::delegated_to(Client::new(away, "default"), clock.clone());
    let required = Guard::new(options.clone())?.look_up().await.unwrap_err().to_string();
    assert!(
        required.starts_with("cannot read configmap/extension-apiserver-authentication in kube-system: "),
        "{required}"
    );
    options.lookup = Lookup::Tolerated;
    let guard = Guard::new(options)?;
    guard.look_up().await?;
    let admin = Admin::new("test", clock);
    admin.handle("/metrics", |_| text_page(StatusCode::OK, "figures"))?;
    admin.serve_health(&Health::new())?;
    admin.guard(guard);
    assert_eq!(get(&admin, "/metrics", Some("token")).await, (401, "Unauthorized".into()));
    let (code, text) = get(&admin, "/metrics?a=%3Cb%3E", None).await;
    assert_eq!(code, 500);
    assert!(text.starts_with("Internal Server Error: \"/metrics?a=%3Cb%3E\": the API server "), "{text}");
    assert_eq!(get(&admin, "/healthz", None).await, (200, "ok".into()), "probes need no API server");
    Ok(())
}
