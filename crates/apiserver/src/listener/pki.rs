//! The certificates of one server: an authority, the server's own, and those of its clients.

mod subject;

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Names of the server inside a cluster, and on this machine.
const NAMES: [&str; 5] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// It cannot be created.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// TLS does not accept it.
    #[error("cannot use a certificate: {0}")]
    Tls(#[from] rustls::Error),
    /// Client certificates cannot be verified.
    #[error("cannot check client certificates: {0}")]
    Clients(#[from] rustls::server::VerifierBuilderError),
    /// It is malformed.
    #[error("a certificate is not encoded as it should be")]
    Encoding,
}

/// The authority and the server's certificate.
#[derive(Debug)]
pub(super) struct Pki {
    authority: Issuer<'static, KeyPair>,
    authority_der: CertificateDer<'static>,
    authority_pem: String,
    server_der: CertificateDer<'static>,
    server_key: KeyPair,
}

// === impl Pki ===

impl Pki {
    /// Creates certificates for a server at this address, by an authority with this key, or with a new one.
    /// Certificates of the authority with the same key are interchangeable for clients.
    pub(super) fn generate(address: IpAddr, names: &[String], key_pem: Option<&str>) -> Result<Self, PkiError> {
        let key = key_pem.map_or_else(p256, |pem| Ok(KeyPair::from_pem(pem)?))?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name("steersman");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key)?;
        let authority = Issuer::new(params, key);
        let mut all: Vec<String> = NAMES.map(str::to_owned).into();
        all.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
        if !address.is_unspecified() {
            all.push(address.to_string());
        }
        all.extend(names.iter().cloned());
        all.sort();
        all.dedup();
        let server_key = p256()?;
        let mut params = CertificateParams::new(all)?;
        params.distinguished_name = name("kube-apiserver");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server = params.signed_by(&server_key, &authority)?;
        Ok(Self {
            authority,
            authority_pem: certificate.pem(),
            authority_der: certificate.der().clone(),
            server_der: server.der().clone(),
            server_key,
        })
    }

    pub(super) fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    pub(super) fn authority_key_pem(&self) -> String {
        self.authority.key().serialize_pem()
    }

    pub(super) fn client_certificate(&self, user: &str, groups: &[&str]) -> Result<Certificate, PkiError> {
        let key = p256()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name(user);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.authority)?;
        let certificate_pem = subject::with_subject(certificate.der(), user, groups, self.authority.key())?;
        Ok(Certificate { certificate_pem, key_pem: key.serialize_pem() })
    }

    /// Returns the TLS configuration: client certificates are optional.
    pub(super) fn server_config(&self) -> Result<ServerConfig, PkiError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.authority_der.clone())?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.server_key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![self.server_der.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn p256() -> Result<KeyPair, PkiError> {
    Ok(KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?)
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}
