//! Clients that look closely.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::PATIENCE;
use crate::keys::Issued;

type Error = Box<dyn std::error::Error>;

/// A client that believes some authorities.
#[derive(Clone)]
pub(crate) struct Client {
    /// Those believed; anybody, if there are none.
    roots: Option<Arc<RootCertStore>>,
    shown: Option<Issued>,
    versions: &'static [&'static SupportedProtocolVersion],
}

/// A connection that stays open.
pub(crate) struct Open {
    sender: hyper::client::conn::http2::SendRequest<Empty<Bytes>>,
    address: SocketAddr,
}

/// Believes anybody.
#[derive(Debug)]
struct Anybody;

impl Client {
    pub(crate) fn believing(pem: &str) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate?)?;
        }
        Ok(Self { roots: Some(Arc::new(roots)), ..Self::believing_anybody() })
    }

    pub(crate) fn believing_anybody() -> Self {
        Self { roots: None, shown: None, versions: rustls::DEFAULT_VERSIONS }
    }

    pub(crate) fn showing(&self, issued: &Issued) -> Result<Self, Error> {
        Ok(Self { shown: Some(issued.clone()), ..self.clone() })
    }

    pub(crate) fn speaking(&self, version: &'static SupportedProtocolVersion) -> Self {
        let versions: &'static [_] = Box::leak(Box::new([version]));
        Self { versions, ..self.clone() }
    }

    fn config(&self, protocol: &[u8]) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(self.versions)?;
        let builder = match &self.roots {
            Some(roots) => builder.with_root_certificates(Arc::clone(roots)),
            None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody)),
        };
        let mut config = match &self.shown {
            Some(issued) => {
                let chain = vec![CertificateDer::from(issued.der.clone())];
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes())?)?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(config)
    }

    async fn connect(&self, address: SocketAddr, name: &str, protocol: &[u8]) -> Result<TlsStream<TcpStream>, Error> {
        let connector = TlsConnector::from(Arc::new(self.config(protocol)?));
        let stream = TcpStream::connect(address).await?;
        Ok(timeout(PATIENCE, connector.connect(ServerName::try_from(name.to_owned())?, stream)).await??)
    }

    /// The certificate that is served.
    pub(crate) async fn leaf(&self, address: SocketAddr) -> Result<Vec<u8>, Error> {
        self.leaf_named(address, "127.0.0.1").await
    }

    /// The certificate that is served to who asks for this name.
    pub(crate) async fn leaf_named(&self, address: SocketAddr, name: &str) -> Result<Vec<u8>, Error> {
        let stream = self.connect(address, name, b"http/1.1").await?;
        let chain = stream.get_ref().1.peer_certificates().ok_or("no certificate")?;
        Ok(chain.first().ok_or("no certificate")?.to_vec())
    }

    pub(crate) async fn until_leaf(&self, address: SocketAddr, want: &[u8]) -> Result<(), Error> {
        let seen = async {
            while self.leaf(address).await? != want {}
            Ok(())
        };
        timeout(PATIENCE, seen).await?
    }

    /// A connection that stays open.
    pub(crate) async fn open(&self, address: SocketAddr) -> Result<Open, Error> {
        let stream = TokioIo::new(self.connect(address, "127.0.0.1", b"h2").await?);
        let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        Ok(Open { sender, address })
    }

    /// Status and body of a request.
    pub(crate) async fn get(&self, address: SocketAddr, protocol: &[u8]) -> Result<(StatusCode, String), Error> {
        let stream = TokioIo::new(self.connect(address, "127.0.0.1", protocol).await?);
        let request = http::Request::get(format!("https://{address}/")).body(Empty::<Bytes>::new())?;
        let response = if protocol == b"h2" {
            let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(connection);
            timeout(PATIENCE, sender.send_request(request)).await??
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
            tokio::spawn(connection);
            timeout(PATIENCE, sender.send_request(request)).await??
        };
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8(body.to_vec())?))
    }
}

impl Open {
    /// The status of a request.
    pub(crate) async fn get(&mut self) -> Result<StatusCode, Error> {
        let request = http::Request::get(format!("https://{}/", self.address)).body(Empty::new())?;
        Ok(timeout(PATIENCE, self.sender.send_request(request)).await??.status())
    }

    /// The status and the declared length of a request for the head alone, after all of the response has arrived.
    pub(crate) async fn head(&mut self) -> Result<(StatusCode, String), Error> {
        let request = http::Request::head(format!("https://{}/", self.address)).body(Empty::new())?;
        let response = timeout(PATIENCE, self.sender.send_request(request)).await??;
        let status = response.status();
        let length = response.headers().get(http::header::CONTENT_LENGTH).ok_or("no length")?.to_str()?.to_owned();
        let body = response.into_body().collect().await?.to_bytes();
        if body.is_empty() { Ok((status, length)) } else { Err("a body".into()) }
    }
}

/// What is answered to bytes, until the other end closes.
pub(crate) async fn raw(address: SocketAddr, sent: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // The server may have had enough before it has read all.
    let _ = stream.write_all(sent).await;
    let mut got = Vec::new();
    match stream.read_to_end(&mut got).await {
        Err(error) if got.is_empty() && error.kind() != std::io::ErrorKind::ConnectionReset => Err(error),
        _ => Ok(String::from_utf8_lossy(&got).into_owned()),
    }
}

/// What is answered to a request without TLS.
pub(crate) async fn plain(address: SocketAddr, path: &str) -> std::io::Result<String> {
    raw(address, format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()).await
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
