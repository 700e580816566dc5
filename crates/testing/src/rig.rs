//! A rig of a test's own: a kube-apiserver with flags of the test's choice, and managers beside it.
//!
//! For the tests of this workspace; `cargo xtask k8s test` passes the programs in `STEERSMAN_RIG_BIN`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use kube::Client;
use serde_json::Value;
use steersman_runtime::__internal::process::dies_with_parent;
use steersman_runtime::connection::{self, Options};
use tokio::time::Instant;

use crate::Failure;

/// The flags of an API server, and those that managers need to match it.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Flags of kube-apiserver, which win over the rig's own.
    pub server: &'static [&'static str],
    /// Flags of a controller manager.
    pub manager: &'static [&'static str],
    /// The audit policy.
    pub audit: &'static str,
}

/// A kube-apiserver that nobody else uses. It ends with this, or with our process, however that ends.
#[derive(Debug)]
pub struct Rig {
    /// The program in the rig is `cat`, which ends when this is closed; and with it the rig.
    stdin: Option<ChildStdin>,
    rigd: Child,
    /// The rig's own directory: keys and kubeconfigs.
    dir: PathBuf,
    scratch: PathBuf,
    setup: Setup,
}

/// A running program. It ends with this.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// A file, not a pipe: a program whose pipe nobody reads stands still when it is full.
    log: PathBuf,
}

/// Verb and resource of writes, and of which objects.
pub type Writes = BTreeMap<String, Vec<String>>;

/// Services of both families.
const DUAL_STACK: &str = "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/108";

/// Only writes, of those who are not the server itself.
const WRITES: &str = "apiVersion: audit.k8s.io/v1
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

/// Every request, without bodies.
const REQUESTS: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  users: ['system:apiserver']
- level: Metadata
";

/// The gates that three of the 49 controllers need; the fourth of storage versions, `APIServerIdentity`, is on by default.
macro_rules! gates {
    () => {
        "--feature-gates=StorageVersionAPI=true,DRAResourcePoolStatus=true,GenericWorkload=true"
    };
}

/// Longer than upstream's batching, and than the first steps of back-offs.
const STILL_FOR: Duration = Duration::from_secs(5);
const STILL_WITHIN: Duration = Duration::from_secs(90);
const ENDS_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);

// === impl Setup ===

impl Setup {
    /// The server as it is without flags, with Services of both families.
    pub const DEFAULT: Self = Self { server: &[DUAL_STACK], manager: &[], audit: WRITES };

    /// All 49 controllers of kube-controller-manager: the gates and APIs of the server that some of them need, and the flags
    /// with which a manager runs them all.
    pub const ALL_CONTROLLERS: Self = Self {
        server: &[
            DUAL_STACK,
            gates!(),
            // StorageVersion, ResourcePoolStatusRequest, PodGroup.
            "--runtime-config=internal.apiserver.k8s.io/v1alpha1=true,resource.k8s.io/v1alpha3=true,\
             scheduling.k8s.io/v1beta1=true",
        ],
        manager: &[
            "--controllers=*,bootstrap-signer-controller,token-cleaner-controller,selinux-warning-controller",
            gates!(),
            "--allocate-node-cidrs=true",
            "--cluster-cidr=10.128.0.0/9",
            "--node-cidr-mask-size=22",
        ],
        audit: WRITES,
    };

    /// Returns the set-up with every request in the audit log, not only writes.
    #[must_use]
    pub const fn auditing_requests(self) -> Self {
        Self { audit: REQUESTS, ..self }
    }
}

// === impl Rig ===

impl Rig {
    /// Starts a rig, and returns when it is ready. `directory` is where a test keeps its files (`CARGO_TARGET_TMPDIR`).
    ///
    /// # Errors
    /// The server does not start.
    pub async fn start(directory: &str, test: &str, setup: Setup) -> Result<Self, Failure> {
        let bin = programs()?;
        let scratch = PathBuf::from(directory).join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)?;
        let policy = scratch.join("policy.yaml");
        std::fs::write(&policy, setup.audit)?;
        let mut rigd = Command::new(bin.join("rigd"))
            .arg("--bin-dir")
            .arg(&bin)
            .arg("--state-dir")
            .arg(scratch.join("running"))
            .arg("--audit-log")
            .arg(scratch.join("audit.log"))
            .arg("--audit-policy")
            .arg(&policy)
            .args(setup.server.iter().map(|flag| format!("--apiserver-flag={flag}")))
            .args(["--", "sh", "-c", "echo \"$STEERSMAN_RIG_DIR\"; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = rigd.stdin.take();
        let stdout = rigd.stdout.take();
        let stdout = stdout.ok_or_else(|| Failure::new("the rig says nothing"))?;
        let first_line = tokio::task::spawn_blocking(move || BufReader::new(stdout).lines().next()).await?;
        let dir = first_line.ok_or_else(|| Failure::new("the rig did not start; its error is above"))??.into();
        Ok(Self { stdin, rigd, dir, scratch, setup })
    }

    /// Returns the administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("admin.kubeconfig")
    }

