//! The certificates of a PodCertificateRequest that is issued: the last part of `ValidatePodCertificateRequestStatusUpdate` of
//! `pkg/apis/certificates/validation/validation.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use steersman_base::Time;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::request::CertReq;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::certificates::pem;
use crate::kinds::shared::json::{is_set, number, text};

const CHAIN_BYTES_MAX: usize = 100 << 10;
const LIFETIME_MIN: i64 = 60 * 60;
const REFRESH_MARGIN: i64 = 10 * 60;
const NANOSECONDS: i64 = 1_000_000_000;

/// Checks certificates and times of a status; what is wrong first, is named.
pub(super) fn validate(request: &Value, errors: &mut Errors) {
    let status = &request["status"];
    let chain = text(&status["certificateChain"]);
    let at = Path::new("status").child("certificateChain");
    if chain.len() > CHAIN_BYTES_MAX {
        errors.push(FieldError::too_long(&at, CHAIN_BYTES_MAX));
        return;
    }
    let wrong = |detail: &str| FieldError::invalid(&at, chain, detail);
    let blocks = pem::blocks(chain);
    let Some(first) = blocks.first() else {
        errors.push(wrong("issued certificate chain must contain at least one certificate"));
        return;
    };
    if first.kind != "CERTIFICATE" {
        errors.push(wrong("issued certificate chain must consist entirely of CERTIFICATE PEM blocks"));
        return;
    }
    let Ok(leaf) = Certificate::from_der(&first.der) else {
        errors.push(wrong("leaf certificate does not parse as valid X.509"));
        return;
    };
    names(&leaf, &at, errors);
    let asked = STANDARD.decode(text(&request["spec"]["stubPKCS10Request"])).unwrap_or_default();
    let Ok(asked) = CertReq::from_der(&asked) else {
        let path = Path::new("spec").child("stubPKCS10Request");
        errors.push(FieldError::invalid_unshown(&path, "must be a valid PKCS#10 CSR"));
        return;
    };
    if asked.info.public_key != *leaf.tbs_certificate().subject_public_key_info() {
        errors.push(wrong("leaf certificate was not issued to the requested public key"));
        return;
    }
    if !times(request, &leaf, &at, errors) {
        return;
    }
    for block in &blocks[1..] {
        if block.kind != "CERTIFICATE" {
            // The misspelling is upstream's.
            errors.push(wrong("issued certificate chain must consist entirely of CERTFICATE PEM blocks"));
            return;
        }
        if Certificate::from_der(&block.der).is_err() {
            errors.push(wrong("intermediate certificate does not parse as valid X.509"));
            return;
        }
    }
}

/// Checks the names of hosts that a certificate is for.
fn names(leaf: &Certificate, path: &Path, errors: &mut Errors) {
    let Ok(Some((_, names))) = leaf.tbs_certificate().get_extension::<SubjectAltName>() else { return };
    for name in &names.0 {
        let GeneralName::DnsName(name) = name else { continue };
        let name = name.as_str();
        let mut refuse = |is_wrong: bool, detail: &str| {
            if is_wrong {
                errors.push(FieldError::invalid(path, name, detail));
            }
        };
        refuse(name.is_empty(), "leaf certificate should not contain empty DNSName");
        refuse(name.contains(".."), "leaf certificate's DNSName should not contain '..'");
        let is_open = name.starts_with('.') || name.ends_with('.');
        refuse(is_open, "leaf certificate's DNSName should not start or end with '.'");
    }
}

/// Checks that the times of the status are those of the certificate and leave room to renew it; returns whether they do.
fn times(request: &Value, leaf: &Certificate, chain: &Path, errors: &mut Errors) -> bool {
    let status = &request["status"];
    let path = Path::new("status");
    let count = errors.len();
    for field in ["notBefore", "notAfter", "beginRefreshAt"] {
        if !is_set(&status[field]) {
            let detail = match field {
                "beginRefreshAt" => "must be present and in the range [notbefore+10min, notafter-10min]",
                _ => "must be present and consistent with the issued certificate",
            };
            errors.push(FieldError::required(&path.child(field), detail));
        }
    }
    if errors.len() > count {
        return false;
    }
    let seconds = |field: &str| text(&status[field]).parse::<Time>().map(Time::unix).unwrap_or_default();
    let validity = leaf.tbs_certificate().validity();
    let of = |time: &x509_cert::time::Time| i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    let begins = of(&validity.not_before);
    let ends = of(&validity.not_after);
    let lifetime = ends - begins;
    let max = number(&request["spec"]["maxExpirationSeconds"]);
    let shown = lifetime.saturating_mul(NANOSECONDS);
    let wrong = |field: &str, detail: &str| FieldError::invalid(&path.child(field), text(&status[field]), detail);
    let refresh = seconds("beginRefreshAt");
    let error = if seconds("notBefore") != begins {
        wrong("notBefore", "must be set to the NotBefore time encoded in the leaf certificate")
    } else if seconds("notAfter") != ends {
        wrong("notAfter", "must be set to the NotAfter time encoded in the leaf certificate")
    } else if lifetime < LIFETIME_MIN {
        FieldError::invalid(chain, shown, "leaf certificate lifetime must be >= 1 hour")
    } else if lifetime > max {
        let detail = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({max})");
        FieldError::invalid(chain, shown, detail)
    } else if refresh < begins + REFRESH_MARGIN {
        wrong("beginRefreshAt", "must be at least 10 minutes after status.notBefore")
    } else if refresh > ends - REFRESH_MARGIN {
        wrong("beginRefreshAt", "must be at least 10 minutes before status.notAfter")
    } else {
        return true;
    };
    errors.push(error);
    false
}
