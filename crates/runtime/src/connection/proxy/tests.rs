//! Proxies of a few lines behind real sockets, and so on the real clock.

use std::net::SocketAddr;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::tests::{Folder, named};
use super::super::{ConnectError, Connection};
use super::*;
use crate::connection::exchange::never_sent;
use crate::serving::{CertificateSource, ServeOptions, Serving, Tls, text};

/// A name that only the proxy can resolve.
const SERVER: &str = "api.cluster.test";
const PATIENCE: Duration = Duration::from_secs(10);

/// An API server that answers the request's path, with certificates for [`SERVER`] and for the proxy.
struct World {
    folder: Folder,
    server: SocketAddr,
    /// For proxies that are encrypted.
    tls: tokio_rustls::TlsAcceptor,
    stop: CancellationToken,
}

/// What a proxy was asked.
type Asked = mpsc::UnboundedReceiver<String>;

impl World {
    /// An API server with or without TLS.
    async fn new(is_encrypted: bool) -> Self {
        let folder = Folder::new();
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        folder.write("ca.crt", &authority.self_signed(&authority_key).unwrap().pem());
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let names = vec![SERVER.to_owned(), "127.0.0.1".to_owned()];
        let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let certificate = folder.write("server.crt", &leaf.pem());
        let files = CertificateSource::Files { certificate, key: folder.write("server.key", &key.serialize_pem()) };
        let mut options = ServeOptions::default();
        if is_encrypted {
            options = options.with_tls(Tls::new(files));
        }
        let serving = Serving::bind(options).await.unwrap();
        let server = serving.address();
        let stop = CancellationToken::new();
        let answer = |request: crate::serving::Request| async move {
            text(http::StatusCode::OK, format!("{:?} {}", request.version(), request.uri()))
        };
        tokio::spawn(serving.run(answer, stop.clone()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key.serialize_der().try_into().unwrap())
            .unwrap();
        Self { folder, server, tls: Arc::new(tls).into(), stop }
    }

    /// A client for `server`, through a proxy.
    async fn client(&self, server: &str, proxy: &str) -> Result<Client, ConnectError> {
        let ca = self.folder.0.join("ca.crt");
        let config = format!(
            "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: '{server}', proxy-url: '{proxy}', certificate-authority: '{}'}}}}], \
             users: [{{name: u, user: {{token: t}}}}]}}",
            ca.display(),
        );
        Connection::load(named(&self.folder.write("config", &config))).await?.client().await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Requests a path; returns the answer.
async fn get(client: &Client, path: &str) -> Result<String, kube::Error> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    tokio::time::timeout(PATIENCE, client.request_text(request)).await.expect("an answer")
}

/// Starts a proxy: `serve` has its conversation with a client, and returns whether the rest goes to the server.
async fn proxy<F>(server: SocketAddr, serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = Option<Box<dyn Both>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let conversation = serve(socket);
            tokio::spawn(async move {
                if let Some(mut near) = conversation.await {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    address
}

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// An HTTP proxy that answers this to `CONNECT`; with `tls`, it is encrypted itself.
async fn http_proxy(
    server: SocketAddr,
    tls: Option<tokio_rustls::TlsAcceptor>,
    answer: &'static str,
) -> (SocketAddr, Asked) {
    let (asked, heads) = mpsc::unbounded_channel();
    let address = proxy(server, move |socket| {
        let tls = tls.clone();
        let asked = asked.clone();
        async move {
            let mut near: Box<dyn Both> = match tls {
                Some(tls) => Box::new(tls.accept(socket).await.ok()?),
                None => Box::new(socket),
            };
            let _ = asked.send(read_head(&mut near).await);
            near.write_all(answer.as_bytes()).await.unwrap();
            answer.starts_with("HTTP/1.1 200").then_some(near)
        }
    });
    (address.await, heads)
}

/// A SOCKS proxy that lets in who says `me` and `secret`, or everybody.
async fn socks_proxy(server: SocketAddr, asks_name: bool, code: u8) -> (SocketAddr, Asked) {
    let (asked, targets) = mpsc::unbounded_channel();
    let address = proxy(server, move |mut socket| {
        let asked = asked.clone();
        async move {
            let mut greeting = [0; 2];
            socket.read_exact(&mut greeting).await.unwrap();
            let mut methods = vec![0; usize::from(greeting[1])];
            socket.read_exact(&mut methods).await.unwrap();
            let method = if asks_name { 2 } else { 0 };
            if !methods.contains(&method) {
                socket.write_all(&[5, 0xff]).await.unwrap();
                return None;
            }
            socket.write_all(&[5, method]).await.unwrap();
            if asks_name {
                let mut login = [0; 11];
                socket.read_exact(&mut login).await.unwrap();
                let refused = u8::from(login != *b"\x01\x02me\x06secret");
                socket.write_all(&[1, refused]).await.unwrap();
                if refused != 0 {
                    return None;
                }
            }
            let mut request = [0; 5];
            socket.read_exact(&mut request).await.unwrap();
            assert_eq!(request[..4], [5, 1, 0, 3], "a connection to a name");
            let mut target = vec![0; usize::from(request[4]) + 2];
            socket.read_exact(&mut target).await.unwrap();
            let port = target.split_off(target.len() - 2);
            let name = String::from_utf8(target).unwrap();
            let _ = asked.send(format!("{name}:{}", u16::from_be_bytes([port[0], port[1]])));
            socket.write_all(&[5, code, 0, 1, 127, 0, 0, 1, 0, 80]).await.unwrap();
            (code == 0).then(|| Box::new(socket) as Box<dyn Both>)
        }
    });
    (address.await, targets)
}

const GRANTED: &str = "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n";

#[tokio::test]
async fn a_tunnel_of_an_http_proxy_reaches_a_server_whose_name_only_the_proxy_knows() {
    let world = World::new(true).await;
    let (proxy, mut asked) = http_proxy(world.server, None, GRANTED).await;
    let client = world.client(&format!("https://{SERVER}:6443"), &format!("http://me:s%3Ac@{proxy}")).await.unwrap();
    assert_eq!(get(&client, "/version").await.unwrap(), format!("HTTP/2.0 https://{SERVER}:6443/version"));
    let head = asked.recv().await.unwrap();
    assert!(head.starts_with("CONNECT api.cluster.test:6443 HTTP/1.1\r\nHost: api.cluster.test:6443\r\n"), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6czpj\r\n"), "me:s:c in {head}");
    get(&client, "/healthz").await.unwrap();
    assert!(asked.try_recv().is_err(), "one tunnel carries all requests");
}

#[tokio::test]
async fn a_proxy_may_be_encrypted_itself() {
    let world = World::new(true).await;
    let (proxy, mut asked) = http_proxy(world.server, Some(world.tls.clone()), GRANTED).await;
    let client = world.client(&format!("https://{SERVER}"), &format!("https://{proxy}")).await.unwrap();
    assert_eq!(get(&client, "/version").await.unwrap(), format!("HTTP/2.0 https://{SERVER}/version"));
    assert!(asked.recv().await.unwrap().starts_with("CONNECT api.cluster.test:443 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn to_a_server_without_tls_an_http_proxy_forwards_each_request() {
    let world = World::new(false).await;
    let (proxy, mut asked) =
        http_proxy(world.server, None, "HTTP/1.1 203 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi").await;
    let client = world.client(&format!("http://{SERVER}:8080"), &format!("http://me:secret@{proxy}")).await.unwrap();
    assert_eq!(get(&client, "/version").await.unwrap(), "hi");
    let head = asked.recv().await.unwrap();
    assert!(head.starts_with("GET http://api.cluster.test:8080/version HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic bwu6c2vjcmv0\r\n"), "{head}");
}

#[tokio::test]
async fn a_socks_proxy_is_told_the_name_of_the_server_and_asks_who_it_is() {
    for (asks_name, is_encrypted) in [(false, true), (true, true), (true, false)] {
        let world = World::new(is_encrypted).await;
        let (proxy, mut asked) = socks_proxy(world.server, asks_name, 0).await;
        let server = format!("{}://{SERVER}:6443", if is_encrypted { "https" } else { "http" });
        let client = world.client(&server, &format!("socks5://me:secret@{proxy}")).await.unwrap();
        let answer = get(&client, "/version").await.unwrap();
        assert!(answer.ends_with("/version") && !answer.contains("secret"), "{answer}");
        assert_eq!(asked.recv().await.unwrap(), "api.cluster.test:6443");
    }
}

#[tokio::test]
async fn a_refusal_names_the_proxy_and_its_reason_not_its_password_and_nothing_was_sent() {
    let world = World::new(true).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (encrypted, _) = http_proxy(world.server, Some(world.tls.clone()), GRANTED).await;
    let http = async |answer| http_proxy(world.server, None, answer).await.0;
    let socks = async |asks_name, code| socks_proxy(world.server, asks_name, code).await.0;
    for (proxy, problem) in [
        (
            format!("http://me:pass@{}", http("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await),
            "it answers \"407 Proxy Authentication Required\" to CONNECT api.cluster.test:443",
        ),
        (format!("http://{}", http("SSH-2.0-OpenSSH\r\n\r\n").await), "its answer to CONNECT is not HTTP"),
        (format!("http://{}", http("HTTP/1.1 2").await), "it closed the connection in its answer to CONNECT"),
        (format!("socks5://me:wrong1@{}", socks(true, 0).await), "it does not accept name and password"),
        (format!("socks5://{}", socks(true, 0).await), "it requires credentials"),
        (
            format!("socks5://{}", socks(false, 2).await),
            "it answers \"connection not allowed by ruleset\" for api.cluster.test:443",
        ),
        (format!("http://{nobody}"), "Connection refused"),
        (format!("https://localhost:{}", encrypted.port()), "invalid peer certificate"),
    ] {
        let client = world.client(&format!("https://{SERVER}"), &proxy).await.unwrap();
        let request = Request::get("/version").body(Body::empty()).unwrap();
        let error = tokio::time::timeout(PATIENCE, client.send(request)).await.expect("an answer").unwrap_err();
        assert!(never_sent(&error), "{error:?}");
        let text = root_cause(&error);
        let (scheme, place) = proxy.split_once("://").unwrap();
        let shown = format!("proxy {scheme}://{}: {problem}", place.rsplit('@').next().unwrap());
        assert!(text.starts_with(&shown), "{shown}\n{text}");
        assert!(!format!("{error:?} {text}").contains("pass@"), "{error:?}");
    }
}

#[test]
fn the_header_of_a_proxy_goes_to_servers_that_it_forwards_to() {
    let proxy = Proxy::parse(&"http://me@proxy".parse().unwrap()).unwrap();
    assert!(proxy.header_for(&"https://server".parse().unwrap()).is_none(), "the tunnel had it");
    let (_, value) = proxy.header_for(&"http://server".parse().unwrap()).unwrap();
    assert_eq!(value, "Basic bWU6");
    assert!(value.is_sensitive());
    let socks = Proxy::parse(&"socks5://me@proxy".parse().unwrap()).unwrap();
    assert!(socks.header_for(&"http://server".parse().unwrap()).is_none());
    assert_eq!(socks.to_string(), "socks5://proxy:1080");
}
