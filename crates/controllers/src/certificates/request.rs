//! Pure: a PKCS #10 request: who asks, for which names and for which key.
//!
//! It is read as Go's `x509.ParseCertificateRequest` does: of the subject the usual attributes count, of the requested
//! extensions the alternative names.

use std::collections::BTreeSet;

use rustls_pki_types::pem::{PemObject as _, SectionKind};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{
    BmpString, Ia5StringRef, ObjectIdentifier, PrintableStringRef, TeletexStringRef, Utf8StringRef,
};
use x509_cert::der::{Decode as _, Tag, Tagged as _};
use x509_cert::ext::Extension;
use x509_cert::request::CertReq;

use super::der;

/// A request for a certificate.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) subject: Subject,
    pub(crate) dns_names: Vec<String>,
    pub(crate) email_addresses: Vec<String>,
    /// Four or sixteen bytes each.
    pub(crate) ip_addresses: Vec<Vec<u8>>,
    pub(crate) uris: Vec<String>,
    /// The `SubjectPublicKeyInfo`, encoded.
    pub(crate) public_key_info: Vec<u8>,
    key: SignedBy,
}

/// The name of who asks: texts by attribute, in the order in which they are encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject(pub(crate) [Vec<String>; ATTRIBUTES.len()]);

/// The signature of a request, made with the key that it is for.
#[derive(Clone, Debug)]
struct SignedBy {
    message: Vec<u8>,
    public_key: Vec<u8>,
    /// The contents of the two algorithm identifiers.
    key_algorithm: Vec<u8>,
    signature_algorithm: Vec<u8>,
    signature: Vec<u8>,
}

/// Why something is not a request, or not one by the owner of its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotPem,
    #[error("asn1: structure error: {0}")]
    Structure(String),
    #[error("x509: certificate request contains duplicate requested extensions")]
    Duplicate,
    #[error("x509: {0}")]
    AlternativeName(String),
    #[error("x509: cannot verify signature: algorithm unimplemented")]
    Algorithm,
    #[error("x509: the signature does not fit the key")]
    Signature,
}

/// The attributes that count, in Go's order of encoding: the last number of their object identifiers, `2.5.4.x`.
pub(crate) const ATTRIBUTES: [u8; 9] = [6, 8, 7, 9, 17, ORGANIZATION, 11, COMMON_NAME, SERIAL_NUMBER];
const COMMON_NAME: u8 = 3;
const SERIAL_NUMBER: u8 = 5;
const ORGANIZATION: u8 = 10;
/// The content of an object identifier `2.5.4.x`, before the `x`.
pub(crate) const ATTRIBUTE_PREFIX: [u8; 2] = [0x55, 0x04];

const EXTENSION_REQUEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.14");
const ALTERNATIVE_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
/// The tags of alternative names.
pub(crate) const EMAIL: u8 = 0x81;
pub(crate) const DNS: u8 = 0x82;
pub(crate) const URI: u8 = 0x86;
pub(crate) const IP: u8 = 0x87;

// === impl Request ===

