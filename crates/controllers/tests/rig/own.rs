//! A rig of a test's own: for what needs all nodes, all of the API, or another manager for itself.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use steersman_runtime::Descriptor;
use steersman_testing::Failure;
use tokio::time::Instant;

use steersman_runtime::__internal::process::dies_with_parent;

/// A kube-apiserver that nobody else uses. It ends with this, or with our process, however that ends.
pub(crate) struct OwnRig {
    /// What runs in the rig is `cat`, which ends when this is closed; and with it the rig.
    stdin: Option<ChildStdin>,
    rigd: Child,
    /// The rig's own directory: keys and kubeconfigs.
    dir: PathBuf,
    scratch: PathBuf,
}

/// The rig's kube-controller-manager. It ends with this.
pub(crate) struct GoManager(Child);

/// Verb and resource of writes, and of which objects.
pub(crate) type Writes = BTreeMap<String, Vec<String>>;

/// Only writes, of those who are not the server itself.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  users: ['system:apiserver']
- level: None
  resources: [{ group: coordination.k8s.io }, { group: authentication.k8s.io }, { group: authorization.k8s.io }]
- level: None
  resources: [{ group: '', resources: [events, serviceaccounts/token] }, { group: events.k8s.io }]
- level: Metadata
";

/// Services of both families.
const DUAL_STACK: &str = "--apiserver-flag=--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/108";
/// Longer than upstream's batching, and than the first steps of back-offs.
const STILL_FOR: Duration = Duration::from_secs(5);
const STILL_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Controllers that are not taken over in tests: the nodes there have no kubelets, nobody asks for certificates or joins, and the
/// server does not have the APIs that are off by default.
const LEFT_OUT: &[&str] = &[
    "podgroup-protection-controller",
    "resourcepoolstatusrequest-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "certificatesigningrequest-signing-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "podcertificaterequest-cleaner-controller",
    "bootstrap-signer-controller",
    "token-cleaner-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "storageversion-garbage-collector-controller",
];

/// The controllers that both managers run.
pub(crate) fn taken_over() -> Vec<Descriptor> {
    steersman_controllers::ALL.iter().filter(|controller| !LEFT_OUT.contains(&controller.name)).copied().collect()
}

// === impl OwnRig ===

impl OwnRig {
    /// Starts it; answers when it is ready.
    pub(crate) async fn start(test: &str) -> Result<Self, Failure> {
        Self::start_with(test, &[]).await
    }

    /// Starts it with further flags of the API server, such as feature gates; answers when it is ready.
    pub(crate) async fn start_with(test: &str, flags: &[&str]) -> Result<Self, Failure> {
        let bin = PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?);
        let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)?;
        let policy = scratch.join("policy.yaml");
        std::fs::write(&policy, AUDIT_POLICY)?;
        let mut rigd = Command::new(bin.join("rigd"))
            .arg("--bin-dir")
            .arg(&bin)
            .arg("--state-dir")
            .arg(scratch.join("running"))
            .arg("--audit-log")
            .arg(scratch.join("audit.log"))
            .arg("--audit-policy")
            .arg(&policy)
            .args(flags.iter().map(|flag| format!("--apiserver-flag={flag}")))
            .args([DUAL_STACK, "--", "sh", "-c", "echo \"$STEERSMAN_RIG_DIR\"; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = rigd.stdin.take();
        let stdout = rigd.stdout.take();
        let stdout = stdout.ok_or_else(|| Failure::new("the rig says nothing"))?;
        let first_line = tokio::task::spawn_blocking(move || BufReader::new(stdout).lines().next()).await?;
        let dir = first_line.ok_or_else(|| Failure::new("the rig did not start; its error is above"))??.into();
        Ok(Self { stdin, rigd, dir, scratch })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    /// Starts kube-controller-manager, with an account per controller as kubeadm has it.
    pub(crate) fn start_go(&self) -> Result<GoManager, Failure> {
        let file = |name: &str| self.dir.join(name).display().to_string();
        let program = PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?).join("kube-controller-manager");
        let log = std::fs::File::options().create(true).append(true).open(self.scratch.join("go.log"))?;
        let controllers: Vec<_> = taken_over().iter().map(|controller| controller.name).collect();
        let child = dies_with_parent(&program)
            .args([
                format!("--kubeconfig={}", file("controller-manager.kubeconfig")),
                format!("--controllers={}", controllers.join(",")),
                format!("--service-account-private-key-file={}", file("sa.key")),
                format!("--root-ca-file={}", file("ca.crt")),
                "--allocate-node-cidrs".to_owned(),
                "--cluster-cidr=10.128.0.0/9".to_owned(),
                "--node-cidr-mask-size=22".to_owned(),
            ])
            .args(["--use-service-account-credentials=true", "--leader-elect=false", "--secure-port=0"])
            .args(["--kube-api-qps=1000", "--kube-api-burst=1000"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(GoManager(child))
    }

    /// The root certificate, and the key that signs tokens.
    pub(crate) fn certificate_and_key(&self) -> Result<(String, Vec<u8>), Failure> {
        Ok((std::fs::read_to_string(self.dir.join("ca.crt"))?, std::fs::read(self.dir.join("sa.key"))?))
    }

    /// How many writes there were so far.
    pub(crate) fn mark(&self) -> Result<usize, Failure> {
        Ok(self.entries()?.len())
    }

    /// What was written since then, events and leases left out; and collections, since a namespace that cannot go is emptied
    /// again and again.
    pub(crate) fn writes_since(&self, mark: usize) -> Result<Writes, Failure> {
        let mut writes = Writes::new();
        for entry in self.entries()?.split_off(mark) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if entry["verb"] == "deletecollection" {
                continue;
            }
            let about = &entry["objectRef"];
            let mut resource = text(&about["resource"]);
            if about["subresource"].is_string() {
                resource += &format!("/{}", text(&about["subresource"]));
            }
            let name =
                format!("{}/{} by {}", text(&about["namespace"]), text(&about["name"]), text(&entry["userAgent"]));
            writes.entry(format!("{} {resource}", text(&entry["verb"]))).or_default().push(name);
        }
        Ok(writes)
    }

    fn entries(&self) -> Result<Vec<Value>, Failure> {
        let log = std::fs::read_to_string(self.scratch.join("audit.log")).unwrap_or_default();
        // The last line may be on its way.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        Ok(whole.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// Waits until nobody has written for a while, and at least so long.
    pub(crate) async fn still(&self, at_least: Duration) -> Result<(), Failure> {
        let began = Instant::now();
        let mut seen = self.mark()?;
        let mut since = began;
        while since.elapsed() < STILL_FOR || began.elapsed() < at_least {
            if began.elapsed() > STILL_WITHIN {
                return Err(Failure::new(format!("it never becomes still: {:?}", self.writes_since(seen)?)));
            }
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.mark()?;
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        Ok(())
    }
}

impl Drop for OwnRig {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.rigd.wait();
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

// === impl GoManager ===

impl Drop for GoManager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
