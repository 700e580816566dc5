//! The TLS configuration of a server.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use steersman_base::Clock;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::names::{CipherSuites, KeyExchanges, TlsVersion};
use super::pair::{self, PairError, PemPair, Watched};
use super::{AuthorityError, ClientAuthority, ServeError, self_signed};

/// The options of TLS.
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub struct Tls {
    /// The certificate for clients that request no name, or an unknown one.
    pub certificate: CertificateSource,
    /// Certificates for clients that request certain names.
    pub sni: Vec<SniCertificate>,
    /// The treatment of client certificates.
    pub clients: ClientCertificates,
    /// The minimum version.
    pub min_version: TlsVersion,
    /// The cipher suites of TLS 1.2; rustls's defaults if `None`.
    pub cipher_suites: Option<CipherSuites>,
    /// The key exchanges; rustls's defaults if `None`.
    pub key_exchanges: Option<KeyExchanges>,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// The interval at which files are checked for changes.
    pub reload_every: Duration,
}

/// The source of the server's certificate and key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CertificateSource {
    /// Files, in PEM; read again when they change.
    Files {
        /// The certificate, followed by its intermediates.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// The files `<pair>.crt` and `<pair>.key` of a directory. If they do not exist, a self-signed certificate is
    /// created and stored in them.
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The name of the files.
        pair: String,
        /// The names and addresses of a new certificate, besides the address of the server.
        names: Vec<String>,
    },
    /// Self-signed, created at start and kept in memory.
    SelfSigned {
        /// The names and addresses, besides the address of the server.
        names: Vec<String>,
    },
}

/// A certificate for certain names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SniCertificate {
    /// The certificate, followed by its intermediates.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// The names: `example.com`, or `*.example.com` for one more label; those of the certificate, if empty.
    pub names: Vec<String>,
}

/// The treatment of client certificates.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ClientCertificates {
    /// Certificates are not requested.
    #[default]
    Ignored,
    /// Clients may send a certificate, which the service verifies.
    Requested,
    /// Clients must send a certificate that an authority of this bundle has signed. The bundle is read again when it
    /// changes.
    Required {
        /// The bundle, in PEM.
        authority: PathBuf,
    },
}

/// A ready TLS configuration.
#[derive(Debug)]
pub(super) struct Secured {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
    authority: Option<Arc<Watched<ClientAuthority, 1>>>,
    reload_every: Duration,
}

/// Selects a certificate.
#[derive(Debug)]
struct Certificates {
    default: Watched<Pair, 2>,
    named: Vec<(Vec<String>, Watched<Pair, 2>)>,
}

#[derive(Debug)]
struct Pair {
    certified: Arc<CertifiedKey>,
    certificate_pem: String,
}

/// Accepts every client that has the key of its certificate, or, with an authority, whose certificate is signed by it.
#[derive(Debug)]
struct Showing {
    authority: Option<Arc<Watched<ClientAuthority, 1>>>,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct WallTime(Clock);

/// Files in a mounted Secret change within a minute or so of it; a read of a few kilobytes costs nothing.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

// === impl SniCertificate ===

impl SniCertificate {
    /// Creates the certificate from files, for these names; for those of the certificate, if empty.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>, names: Vec<String>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), names }
    }
}

// === impl Tls ===

impl Tls {
    /// Creates options with this certificate; client certificates are not requested.
    pub fn new(certificate: CertificateSource) -> Self {
        Self {
            certificate,
            sni: Vec::new(),
            clients: ClientCertificates::Ignored,
            min_version: TlsVersion::default(),
            cipher_suites: None,
            key_exchanges: None,
            http2: true,
            reload_every: RELOAD_EVERY,
        }
    }

    fn provider(&self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(suites) = &self.cipher_suites {
            provider.cipher_suites = suites.spoken();
        }
        if let Some(exchanges) = &self.key_exchanges {
            provider.kx_groups = exchanges.spoken();
        }
        provider
    }
}

// === impl Secured ===

