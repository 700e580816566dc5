//! The server and the requests of the fuzz target `request`. A test of the default suite sends the corpus in the same way.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use steersman_apiserver::{ApiServer, Options};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

const PATHS: [(&str, &str); 8] = [
    ("POST", "/api/v1/namespaces/default/configmaps"),
    ("POST", "/api/v1/namespaces/default/pods"),
    ("POST", "/apis/apps/v1/namespaces/default/deployments"),
    ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("POST", "/apis/example.com/v1/namespaces/default/things"),
    ("PATCH", "/api/v1/namespaces/default/configmaps/there"),
    ("PATCH", "/api/v1/namespaces/default/pods/there"),
    ("PATCH", "/apis/example.com/v1/namespaces/default/things/there"),
];

const WRITTEN: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

const THERE: [(&str, &str); 4] = [
    (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
            "spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},
            "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
            "spec":{"type":"object","properties":{"size":{"type":"integer","default":1},"list":{"type":"array",
            "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],
            "properties":{"name":{"type":"string"},"value":{"type":"string","pattern":"^a*$"}}}}}}}}}}]}}"#,
    ),
    (
        "/api/v1/namespaces/default/configmaps",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"there"},"data":{"a":"b"}}"#,
    ),
    (
        "/api/v1/namespaces/default/pods",
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"there"},"spec":{"containers":[{"name":"c","image":"i",
            "env":[{"name":"e","value":"v"}],"ports":[{"containerPort":80}]}],"tolerations":[{"operator":"Exists"}]}}"#,
    ),
    (
        "/apis/example.com/v1/namespaces/default/things",
        r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"there"},"spec":{"list":[{"name":"n"}]}}"#,
    ),
];

/// An apply whose types are not those of the schema: kube-apiserver too answers it with 500 and this message.
const UNTYPED: &str = "failed to create typed patch object";

/// A server with one object of each kind.
pub(crate) struct World {
    runtime: Runtime,
    server: ApiServer,
}

impl World {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let server = runtime.block_on(async { ApiServer::new(Options::default()) });
        let world = Self { runtime, server };
        for (path, body) in THERE {
            let (code, answer) = world.send("POST", path, WRITTEN[0], Bytes::from_static(body.as_bytes()));
            assert_eq!(code, 201, "{path}: {answer}");
        }
        world
    }

    /// Sends the request that an input stands for: its first byte is the path and the content type, the rest the body.
    /// The server must answer, and never with an error of its own.
    pub(crate) fn check(&self, data: &[u8]) {
        let Some((first, body)) = data.split_first() else { return };
        let (method, path) = PATHS[usize::from(first & 7)];
        let choice = usize::from(first >> 3);
        let (kind, query) = match method {
            "POST" => (WRITTEN[choice % WRITTEN.len()], "dryRun=All&fieldValidation=Strict"),
            _ => (PATCHES[choice % PATCHES.len()], "dryRun=All&fieldManager=fuzz&force=true"),
        };
        let query = if kind.contains("apply") { query } else { query.trim_end_matches("&force=true") };
        let (code, answer) = self.send(method, &format!("{path}?{query}"), kind, Bytes::copy_from_slice(body));
        let is_untyped = kind.contains("apply") && answer.contains(UNTYPED);
        assert!(code < 500 || is_untyped, "{method} {path} {kind}: {code}: {answer}");
    }

    fn send(&self, method: &str, uri: &str, kind: &str, body: Bytes) -> (u16, String) {
        let request = Request::builder().method(method).uri(uri).header("content-type", kind);
        let request = request.body(Full::new(body)).expect("a request");
        let server = self.server.clone();
        self.runtime.block_on(async move {
            let response = server.oneshot(request).await.expect("an answer");
            let code = response.status().as_u16();
            let body =
                response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            (code, String::from_utf8_lossy(&body).into_owned())
        })
    }
}
