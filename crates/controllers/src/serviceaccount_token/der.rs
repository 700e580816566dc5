//! Pure: conversion of private keys: the signing crate needs RSA keys as PKCS #1 and ECDSA keys as PKCS #8, and files
//! have either form.

use crate::certificates::der::{INTEGER, OCTETS, SEQUENCE, tagged, value};

/// The `AlgorithmIdentifier` of an ECDSA key: `ecPublicKey`, and the curve.
pub(super) const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07,
];
pub(super) const P384: &[u8] =
    &[0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];

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