impl Secured {
    pub(super) async fn new(tls: &Tls, address: IpAddr, clock: &Clock) -> Result<Self, ServeError> {
        let default = certificate(&tls.certificate, address, clock).await?;
        let mut named = Vec::with_capacity(tls.sni.len());
        for SniCertificate { certificate, key, names } in &tls.sni {
            let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
            named.push((names, from_files([certificate.clone(), key.clone()]).await?));
        }
        let certificates = Arc::new(Certificates { default, named });
        let authority = match &tls.clients {
            ClientCertificates::Required { authority } => Some(Arc::new(bundle(authority).await?)),
            ClientCertificates::Ignored | ClientCertificates::Requested => None,
        };
        let provider = Arc::new(tls.provider());
        let algorithms = provider.signature_verification_algorithms;
        let versions = tls.min_version.and_newer();
        let builder = ServerConfig::builder_with_details(provider, Arc::new(WallTime(clock.clone())))
            .with_protocol_versions(versions)
            .map_err(|cause| ServeError::Parameters { cause })?;
        let builder = match &tls.clients {
            ClientCertificates::Ignored => builder.with_no_client_auth(),
            ClientCertificates::Requested | ClientCertificates::Required { .. } => {
                let authority = authority.clone();
                builder.with_client_cert_verifier(Arc::new(Showing { authority, algorithms }))
            }
        };
        let mut config = builder.with_cert_resolver(Arc::clone(&certificates) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = match tls.http2 {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        // A resumed session would not be verified again, whatever the authorities are by then.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), certificates, authority, reload_every: tls.reload_every })
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(Arc::clone(&self.config)).accept(stream).await
    }

    pub(super) fn certificate_pem(&self) -> String {
        self.certificates.default.current().certificate_pem.clone()
    }

    /// Checks the files periodically, for ever.
    pub(super) async fn reload(&self) {
        loop {
            tokio::time::sleep(self.reload_every).await;
            let named = self.certificates.named.iter().map(|(_, pair)| pair);
            for pair in std::iter::once(&self.certificates.default).chain(named) {
                pair.look(read_pair).await;
            }
            if let Some(authority) = &self.authority {
                authority.look(|[held], _| ClientAuthority::from_pem(held)).await;
            }
        }
    }
}

async fn certificate(
    source: &CertificateSource,
    address: IpAddr,
    clock: &Clock,
) -> Result<Watched<Pair, 2>, ServeError> {
    match source {
        CertificateSource::Files { certificate, key } => from_files([certificate.clone(), key.clone()]).await,
        CertificateSource::Directory { directory, pair, names } => {
            let files = self_signed::files(directory, pair);
            if !files.iter().any(|file| file.exists()) {
                self_signed::write(&self_signed::make(address, names, clock)?, &files)?;
                tracing::info!(directory = %directory.display(), pair, "a self-signed certificate was made");
            }
            // If only one of the two exists, the error names the other: a missing key is not replaced.
            from_files(files).await
        }
        CertificateSource::SelfSigned { names } => {
            let PemPair { certificate, key } = self_signed::make(address, names, clock)?;
            let made = ["the certificate that was made", "the key that was made"].map(PathBuf::from);
            Ok(Watched::fixed(read_pair([certificate.as_bytes(), key.as_bytes()], &made)?))
        }
    }
}

async fn from_files(files: [PathBuf; 2]) -> Result<Watched<Pair, 2>, ServeError> {
    let [certificate, key] = &files;
    let held = [read(certificate).await?, read(key).await?];
    let pair = read_pair(held.each_ref().map(Vec::as_slice), &files)?;
    Ok(Watched::from_files(pair, files, held))
}

async fn read(file: &Path) -> Result<Vec<u8>, PairError> {
    tokio::fs::read(file).await.map_err(PairError::read(file))
}

fn read_pair([certificate, key]: [&[u8]; 2], files: &[PathBuf; 2]) -> Result<Pair, PairError> {
    let certified = pair::parse(certificate, key, files.each_ref().map(PathBuf::as_path))?;
    Ok(Pair { certified: Arc::new(certified), certificate_pem: String::from_utf8_lossy(certificate).into_owned() })
}

async fn bundle(file: &Path) -> Result<Watched<ClientAuthority, 1>, ServeError> {
    let failed = |cause: AuthorityError| ServeError::Authority { file: file.to_owned(), cause };
    let held = tokio::fs::read(file).await.map_err(|error| failed(error.into()))?;
    let authority = ClientAuthority::from_pem(&held).map_err(failed)?;
    Ok(Watched::from_files(authority, [file.to_owned()], [held]))
}

// === impl Certificates ===

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let named = name.and_then(|name| {
            let has = |(names, pair): &&(Vec<String>, Watched<Pair, 2>)| is_for(names, &pair.current(), &name);
            self.named.iter().find(has).map(|(_, pair)| pair.current())
        });
        Some(Arc::clone(&named.unwrap_or_else(|| self.default.current()).certified))
    }
}

fn is_for(names: &[String], pair: &Pair, name: &str) -> bool {
    if !names.is_empty() {
        return names.iter().any(|pattern| matches(pattern, name));
    }
    let certificate = pair.certified.cert.first().and_then(|der| ParsedCertificate::try_from(der).ok());
    let name = ServerName::try_from(name);
    certificate.zip(name.ok()).is_some_and(|(certificate, name)| verify_server_name(&certificate, &name).is_ok())
}

/// `*.example.com` matches one label in its place.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(rest) => name.split_once('.').is_some_and(|(label, parent)| !label.is_empty() && parent == rest),
        None => pattern == name,
    }
}

// === impl Showing ===

impl ClientCertVerifier for Showing {
    fn client_auth_mandatory(&self) -> bool {
        self.authority.is_some()
    }

    /// None: the authorities may change, and clients with one certificate send it anyway.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match &self.authority {
            Some(authority) => authority.current().verifier().verify_client_cert(own, others, now),
            None => Ok(ClientCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

// === impl WallTime ===

impl TimeProvider for WallTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().unix()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
