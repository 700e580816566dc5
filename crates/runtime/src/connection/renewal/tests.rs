//! Against a server that asks for client certificates, behind a real socket, and so on the real clock.

use std::net::SocketAddr;

use kube::Client;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use steersman_base::Clock;
use tokio::task::JoinHandle;

use super::super::tests::{Folder, named};
use super::super::{Connection, transport};
use super::*;
use crate::serving::{
    CertificateSource, ClientAuthority, ClientCertificates, PeerAddress, PeerCertificates, ServeOptions, Serving, Tls,
    text,
};

const PATIENCE: Duration = Duration::from_secs(10);
/// Looks at every request, and closes at once.
const AT_ONCE: Times = Times { look_every: Duration::ZERO, soon: Duration::ZERO, close_after: Duration::ZERO };
/// Looks only when something speaks against what there is.
const IF_SUSPECT: Times = Times { look_every: Duration::from_secs(3600), ..AT_ONCE };

/// Who vouches for certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A server that answers whom a client's certificate names, and on which connection.
struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate and its key.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

impl Server {
    /// `/held` is never answered; who is called `old` is not let in, though the certificate is good.
    async fn start(folder: &Folder, by: &Authority, clients: &Authority, address: Option<SocketAddr>) -> Self {
        let (certificate, key) = by.issue("server");
        let certificate = folder.write("server.crt", &certificate);
        let source = CertificateSource::Files { certificate, key: folder.write("server.key", &key) };
        let authority = folder.write("clients.crt", &clients.pem);
        let tls = Tls { clients: ClientCertificates::Required { authority }, ..Tls::new(source) };
        let options = address.map_or_else(ServeOptions::default, ServeOptions::at).with_tls(tls);
        let serving = Serving::bind(options).await.unwrap();
        let address = serving.address();
        let stop = CancellationToken::new();
        let believed = ClientAuthority::from_pem(clients.pem.as_bytes()).unwrap();
        let answer = move |request: crate::serving::Request| {
            let believed = believed.clone();
            async move {
                if request.uri().path() == "/held" {
                    return std::future::pending().await;
                }
                let shown = request.extensions().get::<PeerCertificates>().unwrap();
                let name = believed.verify(shown, Clock::system().now()).unwrap().common_name;
                let port = request.extensions().get::<PeerAddress>().unwrap().0.port();
                let code = if name == "old" { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
                text(code, format!("{name} {port}"))
            }
        };
        let task = tokio::spawn(serving.run(answer, stop.clone()));
        Self { address, stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn write_pair(folder: &Folder, (certificate, key): &(String, String)) {
    folder.write("client.key", key);
    folder.write("client.crt", certificate);
}

/// A client of a kubeconfig with this user.
async fn client(folder: &Folder, server: &Server, user: &str, times: Times) -> Client {
    let address = server.address;
    let ca = folder.0.join("ca.crt");
    let config = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: 'https://{address}', certificate-authority: '{}'}}}}], \
         users: [{{name: u, user: {user}}}]}}",
        ca.display(),
    );
    let Connection { config, origin, .. } = Connection::load(named(&folder.write("config", &config))).await.unwrap();
    Client::new(transport::transport(&config, &origin, None, times).await.unwrap(), "default")
}

fn files(folder: &Folder) -> String {
    let file = |name: &str| folder.0.join(name).display().to_string();
    format!("{{client-certificate: '{}', client-key: '{}'}}", file("client.crt"), file("client.key"))
}

/// Code, name and port, as the server answers them.
async fn ask(client: &Client) -> Result<(u16, String, String), kube::Error> {
    let request = Request::get("/who").body(kube::client::Body::empty()).unwrap();
    let answer = tokio::time::timeout(PATIENCE, client.send(request)).await.expect("an answer")?;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let (name, port) = body.split_once(' ').unwrap();
    Ok((code, name.to_owned(), port.to_owned()))
}

