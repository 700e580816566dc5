//! The control plane of a rig, as something that can be hit.
//!
//! The rig's own kube-apiserver must live as long as the rig. So another one is started beside it, on the same store and
//! with the same flags, and with the APIs of all controllers: users, nodes and managers talk to that one, and it is killed and started again. The recorder stays
//! with the rig's own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Request;
use kube::Client;
use steersman_runtime::__internal::process::dies_with_parent;
use steersman_runtime::connection::{self, Options};
use steersman_testing::rig::Setup;
use tokio::time::Instant;

use super::{Problem, audit, signal};

/// The part of a control plane that receives faults. It stops when dropped.
#[derive(Debug)]
pub struct Plane {
    server: Child,
    command: Vec<String>,
    /// The address of the API server.
    pub address: String,
    etcd: u32,
    /// The rig's directory: keys and kubeconfigs.
    pub dir: PathBuf,
    /// A directory of our own.
    pub scratch: PathBuf,
}

const READY_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The ranges of Services are in the store: servers that share it have the same.
const RANGES: &str = "--service-cluster-ip-range=";

// === impl Plane ===

impl Plane {
    /// Starts an API server on the store of the rig in `dir`.
    ///
    /// # Errors
    /// The rig is not there, or the server does not become ready.
    pub async fn start(dir: &Path, scratch: &Path) -> Result<Self, Problem> {
        std::fs::create_dir_all(scratch)?;
        let policy = scratch.join("policy.yaml");
        std::fs::write(&policy, audit::POLICY)?;
        let store = format!("--etcd-servers=unix://{}", dir.join("etcd.sock").display());
        let (_, mut command) = process_with(&store)?;
        let (etcd, _) = process_with(&format!("--data-dir={}", dir.join("etcd").display()))?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // The last of equal flags wins.
        command.extend([
            format!("--secure-port={port}"),
            format!("--audit-log-path={}", scratch.join("audit.log").display()),
            format!("--audit-policy-file={}", policy.display()),
            "--audit-log-maxsize=10240".to_owned(),
        ]);
        command.extend(
            Setup::ALL_CONTROLLERS.server.iter().filter(|flag| !flag.starts_with(RANGES)).map(ToString::to_string),
        );
        let server = spawn(&command, scratch)?;
        let address = format!("https://127.0.0.1:{port}");
        let plane = Self { server, command, address, etcd, dir: dir.to_owned(), scratch: scratch.to_owned() };
        plane.ready().await?;
        Ok(plane)
    }

    /// A client of the administrator, for the server that can be hit, under a name.
    ///
    /// # Errors
    /// The rig's kubeconfig does not work.
    pub async fn client(&self, name: &str) -> Result<Client, Problem> {
        let options = Options::default()
            .kubeconfig(self.dir.join("admin.kubeconfig"))
            .server(self.address.clone())
            .user_agent(name);
        Ok(connection::connect(options).await?)
    }

    /// A client for the rig's own server, to which nothing happens.
    ///
    /// # Errors
    /// The rig's kubeconfig does not work.
    pub async fn calm_client(&self) -> Result<Client, Problem> {
        let kubeconfig = self.dir.join("admin.kubeconfig");
        Ok(connection::connect(Options::default().kubeconfig(kubeconfig)).await?)
    }

    async fn ready(&self) -> Result<(), Problem> {
        let began = Instant::now();
        let client = self.client(audit::USERS).await?;
        loop {
            let request = Request::get("/readyz").body(kube::client::Body::empty())?;
            if client.send(request).await.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if began.elapsed() > READY_WITHIN {
                let log = self.scratch.join("kube-apiserver.log");
                return Err(Problem::new(format!("kube-apiserver is not ready in time; its log is {}", log.display())));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Kills the API server, and starts it again.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart_server(&mut self) -> Result<(), Problem> {
        self.server.kill()?;
        self.server.wait()?;
        self.server = spawn(&self.command, &self.scratch)?;
        Ok(())
    }

    /// Stops or resumes the store.
    ///
    /// # Errors
    /// It cannot be signalled.
    pub fn stop_store(&self, stops: bool) -> Result<(), Problem> {
        signal(self.etcd, if stops { "STOP" } else { "CONT" })
    }

    /// The audit log so far.
    #[must_use]
    pub fn audit_log(&self) -> String {
        let bytes = std::fs::read(self.scratch.join("audit.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.stop_store(false);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn spawn(command: &[String], scratch: &Path) -> Result<Child, Problem> {
    let log = std::fs::File::options().create(true).append(true).open(scratch.join("kube-apiserver.log"))?;
    let (program, args) = command.split_first().ok_or_else(|| Problem::new("the rig's API server has no command"))?;
    let mut command: Command = dies_with_parent(Path::new(program));
    command.args(args).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok(command.spawn()?)
}

/// The process of the rig that has this argument: its number and its command line.
fn process_with(argument: &str) -> Result<(u32, Vec<String>), Problem> {
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has ended meanwhile has none.
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).into_owned();
        let args: Vec<String> = line.split_terminator('\0').map(str::to_owned).collect();
        if args.iter().any(|arg| arg == argument) {
            return Ok((pid, args));
        }
    }
    Err(Problem::new(format!(
        "there is no process with {argument}: this runs inside the rig only, see cargo xtask k8s chaos"
    )))
}
