//! The server as the rig's kubectl sees it, over TLS and on the normal clock: `cargo xtask k8s test`.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: nginx, image: nginx}]}
";

/// A server and a kubectl that talks to it.
struct Kubectl {
    program: PathBuf,
    folder: PathBuf,
    _listening: Listening,
}

impl Kubectl {
    async fn start() -> Self {
        let bin = std::env::var_os("STEERSMAN_RIG_BIN").expect("run me with `cargo xtask k8s test`");
        let program = PathBuf::from(bin).join("kubectl");
        let listening = Listening::start(&ApiServer::new(Options::default()), ListenOptions::default()).await.unwrap();
        let folder = std::env::temp_dir().join(format!("steersman-kubectl-{}", listening.address().port()));
        std::fs::create_dir_all(&folder).unwrap();
        listening.write_kubeconfig(&folder.join("config")).unwrap();
        Self { program, folder, _listening: listening }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(self.folder.join("config")).arg("--cache-dir").arg(self.folder.join("cache"));
        command.args(line.split_whitespace()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What it prints when it succeeds; the words of the line are separated by spaces.
    async fn run_with(&self, line: &str, input: &str) -> String {
        let mut child = self.command(line).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = tokio::time::timeout(Duration::from_secs(60), child.wait_with_output()).await.unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {line}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    async fn run(&self, line: &str) -> String {
        self.run_with(line, "").await
    }

    async fn expect(&self, line: &str, part: &str) {
        let printed = self.run(line).await;
        assert!(printed.contains(part), "kubectl {line}: no {part:?} in\n{printed}");
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn kubectl_creates_shows_and_changes() {
    let kubectl = Kubectl::start().await;
    kubectl.run_with("create -f -", DEPLOYMENT).await;
    kubectl.expect("get deployments -o wide", "nginx").await;
    kubectl.expect("get deployment web -o yaml", "progressDeadlineSeconds: 600").await;
    kubectl.expect("get deployment web -o custom-columns=N:.metadata.name,R:.spec.replicas", "web   2").await;
    kubectl.expect("describe deployment web", "RollingUpdate").await;
    kubectl.expect("label deployment web a=b", "labeled").await;
    kubectl.expect("annotate deployment web c=d", "annotated").await;
    kubectl.expect("patch deployment web -p {\"spec\":{\"paused\":true}}", "patched").await;
    kubectl.expect("scale deployment web --replicas=5", "scaled").await;
    kubectl.expect("wait deployment/web --for=jsonpath={.spec.replicas}=5 --timeout=10s", "met").await;
    kubectl.expect("explain deployment.spec.replicas", "<integer>").await;
    kubectl.expect("api-resources", "deployments").await;
    kubectl.expect("get deployments --selector a=b", "web").await;
}

#[tokio::test]
async fn kubectl_applies() {
    let kubectl = Kubectl::start().await;
    kubectl.run_with("apply -f -", DEPLOYMENT).await;
    let changed = DEPLOYMENT.replace("image: nginx", "image: nginx:2");
    let printed = kubectl.run_with("apply -f -", &changed).await;
    assert!(printed.contains("configured"), "{printed}");
    let printed = kubectl.run_with("apply -f -", &changed).await;
    assert!(printed.contains("unchanged"), "{printed}");
    kubectl.expect("get deployment web -o jsonpath={.metadata.generation}", "2").await;
}

#[tokio::test]
async fn kubectl_deletes_with_each_cascade_mode() {
    let kubectl = Kubectl::start().await;
    for (mode, finalizer) in [("background", ""), ("orphan", "orphan"), ("foreground", "foregroundDeletion")] {
        kubectl.run_with("create -f -", DEPLOYMENT).await;
        kubectl.run(&format!("delete deployment web --cascade={mode} --wait=false")).await;
        let left = kubectl.run("get deployments --ignore-not-found -o jsonpath={.items[*].metadata.finalizers}").await;
        assert!(left.contains(finalizer) && left.is_empty() == finalizer.is_empty(), "{mode}: {left}");
        if !finalizer.is_empty() {
            kubectl.run("patch deployment web --type=merge -p {\"metadata\":{\"finalizers\":null}}").await;
        }
    }
    kubectl.expect("get deployments -o name", "").await;
}

#[tokio::test]
async fn kubectl_watches() {
    let kubectl = Kubectl::start().await;
    kubectl.run_with("create -f -", DEPLOYMENT).await;
    let mut child = kubectl.command("get deployments -w").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        async || tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(next().await.starts_with("NAME"));
    assert!(next().await.contains("0/2"));
    kubectl.run("scale deployment web --replicas=3").await;
    assert!(next().await.contains("0/3"));
    child.kill().await.unwrap();
}