impl Request {
    /// Reads a request in PEM.
    ///
    /// # Errors
    /// It is no request.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self, RequestError> {
        match <(SectionKind, Vec<u8>)>::from_pem_slice(pem) {
            Ok((SectionKind::Csr, der)) => Self::from_der(&der),
            _ => Err(RequestError::NotPem),
        }
    }

    /// Reads a request in DER.
    ///
    /// # Errors
    /// It is no request.
    pub(crate) fn from_der(bytes: &[u8]) -> Result<Self, RequestError> {
        let structure = |problem: &str| RequestError::Structure(problem.to_owned());
        let parsed = CertReq::from_der(bytes).map_err(|error| structure(&error.to_string()))?;
        let mut request = Self {
            subject: Subject::default(),
            dns_names: Vec::new(),
            email_addresses: Vec::new(),
            ip_addresses: Vec::new(),
            uris: Vec::new(),
            public_key_info: Vec::new(),
            key: SignedBy::cut(bytes).ok_or_else(|| structure("it ends too early"))?,
        };
        request.public_key_info = public_key_info(&request.key.message).ok_or_else(|| structure("it has no key"))?;
        parsed.info.subject.iter().for_each(|attribute| request.subject.add(attribute));
        let mut seen = BTreeSet::new();
        for attribute in parsed.info.attributes.iter().filter(|attribute| attribute.oid == EXTENSION_REQUEST) {
            let Some(value) = attribute.values.iter().next() else { continue };
            let asked: Vec<Extension> =
                value.decode_as().map_err(|error: x509_cert::der::Error| structure(&error.to_string()))?;
            for extension in asked {
                if !seen.insert(extension.extn_id) {
                    return Err(RequestError::Duplicate);
                }
                if extension.extn_id == ALTERNATIVE_NAME {
                    request.add_names(extension.extn_value.as_bytes())?;
                }
            }
        }
        Ok(request)
    }

    /// Checks that the request was made by who has its key.
    ///
    /// # Errors
    /// The signature is wrong, or of an algorithm that is not supported.
    pub(crate) fn check_signature(&self) -> Result<(), RequestError> {
        let SignedBy { message, public_key, key_algorithm, signature_algorithm, signature } = &self.key;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let mut known = provider.signature_verification_algorithms.all.iter().filter(|algorithm| {
            *algorithm.public_key_alg_id() == **key_algorithm && *algorithm.signature_alg_id() == **signature_algorithm
        });
        let algorithm = known.next().ok_or(RequestError::Algorithm)?;
        algorithm.verify_signature(public_key, message, signature).map_err(|_| RequestError::Signature)
    }

    fn add_names(&mut self, extension: &[u8]) -> Result<(), RequestError> {
        let wrong = |problem: &str| RequestError::AlternativeName(problem.to_owned());
        let names = der::value(extension, der::SEQUENCE).and_then(|(names, _)| der::elements(names));
        for name in names.ok_or_else(|| wrong("invalid subject alternative names"))? {
            let text = |kind: &str| {
                let is_ascii = name.content.is_ascii();
                let malformed = || RequestError::AlternativeName(format!("SAN {kind} is malformed"));
                is_ascii.then(|| String::from_utf8_lossy(name.content).into_owned()).ok_or_else(malformed)
            };
            match name.tag {
                EMAIL => self.email_addresses.push(text("rfc822Name")?),
                DNS => self.dns_names.push(text("dNSName")?),
                URI => self.uris.push(text("uniformResourceIdentifier")?),
                IP if matches!(name.content.len(), 4 | 16) => self.ip_addresses.push(name.content.to_vec()),
                IP => {
                    let problem = format!("cannot parse IP address of length {}", name.content.len());
                    return Err(RequestError::AlternativeName(problem));
                }
                // Other names are not passed on.
                _ => {}
            }
        }
        Ok(())
    }
}

// === impl SignedBy ===

impl SignedBy {
    fn cut(request: &[u8]) -> Option<Self> {
        let (content, _) = der::value(request, der::SEQUENCE)?;
        let [message, algorithm, signature] = der::elements(content)?[..] else { return None };
        let info = public_key_info(message.whole)?;
        let (info, _) = der::value(&info, der::SEQUENCE)?;
        let [key_algorithm, public_key] = der::elements(info)?[..] else { return None };
        Some(Self {
            message: message.whole.to_vec(),
            public_key: of_bits(public_key)?.to_vec(),
            key_algorithm: key_algorithm.content.to_vec(),
            signature_algorithm: algorithm.content.to_vec(),
            signature: of_bits(signature)?.to_vec(),
        })
    }
}

/// Returns the key of what is signed: version, subject, key, attributes.
fn public_key_info(message: &[u8]) -> Option<Vec<u8>> {
    let (content, _) = der::value(message, der::SEQUENCE)?;
    der::elements(content)?.get(2).map(|key| key.whole.to_vec())
}

/// Returns bits as bytes; the first byte says how many bits of the last one do not count.
fn of_bits(element: der::Element<'_>) -> Option<&[u8]> {
    let (unused, bytes) = element.content.split_first()?;
    (element.tag == der::BIT_STRING && *unused == 0).then_some(bytes)
}

// === impl Subject ===

impl Subject {
    /// Returns the user.
    pub(crate) fn common_name(&self) -> &str {
        self.of(COMMON_NAME).first().map_or("", String::as_str)
    }

    /// Returns the groups.
    pub(crate) fn organizations(&self) -> &[String] {
        self.of(ORGANIZATION)
    }

    fn of(&self, number: u8) -> &[String] {
        ATTRIBUTES.iter().position(|known| *known == number).map_or(&[], |at| &self.0[at])
    }

    /// Of a name with several common names or serial numbers, the last one counts. What is not a text is ignored.
    fn add(&mut self, attribute: &AttributeTypeAndValue) {
        let [first, second, number] = *attribute.oid.as_bytes() else { return };
        let Some(at) = ATTRIBUTES.iter().position(|known| *known == number) else { return };
        let Some(text) = text(attribute).filter(|_| [first, second] == ATTRIBUTE_PREFIX) else { return };
        let held = &mut self.0[at];
        if matches!(number, COMMON_NAME | SERIAL_NUMBER) {
            held.clear();
            held.extend(Some(text).filter(|text| !text.is_empty()));
        } else {
            held.push(text);
        }
    }
}

fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let value = &attribute.value;
    match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::TeletexString => value.decode_as::<TeletexStringRef<'_>>().ok().map(|text| text.as_str().to_owned()),
        Tag::BmpString => value.decode_as::<BmpString>().ok().map(|text| text.to_string()),
        _ => None,
    }
}
