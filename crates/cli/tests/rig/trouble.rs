//! What the controller manager says to wrong certificates, missing rights and an API server that is not there.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use http::Method;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Api, ObjectMeta, PostParams};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, date_time_ymd};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster};

use crate::ALONE;
use crate::manager::{Manager, ask, client_of, rig_file, scratch, shown, until, until_led, wanted};

/// The rig's admin kubeconfig, with some lines as `change` leaves them, in a file of this test's own.
fn kubeconfig(name: &str, change: impl Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
    let admin = std::fs::read_to_string(std::env::var("STEERSMAN_RIG_KUBECONFIG")?)?;
    let lines: Vec<String> = admin.lines().filter_map(change).collect();
    let file = scratch(name)?.join("kubeconfig");
    std::fs::write(&file, lines.join("\n"))?;
    Ok(file)
}

/// A kubeconfig of who has this to show instead of a certificate.
fn showing(name: &str, credentials: &str) -> Result<PathBuf, Failure> {
    let file = kubeconfig(name, |line| (!line.trim_start().starts_with("client-")).then(|| line.to_owned()))?;
    let text = std::fs::read_to_string(&file)?;
    std::fs::write(&file, format!("{text}\n{credentials}"))?;
    Ok(file)
}

/// Starts a manager that cannot work.
fn refused(kubeconfig: &Path) -> Result<Output, Failure> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
    command.args(["controller-manager", "--controllers=replicaset", "--secure-port=0"]);
    Ok(command.arg(format!("--kubeconfig={}", kubeconfig.display())).output()?)
}

