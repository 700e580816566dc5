//! The same writes over TLS, by many clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use http::Method;
use serde_json::json;
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Authorization, Options};

use crate::client::Target;
use crate::{DEPLOYMENTS, author, body, write};

const CONNECTIONS: usize = 8;
const CLIENTS: usize = 64;

pub(crate) fn measure(kind: &str, count: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = ApiServer::new(Options::default().authorization(Authorization::Rbac));
        let listening = Listening::start(&server, ListenOptions::default()).await.expect("a free port");
        let kubeconfig = std::env::temp_dir().join(format!("steersman-writes-{}.kubeconfig", std::process::id()));
        listening.write_kubeconfig(&kubeconfig).expect("a file");
        let target = Target::read(&kubeconfig);
        let _ = std::fs::remove_file(&kubeconfig);
        let connections = target.connections(CONNECTIONS).await;
        let mut first = connections[0].clone();
        first.post("/api/v1/namespaces", body(&json!({"metadata": {"name": "bench-author"}}))).await;
        if kind == "custom" {
            first.post(author::DEFINITIONS, body(&author::definition(&author::plural(0)))).await;
        }
        for at in 0..DEPLOYMENTS {
            let (method, path, body) = write(kind, at);
            first.write(method, &path, body).await;
        }
        let writes: Arc<Vec<_>> = Arc::new((DEPLOYMENTS..DEPLOYMENTS + count).map(|at| write(kind, at)).collect());
        let next = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let clients = (0..CLIENTS).map(|client| {
            let mut connection = connections[client % CONNECTIONS].clone();
            let writes: Arc<Vec<(Method, String, bytes::Bytes)>> = Arc::clone(&writes);
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                while let Some((method, path, body)) = writes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    connection.write(method.clone(), path, body.clone()).await;
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("a client ends well");
        }
        let rate = count as f64 / started.elapsed().as_secs_f64();
        println!("{}", json!({"bench": format!("{kind}, over TLS"), "value": rate, "unit": "/s"}));
    });
}