    /// Returns a file of the rig: a key, a certificate or a kubeconfig.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the directory of the test's own files.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Returns the flags of a manager for this server, without those of its port: keys and accounts as kubeadm gives them, and
    /// those of the set-up.
    #[must_use]
    pub fn manager_flags(&self) -> Vec<String> {
        let named = |flag: &str, name: &str| format!("--{flag}={}", self.file(name).display());
        let mut flags = vec![
            named("kubeconfig", "controller-manager.kubeconfig"),
            named("authentication-kubeconfig", "controller-manager.kubeconfig"),
            named("authorization-kubeconfig", "controller-manager.kubeconfig"),
            named("root-ca-file", "ca.crt"),
            named("service-account-private-key-file", "sa.key"),
            named("cluster-signing-cert-file", "ca.crt"),
            named("cluster-signing-key-file", "ca.key"),
            "--use-service-account-credentials=true".to_owned(),
        ];
        flags.extend(self.setup.manager.iter().map(ToString::to_string));
        flags
    }

    /// Starts a program; its output is appended to `NAME.log` in the [`scratch`](Self::scratch).
    ///
    /// # Errors
    /// There is no such program.
    pub fn spawn(&self, name: &str, program: &Path, args: &[String]) -> Result<Process, Failure> {
        Process::start(&self.scratch.join(format!("{name}.log")), dies_with_parent(program).args(args))
    }

    /// Returns the administrator's client of a manager's secure port.
    ///
    /// # Errors
    /// The kubeconfig cannot be read or used.
    pub async fn client_of_port(&self, port: u16) -> Result<Client, Failure> {
        client_of_port(&self.kubeconfig(), port, &self.scratch).await
    }

    /// Returns the root certificate, and the key that signs tokens.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn certificate_and_key(&self) -> Result<(String, Vec<u8>), Failure> {
        Ok((std::fs::read_to_string(self.file("ca.crt"))?, std::fs::read(self.file("sa.key"))?))
    }

    /// Returns how many entries the audit log has.
    ///
    /// # Errors
    /// The log is not one of an audit.
    pub fn mark(&self) -> Result<usize, Failure> {
        Ok(self.entries()?.len())
    }

    /// Returns the writes since a mark, without those of events and leases; and without collections, since a namespace that
    /// cannot go is emptied again and again.
    ///
    /// # Errors
    /// The log is not one of an audit.
    pub fn writes_since(&self, mark: usize) -> Result<Writes, Failure> {
        let mut writes = Writes::new();
        for entry in self.entries()?.split_off(mark) {
            if entry["verb"] == "deletecollection" {
                continue;
            }
            let about = &entry["objectRef"];
            let name =
                format!("{}/{} by {}", text(&about["namespace"]), text(&about["name"]), text(&entry["userAgent"]));
            writes.entry(request(&entry)).or_default().push(name);
        }
        Ok(writes)
    }

    /// Returns the entries of the audit log.
    ///
    /// # Errors
    /// The log is not one of an audit.
    pub fn entries(&self) -> Result<Vec<Value>, Failure> {
        let log = std::fs::read_to_string(self.scratch.join("audit.log")).unwrap_or_default();
        // The last line may be on its way.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        Ok(whole.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// Waits until nobody has written for a while, and at least so long.
    ///
    /// # Errors
    /// Somebody writes all the time.
    pub async fn still(&self, at_least: Duration) -> Result<(), Failure> {
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
                seen = now;
                since = Instant::now();
            }
        }
        Ok(())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.rigd.wait();
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

// === impl Process ===

impl Process {
    /// Starts a command; its output is appended to a file.
    ///
    /// # Errors
    /// There is no such program.
    pub fn start(log: &Path, command: &mut Command) -> Result<Self, Failure> {
        let output = std::fs::File::options().create(true).append(true).open(log)?;
        let child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Returns its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its output so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn said(&self) -> Result<String, Failure> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned())
    }

    /// Asks it to end, waits for that, and returns its exit code.
    ///
    /// # Errors
    /// It goes on.
    pub async fn terminate(mut self) -> Result<i32, Failure> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        let began = Instant::now();
        while began.elapsed() < ENDS_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(Failure::new("it was asked to end, and goes on"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or is not wanted any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the directory of the rig's programs.
///
/// # Errors
/// There is no rig: run the test through `cargo xtask k8s test`.
pub fn programs() -> Result<PathBuf, Failure> {
    let missing = |_| Failure::new("STEERSMAN_RIG_BIN is not set: run this through `cargo xtask k8s test`");
    std::env::var("STEERSMAN_RIG_BIN").map(PathBuf::from).map_err(missing)
}

/// Returns a port that nobody listens on.
///
/// # Errors
/// The system has none left.
pub fn free_port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Returns a client of a secure port on this machine, with the credentials of a kubeconfig; it takes any certificate.
///
/// # Errors
/// The kubeconfig cannot be read or used.
pub async fn client_of_port(kubeconfig: &Path, port: u16, scratch: &Path) -> Result<Client, Failure> {
    let kubeconfig = std::fs::read_to_string(kubeconfig)?;
    let line = |line: &str| match line.trim_start() {
        text if text.starts_with("server:") => format!("    server: https://127.0.0.1:{port}"),
        text if text.starts_with("certificate-authority-data:") => "    insecure-skip-tls-verify: true".to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = kubeconfig.lines().map(line).collect();
    let file = scratch.join(format!("{port}.kubeconfig"));
    std::fs::write(&file, lines.join("\n"))?;
    Ok(connection::connect(Options::default().kubeconfig(file)).await?)
}

/// Returns verb and resource of an entry of an audit log: `update deployments/status`.
#[must_use]
pub fn request(entry: &Value) -> String {
    let about = &entry["objectRef"];
    let mut resource = text(&about["resource"]);
    if about["subresource"].is_string() {
        resource += &format!("/{}", text(&about["subresource"]));
    }
    format!("{} {resource}", text(&entry["verb"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
