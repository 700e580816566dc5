//! The server behind a socket, on the normal clock: certificates, tokens, slow clients.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls_pki_types::pem::PemObject;
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use x509_cert::der::Decode;

async fn listening() -> (ApiServer, Listening) {
    let server = ApiServer::new(Options::default());
    let options = ListenOptions::default().patience(Duration::from_millis(300));
    let listening = Listening::start(&server, options).await.unwrap();
    (server, listening)
}

async fn client(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_reads_writes_and_watches() {
    use futures::{StreamExt, TryStreamExt};
    let (_server, listening) = listening().await;
    assert!(listening.address().ip().is_loopback());
    let client = client(&listening.kubeconfig()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut events = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}, "data": {"a": "b"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    match events.try_next().await.unwrap() {
        Some(WatchEvent::Added(map)) => assert_eq!(map.metadata.name.as_deref(), Some("a")),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.37.1");
}

#[tokio::test]
async fn a_client_certificate_is_its_user_and_anything_else_is_401() {
    use base64::Engine;
    let (_server, listening) = listening().await;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let certificate = listening.client_certificate("jane", &["dev", "on call", "system:masters"]).unwrap();
    let with = |user: &str| {
        let admin = listening.kubeconfig();
        let (rest, _) = admin.split_once("    client-certificate-data").unwrap();
        format!("{rest}{user}\n")
    };
    let user = format!(
        "    client-certificate-data: {}\n    client-key-data: {}",
        encode(&certificate.certificate_pem),
        encode(&certificate.key_pem)
    );
    let review = serde_json::json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let whoami = || {
        http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .body(review.to_string().into_bytes())
            .unwrap()
    };
    let answer: serde_json::Value = client(&with(&user)).await.request(whoami()).await.unwrap();
    assert_eq!(answer["status"]["userInfo"]["username"], "jane");
    let groups = serde_json::json!(["dev", "on call", "system:masters", "system:authenticated"]);
    assert_eq!(answer["status"]["userInfo"]["groups"], groups);
    // As upstream: whoever has a certificate is its user, whatever token comes with it.
    let both = format!("{user}\n    token: nope");
    let answer: serde_json::Value = client(&with(&both)).await.request(whoami()).await.unwrap();
    assert_eq!(answer["status"]["userInfo"]["username"], "jane");
    // The administrator is known by either, for clients that know only one.
    let admin = listening.kubeconfig();
    let (without_token, token) = admin.split_once("    token: ").unwrap();
    for kubeconfig in [without_token, &with(&format!("    token: {token}"))] {
        let answer: serde_json::Value = client(kubeconfig).await.request(whoami()).await.unwrap();
        assert_eq!(answer["status"]["userInfo"]["username"], "admin");
    }
    for stranger in ["    token: nope", "    token: "] {
        let refused = client(&with(stranger)).await.request::<serde_json::Value>(whoami()).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_get_on_is_dropped() {
    let (_server, listening) = listening().await;
    let mut silent = tokio::net::TcpStream::connect(listening.address()).await.unwrap();
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_secs(5), silent.read(&mut byte)).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "a handshake that never starts");
    let mut noise = tokio::net::TcpStream::connect(listening.address()).await.unwrap();
    noise.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), noise.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "no TLS at all");
}

/// A connection that speaks HTTP/1.1, as one would by hand.
async fn by_hand(listening: &Listening) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    let authority = rustls_pki_types::CertificateDer::from_pem_slice(listening.authority_pem().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connection = tokio::net::TcpStream::connect(listening.address()).await.unwrap();
    let name = rustls_pki_types::ServerName::try_from("localhost").unwrap();
    tokio_rustls::TlsConnector::from(std::sync::Arc::new(config)).connect(name, connection).await.unwrap()
}

const VERSION: &[u8] = b"GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer none\r\n\r\n";

/// Whether the server has closed the connection, within far more than its patience.
async fn is_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await.is_ok()
}

async fn is_answered(stream: &mut (impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin)) -> bool {
    if stream.write_all(VERSION).await.is_err() {
        return false;
    }
    let mut answer = [0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut answer)).await;
    matches!(read, Ok(Ok(count)) if answer[..count].starts_with(b"HTTP/1.1 401"))
}

#[tokio::test]
async fn an_idle_connection_is_kept_and_slow_headers_are_not() {
    let (_server, listening) = listening().await;
    let mut silent = by_hand(&listening).await;
    assert!(is_closed(&mut silent).await, "it never says anything");

    let mut slow = by_hand(&listening).await;
    slow.write_all(&VERSION[..10]).await.unwrap();
    assert!(is_closed(&mut slow).await, "its first headers never end");

    let mut idle = by_hand(&listening).await;
    for _ in 0..3 {
        assert!(is_answered(&mut idle).await, "a connection that was idle for more than the patience is still there");
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    idle.write_all(&VERSION[..10]).await.unwrap();
    assert!(is_closed(&mut idle).await, "it was patient until the headers began");
}

#[tokio::test]
async fn a_connection_that_stays_nobodys_is_closed() {
    let server = ApiServer::new(Options::default());
    let options = ListenOptions::default().strangers(Duration::from_millis(500));
    let listening = Listening::start(&server, options).await.unwrap();
    let token = server.admin_token().unwrap();
    let mut known = by_hand(&listening).await;
    let request = format!("GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    known.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 4096];
    assert!(known.read(&mut answer).await.unwrap() > 0);
    let mut stranger = by_hand(&listening).await;
    assert!(is_answered(&mut stranger).await);
    assert!(is_closed(&mut stranger).await, "far sooner than one that is kept for its next request");
    assert!(is_answered(&mut known).await, "somebody has said who they are");
}

#[cfg(unix)]
#[tokio::test]
async fn the_kubeconfig_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_server, listening) = listening().await;
    let folder = std::env::temp_dir().join(format!("steersman-kubeconfig-{}", listening.address().port()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("config");
    std::fs::write(&path, "old").unwrap();
    listening.write_kubeconfig(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(mode, 0o600);
    assert_eq!(text, listening.kubeconfig());
}

#[tokio::test]
async fn a_certificate_may_be_of_somebody_with_a_long_name_in_many_groups() {
    let (_server, listening) = listening().await;
    let groups: Vec<String> = (0..40).map(|at| format!("group-{at}-{}", "x".repeat(at))).collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let long = "ü".repeat(300);
    for user in ["", "jane", long.as_str()] {
        let certificate = listening.client_certificate(user, &groups).unwrap();
        let der = rustls_pki_types::CertificateDer::from_pem_slice(certificate.certificate_pem.as_bytes()).unwrap();
        let certificate = x509_cert::Certificate::from_der(&der).unwrap();
        assert_eq!(certificate.tbs_certificate().subject().iter().count(), 41);
    }
}
