//! A server, a client, and short ways to ask.

use http_body_util::BodyExt;
use kube::api::{Api, DynamicObject, GroupVersionKind};
use kube::core::ApiResource;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Options};
use steersman_base::Clock;
use tower::ServiceExt;

/// A new server whose clock goes with the test's.
pub(crate) fn server() -> ApiServer {
    let clock = Clock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
    ApiServer::new(Options::default().clock(clock))
}

/// A client of it.
pub(crate) fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.clone(), "default")
}

/// An answer: code and body.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

/// Asks something, with JSON.
pub(crate) async fn ask(server: &ApiServer, method: &str, path: &str, body: Option<Value>) -> Got {
    let text = body.map(|body| body.to_string()).unwrap_or_default();
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    send(server, method, path, &[("content-type", kind)], text.into_bytes()).await
}

/// Asks something, with these headers and this body.
pub(crate) async fn send(server: &ApiServer, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Got {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
    Got { code, body }
}

impl Got {
    /// The body of an answer that must have this code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }
}

/// ConfigMaps of the namespace `default`, as unstructured objects.
pub(crate) fn config_maps(client: &kube::Client) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    Api::namespaced_with(client.clone(), "default", &resource)
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A ConfigMap of this name.
pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// A pod of this name.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    })
}

/// The certificate of an authority, as PEM.
pub(crate) fn authority() -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}
