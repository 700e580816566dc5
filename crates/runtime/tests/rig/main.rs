//! The runtime on a real kube-apiserver: `cargo xtask k8s test`.

mod admin;
mod client;
mod lease;
mod reflector;
mod webhook;
mod writer;

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::{Value, json};
use steersman_runtime::connection::{Connection, Options};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A namespace of a test's own, with a client.
struct Place {
    client: Client,
    namespace: String,
}

const PATIENCE: Duration = Duration::from_secs(20);

impl Place {
    async fn new(name: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let kubeconfig = std::env::var("STEERSMAN_RIG_KUBECONFIG")?;
        let connection = Connection::load(Options::default().kubeconfig(kubeconfig)).await?;
        let client = connection.client().await?;
        connection.check_reachable(&client).await?;
        let place = Self { client, namespace: format!("{name}-{}", std::process::id()) };
        place.post("/api/v1/namespaces", json!({"metadata": {"name": place.namespace}})).await?;
        place.post(&place.path("serviceaccounts"), json!({"metadata": {"name": "default"}})).await?;
        Ok(place)
    }

    fn path(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, Box<dyn std::error::Error>> {
        let request =
            Request::post(path).header("content-type", "application/json").body(serde_json::to_vec(&body)?)?;
        Ok(self.client.request(request).await?)
    }
}
