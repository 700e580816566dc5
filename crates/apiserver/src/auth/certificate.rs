//! Users by client certificate.

use x509_cert::Certificate;
use x509_cert::der::asn1::{ObjectIdentifier, PrintableStringRef, Utf8StringRef};
use x509_cert::der::{Decode, Tag, Tagged};

use super::User;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

/// Returns the user of a certificate: its common name; its organizations are the groups.
pub(crate) fn user(der: &[u8]) -> Option<User> {
    let certificate = Certificate::from_der(der).ok()?;
    let mut user = User::default();
    for attribute in certificate.tbs_certificate().subject().iter() {
        let value = &attribute.value;
        let text = match value.tag() {
            Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok()?.as_str().to_owned(),
            Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok()?.as_str().to_owned(),
            _ => continue,
        };
        if attribute.oid == COMMON_NAME {
            user.name = text;
        } else if attribute.oid == ORGANIZATION {
            user.groups.push(text);
        }
    }
    if user.name.is_empty() {
        return None;
    }
    user.groups.push("system:authenticated".to_owned());
    Some(user)
}
