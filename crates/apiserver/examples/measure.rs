//! Measures the server in process and over TLS: `cargo run --release -p steersman-apiserver --example measure`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a measurement: real time, and no errors expected")]

use std::time::Instant;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, Empty, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};
use tower::ServiceExt;

const CONFIG_MAPS: usize = 20_000;
const PODS: usize = 10_000;
const CLIENTS: usize = 64;
const CREATES_PER_CLIENT: usize = 200;
const WATCHERS: usize = 1000;

#[tokio::main]
async fn main() {
    let started = Instant::now();
    let server = ApiServer::new(Options::default());
    call(&server, "GET", "/api/v1/namespaces", String::new()).await;
    println!("start to first list in process: {:?}; {} KB resident", started.elapsed(), resident_kb());
    let started = Instant::now();
    let listening = Listening::start(&server, ListenOptions::default()).await.unwrap();
    println!("listening with TLS after {:?} more; {} KB resident", started.elapsed(), resident_kb());
    creates(&server).await;
    let client = client(&listening).await;
    lists(&server, &client).await;
    creates_over_tls(&client).await;
    watchers(&server).await;
}

async fn client(listening: &Listening) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Creates of 1 KB ConfigMaps, one after the other, and what they cost to keep.
async fn creates(server: &ApiServer) {
    let before = resident_kb();
    let started = Instant::now();
    let mut bytes = 0;
    for at in 0..CONFIG_MAPS {
        let path = "/api/v1/namespaces/default/configmaps";
        bytes += call(server, "POST", path, config_map(&format!("m{at}"))).await.len();
    }
    println!("creates in process, one client: {:.0}/s", CONFIG_MAPS as f64 / started.elapsed().as_secs_f64());
    let kept = (resident_kb() - before) as f64 * 1024.0;
    println!("kept per byte of JSON: {:.2} bytes, history included", kept / bytes as f64);
}

async fn lists(server: &ApiServer, client: &kube::Client) {
    let started = Instant::now();
    for at in 0..PODS {
        call(server, "POST", "/api/v1/namespaces/default/pods", pod(&format!("p{at}"))).await;
    }
    println!("creates of pods in process: {:.0}/s", PODS as f64 / started.elapsed().as_secs_f64());
    let started = Instant::now();
    let list = call(server, "GET", "/api/v1/pods", String::new()).await;
    println!("list of {PODS} pods in process: {:.0} MB/s", list.len() as f64 / 1e6 / started.elapsed().as_secs_f64());
    let started = Instant::now();
    let request = http::Request::get("/api/v1/pods").body(Vec::new()).unwrap();
    let list = client.request_text(request).await.unwrap();
    println!("list of {PODS} pods over TLS: {:.0} MB/s", list.len() as f64 / 1e6 / started.elapsed().as_secs_f64());
}

async fn creates_over_tls(client: &kube::Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let started = Instant::now();
    let work = (0..CLIENTS).map(|client| {
        let maps = maps.clone();
        tokio::spawn(async move {
            for at in 0..CREATES_PER_CLIENT {
                let map = serde_json::from_str(&config_map(&format!("w{client}-{at}"))).unwrap();
                maps.create(&PostParams::default(), &map).await.unwrap();
            }
        })
    });
    futures::future::join_all(work.collect::<Vec<_>>()).await;
    let count = (CLIENTS * CREATES_PER_CLIENT) as f64;
    println!("creates over TLS, {CLIENTS} clients: {:.0}/s", count / started.elapsed().as_secs_f64());
}

async fn watchers(server: &ApiServer) {
    let path = format!("/api/v1/namespaces/default/secrets?watch=true&resourceVersion={}", server.revision());
    let mut watchers = futures::stream::FuturesUnordered::new();
    for _ in 0..WATCHERS {
        let request = http::Request::get(&path).body(Empty::<Bytes>::new()).unwrap();
        let mut body = server.clone().oneshot(request).await.unwrap().into_body();
        watchers.push(tokio::spawn(async move { body.frame().await.is_some() }));
    }
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let started = Instant::now();
    let secret = json!({"metadata": {"name": "s"}}).to_string();
    call(server, "POST", "/api/v1/namespaces/default/secrets", secret).await;
    while watchers.next().await.is_some() {}
    println!("one change to {WATCHERS} watchers: {:?}; {} KB resident", started.elapsed(), resident_kb());
}

fn config_map(name: &str) -> String {
    json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"a": "x".repeat(900)}}).to_string()
}

fn pod(name: &str) -> String {
    let env: Vec<_> = (0..10).map(|at| json!({"name": format!("E{at}"), "value": "v".repeat(40)})).collect();
    let containers: Vec<_> = (0..6).map(|at| json!({"name": format!("c{at}"), "image": "nginx", "env": env})).collect();
    json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": containers}}).to_string()
}

async fn call(server: &ApiServer, method: &str, path: &str, body: String) -> Bytes {
    let request = http::Request::builder().method(method).uri(path).body(Full::new(Bytes::from(body))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    response.into_body().collect().await.unwrap().to_bytes()
}

/// Memory of this process, where the system reports it.
fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