#[tokio::test]
async fn a_renewed_client_certificate_is_shown_and_old_connections_are_closed() {
    let folder = Folder::new();
    let authority = Authority::new("one");
    folder.write("ca.crt", &authority.pem);
    write_pair(&folder, &authority.issue("first"));
    let server = Server::start(&folder, &authority, &authority, None).await;
    let client = client(&folder, &server, &files(&folder), AT_ONCE).await;
    let (_, name, port) = ask(&client).await.unwrap();
    assert_eq!(name, "first");
    assert_eq!(ask(&client).await.unwrap().2, port, "nothing is new: the same connection");
    let held = tokio::spawn({
        let client = client.clone();
        async move { client.send(Request::get("/held").body(kube::client::Body::empty()).unwrap()).await }
    });
    assert_eq!(ask(&client).await.unwrap().2, port);

    let second = authority.issue("second");
    // Half of it, as in the middle of a change.
    folder.write("client.key", &second.1);
    assert_eq!(ask(&client).await.unwrap().1, "first", "what does not fit together is left alone");
    folder.write("client.crt", &second.0);
    let (_, name, new_port) = ask(&client).await.unwrap();
    assert_eq!(name, "second");
    assert_ne!(new_port, port);
    let closed = tokio::time::timeout(PATIENCE, held).await.expect("the old connection is closed").unwrap();
    let error = super::super::root_cause(&closed.unwrap_err());
    assert!(error.contains("the client's certificate was renewed") || error.contains("clos"), "{error}");
    assert_eq!(ask(&client).await.unwrap().2, new_port);
    server.end().await;
}

#[tokio::test]
async fn renewed_authorities_are_believed() {
    let folder = Folder::new();
    let clients = Authority::new("clients");
    let old = Authority::new("old");
    let new = Authority::new("new");
    folder.write("ca.crt", &old.pem);
    write_pair(&folder, &clients.issue("client"));
    let server = Server::start(&folder, &old, &clients, None).await;
    let address = server.address;
    let client = client(&folder, &server, &files(&folder), AT_ONCE).await;
    assert_eq!(ask(&client).await.unwrap().1, "client");
    server.end().await;
    let server = Server::start(&folder, &new, &clients, Some(address)).await;
    assert!(ask(&client).await.is_err(), "nobody vouches for it yet");
    folder.write("ca.crt", "");
    assert!(ask(&client).await.is_err());
    folder.write("ca.crt", &new.pem);
    assert_eq!(ask(&client).await.unwrap().1, "client");
    server.end().await;
}

#[tokio::test]
async fn a_plug_in_is_asked_again_when_its_certificate_is_refused() {
    let folder = Folder::new();
    let authority = Authority::new("one");
    folder.write("ca.crt", &authority.pem);
    let report = |(certificate, key): (String, String)| {
        let status = serde_json::json!({ "clientCertificateData": certificate, "clientKeyData": key });
        let kind = ("client.authentication.k8s.io/v1", "ExecCredential");
        let reported = serde_json::json!({ "apiVersion": kind.0, "kind": kind.1, "status": status });
        folder.write("credential", &reported.to_string())
    };
    let reported = report(authority.issue("old"));
    let server = Server::start(&folder, &authority, &authority, None).await;
    let plug_in = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: cat, args: ['{}'], interactiveMode: Never}}}}",
        reported.display()
    );
    let client = client(&folder, &server, &plug_in, IF_SUSPECT).await;
    assert_eq!(ask(&client).await.unwrap().1, "old");
    report(authority.issue("new"));
    // The first 401 says that something is wrong; what is asked next goes out with the new certificate.
    assert_eq!(ask(&client).await.unwrap().1, "new");
    std::fs::remove_file(&reported).unwrap();
    assert_eq!(ask(&client).await.unwrap().0, 200, "nothing speaks against it: it is not run");
    server.end().await;
}
