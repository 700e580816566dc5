//! A `steersman up` for a test, and the kubectl that talks to it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use steersman_testing::Failure;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A cluster of its own for a test, and the kubectl that talks to it.
pub(crate) struct Up {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
    /// What kubectl remembers of this cluster; in the user's own directory it would remember others that had the port.
    cache: PathBuf,
    /// Kept open, so that the cluster can go on writing.
    _output: Lines<BufReader<ChildStdout>>,
}

/// What a `kubectl … -w` shows, line by line; it ends with this.
pub(crate) struct Watching {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Far longer than any command takes; what does not end by then hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

impl Up {
    /// A cluster with these flags, on any free port.
    pub(crate) async fn start(flags: &[&str]) -> Result<Self, Failure> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steersman"))
            .args(["up", "--ephemeral", "--port=0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("no output"))?;
        let mut output = BufReader::new(stdout).lines();
        while let Some(line) = tokio::time::timeout(PATIENCE, output.next_line()).await?? {
            if let Some(path) = line.strip_prefix("kubeconfig:") {
                let kubeconfig = PathBuf::from(path.trim());
                let name = kubeconfig.file_stem().unwrap_or_default();
                let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
                return Ok(Self { child, kubeconfig, cache, _output: output });
            }
        }
        Err(Failure::new("`steersman up` ended before it said where its kubeconfig is"))
    }

    /// A cluster as `steersman up` makes it, once all its nodes take pods.
    pub(crate) async fn whole() -> Result<Self, Failure> {
        let up = Self::start(&[]).await?;
        up.wait("nodes --all --for=condition=Ready").await?;
        let taints = |nodes: &Value| {
            nodes["items"].as_array().is_some_and(|nodes| nodes.iter().all(|node| node["spec"]["taints"].is_null()))
        };
        up.until("get nodes", "nodes without taints", |nodes| taints(nodes).then_some(())).await?;
        Ok(up)
    }

    fn command(&self, args: &str) -> Result<Command, Failure> {
        let kubectl = PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?).join("kubectl");
        let mut command = Command::new(kubectl);
        command.args(args.split_whitespace()).env("KUBECONFIG", &self.kubeconfig).kill_on_drop(true);
        command.env("KUBECACHEDIR", &self.cache);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs kubectl; `input` is its standard input. Answers what it printed, or what it complained of.
    pub(crate) async fn try_kubectl(&self, args: &str, input: &str) -> Result<Result<String, String>, Failure> {
        let mut child = self.command(args)?.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
            .await
            .map_err(|_| Failure::new(format!("kubectl {args} hangs")))??;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
    }

    pub(crate) async fn kubectl(&self, args: &str) -> Result<String, Failure> {
        self.kubectl_with(args, "").await
    }

    pub(crate) async fn kubectl_with(&self, args: &str, input: &str) -> Result<String, Failure> {
        self.try_kubectl(args, input).await?.map_err(|error| Failure::new(format!("kubectl {args}: {error}")))
    }

    /// What kubectl complains of.
    pub(crate) async fn refused(&self, args: &str) -> Result<String, Failure> {
        match self.try_kubectl(args, "").await? {
            Ok(text) => Err(Failure::new(format!("kubectl {args} should fail, and says: {text}"))),
            Err(text) => Ok(text),
        }
    }

    pub(crate) async fn json(&self, args: &str) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.kubectl(&format!("{args} -o json")).await?)?)
    }

    /// The names of what `kubectl get` finds.
    pub(crate) async fn names(&self, what: &str) -> Result<Vec<String>, Failure> {
        Ok(self.kubectl(&format!("get {what} -o name")).await?.lines().map(ToOwned::to_owned).collect())
    }

    /// `kubectl wait`, within a bound.
    pub(crate) async fn wait(&self, what: &str) -> Result<String, Failure> {
        self.kubectl(&format!("wait {what} --timeout=40s")).await
    }

    /// Looks until what `kubectl … -o json` shows is as it should be.
    pub(crate) async fn until<T>(
        &self,
        args: &str,
        what: &str,
        look: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, Failure> {
        let looking = async {
            loop {
                if let Some(found) = look(&self.json(args).await?) {
                    return Ok::<T, Failure>(found);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => {
                Err(Failure::new(format!("waited in vain for {what}; kubectl {args}: {}", self.kubectl(args).await?)))
            }
        }
    }

    /// Waits until `kubectl get` finds so many.
    pub(crate) async fn until_count(&self, what: &str, count: usize) -> Result<(), Failure> {
        let is_it = |found: &Value| (found["items"].as_array()?.len() == count).then_some(());
        self.until(&format!("get {what}"), &format!("{count} of {what}"), is_it).await
    }

    /// `kubectl … -w`.
    pub(crate) fn watch(&self, args: &str) -> Result<Watching, Failure> {
        let mut child = self.command(args)?.spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::new("no output"))?;
        Ok(Watching { _child: child, lines: BufReader::new(stdout).lines() })
    }

    /// Sends it a signal, and holds it to ending in good order.
    pub(crate) async fn down_by(mut self, signal: &str) -> Result<(), Failure> {
        let id = self.child.id().ok_or_else(|| Failure::new("`steersman up` has ended by itself"))?;
        Command::new("kill").args(["-s", signal, &id.to_string()]).status().await?;
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await??;
        assert!(status.success(), "SIG{signal} ends it with success");
        assert!(!self.kubeconfig.exists(), "the kubeconfig goes with the cluster");
        Ok(())
    }

    /// Asks it to end, and holds it to doing so in good order.
    pub(crate) async fn down(self) -> Result<(), Failure> {
        self.down_by("TERM").await
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // There is none if nothing was remembered.
        let _ = std::fs::remove_dir_all(&self.cache);
    }
}

impl Watching {
    /// Reads on until a line says this; answers the line.
    pub(crate) async fn until(&mut self, want: &str) -> Result<String, Failure> {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = tokio::time::timeout(PATIENCE, self.lines.next_line()).await else {
                return Err(Failure::new(format!("no line with {want:?}, but: {seen:?}")));
            };
            match line? {
                Some(line) if line.contains(want) => return Ok(line),
                Some(line) => seen.push(line),
                None => return Err(Failure::new(format!("ended without a line with {want:?}: {seen:?}"))),
            }
        }
    }
}
