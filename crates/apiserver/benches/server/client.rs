//! An HTTP/2 client with nothing in it that takes time: it does not even parse what it gets.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// As large as a list's: flow control is not what is measured.
const WINDOW_BYTES: u32 = 64 << 20;
const FRAME_BYTES: u32 = 1 << 20;

/// A server, and who we are there.
pub(crate) struct Target {
    /// `host:port`.
    address: String,
    name: ServerName<'static>,
    tls: TlsConnector,
    authorization: Option<HeaderValue>,
}

/// One connection; clones share it.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: http2::SendRequest<Full<Bytes>>,
    base: Arc<str>,
    authorization: Option<HeaderValue>,
}

// === impl Target ===

impl Target {
    /// The first cluster and the first user of a kubeconfig.
    pub(crate) fn read(kubeconfig: &Path) -> Self {
        let text = std::fs::read_to_string(kubeconfig).expect("the kubeconfig can be read");
        let config: Value = serde_saphyr::from_str(&text).expect("the kubeconfig is YAML");
        let cluster = &config["clusters"][0]["cluster"];
        let user = &config["users"][0]["user"];
        let url = cluster["server"].as_str().expect("the kubeconfig has a server");
        let address = url.strip_prefix("https://").expect("the server is behind TLS").trim_end_matches('/').to_owned();
        let host = address.rsplit_once(':').expect("the server has a port").0.to_owned();
        assert!(
            host.starts_with("127.") || host == "localhost",
            "a benchmark's load is for the loopback interface only"
        );

        let mut roots = rustls::RootCertStore::empty();
        for certificate in
            certificates(&pem(cluster, "certificate-authority").expect("the kubeconfig has an authority"))
        {
            roots.add(certificate).expect("an authority");
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS 1.3")
            .with_root_certificates(roots);
        let mut tls = match (pem(user, "client-certificate"), pem(user, "client-key")) {
            (Some(chain), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(&key).expect("a key");
                builder.with_client_auth_cert(certificates(&chain), key).expect("key and certificate match")
            }
            _ => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let bearer = |token: &str| HeaderValue::try_from(format!("Bearer {token}")).expect("a token");
        Self {
            address,
            name: ServerName::try_from(host).expect("a name"),
            tls: TlsConnector::from(Arc::new(tls)),
            authorization: user["token"].as_str().map(bearer),
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(&self.address).await.expect("the server accepts");
        stream.set_nodelay(true).expect("no delay");
        let stream = self.tls.connect(self.name.clone(), stream).await.expect("a TLS handshake");
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .expect("an HTTP/2 handshake");
        // Ends when its last request handle is dropped; who waits for an answer sees why.
        tokio::spawn(connection);
        let base = format!("https://{}", self.address).into();
        Connection { sender, base, authorization: self.authorization.clone() }
    }

    pub(crate) async fn connections(&self, count: usize) -> Vec<Connection> {
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(self.connect().await);
        }
        all
    }
}

// === impl Connection ===

impl Connection {
    /// The answer, whatever its status. The content type of a patch is that of server-side apply.
    pub(crate) async fn answer(&mut self, method: Method, path: &str, body: Bytes) -> Response<Incoming> {
        let is_apply = method == Method::PATCH;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, if is_apply { "application/apply-patch+yaml" } else { "application/json" })
            .body(Full::new(body))
            .expect("a request");
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        self.sender.ready().await.expect("the connection is open");
        self.sender.send_request(request).await.expect("an answer")
    }

    /// The answer's body, piece by piece.
    pub(crate) async fn open(&mut self, method: Method, path: &str, body: Bytes) -> Response<Incoming> {
        let response = self.answer(method, path, body).await;
        if response.status().is_success() {
            return response;
        }
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        panic!("{path}: {status}: {}", String::from_utf8_lossy(&body));
    }

    /// How many bytes the answer has.
    pub(crate) async fn get(&mut self, path: &str) -> usize {
        size(self.open(Method::GET, path, Bytes::new()).await).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Bytes) {
        self.write(Method::POST, path, body).await;
    }

    /// Writes, and reads the whole answer.
    pub(crate) async fn write(&mut self, method: Method, path: &str, body: Bytes) {
        size(self.open(method, path, body).await).await;
    }

    /// A small answer as JSON.
    pub(crate) async fn json(&mut self, path: &str) -> Value {
        let response = self.open(Method::GET, path, Bytes::new()).await;
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice(&body).expect("JSON")
    }
}

async fn size(response: Response<Incoming>) -> usize {
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.expect("the body is whole").data_ref().map_or(0, Bytes::len);
    }
    bytes
}

/// `FIELD-data` decoded, or the file that `FIELD` names.
fn pem(section: &Value, field: &str) -> Option<Vec<u8>> {
    if let Some(data) = section[format!("{field}-data")].as_str() {
        return Some(STANDARD.decode(data).expect("base64"));
    }
    section[field].as_str().map(|file| std::fs::read(file).expect("the file can be read"))
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().expect("certificates")
}
