//! Pure: a certificate, encoded as Go's `x509.CreateCertificate` does it.
//!
//! 1. The subject has the usual attributes of the request, and the alternative names are those of the request; no other
//!    extension of the request is passed on.
//! 2. It is the certificate of no authority.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use steersman_base::Time;

use super::authority::{Authority, AuthorityError};
use super::policy::Validity;
use super::usages::Usages;
use crate::certificates::der;
use crate::certificates::request::{ATTRIBUTE_PREFIX, ATTRIBUTES, DNS, EMAIL, IP, Request, Subject, URI};

/// The serial number of a certificate: random bytes.
pub(super) type Serial = [u8; 16];

/// The identifiers of extensions: the last number of `2.5.29.x`.
const KEY_USAGE: u8 = 15;
const ALTERNATIVE_NAME: u8 = 17;
const BASIC_CONSTRAINTS: u8 = 19;
const AUTHORITY_KEY_ID: u8 = 35;
const EXTENDED_KEY_USAGE: u8 = 37;
/// Whether an extension must be understood by whoever reads the certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Critical {
    Yes,
    No,
}

/// Explicit tags of versions and extensions, and that of the key identifier.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const KEY_ID: u8 = 0x80;
/// Version 3.
const V3: u8 = 2;
/// Years in which times have two digits for the year.
const TWO_DIGITS: std::ops::Range<&str> = "1950".."2050";
/// The length of lines in PEM.
const LINE_LENGTH: usize = 64;

/// Returns a signed certificate, in DER.
///
/// # Errors
/// The authority cannot sign.
pub(super) fn issue(
    authority: &Authority,
    request: &Request,
    usages: &Usages,
    validity: Validity,
    serial: Serial,
) -> Result<Vec<u8>, AuthorityError> {
    let subject = name(&request.subject);
    let times = der::sequence(&[&time(validity.not_before), &time(validity.not_after)]);
    let signed = der::sequence(&[
        &der::tagged(VERSION, &der::tagged(der::INTEGER, &[V3])),
        &positive(&serial),
        authority.algorithm(),
        &authority.subject,
        &times,
        &subject,
        &request.public_key_info,
        &der::tagged(EXTENSIONS, &extensions(authority, request, usages, &subject)),
    ]);
    let signature = authority.sign(&signed)?;
    Ok(der::sequence(&[&signed, authority.algorithm(), &der::bits(&signature)]))
}

/// Returns a certificate in PEM.
pub(super) fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_LENGTH));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

fn extensions(authority: &Authority, request: &Request, usages: &Usages, subject: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut add = |number: u8, critical: Critical, value: Option<Vec<u8>>| {
        all.extend(value.map(|value| extension(number, critical, &value)).into_iter().flatten());
    };
    add(KEY_USAGE, Critical::Yes, usages.key_usage());
    add(EXTENDED_KEY_USAGE, Critical::No, usages.extended_key_usage());
    // Of an authority it would say so; what is not said is no.
    add(BASIC_CONSTRAINTS, Critical::Yes, Some(der::sequence(&[])));
    let key_id = authority.key_id.as_ref().filter(|_| authority.subject != subject);
    add(AUTHORITY_KEY_ID, Critical::No, key_id.map(|id| der::sequence(&[&der::tagged(KEY_ID, id)])));
    let is_nameless = subject == der::sequence(&[]);
    let critical = if is_nameless { Critical::Yes } else { Critical::No };
    add(ALTERNATIVE_NAME, critical, alternative_names(request));
    der::tagged(der::SEQUENCE, &all)
}

fn extension(number: u8, critical: Critical, value: &[u8]) -> Vec<u8> {
    let id = der::tagged(der::OBJECT_ID, &[0x55, 0x1d, number]);
    let flag = if critical == Critical::Yes { der::tagged(der::BOOLEAN, &[0xff]) } else { Vec::new() };
    der::sequence(&[&id, &flag, &der::tagged(der::OCTETS, value)])
}

fn alternative_names(request: &Request) -> Option<Vec<u8>> {
    let texts = |tag: u8, names: &[String]| -> Vec<u8> {
        names.iter().flat_map(|name| der::tagged(tag, name.as_bytes())).collect()
    };
    let addresses = request.ip_addresses.iter().flat_map(|address| der::tagged(IP, shortest(address)));
    let names = [
        texts(DNS, &request.dns_names),
        texts(EMAIL, &request.email_addresses),
        addresses.collect(),
        texts(URI, &request.uris),
    ]
    .concat();
    (!names.is_empty()).then(|| der::tagged(der::SEQUENCE, &names))
}

/// An IPv4 address that is written as one of IPv6 has four bytes.
fn shortest(address: &[u8]) -> &[u8] {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    address.strip_prefix(&MAPPED).unwrap_or(address)
}

/// Encodes a name: the values of an attribute are one set.
fn name(subject: &Subject) -> Vec<u8> {
    let mut sets = Vec::new();
    for (number, values) in ATTRIBUTES.iter().zip(&subject.0) {
        let id = der::tagged(der::OBJECT_ID, &[ATTRIBUTE_PREFIX[0], ATTRIBUTE_PREFIX[1], *number]);
        let mut encoded: Vec<_> = values.iter().map(|value| der::sequence(&[&id, &text(value)])).collect();
        encoded.sort();
        if !encoded.is_empty() {
            sets.extend(der::tagged(der::SET, &encoded.concat()));
        }
    }
    der::tagged(der::SEQUENCE, &sets)
}

/// Encodes a text as Go does: as a printable string, if it is one.
fn text(value: &str) -> Vec<u8> {
    let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
    let tag = if value.bytes().all(is_printable) { der::PRINTABLE_STRING } else { der::UTF8_STRING };
    der::tagged(tag, value.as_bytes())
}

/// Encodes a positive number.
fn positive(bytes: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    match digits.first() {
        None => der::tagged(der::INTEGER, &[1]),
        Some(0x80..) => der::tagged(der::INTEGER, &[&[0], &digits[..]].concat()),
        Some(_) => der::tagged(der::INTEGER, &digits),
    }
}

/// Encodes a time: `yyMMddHHmmssZ`, or with four digits for the year.
fn time(time: Time) -> Vec<u8> {
    let text = time.to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let year = text.get(..4).unwrap_or_default();
    if TWO_DIGITS.contains(&year) {
        let short = digits.get(2..).unwrap_or_default();
        return der::tagged(der::UTC_TIME, format!("{short}Z").as_bytes());
    }
    der::tagged(der::GENERALIZED_TIME, format!("{digits}Z").as_bytes())
}
