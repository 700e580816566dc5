//! The API of a cluster, as far as the load needs it.

use std::path::Path;
use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt, StreamExt, stream};
use http::{Method, Request};
use kube::Client;
use serde_json::Value;
use steersman_runtime::connection::{Connection, Options};

/// The number of concurrent requests; more would only wait in the server.
const AT_ONCE: usize = 32;
/// The polling period: fine enough for what takes a second, and little load.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The time limit of a wait; the slowest takes a fifth of this where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(300);
/// The time limit of a server that has just started.
const START: Duration = Duration::from_secs(30);

/// A cluster, as its administrator.
#[derive(Clone)]
pub(crate) struct Api(Client);

/// One request, made before the clock starts.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

// === impl Call ===

impl Call {
    pub(crate) fn create(path: &str, object: &Value) -> Self {
        Self { method: Method::POST, path: path.to_owned(), body: object.to_string().into_bytes() }
    }

    pub(crate) fn patch(path: String, patch: &Value) -> Self {
        Self { method: Method::PATCH, path, body: patch.to_string().into_bytes() }
    }

    /// With its dependents, in the background, as kubectl does.
    pub(crate) fn delete(path: String) -> Self {
        let options = serde_json::json!({"propagationPolicy": "Background"});
        Self { method: Method::DELETE, path, body: options.to_string().into_bytes() }
    }

    /// At once: nothing confirms the end of a pod.
    pub(crate) fn delete_now(path: String) -> Self {
        let options = serde_json::json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0});
        Self { method: Method::DELETE, path, body: options.to_string().into_bytes() }
    }

    fn request(self) -> Request<Vec<u8>> {
        let kind = if self.method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(self.method).uri(self.path).header(http::header::CONTENT_TYPE, kind);
        request.body(self.body).expect("a request")
    }
}

// === impl Api ===

impl Api {
    /// Waits until the server of the kubeconfig, which may not even be written yet, is ready.
    pub(crate) async fn connect(kubeconfig: &Path) -> Self {
        let since = Instant::now();
        while !kubeconfig.exists() {
            assert!(since.elapsed() < START, "no kubeconfig {} after {START:?}", kubeconfig.display());
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let options = Options::default().kubeconfig(kubeconfig);
        let connection = Connection::load(options).await.expect("a kubeconfig that is one");
        let host = connection.server();
        assert!(host.contains("//127."), "{host}: a benchmark's load is for the loopback interface only");
        let api = Self(connection.client().await.expect("credentials that work"));
        while !api.is_there("/readyz").await {
            assert!(since.elapsed() < START, "the API server is not ready after {START:?}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        api
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        self.0.request(request).await.unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// The answer of a request as JSON.
    pub(crate) async fn send(&self, call: Call) -> Value {
        let shown = format!("{} {}", call.method, call.path);
        self.0.request(call.request()).await.unwrap_or_else(|error| panic!("{shown}: {error}"))
    }

    /// Sends many requests, several concurrently; the responses are ignored.
    pub(crate) async fn send_all(&self, calls: Vec<Call>) {
        let mut sent = stream::iter(calls)
            .map(|call| async {
                let shown = format!("{} {}", call.method, call.path);
                if let Err(error) = self.0.request_text(call.request()).await {
                    panic!("{shown}: {error}");
                }
            })
            .buffer_unordered(AT_ONCE);
        while sent.next().await.is_some() {}
    }

    /// Counts the updates of one object by a watch, until the future ends.
    pub(crate) async fn updates_during(&self, path: &str, name: &str, work: impl Future<Output = ()>) -> usize {
        let request = format!("{path}?watch=true&fieldSelector=metadata.name%3D{name}");
        let request = Request::get(request).body(Vec::new()).expect("a request");
        let mut lines = self.0.request_stream(request).await.expect("a watch").lines();
        let mut updates = 0;
        tokio::pin!(work);
        loop {
            tokio::select! {
                () = &mut work => return updates,
                line = lines.next() => {
                    let line = line.expect("the watch outlives the work").expect("a line");
                    updates += usize::from(line.starts_with(r#"{"type":"MODIFIED""#));
                }
            }
        }
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        self.send(Call::create("/api/v1/namespaces", &serde_json::json!({"metadata": {"name": name}}))).await;
    }

    /// Returns the number of objects of a resource.
    pub(crate) async fn count(&self, path: &str) -> usize {
        let list = self.get(&format!("{path}?limit=1")).await;
        let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        list["items"].as_array().map_or(0, Vec::len) + usize::try_from(more).unwrap_or(usize::MAX)
    }

    /// Whether a path answers well; a server that does not answer yet has nothing there.
    pub(crate) async fn is_there(&self, path: &str) -> bool {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        self.0.request_text(request).await.is_ok()
    }

    pub(crate) async fn until_count(&self, path: &str, wanted: usize) {
        until(&format!("{wanted} objects at {path}"), || async { self.count(path).await == wanted }).await;
    }

    /// Waits until the list at a path contains a text so often. Nothing is parsed, so that a look at many objects is cheap.
    pub(crate) async fn until_matches(&self, path: &str, text: &str, wanted: usize, every: Duration) {
        let since = Instant::now();
        loop {
            let request = Request::get(path).body(Vec::new()).expect("a request");
            let list = self.0.request_text(request).await.unwrap_or_else(|error| panic!("GET {path}: {error}"));
            let found = list.matches(text).count();
            if found == wanted {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "after {PATIENCE:?} {found} of {wanted} at {path} have {text}");
            tokio::time::sleep(every).await;
        }
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        until(&format!("{path} gone"), || async { !self.is_there(path).await }).await;
    }
}

/// Polls until the condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, look: impl FnMut() -> F) {
    until_within(PATIENCE, what, look).await;
}

/// As [`until`], with a time limit of its own.
pub(crate) async fn until_within<F: Future<Output = bool>>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
) {
    let since = Instant::now();
    while !look().await {
        assert!(since.elapsed() < patience, "after {patience:?} still not: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
