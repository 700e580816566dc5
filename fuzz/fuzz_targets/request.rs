//! Requests to the embedded API server: bodies of any kind, decoded, defaulted, patched, applied and validated. All are dry
//! runs, so that one request does not change what the next one meets. The server must answer, and never with an error
//! of its own.

#![no_main]

use std::cell::OnceCell;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::fuzz_target;
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

struct World {
    runtime: Runtime,
    server: ApiServer,
}

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

impl World {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let server = runtime.block_on(async { ApiServer::new(Options::default()) });
        let world = Self { runtime, server };
        for (path, body) in THERE {
            let code = world.send("POST", path, WRITTEN[0], Bytes::from_static(body.as_bytes()));
            assert_eq!(code, 201, "{path}");
        }
        world
    }

    fn send(&self, method: &str, uri: &str, kind: &str, body: Bytes) -> u16 {
        let request = Request::builder().method(method).uri(uri).header("content-type", kind);
        let request = request.body(Full::new(body)).expect("a request");
        let server = self.server.clone();
        self.runtime.block_on(async move {
            let response = server.oneshot(request).await.expect("an answer");
            let code = response.status().as_u16();
            let _ = response.into_body().collect().await;
            code
        })
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    let (method, path) = PATHS[usize::from(first & 7)];
    let choice = usize::from(first >> 3);
    let (kind, query) = match method {
        "POST" => (WRITTEN[choice % WRITTEN.len()], "dryRun=All&fieldValidation=Strict"),
        _ => (PATCHES[choice % PATCHES.len()], "dryRun=All&fieldManager=fuzz&force=true"),
    };
    let force = if kind.contains("apply") { query } else { query.trim_end_matches("&force=true") };
    WORLD.with(|world| {
        let world = world.get_or_init(World::new);
        let code = world.send(method, &format!("{path}?{force}"), kind, Bytes::copy_from_slice(body));
        assert!(code < 500, "{method} {path} {kind}: {code}");
    });
});
