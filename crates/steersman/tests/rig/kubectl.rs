//! Real kubectl against `steersman up`, over TLS.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use steersman_testing::Failure;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// A cluster of its own for a test, and the kubectl that talks to it.
struct Up {
    child: Child,
    kubeconfig: PathBuf,
}

/// Far longer than any command takes; what does not end by then hangs.
const PATIENCE: Duration = Duration::from_secs(60);

impl Up {
    async fn start(controllers: &str) -> Result<Self, Failure> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steersman"))
            .args(["up", "--ephemeral", "--nodes=0", "--port=0", &format!("--controllers={controllers}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("no output"))?;
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = tokio::time::timeout(PATIENCE, lines.next_line()).await?? {
            if let Some(path) = line.strip_prefix("kubeconfig:") {
                return Ok(Self { child, kubeconfig: path.trim().into() });
            }
        }
        Err(Failure::new("`steersman up` ended before it said where its kubeconfig is"))
    }

    /// Runs kubectl; `input` is its standard input. Answers what it printed, or what it complained of.
    async fn try_kubectl(&self, args: &str, input: &str) -> Result<Result<String, String>, Failure> {
        let kubectl = PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?).join("kubectl");
        let mut child = Command::new(kubectl)
            .args(args.split_whitespace())
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
            .await
            .map_err(|_| Failure::new(format!("kubectl {args} hangs")))??;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
    }

    async fn kubectl(&self, args: &str) -> Result<String, Failure> {
        self.kubectl_with(args, "").await
    }

    async fn kubectl_with(&self, args: &str, input: &str) -> Result<String, Failure> {
        self.try_kubectl(args, input).await?.map_err(|error| Failure::new(format!("kubectl {args}: {error}")))
    }

    async fn json(&self, args: &str) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.kubectl(&format!("{args} -o json")).await?)?)
    }

    /// Asks it to end, and holds it to doing so in good order.
    async fn down(mut self) -> Result<(), Failure> {
        let id = self.child.id().ok_or_else(|| Failure::new("`steersman up` has ended by itself"))?;
        Command::new("kill").arg(id.to_string()).status().await?;
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await??;
        assert!(status.success(), "SIGTERM ends it with success");
        assert!(!self.kubeconfig.exists(), "the kubeconfig goes with the cluster");
        Ok(())
    }
}

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, labels: { app: web } }
data: { colour: blue }
";

const WEB: &str = include_str!("../../../../examples/web.yaml");

