//! Pure: conversion of private keys: the signing crate needs RSA keys as PKCS #1 and ECDSA keys as PKCS #8, and files
//! have either form.

/// The `AlgorithmIdentifier` of an ECDSA key: `ecPublicKey`, and the curve.
pub(super) const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07,
];
pub(super) const P384: &[u8] =
    &[0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// Wraps a SEC 1 key in PKCS #8.
pub(super) fn into_pkcs8(algorithm: &[u8], sec1: &[u8]) -> Vec<u8> {
    let version = tagged(INTEGER, &[0]);
    tagged(SEQUENCE, &[&version, algorithm, &tagged(OCTETS, sec1)].concat())
}

/// Extracts the key from PKCS #8; `None` if it is malformed.
pub(super) fn out_of_pkcs8(pkcs8: &[u8]) -> Option<&[u8]> {
    let (inside, _) = value(pkcs8, SEQUENCE)?;
    let (_version, rest) = value(inside, INTEGER)?;
    let (_algorithm, rest) = value(rest, SEQUENCE)?;
    Some(value(rest, OCTETS)?.0)
}

/// Returns the content and the rest of a value with this tag.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(bytes, _)| bytes.len() <= 4)?;
        (bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
    };
    rest.split_at_checked(length).filter(|_| found == tag)
}

/// Encodes a value: tag, length, content.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut value = vec![tag];
    match u8::try_from(length) {
        Ok(length @ ..0x80) => value.push(length),
        _ => {
            let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
            // A length has at most eight bytes.
            value.push(0x80 | u8::try_from(bytes.len()).unwrap_or(8));
            value.extend(bytes);
        }
    }
    value.extend_from_slice(content);
    value
}
