//! The server behind real sockets: TLS, certificates that change, bounds, and a graceful end.
//!
//! Sockets wait for the machine and not for tokio's clock, so these tests run in real time; what they wait for has a
//! deadline of [`PATIENCE`], and none waits for time to pass where it could wait for an event.

mod client;
mod keys;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use steersman_base::Clock;
use steersman_runtime::__internal::serving::{ClientAuthority, PeerCertificates};
use steersman_runtime::serving::{
    CertificateSource, ClientCertificates, PeerAddress, Request, Response, ServeError, ServeOptions, Serving,
    SniCertificate, Tls, TlsVersion, text,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use client::Client;
use keys::{Authority, Issued};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PATIENCE: Duration = Duration::from_secs(10);

/// A folder that goes with the test.
struct Folder(PathBuf);

/// A server that runs.
struct Running {
    address: SocketAddr,
    pem: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Folder {
    fn new(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("steersman-serving-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    fn pair(&self, name: &str, issued: &Issued) -> io::Result<CertificateSource> {
        let certificate = self.file(&format!("{name}.crt"), &issued.certificate_pem)?;
        Ok(CertificateSource::Files { certificate, key: self.file(&format!("{name}.key"), &issued.key_pem)? })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Running {
    async fn start(options: ServeOptions) -> Result<Self, ServeError> {
        Self::with(options, hello).await
    }

    async fn with(
        options: ServeOptions,
        service: impl steersman_runtime::serving::Service,
    ) -> Result<Self, ServeError> {
        let serving = Serving::bind(options).await?;
        let address = serving.address();
        let pem = serving.certificate_pem().unwrap_or_default();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serving.run(service, stop.clone()));
        Ok(Self { address, pem, stop, task })
    }
}

/// Says what it saw.
async fn hello(request: Request) -> Response {
    assert!(request.extensions().get::<PeerAddress>().is_some_and(|peer| peer.0.ip().is_loopback()));
    let shown = request.extensions().get::<PeerCertificates>().map_or(0, |chain| chain.iter().count());
    let version = request.version();
    let length = request.body().len();
    text(StatusCode::OK, format!("{version:?}, {length} bytes, {shown} certificates"))
}

fn secured(source: CertificateSource) -> ServeOptions {
    let mut tls = Tls::new(source);
    tls.reload_every = Duration::from_millis(20);
    ServeOptions::default().with_tls(tls)
}

/// Options with this time for requests in flight at the end.
fn draining(drain: Duration) -> ServeOptions {
    let mut options = ServeOptions::default();
    options.drain = drain;
    options
}

#[tokio::test]
async fn a_self_signed_certificate_is_made_once_and_believed() -> Outcome {
    let folder = Folder::new("self-signed")?;
    let directory = folder.0.join("new");
    let source =
        CertificateSource::Directory { directory: directory.clone(), pair: "manager".to_owned(), names: Vec::new() };
    let first = Running::start(secured(source.clone())).await?;
    #[cfg(unix)]
    {
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(directory.join("manager.key"))?.permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(first.pem, std::fs::read_to_string(directory.join("manager.crt"))?);
    let client = Client::believing(&first.pem)?;
    assert_eq!(client.get(first.address, b"h2").await?.1, "HTTP/2.0, 0 bytes, 0 certificates");
    assert_eq!(client.get(first.address, b"http/1.1").await?.1, "HTTP/1.1, 0 bytes, 0 certificates");
    let second = Running::start(secured(source.clone())).await?;
    assert_eq!(second.pem, first.pem);
    // Half a pair is not made up for.
    std::fs::remove_file(directory.join("manager.key"))?;
    let error = Serving::bind(secured(source)).await.expect_err("there is no key").to_string();
    assert!(error.contains("manager.key"), "{error}");
    Ok(())
}

#[tokio::test]
async fn changed_files_are_served_and_broken_ones_are_not() -> Outcome {
    let folder = Folder::new("reload")?;
    let authority = Authority::new("one")?;
    let issue = |name: &str| authority.issue(name, &["127.0.0.1"], &[]);
    let old = issue("old")?;
    let new = issue("new")?;
    let last = issue("last")?;
    let running = Running::start(secured(folder.pair("tls", &old)?)).await?;
    let client = Client::believing(&authority.pem)?;
    assert_eq!(client.leaf(running.address).await?, old.der);
    let mut open = client.open(running.address).await?;
    assert_eq!(open.get().await?, StatusCode::OK);

    folder.pair("tls", &new)?;
    client.until_leaf(running.address, &new.der).await?;
    assert_eq!(open.get().await?, StatusCode::OK, "who is connected stays so");

    // Long enough for several looks; what is served does not change.
    folder.file("tls.key", "broken")?;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(client.leaf(running.address).await?, new.der);
    }
    // A certificate without its key, as in the middle of a change.
    folder.file("tls.crt", &last.certificate_pem)?;
    folder.file("tls.key", &new.key_pem)?;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(client.leaf(running.address).await?, new.der);
    }
    folder.file("tls.key", &last.key_pem)?;
    client.until_leaf(running.address, &last.der).await
}

#[tokio::test]
async fn what_cannot_be_served_is_said_in_a_sentence() -> Outcome {
    let folder = Folder::new("errors")?;
    let authority = Authority::new("one")?;
    let one = authority.issue("one", &[], &[])?;
    let two = authority.issue("two", &[], &[])?;
    let good = |name: &str| folder.pair(name, &one);
    let mixed = Issued { key_pem: two.key_pem.clone(), ..one.clone() };
    let empty = Issued { certificate_pem: String::new(), ..one.clone() };
    let missing = CertificateSource::Files { certificate: folder.0.join("none.crt"), key: folder.0.join("none.key") };
    let required = |authority: PathBuf| {
        let mut tls = Tls::new(good("required").expect("a folder"));
        tls.clients = ClientCertificates::Required { authority };
        tls
    };
    let busy = Running::start(ServeOptions::default()).await?;
    let rows = [
        ("a port in use", ServeOptions::at(busy.address), "the port is in use"),
        ("an address of nobody", ServeOptions::at("192.0.2.1:0".parse()?), "no interface of this machine"),
        ("no file", secured(missing), "none.crt: No such file"),
        ("another's key", secured(folder.pair("mixed", &mixed)?), "mixed.key cannot be used together"),
        ("no certificate", secured(folder.pair("empty", &empty)?), "empty.crt holds no certificate"),
        (
            "no bundle",
            ServeOptions::default().with_tls(required(folder.0.join("none.pem"))),
            "none.pem: it cannot be read",
        ),
        (
            "an empty bundle",
            ServeOptions::default().with_tls(required(folder.file("e.pem", "")?)),
            "it holds no certificate",
        ),
    ];
    for (name, options, want) in rows {
        let error = Serving::bind(options).await.expect_err(name).to_string();
        assert!(error.contains(want) && !error.contains('\n'), "{name}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn client_certificates_are_shown_and_believed_by_authority() -> Outcome {
    let folder = Folder::new("clients")?;
    let ours = Authority::new("ours")?;
    let others = Authority::new("others")?;
    let server = folder.pair("tls", &ours.issue("server", &["127.0.0.1"], &[])?)?;
    let bundle = ClientAuthority::from_pem(ours.pem.as_bytes())?;
    let judge = move |request: Request| {
        let clock = Clock::system();
        let said = match request.extensions().get::<PeerCertificates>() {
            None => "nobody".to_owned(),
            Some(shown) => match bundle.verify(shown, clock.now()) {
                Ok(identity) => format!("{} of {}", identity.common_name, identity.organizations.join("+")),
                Err(error) => error.to_string(),
            },
        };
        std::future::ready(text(StatusCode::OK, said))
    };
    let mut tls = Tls::new(server.clone());
    tls.clients = ClientCertificates::Requested;
    let asked = Running::with(ServeOptions::default().with_tls(tls), judge).await?;
    let jane = ours.issue("jane", &[], &["system:masters"])?;
    let mallory = others.issue("jane", &[], &["system:masters"])?;
    let client = Client::believing(&ours.pem)?;
    assert_eq!(client.get(asked.address, b"h2").await?.1, "nobody");
    assert_eq!(client.showing(&jane)?.get(asked.address, b"h2").await?.1, "jane of system:masters");
    let refused = client.showing(&mallory)?.get(asked.address, b"http/1.1").await?.1;
    assert!(refused.starts_with("the client certificate is not valid"), "{refused}");

    let authority = folder.file("ca.pem", &ours.pem)?;
    let mut tls = Tls::new(server);
    tls.clients = ClientCertificates::Required { authority: authority.clone() };
    tls.reload_every = Duration::from_millis(20);
    let demanded = Running::start(ServeOptions::default().with_tls(tls)).await?;
    assert!(client.get(demanded.address, b"h2").await.is_err());
    assert!(client.showing(&mallory)?.get(demanded.address, b"h2").await.is_err());
    assert_eq!(client.showing(&jane)?.get(demanded.address, b"h2").await?.0, StatusCode::OK);
    // Now others are believed.
    std::fs::write(&authority, &others.pem)?;
    let mallory = client.showing(&mallory)?;
    timeout(PATIENCE, async { while mallory.get(demanded.address, b"h2").await.is_err() {} }).await?;
    assert!(client.showing(&jane)?.get(demanded.address, b"h2").await.is_err());
    Ok(())
}

#[tokio::test]
async fn names_versions_and_protocols_are_as_configured() -> Outcome {
    let folder = Folder::new("sni")?;
    let authority = Authority::new("one")?;
    let own = authority.issue("own", &["a.example.com"], &[])?;
    let reported = authority.issue("told", &["b.example.com"], &[])?;
    let other = authority.issue("other", &["127.0.0.1"], &[])?;
    let sni = |name: &str, issued: &Issued, names: &[&str]| -> io::Result<SniCertificate> {
        let CertificateSource::Files { certificate, key } = folder.pair(name, issued)? else { unreachable!() };
        Ok(SniCertificate::new(certificate, key, names.iter().map(|&name| name.to_owned()).collect()))
    };
    let mut tls = Tls::new(folder.pair("tls", &other)?);
    tls.sni = vec![sni("own", &own, &[])?, sni("told", &reported, &["*.Example.org"])?];
    tls.min_version = TlsVersion::Tls13;
    tls.http2 = false;
    let running = Running::start(ServeOptions::default().with_tls(tls)).await?;
    let client = Client::believing_anybody();
    let rows =
        [("a.example.com", &own), ("x.example.org", &reported), ("b.example.com", &other), ("127.0.0.1", &other)];
    for (name, want) in rows {
        assert_eq!(client.leaf_named(running.address, name).await?, want.der, "{name}");
    }
    assert!(client.get(running.address, b"h2").await.is_err(), "HTTP/2 is not offered");
    let old = client.speaking(&rustls::version::TLS12);
    assert!(old.get(running.address, b"http/1.1").await.is_err(), "TLS 1.2 is not spoken");
    Ok(())
}

/// A body in spite of the method is an error of the protocol to clients of HTTP/2.
#[tokio::test]
async fn a_request_for_the_head_is_answered_without_a_body() -> Outcome {
    let running = Running::start(secured(CertificateSource::SelfSigned { names: Vec::new() })).await?;
    let client = Client::believing(&running.pem)?;
    let body = client.get(running.address, b"h2").await?.1;
    let length = body.len().to_string();
    let mut open = client.open(running.address).await?;
    assert_eq!(open.head().await?, (StatusCode::OK, length.clone()));
    assert_eq!(open.get().await?, StatusCode::OK, "the connection goes on");

    let running = Running::start(ServeOptions::default()).await?;
    let answer = client::raw(running.address, b"HEAD / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(answer.contains(&format!("content-length: {length}\r\n")), "{answer}");
    Ok(())
}

#[tokio::test]
async fn requests_in_flight_are_answered_and_hanging_ones_cut_off() -> Outcome {
    static ENTERED: Notify = Notify::const_new();
    static GO: Notify = Notify::const_new();
    async fn slow(request: Request) -> Response {
        ENTERED.notify_one();
        match request.uri().path() {
            "/hangs" => std::future::pending().await,
            _ => GO.notified().await,
        }
        text(StatusCode::OK, "done")
    }
    let drain = Duration::from_secs(30);
    let running = Running::with(draining(drain), slow).await?;
    let address = running.address;
    let asking = tokio::spawn(async move { client::plain(address, "/").await });
    timeout(PATIENCE, ENTERED.notified()).await?;
    running.stop.cancel();
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    timeout(PATIENCE, refused).await?;
    assert!(!running.task.is_finished(), "it waits for the request");
    GO.notify_one();
    assert!(timeout(PATIENCE, asking).await???.ends_with("done"));
    timeout(PATIENCE, running.task).await??;

    let drain = Duration::from_millis(50);
    let running = Running::with(draining(drain), slow).await?;
    let address = running.address;
    let asking = tokio::spawn(async move { client::plain(address, "/hangs").await });
    timeout(PATIENCE, ENTERED.notified()).await?;
    running.stop.cancel();
    timeout(PATIENCE, running.task).await??;
    assert_eq!(timeout(PATIENCE, asking).await???, "", "the connection is closed without an answer");
    Ok(())
}

/// Requests of one connection in which the server could have answered another one.
const ROUNDS: usize = 50;

#[tokio::test]
async fn what_a_stranger_can_take_is_bounded() -> Outcome {
    let quick = Duration::from_millis(50);
    let mut options = ServeOptions::default();
    options.body_bytes_max = 10;
    options.connections_max = 1;
    let running = Running::start(options).await?;
    let post = |body: &str| {
        format!("POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let chunked = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n";
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    let rows = [
        ("a body", post("1234567890"), "HTTP/1.1 200"),
        ("a long body", post("12345678901"), "HTTP/1.1 413"),
        ("a long body in pieces", chunked.to_owned(), "HTTP/1.1 413"),
        ("a long header", long, "HTTP/1.1 431"),
        ("no HTTP", "\0\0\0\r\n\r\n".to_owned(), "HTTP/1.1 400"),
    ];
    for (name, sent, want) in rows {
        let got = client::raw(running.address, sent.as_bytes()).await?;
        assert!(got.starts_with(want), "{name}: {got}");
    }
    // The one place is taken: the next is served when it is free again. Its request is there before those of the first,
    // so a server that took both would have answered it by the time it has answered all of them.
    let mut first = TcpStream::connect(running.address).await?;
    let get = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    first.write_all(get).await?;
    assert_ne!(first.read(&mut [0; 512]).await?, 0);
    let mut second = TcpStream::connect(running.address).await?;
    second.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
    for _ in 0..ROUNDS {
        first.write_all(get).await?;
        assert_ne!(timeout(PATIENCE, first.read(&mut [0; 512])).await??, 0);
        let early = second.try_read(&mut [0; 512]).map_err(|error| error.kind());
        assert_eq!(early, Err(io::ErrorKind::WouldBlock), "the second is answered while the first holds the place");
    }
    drop(first);
    let mut answer = String::new();
    timeout(PATIENCE, second.read_to_string(&mut answer)).await??;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    // Those who say nothing, or nothing more, are let go.
    let mut options = ServeOptions::default();
    options.patience = quick;
    let silent = Running::start(options).await?;
    let mut options = ServeOptions::default();
    options.idle = quick;
    let idle = Running::start(options).await?;
    for (address, sent) in
        [(silent.address, ""), (silent.address, "GET / HT"), (idle.address, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")]
    {
        timeout(PATIENCE, client::raw(address, sent.as_bytes())).await??;
    }
    Ok(())
}
