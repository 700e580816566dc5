//! Writes to the rig's etcd, past kube-apiserver: it would need minutes for a large population, and here seconds.
//!
//! Through etcd's JSON gateway, on its socket. The server takes objects as JSON as well as it takes its own form, and its caches
//! learn of them by watching etcd.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// The objects of one transaction: etcd takes 128 of them, and 1.5 MB.
const BATCH: usize = 100;
/// The number of concurrent transactions.
const AT_ONCE: usize = 4;
const ROOT: &str = "/registry";

/// An object and its key behind [`ROOT`].
pub(crate) type Entry = (String, Value);

/// The etcd of the rig.
#[derive(Clone)]
pub(crate) struct Etcd(PathBuf);

// === impl Etcd ===

impl Etcd {
    pub(crate) fn at(socket: &Path) -> Self {
        Self(socket.to_owned())
    }

    /// Writes many objects, many in a transaction.
    pub(crate) async fn fill(&self, entries: Vec<Entry>) {
        let batches = entries.chunks(BATCH).map(|batch| {
            let puts: Vec<_> = batch.iter().map(|entry| json!({"request_put": put(entry)})).collect();
            self.post("/v3/kv/txn", json!({"success": puts}))
        });
        let mut sent = stream::iter(batches).buffer_unordered(AT_ONCE);
        while sent.next().await.is_some() {}
    }

    /// Writes one object, with a revision of its own as a client's write has it.
    pub(crate) async fn put(&self, entry: &Entry) {
        self.post("/v3/kv/put", put(entry)).await;
    }

    async fn post(&self, path: &str, body: Value) {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: etcd\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        let mut stream = UnixStream::connect(&self.0).await.expect("etcd's socket");
        stream.write_all(head.as_bytes()).await.expect("a request");
        stream.write_all(body.as_bytes()).await.expect("a request");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.expect("a response");
        assert!(response.starts_with(b"HTTP/1.1 200"), "etcd: {}", String::from_utf8_lossy(&response));
    }
}

fn put((key, object): &Entry) -> Value {
    json!({"key": STANDARD.encode(format!("{ROOT}{key}")), "value": STANDARD.encode(object.to_string())})
}
