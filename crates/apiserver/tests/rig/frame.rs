//! The frame of comparisons: the embedded server and kube-apiserver, the same request to both, and the list of differences.

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Options};

use crate::compare::{Request, normal, send};

/// Both servers, and what differs between them.
pub(crate) struct Comparison {
    theirs: Client,
    ours: Client,
    pub(crate) compared: usize,
    different: Vec<String>,
}

/// A client of the rig's kube-apiserver.
pub(crate) async fn kube_apiserver() -> Client {
    let kubeconfig = std::env::var("STEERSMAN_RIG_KUBECONFIG").expect("run me with `cargo xtask k8s test`");
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Clients of kube-apiserver and of a new embedded server.
pub(crate) async fn clients() -> [Client; 2] {
    [kube_apiserver().await, Client::new(ApiServer::new(Options::default()), "default")]
}

// === impl Comparison ===

impl Comparison {
    /// Creates the namespace on both servers.
    pub(crate) async fn start(namespace: &str) -> Self {
        let [theirs, ours] = clients().await;
        let new = Self { theirs, ours, compared: 0, different: Vec::new() };
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let path = "/api/v1/namespaces".to_owned();
        new.both(&Request { method: "POST", path, content_type: "application/json", body }).await;
        new
    }

    /// Sends a request to both servers, and compares nothing.
    pub(crate) async fn both(&self, request: &Request) -> [(u16, Value); 2] {
        [send(&self.theirs, request).await, send(&self.ours, request).await]
    }

    /// Compares the answers to a request.
    pub(crate) async fn compare(&mut self, request: &Request) {
        let [theirs, ours] = self.both(request).await.map(|(code, body)| (code, normal(&body, "")));
        self.note(theirs == ours, || {
            let Request { method, path, body, .. } = request;
            (format!("{method} {path} {body}"), [format!("{theirs:?}"), format!("{ours:?}")])
        });
    }

    /// Counts a comparison; `shown` is what was compared, and what each server showed.
    pub(crate) fn note(&mut self, is_equal: bool, shown: impl FnOnce() -> (String, [String; 2])) {
        self.compared += 1;
        if !is_equal {
            let (what, [theirs, ours]) = shown();
            self.different.push(format!("== {what}\n   theirs: {theirs}\n   ours:   {ours}"));
        }
    }

    /// Fails if anything differs.
    pub(crate) fn end(self) {
        let Self { compared, different, .. } = self;
        println!("{} of {compared} differ\n{}", different.len(), different.join("\n"));
        assert!(different.is_empty(), "{} of {compared} differ", different.len());
    }
}
