//! A certificate with another subject: rcgen keeps one attribute of a type, and a user can be in many groups.
//!
//! What is signed is cut at its elements, the name is put in, and it is signed again with the authority's key. Nothing
//! but the subject and the signature changes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey};

use super::PkiError;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTF8_STRING: u8 = 0x0c;
const BIT_STRING: u8 = 0x03;
/// `id-at-commonName` and `id-at-organizationName`, encoded.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x0a];
/// The subject is the sixth element: version, serial number, algorithm, issuer, validity, subject.
const SUBJECT_AT: usize = 5;
/// PEM's lines.
const LINE_LENGTH: usize = 64;

/// The certificate (DER) for a user in these groups, signed by this key; as PEM.
pub(super) fn with_subject(der: &[u8], user: &str, groups: &[&str], key: &KeyPair) -> Result<String, PkiError> {
    let whole = elements(content(der)?)?;
    let [signed, algorithm, _] = whole.as_slice() else { return Err(PkiError::Encoding) };
    let subject = name(user, groups);
    let mut parts = elements(content(signed)?)?;
    *parts.get_mut(SUBJECT_AT).ok_or(PkiError::Encoding)? = &subject;
    let signed = element(SEQUENCE, &parts.concat());
    // A bit string says first how many bits of its last byte do not count.
    let signature = [vec![0], key.sign(&signed)?].concat();
    let certificate = element(SEQUENCE, &[&signed[..], algorithm, &element(BIT_STRING, &signature)].concat());
    Ok(pem(&certificate))
}

/// Organizations and a common name, each in a set of its own.
fn name(user: &str, groups: &[&str]) -> Vec<u8> {
    let attribute = |kind: &[u8], text: &str| {
        element(SET, &element(SEQUENCE, &[kind, &element(UTF8_STRING, text.as_bytes())].concat()))
    };
    let groups = groups.iter().flat_map(|group| attribute(&ORGANIZATION, group));
    element(SEQUENCE, &groups.chain(attribute(&COMMON_NAME, user)).collect::<Vec<u8>>())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut bytes = vec![tag];
    match (length, u8::try_from(length.len())) {
        ([], _) => bytes.push(0),
        ([short], _) if *short < 0x80 => bytes.push(*short),
        (long, Ok(count)) => {
            bytes.push(0x80 | count);
            bytes.extend_from_slice(long);
        }
        // A length has at most eight bytes.
        (_, Err(_)) => {}
    }
    bytes.extend_from_slice(content);
    bytes
}

/// Returns the content of the first element.
fn content(bytes: &[u8]) -> Result<&[u8], PkiError> {
    let (start, end) = extent(bytes)?;
    bytes.get(start..end).ok_or(PkiError::Encoding)
}

/// The elements, one after the other, each as it is.
fn elements(mut bytes: &[u8]) -> Result<Vec<&[u8]>, PkiError> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (_, end) = extent(bytes)?;
        let (first, rest) = bytes.split_at_checked(end).ok_or(PkiError::Encoding)?;
        all.push(first);
        bytes = rest;
    }
    Ok(all)
}

/// Returns the start and the end of the first element's content.
fn extent(bytes: &[u8]) -> Result<(usize, usize), PkiError> {
    let first = *bytes.get(1).ok_or(PkiError::Encoding)?;
    if first < 0x80 {
        return Ok((2, 2 + usize::from(first)));
    }
    let start = 2 + usize::from(first & 0x7f);
    let length = bytes.get(2..start).filter(|length| length.len() <= 4).ok_or(PkiError::Encoding)?;
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    Ok((start, start + length))
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(LINE_LENGTH).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
