//! The managers of a real cluster: two processes with all controllers that share a lease, each behind a proxy of its own. One that ends is
//! replaced by another, with another number.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steersman_runtime::__internal::process::dies_with_parent;
use steersman_testing::rig::Setup;
use tokio::time::Instant;

use super::proxy::{Proxy, Weather};
use super::{Problem, signal};

/// Whose manager it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Steersman.
    Ours,
    /// kube-controller-manager.
    Go,
}

/// What managers are started with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Whose they are.
    pub kind: Kind,
    /// The program, and the arguments before the flags.
    pub program: (PathBuf, Vec<String>),
    /// The rig's directory.
    pub dir: PathBuf,
    /// Where logs and kubeconfigs go.
    pub scratch: PathBuf,
    /// The address of the API server.
    pub server: String,
    /// The seed of all chance.
    pub seed: u64,
}

/// Two managers.
#[derive(Debug)]
pub struct Managers {
    setting: Setting,
    weather: Weather,
    running: Vec<Running>,
    next: usize,
}

#[derive(Debug)]
struct Running {
    number: usize,
    child: Child,
    proxy: Proxy,
}

const COUNT: usize = 2;
/// Shorter than the default, which is 15 s, so that a storm of minutes has room for many.
const LEASE: [&str; 3] =
    ["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"];

// === impl Managers ===

impl Managers {
    /// Starts both.
    ///
    /// # Errors
    /// They cannot be started.
    pub async fn start(setting: Setting, weather: Weather) -> Result<Self, Problem> {
        let mut managers = Self { setting, weather, running: Vec::new(), next: 0 };
        managers.replace().await?;
        Ok(managers)
    }

    /// Starts another process for each that has ended.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn replace(&mut self) -> Result<(), Problem> {
        self.running.retain_mut(|running| matches!(running.child.try_wait(), Ok(None)));
        while self.running.len() < COUNT {
            let running = self.launch(self.next).await?;
            self.next += 1;
            self.running.push(running);
        }
        Ok(())
    }

    async fn launch(&self, number: usize) -> Result<Running, Problem> {
        let setting = &self.setting;
        let own = setting.dir.join("controller-manager.kubeconfig");
        let proxy = Proxy::start(number, own, setting.server.clone(), self.weather.clone(), setting.seed).await?;
        let kubeconfig = setting.scratch.join(format!("manager-{number}.kubeconfig"));
        let cluster = format!("{{name: c, cluster: {{server: 'http://{}'}}}}", proxy.address);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{cluster}]\nusers: [{{name: u, user: {{}}}}]\n"
        );
        std::fs::write(&kubeconfig, text)?;
        let log = setting.scratch.join(format!("manager-{number}.log"));
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let file = |name: &str| setting.dir.join(name).display().to_string();
        let (program, first) = &setting.program;
        let child = dies_with_parent(program)
            .args(first)
            .args([
                format!("--kubeconfig={}", kubeconfig.display()),
                format!("--service-account-private-key-file={}", file("sa.key")),
                format!("--root-ca-file={}", file("ca.crt")),
                format!("--cluster-signing-cert-file={}", file("ca.crt")),
                format!("--cluster-signing-key-file={}", file("ca.key")),
            ])
            .args(Setup::ALL_CONTROLLERS.manager)
            .args(["--use-service-account-credentials=true", "--leader-elect=true", "--secure-port=0"])
            .args(["--kube-api-qps=1000", "--kube-api-burst=1000"])
            .args(LEASE)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Running { number, child, proxy })
    }

    /// How many were started so far.
    #[must_use]
    pub fn started(&self) -> usize {
        self.next
    }

    /// The number of the one that renewed the lease last, and when.
    #[must_use]
    pub fn leader(&self) -> Option<(usize, Instant)> {
        let renewed = self.running.iter().filter_map(|running| Some((running.number, running.proxy.renewed()?)));
        renewed.max_by_key(|(_, at)| *at)
    }

    /// Kills one.
    ///
    /// # Errors
    /// It cannot be killed.
    pub fn kill(&mut self, number: usize) -> Result<(), Problem> {
        for running in self.running.iter_mut().filter(|running| running.number == number) {
            running.child.kill()?;
            running.child.wait()?;
        }
        Ok(())
    }

    /// Stops or resumes one.
    ///
    /// # Errors
    /// It cannot be signalled.
    pub fn freeze(&mut self, number: usize, stops: bool) -> Result<(), Problem> {
        for running in self.running.iter_mut().filter(|running| running.number == number) {
            signal(running.child.id(), if stops { "STOP" } else { "CONT" })?;
        }
        Ok(())
    }

    /// Ends all.
    pub fn end(&mut self) {
        for mut running in self.running.drain(..) {
            // A stopped process is killed all the same.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

impl Drop for Managers {
    fn drop(&mut self) {
        self.end();
    }
}

/// The duration of a lease that is not renewed.
pub const LEASE_LASTS: Duration = Duration::from_secs(6);
