//! The controller manager as a drop-in, on a real kube-apiserver with RBAC, as `system:kube-controller-manager`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::client::Body;
use serde_json::json;
use steersman_runtime::connection::{self, Options};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::rig::{client_of_port, free_port};
use steersman_testing::{Failure, TestCluster};

use crate::ALONE;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: &str = "kube-controller-manager";

/// A running manager; it ends with the test.
pub(crate) struct Manager {
    child: Child,
    /// Where it logs. Not a pipe: a manager whose pipe nobody reads stands still when it is full.
    log: PathBuf,
    pub(crate) port: u16,
}

pub(crate) fn rig_file(name: &str) -> Result<PathBuf, Failure> {
    Ok(PathBuf::from(std::env::var("STEERSMAN_RIG_DIR")?).join(name))
}

/// A directory of this test's own.
pub(crate) fn scratch(name: &str) -> Result<PathBuf, Failure> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Looks until `look` answers a value; `look` says what it sees while it does not, and a failure shows what was seen last.
pub(crate) async fn until<T, F: Future<Output = Result<Result<T, String>, Failure>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> Result<T, Failure> {
    let mut last = "nothing yet".to_owned();
    let looking = async {
        loop {
            match look().await? {
                Ok(found) => return Ok(found),
                Err(seen) => last = seen,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let looked = tokio::time::timeout(PATIENCE, looking).await;
    looked.map_err(|_| Failure::new(format!("waited in vain: {what}; seen last: {last}")))?
}

/// What a look says of a value that is not the wanted one.
pub(crate) fn wanted<T: std::fmt::Debug>(seen: T, is_it: impl FnOnce(&T) -> bool) -> Result<T, String> {
    if is_it(&seen) { Ok(seen) } else { Err(format!("{seen:?}")) }
}

/// An answer, or why there is none.
pub(crate) fn shown<T>(answer: Result<T, Failure>) -> Result<T, String> {
    answer.map_err(|failure| format!("{failure:?}"))
}

/// Waits until somebody holds the lease, and answers who.
pub(crate) async fn until_led(admin: &Client) -> Result<String, Failure> {
    until("somebody leads", || async { Ok(wanted(holder(admin).await?, |holder| !holder.is_empty())) }).await
}

pub(crate) async fn client_of(kubeconfig: PathBuf) -> Result<Client, Failure> {
    let options = Options::default().kubeconfig(kubeconfig);
    Ok(connection::connect(options).await?)
}

/// Who holds the lease; empty: nobody.
pub(crate) async fn holder(admin: &Client) -> Result<String, Failure> {
    let leases: Api<Lease> = Api::namespaced(admin.clone(), "kube-system");
    let lease = leases.get_opt(LEASE).await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default())
}

impl Manager {
    /// Starts one as the Go program is started by kubeadm: with the rights of `system:kube-controller-manager` only.
    pub(crate) fn start(more: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
        command.arg("controller-manager");
        Self::run(command, &rig_file("controller-manager.kubeconfig")?, more)
    }

    /// Runs a command line with the rights that a kubeconfig gives; the secure port delegates as always.
    pub(crate) fn run(mut command: Command, kubeconfig: &Path, more: &[&str]) -> Result<Self, Failure> {
        let port = free_port()?;
        let delegate = rig_file("controller-manager.kubeconfig")?;
        let delegate = delegate.display();
        let log = scratch("manager")?.join(format!("{port}.log"));
        let child = command
            .args(["--controllers=replicaset", "--bind-address=127.0.0.1"])
            .args([
                format!("--kubeconfig={}", kubeconfig.display()),
                format!("--authentication-kubeconfig={delegate}"),
                format!("--authorization-kubeconfig={delegate}"),
                format!("--secure-port={port}"),
            ])
            .args(more)
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(&log)?)
            .spawn()?;
        Ok(Self { child, log, port })
    }

    /// The rig's admin, as a client of the secure port.
    pub(crate) async fn secure_port(&self) -> Result<Client, Failure> {
        let admin = PathBuf::from(std::env::var("STEERSMAN_RIG_KUBECONFIG")?);
        client_of_port(&admin, self.port, &scratch("secure-port")?).await
    }

    pub(crate) fn signal(&self, name: &str) -> Result<(), Failure> {
        Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()?;
        Ok(())
    }

    /// What it has logged so far.
    pub(crate) fn said(&self) -> Result<String, Failure> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned())
    }

    /// Waits for its end: exit code, and what it logged.
    pub(crate) async fn end(mut self) -> Result<(Option<i32>, String), Failure> {
        let status = until("the manager ends", || {
            let status = self.child.try_wait();
            async move { Ok(status?.ok_or_else(|| "it runs".to_owned())) }
        })
        .await?;
        Ok((status.code(), self.said()?))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // It has ended already, or is not wanted any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn ask(client: &Client, method: Method, path: &str, body: &str) -> Result<(u16, String), Failure> {
    let request = Request::builder().method(method).uri(path).body(Body::from(body.as_bytes().to_vec()))?;
    let response = client.send(request).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

#[tokio::test]
async fn with_lease_secure_port_and_an_account_per_controller_it_does_the_job() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let admin = client_of(std::env::var("STEERSMAN_RIG_KUBECONFIG")?.into()).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "kube-system");
    let _ = accounts.delete("replicaset-controller", &DeleteParams::default()).await;
    let manager = Manager::start(&["--use-service-account-credentials", "--profiling=false"])?;

    // Our own account may not create pods; that of the controller may.
    let set = cluster.create(objects::replica_set("web").replicas(3)).await?;
    cluster.pods_of(&set).until_count(3).await?;
    assert!(accounts.get_opt("replicaset-controller").await?.is_some(), "the account was made");
    assert!(!holder(&admin).await?.is_empty(), "it works because it leads");

    let port = manager.secure_port().await?;
    for (path, want) in [
        ("/healthz?verbose", "[+]leaderElection ok"),
        ("/readyz?verbose", "[+]replicaset-controller ok"),
        ("/metrics", "rest_client_requests_total"),
        ("/metrics", "kubernetes_feature_enabled{name=\"WatchListClient\",stage=\"BETA\"} 1"),
        ("/flagz", "use-service-account-credentials=true"),
        ("/configz", "kubecontrollermanager.config.k8s.io"),
        ("/statusz", "1.37"),
    ] {
        let (status, text) = ask(&port, Method::GET, path, "").await?;
        assert!(status == 200 && text.contains(want), "{path}: {status} {text}");
    }
    for path in ["/debug/profile", "/debug/pprof/profile", "/debug/pprof/"] {
        assert_eq!(ask(&port, Method::GET, path, "").await?.0, 404, "--profiling=false: {path}");
    }
    let (status, text) = ask(&port, Method::PUT, "/debug/flags/v", "4").await?;
    assert_eq!(status, 200, "{text}");

    manager.signal("TERM")?;
    let (code, said) = manager.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("informers started"), "{said}");
    assert_eq!(holder(&admin).await?, "", "the lease was given back");
    cluster.stop().await
}

