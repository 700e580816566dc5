//! Changes of ConfigMaps at a fixed rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use http::{Method, Request, header};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::controller::{SENT, now_nanos};

/// More than any rate here needs to come round before the first one's event is seen.
pub(crate) const OBJECTS: usize = 1_000;
/// Bytes of data in each.
const DATA_BYTES: usize = 1_024;
const CREATORS: usize = 16;
/// A server that is this far behind is not one whose latency is measured; the rate that was reached shows it.
const IN_FLIGHT_MAX: usize = 256;
/// Changes before the clock starts: connections are open then, and caches warm.
const WARM_UP: usize = 500;

/// ConfigMaps of a namespace.
pub(crate) struct Load {
    client: Client,
    namespace: String,
}

impl Load {
    pub(crate) async fn new(client: Client, namespace: &str) -> Self {
        let load = Self { client, namespace: namespace.to_owned() };
        load.send(Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        load
    }

    pub(crate) async fn create(&self) {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let create = |number| {
            let data = json!({"value": "x".repeat(DATA_BYTES)});
            let body = json!({"metadata": {"name": format!("map-{number}")}, "data": data});
            let path = &path;
            async move { self.send(Method::POST, path, &body).await }
        };
        stream::iter(0..OBJECTS).map(create).buffer_unordered(CREATORS).collect::<Vec<()>>().await;
    }

    /// Without a time in it, as fast as a few clients can.
    pub(crate) async fn warm_up(&self) {
        let change = |number: usize| {
            let annotations = json!({"bench/warm": number.to_string()});
            self.patch(number, annotations)
        };
        stream::iter(0..WARM_UP).map(change).buffer_unordered(CREATORS).collect::<Vec<()>>().await;
    }

    /// One object after the other, `per_second`, for a time: how many, and how many per second it became.
    pub(crate) async fn change(self: &Arc<Self>, per_second: u32, time: Duration) -> (usize, f64) {
        let total = (f64::from(per_second) * time.as_secs_f64()) as usize;
        let permits = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        let start = Instant::now();
        let mut sent = 0;
        while sent < total {
            ticks.tick().await;
            let due = (start.elapsed().as_secs_f64() * f64::from(per_second)) as usize;
            while sent < due.min(total) {
                let permit = Arc::clone(&permits).acquire_owned().await.expect("it is never closed");
                let load = Arc::clone(self);
                let number = sent;
                tokio::spawn(async move {
                    load.patch(number, json!({SENT: now_nanos().to_string()})).await;
                    drop(permit);
                });
                sent += 1;
            }
        }
        let took = start.elapsed();
        let _all_answered = permits.acquire_many(IN_FLIGHT_MAX as u32).await;
        (total, total as f64 / took.as_secs_f64())
    }

    async fn patch(&self, number: usize, annotations: Value) {
        let path = format!("/api/v1/namespaces/{}/configmaps/map-{}", self.namespace, number % OBJECTS);
        self.send(Method::PATCH, &path, &json!({"metadata": {"annotations": annotations}})).await;
    }

    async fn send(&self, method: Method, path: &str, body: &Value) {
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .body(Body::from(body.to_string().into_bytes()))
            .expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let status = response.status();
        let answer = response.into_body().collect_bytes().await.expect("a body");
        assert!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&answer));
    }
}
