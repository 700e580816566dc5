//! Client certificates, and the authorities that verify them.

use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use steersman_base::Time;
use x509_cert::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, Utf8StringRef};
use x509_cert::der::{Any, Decode, Tag, Tagged};

/// The chain that a client sent in the handshake, its own certificate first; an extension of its requests.
///
/// The client has the key of the first. Nothing else is verified before [`ClientAuthority::verify`].
#[derive(Clone, Debug)]
pub struct PeerCertificates(Arc<[CertificateDer<'static>]>);

/// The certificates of trusted authorities.
#[derive(Clone, Debug)]
pub struct ClientAuthority(Arc<dyn ClientCertVerifier>);

/// The identity in a certificate, as Kubernetes reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The common name: the user.
    pub common_name: String,
    /// The organizations: the user's groups.
    pub organizations: Vec<String>,
    /// The user's uid, if the certificate has one (OID 1.3.6.1.4.1.57683.2).
    pub uid: Option<String>,
}

/// An error of a bundle of authorities.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The bundle cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// The bundle is not PEM.
    #[error("it is not PEM: {0}")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// The bundle is empty.
    #[error("it holds no certificate")]
    Empty,
    /// A certificate cannot be used.
    #[error("certificate {index} of it cannot be used: {source}")]
    Certificate {
        /// The position of the certificate, from 1.
        index: usize,
        /// The cause.
        source: rustls::Error,
    },
    /// The certificates cannot be used together.
    #[error("it cannot be used: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// An error of a client certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotBelieved {
    /// No authority has signed it, or it has expired.
    #[error("the client certificate is not valid: {0}")]
    Invalid(#[from] rustls::Error),
    /// The certificate cannot be read.
    #[error("the client certificate cannot be read: {0}")]
    Unreadable(#[from] x509_cert::der::Error),
}

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const UID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57683.2");

// === impl PeerCertificates ===

impl PeerCertificates {
    /// Creates a chain from DER, the client's own certificate first.
    #[must_use]
    pub fn new(chain: &[CertificateDer<'_>]) -> Self {
        Self(chain.iter().map(|certificate| certificate.clone().into_owned()).collect())
    }

    /// Reads a chain from PEM: for tests of services without a socket.
    ///
    /// # Errors
    /// The text is not PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, rustls_pki_types::pem::Error> {
        Ok(Self(CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?))
    }

    /// Returns the chain in DER.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }
}

// === impl ClientAuthority ===

impl ClientAuthority {
    /// Reads a bundle.
    ///
    /// # Errors
    /// The text is not PEM with at least one usable certificate.
    pub fn from_pem(bundle: &[u8]) -> Result<Self, AuthorityError> {
        let mut roots = RootCertStore::empty();
        for (index, certificate) in CertificateDer::pem_slice_iter(bundle).enumerate() {
            roots.add(certificate?).map_err(|source| AuthorityError::Certificate { index: index + 1, source })?;
        }
        if roots.is_empty() {
            return Err(AuthorityError::Empty);
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        Ok(Self(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?))
    }

    /// Returns the identity in the certificate, if an authority has signed it and it is valid at this time.
    ///
    /// # Errors
    /// The certificate is not valid, or its subject cannot be read.
    pub fn verify(&self, shown: &PeerCertificates, now: Time) -> Result<Identity, NotBelieved> {
        let Some((own, others)) = shown.0.split_first() else {
            return Err(rustls::Error::NoCertificatesPresented.into());
        };
        let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.unix()).unwrap_or(0)));
        self.0.verify_client_cert(own, others, now)?;
        Ok(Identity::of(own)?)
    }

    pub(super) fn verifier(&self) -> &dyn ClientCertVerifier {
        &*self.0
    }
}

// === impl Identity ===

impl Identity {
    fn of(der: &[u8]) -> Result<Self, x509_cert::der::Error> {
        let certificate = Certificate::from_der(der)?;
        let mut identity = Self::default();
        for attribute in certificate.tbs_certificate().subject().iter() {
            match attribute.oid {
                COMMON_NAME => identity.common_name = string(&attribute.value)?,
                ORGANIZATION => identity.organizations.push(string(&attribute.value)?),
                UID => identity.uid = Some(string(&attribute.value)?),
                _ => {}
            }
        }
        Ok(identity)
    }
}

/// The string types of certificates; any other is refused rather than guessed, because it names a user.
fn string(value: &Any) -> Result<String, x509_cert::der::Error> {
    Ok(match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>()?.as_str().to_owned(),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>()?.as_str().to_owned(),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>()?.as_str().to_owned(),
        other => return Err(other.value_error().into()),
    })
}
