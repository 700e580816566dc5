//! Whom we believe to be a webhook: certificates signed by its `caBundle`.
//!
//! A certificate that is in the bundle itself is believed too, even if it is one of an authority: so does Go, and so
//! `openssl req -x509` makes them. Without a bundle nobody is believed; upstream asks the system's authorities then.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_cert::der::Decode;

/// Returns how to connect to a webhook with this bundle of PEM.
///
/// # Errors
/// What is wrong with the bundle, in client-go's words.
pub(super) fn client_config(bundle: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let wrong = |why: &str| format!("unable to load root certificates: {why}");
    let mut roots = RootCertStore::empty();
    let mut trusted = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate = certificate.map_err(|_| wrong("unable to parse bytes as PEM block"))?;
        // What is no certificate is passed over, as Go does.
        if roots.add(certificate.clone()).is_ok() {
            trusted.push(certificate);
        }
    }
    if trusted.is_empty() && !bundle.is_empty() {
        return Err(wrong("unable to parse bytes as PEM block"));
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chains = match trusted.is_empty() {
        true => None,
        false => {
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(builder.build().map_err(|error| wrong(&error.to_string()))?)
        }
    };
    let algorithms = provider.signature_verification_algorithms;
    let verifier = Verifier { chains, trusted, algorithms };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The verification of a chain, at the time of the machine: a webhook has certificates of the real time, also where the
/// server's clock is one of a test.
#[derive(Debug)]
struct Verifier {
    chains: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
    algorithms: rustls::crypto::WebPkiSupportedAlgorithms,
}

// === impl Verifier ===

impl Verifier {
    /// Verifies a certificate that is in the bundle itself.
    fn verify_trusted(&self, certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
        let read = x509_cert::Certificate::from_der(certificate);
        let read = read.map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let validity = read.tbs_certificate().validity();
        let now = Duration::from_secs(UnixTime::now().as_secs());
        if now < validity.not_before.to_unix_duration() {
            return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
        }
        if now > validity.not_after.to_unix_duration() {
            return Err(Error::InvalidCertificate(CertificateError::Expired));
        }
        rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, name)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.iter().any(|trusted| trusted == certificate) {
            return self.verify_trusted(certificate, name).map(|()| ServerCertVerified::assertion());
        }
        match &self.chains {
            Some(chains) => chains.verify_server_cert(certificate, intermediates, name, ocsp, UnixTime::now()),
            None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns what Go says about a connection that could not be secured.
pub(super) fn go_words(error: &std::io::Error, server_name: &str) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    let why = match cause {
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => return "EOF".to_owned(),
        None => return error.to_string(),
        Some(Error::InvalidMessage(_)) => return "http: server gave HTTP response to HTTPS client".to_owned(),
        Some(Error::InvalidCertificate(why)) => why,
        Some(Error::AlertReceived(alert)) => return format!("remote error: tls: {alert:?}"),
        Some(other) => return format!("tls: {other}"),
    };
    let why = match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::NotValidYet
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYetContext { .. } => "certificate has expired or is not yet valid".to_owned(),
        CertificateError::NotValidForName => format!("certificate is not valid for {server_name}"),
        CertificateError::NotValidForNameContext { presented, .. } => not_valid_for(presented, server_name),
        CertificateError::Other(OtherError(other)) => other.to_string(),
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

fn not_valid_for(presented: &[String], server_name: &str) -> String {
    // rustls writes `DnsName("a")` and `IpAddress(127.0.0.1)`.
    let inner = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner.trim_end_matches(')'));
        inner.trim_matches('"').to_owned()
    };
    let names: Vec<String> = presented.iter().map(inner).collect();
    let is_address = server_name.parse::<std::net::IpAddr>().is_ok();
    let has_addresses = names.iter().any(|name| name.parse::<std::net::IpAddr>().is_ok());
    match (is_address, has_addresses) {
        (true, false) => {
            format!("cannot validate certificate for {server_name} because it doesn't contain any IP SANs")
        }
        _ => format!("certificate is valid for {}, not {server_name}", names.join(", ")),
    }
}
