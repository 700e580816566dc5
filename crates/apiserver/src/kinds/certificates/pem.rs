//! The signatures of requests, and the certificates in their status. The words are Go's, where they do not name its parser.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::request::CertReq;

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