/// Exit code 1, and one sentence that names all of this.
fn assert_named(kubeconfig: &Path, wanted: &[&str]) -> Result<(), Failure> {
    let output = refused(kubeconfig)?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let file = kubeconfig.display().to_string();
    for want in [&["context \"rig\"", &*file], wanted].concat() {
        assert!(said.contains(want), "{want} is not in: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn credentials_that_are_not_taken_are_named_and_not_waited_for() -> Result<(), Failure> {
    let wanted = ["does not accept the credentials", "401"];
    assert_named(&showing("bad-token", "    token: made-up")?, &wanted)?;

    // As kubeadm's, a year later.
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "steersman-rig-ca");
    let authority = Issuer::new(authority, KeyPair::from_pem(&std::fs::read_to_string(rig_file("ca.key")?)?)?);
    let mut client = CertificateParams::default();
    client.distinguished_name.push(DnType::CommonName, "system:kube-controller-manager");
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    (client.not_before, client.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let key = KeyPair::generate()?;
    let directory = scratch("expired")?;
    let certificate = directory.join("client.crt");
    let key_file = directory.join("client.key");
    std::fs::write(&certificate, client.signed_by(&key, &authority)?.pem())?;
    std::fs::write(&key_file, key.serialize_pem())?;
    let certificate = certificate.display();
    let key_file = key_file.display();
    let expired = showing("expired", &format!("    client-certificate: {certificate}\n    client-key: {key_file}"))?;
    let when = format!("the client certificate {certificate} has expired, at 2021-01-01T00:00:00Z");
    assert_named(&expired, &[&wanted[..], &[&when]].concat())
}

#[tokio::test]
async fn a_server_whose_certificate_is_not_trusted_is_named_and_not_waited_for() -> Result<(), Failure> {
    let other = rig_file("front-proxy-ca.crt")?;
    let distrustful = kubeconfig("wrong-authority", |line| {
        let of_authority = line.trim_start().starts_with("certificate-authority-data:");
        Some(if of_authority { format!("    certificate-authority: {}", other.display()) } else { line.to_owned() })
    })?;
    assert_named(&distrustful, &["its certificate is not trusted", "certificate-authority", "https://127.0.0.1:"])
}

#[tokio::test]
async fn the_secure_port_answers_while_the_api_server_is_waited_for() -> Result<(), Failure> {
    // Bound, and nobody accepts: the API server takes its time.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")?;
    let away = kubeconfig("away", |line| {
        let of_server = line.trim_start().starts_with("server:");
        let address = nobody.local_addr().ok()?;
        Some(if of_server { format!("    server: https://{address}") } else { line.to_owned() })
    })?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
    command.arg("controller-manager");
    let manager = Manager::run(command, &away, &["--leader-elect=false"])?;
    let port = manager.secure_port().await?;
    let (status, text) =
        until("the port answers", || async { Ok(shown(ask(&port, Method::GET, "/healthz", "").await)) }).await?;
    assert_eq!((status, &*text), (200, "ok"), "it is alive");
    let (status, text) = ask(&port, Method::GET, "/readyz", "").await?;
    assert!(status == 500 && text.contains("[-]api-server failed"), "it is not ready: {status} {text}");
    let (code, said) = manager.end().await?;
    assert!(code == Some(1) && said.contains("cannot reach") && said.contains("waited 10 s"), "{code:?} {said}");
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_read_is_named_by_readyz() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let accounts: Api<ServiceAccount> = cluster.api();
    let metadata = ObjectMeta { name: Some("nobody".into()), ..ObjectMeta::default() };
    accounts.create(&PostParams::default(), &ServiceAccount { metadata, ..ServiceAccount::default() }).await?;
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts.create_token_request("nobody", &PostParams::default(), &request).await?;
    let token = token.status.and_then(|status| status.token).unwrap_or_default();
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
    command.arg("controller-manager");
    let powerless = showing("powerless", &format!("    token: {token}"))?;
    let manager = Manager::run(command, &powerless, &["--leader-elect=false"])?;
    let port = manager.secure_port().await?;
    let text = until("a refusal is reported", || async {
        let answer = ask(&port, Method::GET, "/readyz?verbose", "").await;
        Ok(shown(answer).and_then(|(_, text)| wanted(text, |text| text.contains("cannot read"))))
    })
    .await?;
    for want in ["[-]replicaset-controller failed: waits for", "replicasets", "forbidden", ":nobody"] {
        assert!(text.contains(want), "{want} is not in: {text}");
    }
    assert_eq!(ask(&port, Method::GET, "/livez", "").await?.0, 200, "a restart would not help");
    manager.signal("TERM")?;
    assert_eq!(manager.end().await?.0, Some(0));
    cluster.stop().await
}

#[tokio::test]
async fn called_as_kube_controller_manager_it_is_that_program_and_keeps_its_limits() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let admin = client_of(std::env::var("STEERSMAN_RIG_KUBECONFIG")?.into()).await?;
    let program = scratch("called-as")?.join("kube-controller-manager");
    symlink(env!("CARGO_BIN_EXE_steersman"), &program)?;
    let more = ["--use-service-account-credentials", "--kube-api-qps=2", "--kube-api-burst=1"];
    let manager = Manager::run(Command::new(&program), &rig_file("controller-manager.kubeconfig")?, &more)?;
    until_led(&admin).await?;
    let set = cluster.create(objects::replica_set("web").replicas(6)).await?;
    let pods = cluster.pods_of(&set).until_count(6).await?;
    // Six pods at two a second, and one ahead.
    let made = |pod: &Pod| pod.metadata.creation_timestamp.clone();
    let first = pods.iter().filter_map(made).min();
    let last = pods.iter().filter_map(made).max();
    let took = first.zip(last).map(|(first, last)| last.0.duration_since(first.0).as_secs()).unwrap_or_default();
    assert!((2..30).contains(&took), "made within {took} s");
    manager.signal("TERM")?;
    let (code, said) = manager.end().await?;
    assert_eq!(code, Some(0), "{said}");
    std::fs::remove_file(program)?;
    cluster.stop().await
}

#[tokio::test]
async fn without_rights_a_controller_says_what_it_may_not_do() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let manager = Manager::start(&["--leader-elect=false"])?;
    let port = manager.secure_port().await?;
    let set = cluster.create(objects::replica_set("web").replicas(1)).await?;
    // It may read, but its own account may not create pods: the decision log says so.
    let refused = until("a refused write", || async {
        let answer = ask(&port, Method::GET, "/debug/decisions?controller=replicaset-controller", "").await;
        Ok(shown(answer).and_then(|seen| wanted(seen, |(status, text)| *status == 200 && text.contains("forbidden"))))
    })
    .await?
    .1;
    assert!(refused.contains("pods"), "{refused}");
    cluster.pods_of(&set).until_count(0).await?;
    manager.signal("TERM")?;
    let (_, said) = manager.end().await?;
    assert!(said.contains("forbidden") && said.contains("system:kube-controller-manager"), "{said}");
    cluster.stop().await
}