#[tokio::test]
async fn a_lease_that_is_taken_away_ends_the_program_with_exit_code_1() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let admin = client_of(std::env::var("STEERSMAN_RIG_KUBECONFIG")?.into()).await?;
    let manager = Manager::start(&["--leader-elect-retry-period=500ms"])?;
    until_led(&admin).await?;

    let leases: Api<Lease> = Api::namespaced(admin.clone(), "kube-system");
    let theft = json!({ "spec": { "holderIdentity": "a thief" } });
    leases.patch(LEASE, &PatchParams::default(), &Patch::Merge(theft)).await?;
    let (code, said) = manager.end().await?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("leaderelection lost"), "{said}");
    assert_eq!(holder(&admin).await?, "a thief", "what is another's is not given back");
    leases.delete(LEASE, &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_standby_takes_over_from_a_leader_that_ends() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let admin = client_of(std::env::var("STEERSMAN_RIG_KUBECONFIG")?.into()).await?;
    let first = Manager::start(&["--use-service-account-credentials"])?;
    let one = until_led(&admin).await?;
    let second = Manager::start(&["--use-service-account-credentials"])?;
    let port = second.secure_port().await?;
    until("the second is ready, and waits", || async {
        let answer = ask(&port, Method::GET, "/readyz", "").await;
        Ok(shown(answer).and_then(|seen| wanted(seen, |(status, _)| *status == 200)))
    })
    .await?;

    first.signal("TERM")?;
    assert_eq!(first.end().await?.0, Some(0));
    until("the second leads", || async {
        Ok(wanted(holder(&admin).await?, |holder| !holder.is_empty() && *holder != one))
    })
    .await?;
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    cluster.pods_of(&set).until_count(2).await?;
    second.signal("TERM")?;
    assert_eq!(second.end().await?.0, Some(0));
    cluster.stop().await
}