#[tokio::test]
async fn objects_are_made_read_changed_and_deleted() -> Result<(), Failure> {
    let up = Up::start("none").await?;
    up.kubectl_with("create -f -", CONFIG).await?;
    let again = up.try_kubectl("create -f -", CONFIG).await?.unwrap_err();
    assert!(again.contains("AlreadyExists"), "{again}");

    up.kubectl_with("apply -f -", &CONFIG.replace("blue", "red")).await?;
    assert_eq!(up.json("get cm settings").await?["data"]["colour"], "red");
    up.kubectl("label cm settings tier=front").await?;
    up.kubectl("annotate cm settings note=hello").await?;
    up.kubectl(r#"patch cm settings --type=merge -p {"data":{"size":"big"}}"#).await?;
    up.kubectl(r#"patch cm settings --type=json -p [{"op":"remove","path":"/data/colour"}]"#).await?;
    let settings = up.json("get cm settings").await?;
    assert_eq!(settings["metadata"]["labels"]["tier"], "front");
    assert_eq!(settings["metadata"]["annotations"]["note"], "hello");
    assert_eq!(settings["data"], serde_json::json!({ "size": "big" }));

    let columns = up.kubectl("get cm -l app=web -o custom-columns=NAME:.metadata.name,SIZE:.data.size").await?;
    assert_eq!(
        columns.lines().nth(1).map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["settings", "big"])
    );
    assert!(up.kubectl("get cm settings -o yaml").await?.contains("size: big"));
    assert!(up.kubectl("describe cm settings").await?.contains("big"));

    let bad = up.try_kubectl("create -f -", &CONFIG.replace("settings", "Not_A_Name")).await?.unwrap_err();
    assert!(bad.contains("metadata.name: Invalid value"), "{bad}");
    up.kubectl("delete cm settings").await?;
    let gone = up.try_kubectl("get cm settings", "").await?.unwrap_err();
    assert!(gone.contains("NotFound"), "{gone}");
    up.down().await
}

#[tokio::test]
async fn discovery_and_explain_show_the_api() -> Result<(), Failure> {
    let up = Up::start("none").await?;
    let resources = up.kubectl("api-resources --no-headers").await?;
    for name in ["pods", "deployments", "endpointslices", "customresourcedefinitions"] {
        assert!(resources.lines().any(|line| line.starts_with(name)), "{name} is missing in:\n{resources}");
    }
    assert!(up.kubectl("api-versions").await?.lines().any(|line| line == "apps/v1"));
    let explained = up.kubectl("explain deployment.spec.strategy").await?;
    assert!(explained.contains("rollingUpdate") && explained.contains("KIND:       Deployment"), "{explained}");
    let namespaces = up.kubectl("get ns -o name").await?;
    assert_eq!(namespaces.lines().count(), 4, "{namespaces}");
    assert!(up.kubectl("version").await?.contains("Server Version: v1.37"));
    up.down().await
}

#[tokio::test]
async fn a_replica_set_is_scaled_waited_for_and_deleted_in_each_cascade_mode() -> Result<(), Failure> {
    let up = Up::start("replicaset").await?;
    up.kubectl_with("apply -f -", WEB).await?;
    up.kubectl("wait rs/web --for=jsonpath={.status.replicas}=3 --timeout=30s").await?;
    up.kubectl("scale rs web --replicas=5").await?;
    up.kubectl("wait rs/web --for=jsonpath={.status.replicas}=5 --timeout=30s").await?;
    let wide = up.kubectl("get rs web -o wide").await?;
    assert!(wide.contains("example/web:1") && wide.contains("app=web"), "{wide}");
    assert!(up.kubectl("describe rs web").await?.contains("5 current / 5 desired"));

    up.kubectl("delete rs web --cascade=foreground --wait=false").await?;
    let set = up.json("get rs web").await?;
    assert_eq!(set["metadata"]["finalizers"], serde_json::json!(["foregroundDeletion"]), "it waits for its dependents");
    up.kubectl(r#"patch rs web --type=merge -p {"metadata":{"finalizers":null}}"#).await?;
    up.kubectl_with("create -f -", &WEB.replace("name: web", "name: other")).await?;
    up.kubectl("delete rs other --cascade=orphan --wait=false").await?;
    assert_eq!(up.json("get rs other").await?["metadata"]["finalizers"], serde_json::json!(["orphan"]));
    up.kubectl_with("create -f -", &WEB.replace("name: web", "name: third")).await?;
    up.kubectl("delete rs third --cascade=background").await?;
    assert!(up.try_kubectl("get rs third", "").await?.is_err());
    up.down().await
}

#[tokio::test]
async fn a_watch_shows_changes_as_they_happen() -> Result<(), Failure> {
    let up = Up::start("none").await?;
    let kubectl = PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?).join("kubectl");
    let mut watch = Command::new(kubectl)
        .args(["get", "cm", "-w", "-o", "name"])
        .env("KUBECONFIG", &up.kubeconfig)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = watch.stdout.take().ok_or_else(|| Failure::new("no output"))?;
    let mut lines = BufReader::new(stdout).lines();
    up.kubectl_with("create -f -", CONFIG).await?;
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await??;
    assert_eq!(line.as_deref(), Some("configmap/settings"));
    watch.kill().await?;
    up.down().await
}
