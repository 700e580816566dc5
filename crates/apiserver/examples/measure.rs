//! Measures the server in process and over TLS: `cargo run --release -p steersman-apiserver --example measure`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement")]

use std::time::Instant;

use futures::StreamExt;
use http_body_util::BodyExt;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};
use tower::ServiceExt;

fn rss() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

async fn call(server: &ApiServer, method: &str, path: &str, body: String) -> bytes::Bytes {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .body(http_body_util::Full::new(bytes::Bytes::from(body)))
        .unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    response.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::main]
async fn main() {
    let started = Instant::now();
    let server = ApiServer::new(Options::default());
    call(&server, "GET", "/api/v1/namespaces", String::new()).await;
    println!("start to first list: {:?}, rss {} KB", started.elapsed(), rss());
    let started = Instant::now();
    let listening = Listening::start(&server, ListenOptions::default()).await.unwrap();
    println!("listening: {:?}, rss {} KB", started.elapsed(), rss());

    let data = "x".repeat(900);
    let map = |at: usize| {
        json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":format!("m{at}"),"labels":{"app":"web"}},"data":{"a":data}}).to_string()
    };
    let before = rss();
    let started = Instant::now();
    let count = 20_000;
    let mut bytes = 0;
    for at in 0..count {
        bytes += call(&server, "POST", "/api/v1/namespaces/default/configmaps", map(at)).await.len();
    }
    let took = started.elapsed();
    println!(
        "in process, one client: {:.0} creates/s; {:.2} bytes kept per JSON byte",
        f64::from(count as u32) / took.as_secs_f64(),
        (rss() - before) as f64 * 1024.0 / bytes as f64
    );

    let pod = |at: usize| {
        json!({"metadata":{"name":format!("p{at}"),"labels":{"app":"web"}},"spec":{"containers":(0..6).map(|c| json!({"name":format!("c{c}"),"image":"nginx","env":(0..10).map(|e| json!({"name":format!("E{e}"),"value":"v".repeat(40)})).collect::<Vec<_>>()})).collect::<Vec<_>>()}}).to_string()
    };
    let started = Instant::now();
    for at in 0..10_000 {
        call(&server, "POST", "/api/v1/namespaces/default/pods", pod(at)).await;
    }
    println!("pods: {:.0} creates/s", 10_000.0 / started.elapsed().as_secs_f64());
    let started = Instant::now();
    let list = call(&server, "GET", "/api/v1/pods", String::new()).await;
    println!(
        "list in process: {} MB, {:.0} MB/s",
        list.len() >> 20,
        list.len() as f64 / 1e6 / started.elapsed().as_secs_f64()
    );

    let kubeconfig = kube::config::Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let started = Instant::now();
    let request = http::Request::get("/api/v1/pods").body(Vec::new()).unwrap();
    let text = client.request_text(request).await.unwrap();
    println!(
        "list over TLS: {} MB, {:.0} MB/s",
        text.len() >> 20,
        text.len() as f64 / 1e6 / started.elapsed().as_secs_f64()
    );

    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let started = Instant::now();
    let work = (0..64).map(|worker| {
        let maps = maps.clone();
        let data = data.clone();
        tokio::spawn(async move {
            for at in 0..200 {
                let map =
                    serde_json::from_value(json!({"metadata":{"name":format!("w{worker}-{at}")},"data":{"a":data}}))
                        .unwrap();
                maps.create(&PostParams::default(), &map).await.unwrap();
            }
        })
    });
    for task in work.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    println!("over TLS, 64 clients: {:.0} creates/s", 64.0 * 200.0 / started.elapsed().as_secs_f64());
    maps.list(&ListParams::default().limit(1)).await.unwrap();

    let path = format!("/api/v1/namespaces/default/secrets?watch=true&resourceVersion={}", server.revision());
    let mut watchers = futures::stream::FuturesUnordered::new();
    for _ in 0..1000 {
        let request = http::Request::get(&path).body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        let mut body = server.clone().oneshot(request).await.unwrap().into_body();
        watchers.push(tokio::spawn(async move { body.frame().await.unwrap().unwrap().into_data().unwrap().len() }));
    }
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let started = Instant::now();
    call(&server, "POST", "/api/v1/namespaces/default/secrets", json!({"metadata":{"name":"s"}}).to_string()).await;
    while watchers.next().await.is_some() {}
    println!("one change to 1,000 watchers: {:?}; rss {} KB", started.elapsed(), rss());
}
