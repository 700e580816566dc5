//! Writes in process, one after the other on one thread, for profilers: no sockets, no TLS, no other clients.
//!
//! ```sh
//! cargo bench -p steersman-apiserver --bench writes                        # CPU time of each kind of write
//! valgrind --tool=callgrind TARGET/release/deps/writes-HASH --only apply 60   # instructions; those of 0 are the start
//! perf record -e cpu-clock -g TARGET/release/deps/writes-HASH --tls --only apply 9000
//! ```
//!
//! With `--tls`, 64 clients in the same process send them over TLS, as in the benchmark `server`.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures the real clock")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a benchmark that meets trouble ends with it")]
#![allow(dead_code, reason = "the client can do more than writes")]

#[path = "../server/author.rs"]
mod author;
#[path = "../server/client.rs"]
mod client;
mod tls;

use std::time::Instant;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authorization, HeavyWork, Options};
use tower::ServiceExt;

/// Without arguments: enough for a figure that does not change much.
const COUNT: usize = 3_000;
/// What `cargo test --benches` runs.
const COUNT_OF_TEST: usize = 2;
/// Objects that are applied in turns.
const DEPLOYMENTS: usize = 64;
const PREPARED_MIN: usize = 100;
const KINDS: [&str; 4] = ["create", "apply", "pod", "custom"];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let only = arguments.iter().position(|argument| argument == "--only");
    let of_test = if arguments.iter().any(|argument| argument == "--bench") { COUNT } else { COUNT_OF_TEST };
    let kind = only.and_then(|at| arguments.get(at + 1));
    let count = only.and_then(|at| arguments.get(at + 2)?.parse().ok()).unwrap_or(of_test);
    if arguments.iter().any(|argument| argument == "--tls") {
        return tls::measure(kind.map_or("create", String::as_str), count);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for name in KINDS.iter().filter(|name| kind.is_none_or(|kind| kind == *name)) {
            measure(name, count).await;
        }
    });
}

async fn measure(kind: &str, count: usize) {
    let heavy_work = HeavyWork::BlockingPool;
    let server = ApiServer::new(Options::default().heavy_work(heavy_work).authorization(Authorization::Rbac));
    let token = server.admin_token().expect("a token").to_owned();
    let server = server.requiring_authentication();
    let send = async |method: Method, path: &str, body: Bytes| {
        let form = if method == Method::PATCH { "application/apply-patch+yaml" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, form)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(Full::new(body))
            .expect("a request");
        let response = server.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert!(status.is_success(), "{}", String::from_utf8_lossy(&body));
    };
    send(Method::POST, "/api/v1/namespaces", body(&json!({"metadata": {"name": "bench-author"}}))).await;
    if kind == "custom" {
        send(Method::POST, author::DEFINITIONS, body(&author::definition(&author::plural(0)))).await;
    }
    let one = |at| write(kind, at);
    // The first writes of a kind read its types.
    for at in 0..DEPLOYMENTS {
        let (method, path, body) = one(at);
        send(method, &path, body).await;
    }
    // As many whatever the count, so that making them is no difference between two runs.
    let writes: Vec<_> = (DEPLOYMENTS..DEPLOYMENTS + count.max(PREPARED_MIN)).map(one).collect();
    let started = Instant::now();
    for (method, path, body) in writes.into_iter().take(count) {
        send(method, &path, body).await;
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / count.max(1) as f64;
    println!("{}", json!({"bench": format!("{kind}, in process"), "value": each, "unit": "µs"}));
}

/// Method, path and body of a write.
fn write(kind: &str, at: usize) -> (Method, String, Bytes) {
    let plural = author::plural(0);
    match kind {
        "create" => (Method::POST, core("configmaps"), body(&config_map(at))),
        "pod" => (Method::POST, core("pods"), body(&pod(at))),
        "custom" => (Method::POST, author::path(&plural), body(&author::custom(&plural, &format!("one-{at}"), at))),
        _ => {
            let name = format!("web-{}", at % DEPLOYMENTS);
            let path = "/apis/apps/v1/namespaces/bench-author/deployments";
            let path = format!("{path}/{name}?fieldManager=bench&force=true");
            (Method::PATCH, path, body(&author::deployment(&name, at / DEPLOYMENTS)))
        }
    }
}

fn core(plural: &str) -> String {
    format!("/api/v1/namespaces/bench-author/{plural}")
}

fn body(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

/// About 1 KB.
fn config_map(at: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("map-{at}"), "labels": {"app": "web"}},
        "data": {"key": "x".repeat(900)},
    })
}

/// One with the template of a Deployment, without its volumes of ConfigMaps that are not there.
fn pod(at: usize) -> Value {
    let deployment = author::deployment("web", 0);
    let spec = &deployment["spec"]["template"]["spec"];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("web-{at}"), "labels": {"app": "web"}}, "spec": spec,
    })
}
