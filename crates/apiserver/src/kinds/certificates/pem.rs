//! The signatures of requests, and the certificates in their status. The words are Go's, where they do not name its parser.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use x509_cert::Certificate;
use x509_cert::der::asn1::{ObjectIdentifier, UintRef};
use x509_cert::der::{self, Decode as _, Encode as _, Reader as _, SliceReader};
use x509_cert::request::CertReq;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// A block of a PEM text.
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) has_headers: bool,
    pub(super) der: Vec<u8>,
}

/// Returns the blocks of a PEM text. What is no block is skipped, as Go's `pem.Decode` does.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().map(str::trim_end).peekable();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(DASHES)) else { continue };
        let mut has_headers = false;
        while lines.next_if(|line| line.contains(':')).is_some() {
            has_headers = true;
        }
        let mut encoded = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with(DASHES)) {
            encoded.extend(line.split_whitespace());
        }
        let end = lines.next_if(|line| line.starts_with(END));
        let is_ended = end.is_some_and(|end| end.strip_prefix(END) == Some(&format!("{kind}{DASHES}")));
        if let Some(der) = STANDARD.decode(&encoded).ok().filter(|_| is_ended) {
            blocks.push(Block { kind: kind.to_owned(), has_headers, der });
        }
    }
    blocks
}

/// Checks that a request is signed with the key that it is for.
///
/// # Errors
/// The signature is wrong, or of an algorithm that is not supported.
pub(super) fn check_signature(request: &CertReq) -> Result<(), String> {
    let unknown = || "x509: cannot verify signature: algorithm unimplemented".to_owned();
    let content = |der: Vec<u8>| der.get(2..).map(<[u8]>::to_vec);
    let message = request.info.to_der().map_err(|_| unknown())?;
    // Identifiers of algorithms are short: a tag, a length, and the content.
    let of_key = request.info.public_key.algorithm.to_der().ok().and_then(content).ok_or_else(unknown)?;
    let of_signature = request.algorithm.to_der().ok().and_then(content).ok_or_else(unknown)?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut known = provider.signature_verification_algorithms.all.iter();
    let known = known.find(|it| *it.public_key_alg_id() == *of_key && *it.signature_alg_id() == *of_signature);
    let known = known.ok_or_else(unknown)?;
    let key = request.info.public_key.subject_public_key.as_bytes().ok_or_else(unknown)?;
    let signature = request.signature.as_bytes().ok_or_else(unknown)?;
    known.verify_signature(key, &message, signature).map_err(|_| "x509: verification failure".to_owned())
}

/// Returns what is wrong with a key that is asked to be certified, and the value that shows it, if any.
pub(super) fn key_problem(key: &SubjectPublicKeyInfoOwned) -> Option<(Option<String>, &'static str)> {
    const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
    const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
    const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
    const P224: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.33");
    match key.algorithm.oid {
        ED25519 => None,
        ELLIPTIC => {
            let curve = key.algorithm.parameters.as_ref().and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
            let problem = "elliptic public keys must use curve P256, P384, or P521";
            (curve == Some(P224)).then(|| (Some("curve P-224".to_owned()), problem))
        }
        RSA => {
            let bits = modulus_bits(key.subject_public_key.as_bytes().unwrap_or_default()).unwrap_or_default();
            let problem = "RSA keys must have modulus size 3072 or 4096";
            (!matches!(bits, 3072 | 4096)).then(|| (Some(format!("{bits}-bit modulus")), problem))
        }
        _ => Some((None, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")),
    }
}

/// Returns the size of an RSA key, in whole bytes.
fn modulus_bits(der: &[u8]) -> Option<usize> {
    let mut reader = SliceReader::new(der).ok()?;
    let read = reader.sequence(|reader| {
        let modulus = UintRef::decode(reader)?.as_bytes().len();
        UintRef::decode(reader)?;
        Ok::<_, der::Error>(modulus * 8)
    });
    read.ok()
}

/// Checks the certificates of a status, in Base64 of PEM; none at all are fine.
///
/// # Errors
/// There is no certificate, or something else.
pub(super) fn check_certificates(encoded: &str) -> Result<(), String> {
    if encoded.is_empty() {
        return Ok(());
    }
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut blocks = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix(BEGIN)) {
        let kind = line.trim_end().trim_end_matches('-');
        if kind != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {kind:?}"));
        }
    }
    for block in <(SectionKind, Vec<u8>)>::pem_slice_iter(&bytes).map_while(Result::ok) {
        Certificate::from_der(&block.1).map_err(|error| format!("x509: malformed certificate: {error}"))?;
        blocks += 1;
    }
    if blocks == 0 { Err("must contain at least one CERTIFICATE PEM block".to_owned()) } else { Ok(()) }
}
