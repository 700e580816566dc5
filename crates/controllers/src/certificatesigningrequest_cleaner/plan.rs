//! Pure: which requests are deleted.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use steersman_base::Time;
use steersman_model::View;
use steersman_model::certificates::CertificateSigningRequestView;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::Options;
use super::sync::Why;
use crate::certificates::{APPROVED, DENIED, FAILED, find};

/// Returns why a request is deleted; `None` if it is kept.
pub(super) fn over(request: &CertificateSigningRequestView, options: &Options, now: Time) -> Option<Why> {
    let status = &request.status;
    let is_older = |time: Option<Time>, than: Duration| time.is_some_and(|time| now.since(time) > than);
    let has_since = |type_: &str, than: Duration| {
        find(status, type_).is_some_and(|condition| is_older(condition.last_update_time, than))
    };
    let is_issued = !status.certificate.is_empty();
    let is_approved = find(status, APPROVED).is_some();
    if is_issued && has_since(APPROVED, options.ended_for) {
        return Some(Why::Issued);
    }
    if has_since(DENIED, options.ended_for) {
        return Some(Why::Denied);
    }
    if has_since(FAILED, options.ended_for) {
        return Some(Why::Failed);
    }
    if status.conditions.is_empty() && is_older(request.meta().creation_timestamp, options.waiting_for) {
        return Some(Why::Pending);
    }
    if is_approved && is_issued && not_after(request).is_some_and(|ends| now > ends) {
        return Some(Why::Expired);
    }
    (!is_issued && has_since(APPROVED, options.waiting_for)).then_some(Why::Unissued)
}

/// Returns the end of an issued certificate.
fn not_after(request: &CertificateSigningRequestView) -> Option<Time> {
    let pem = STANDARD.decode(request.status.certificate.0.as_bytes()).ok()?;
    let (_, der) = <(SectionKind, Vec<u8>)>::from_pem_slice(&pem).ok()?;
    let certificate = Certificate::from_der(&der).ok()?;
    let ends = certificate.tbs_certificate().validity().not_after.to_unix_duration();
    i64::try_from(ends.as_secs()).ok().map(Time::from_unix)
}
