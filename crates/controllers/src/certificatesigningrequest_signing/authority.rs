//! Pure: a certificate authority: its certificate, and the key that signs.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use steersman_base::Time;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::ObjectIdentifier;

use crate::certificates::der;

/// A certificate authority.
pub(super) struct Authority {
    /// The subject of its certificate, encoded: the issuer of what it signs.
    pub(super) subject: Vec<u8>,
    /// The identifier of its key, if its certificate has one.
    pub(super) key_id: Option<Vec<u8>>,
    /// The end of its certificate.
    pub(super) not_after: Time,
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
}

/// Why a pair cannot sign.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthorityError {
    #[error("there is no certificate in PEM: {0}")]
    Certificate(String),
    #[error("expected 1 certificate, found {0}")]
    Count(usize),
    #[error("there is no private key in PEM: {0}")]
    Key(rustls_pki_types::pem::Error),
    #[error("certificate and key cannot be used together: {0}")]
    Pair(#[from] rustls::Error),
    #[error("the key is neither RSA nor ECDSA nor Ed25519")]
    Kind,
}

/// The algorithms, as Go chooses them by the kind of key, and their encoded identifiers.
const ALGORITHMS: [(SignatureScheme, &[u8]); 5] = [
    (SignatureScheme::RSA_PKCS1_SHA256, &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11, 5, 0]),
    (SignatureScheme::ECDSA_NISTP256_SHA256, &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]),
    (SignatureScheme::ECDSA_NISTP384_SHA384, &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]),
    (SignatureScheme::ECDSA_NISTP521_SHA512, &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]),
    (SignatureScheme::ED25519, &[0x30, 5, 6, 3, 0x2b, 0x65, 0x70]),
];
const SUBJECT_KEY_ID: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.14");
/// The tag of the version, which old certificates do not have.
const VERSION: u8 = 0xa0;

// === impl Authority ===

impl Authority {
    /// Reads a certificate and its key, in PEM.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together.
    pub(super) fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, AuthorityError> {
        let wrong = |error: &dyn fmt::Display| AuthorityError::Certificate(error.to_string());
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let all = all.map_err(|error| wrong(&error))?;
        let [certificate] = all.as_slice() else { return Err(AuthorityError::Count(all.len())) };
        let parsed = Certificate::from_der(certificate).map_err(|error| wrong(&error))?;
        let subject = subject(certificate).ok_or_else(|| wrong(&"it has no subject"))?;
        let ends = parsed.tbs_certificate().validity().not_after.to_unix_duration();
        let not_after = Time::from_unix(i64::try_from(ends.as_secs()).unwrap_or(i64::MAX));
        let mut extensions = parsed.tbs_certificate().extensions().into_iter().flatten();
        let key_id = extensions.find(|extension| extension.extn_id == SUBJECT_KEY_ID);
        let key_id = key_id.and_then(|found| der::value(found.extn_value.as_bytes(), der::OCTETS));
        let key_id = key_id.map(|(id, _)| id.to_vec()).filter(|id| !id.is_empty());
        let key = PrivateKeyDer::from_pem_slice(key).map_err(AuthorityError::Key)?;
        let CertifiedKey { key, .. } = CertifiedKey::from_der(all, key, &default_provider())?;
        let signer = key.choose_scheme(&ALGORITHMS.map(|(scheme, _)| scheme)).ok_or(AuthorityError::Kind)?;
        Ok(Self { subject, key_id, not_after, scheme: signer.scheme(), key })
    }

    /// Returns the encoded identifier of the algorithm that it signs with.
    pub(super) fn algorithm(&self) -> &'static [u8] {
        ALGORITHMS.iter().find(|(scheme, _)| *scheme == self.scheme).map_or(&[], |(_, id)| id)
    }

    /// Signs a message.
    ///
    /// # Errors
    /// The key cannot sign.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, AuthorityError> {
        let signer = self.key.choose_scheme(&[self.scheme]).ok_or(AuthorityError::Kind)?;
        Ok(signer.sign(message)?)
    }
}

/// Keys are not shown.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

/// Returns the subject of a certificate, as it is encoded there.
fn subject(certificate: &[u8]) -> Option<Vec<u8>> {
    let (content, _) = der::value(certificate, der::SEQUENCE)?;
    let (signed, _) = der::value(content, der::SEQUENCE)?;
    // Version, serial number, algorithm, issuer, validity, subject.
    let parts = der::elements(signed)?;
    let at = if parts.first()?.tag == VERSION { 5 } else { 4 };
    parts.get(at).map(|subject| subject.whole.to_vec())
}
