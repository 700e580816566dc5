//! Pure: what kubelets may ask for. The errors are the messages of conditions, in upstream's words.

use std::collections::BTreeSet;

use steersman_base::Istr;

use super::request::Request;

const GROUP: &str = "system:nodes";
const USER_PREFIX: &str = "system:node:";

/// Checks a request for a kubelet's serving certificate.
///
/// # Errors
/// The request is for something else.
pub(crate) fn check_serving(request: &Request, usages: &[Istr]) -> Result<(), String> {
    check_group(request)?;
    if request.dns_names.is_empty() && request.ip_addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    if !request.email_addresses.is_empty() {
        return Err("Email subjectAltNames are not allowed".to_owned());
    }
    if !request.uris.is_empty() {
        return Err("URI subjectAltNames are not allowed".to_owned());
    }
    check_usages(usages, "server auth")?;
    check_user(request)
}

/// Checks a request for a kubelet's client certificate.
///
/// # Errors
/// The request is for something else.
pub(crate) fn check_client(request: &Request, usages: &[Istr]) -> Result<(), String> {
    check_group(request)?;
    for (name, is_empty) in [
        ("DNS", request.dns_names.is_empty()),
        ("Email", request.email_addresses.is_empty()),
        ("IP", request.ip_addresses.is_empty()),
        ("URI", request.uris.is_empty()),
    ] {
        if !is_empty {
            return Err(format!("{name} subjectAltNames are not allowed"));
        }
    }
    check_user(request)?;
    check_usages(usages, "client auth")
}

fn check_group(request: &Request) -> Result<(), String> {
    let is_node = request.subject.organizations() == [GROUP];
    if is_node { Ok(()) } else { Err(format!("subject organization is not {GROUP}")) }
}

fn check_user(request: &Request) -> Result<(), String> {
    let is_node = request.subject.common_name().starts_with(USER_PREFIX);
    if is_node { Ok(()) } else { Err(format!("subject common name does not begin with {USER_PREFIX}")) }
}

/// The usages are exactly these; RSA keys also encipher keys.
fn check_usages(usages: &[Istr], purpose: &str) -> Result<(), String> {
    let asked: BTreeSet<&str> = usages.iter().map(|usage| &**usage).collect();
    let mut wanted = BTreeSet::from([purpose, "digital signature"]);
    if asked == wanted {
        return Ok(());
    }
    wanted.insert("key encipherment");
    if asked == wanted {
        return Ok(());
    }
    let wanted: Vec<&str> = wanted.into_iter().collect();
    Err(format!("usages did not match [{}]", wanted.join(" ")))
}
