//! Pure: what to do with a request, and the status that follows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use steersman_base::{Condition, ConditionStatus, Istr, Time, condition};
use steersman_model::certificates::{CertificateSigningRequestStatus, CertificateSigningRequestView};
use steersman_model::wire::Base64;

use super::policy::Signer;
use super::usages::Usages;
use crate::certificates::request::Request;
use crate::certificates::{FAILED, is_approved};

/// The action on a request.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing: it is not approved, has an end already, or is for somebody else.
    Nothing,
    /// Refuse it, with this message.
    Refuse(String),
    /// Sign it.
    Sign(Box<Asked>),
}

/// An approved request that its signer gives a certificate for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) signer: Signer,
    pub(super) request: Request,
    pub(super) usages: Usages,
}

/// Upstream's reason of a refusal.
const REASON: &str = "SignerValidationFailure";

/// Decides about a request; `has_keys` returns whether there is a certificate authority for a signer.
pub(super) fn step(request: &CertificateSigningRequestView, has_keys: impl Fn(Signer) -> bool) -> Step {
    let CertificateSigningRequestView { spec, status, .. } = request;
    let is_over = !status.certificate.is_empty() || condition::is_true(&status.conditions, FAILED);
    let signer = Signer::of(&spec.signer_name).filter(|signer| has_keys(*signer));
    let Some(signer) = signer.filter(|_| is_approved(status) && !is_over) else { return Step::Nothing };
    asked(signer, request).map_or_else(Step::Refuse, |asked| Step::Sign(Box::new(asked)))
}

/// Reads a request. What is wrong with it never changes, and the user should see it.
fn asked(signer: Signer, request: &CertificateSigningRequestView) -> Result<Asked, String> {
    let spec = &request.spec;
    let pem = STANDARD.decode(spec.request.0.as_bytes()).unwrap_or_default();
    let asked = Request::from_pem(&pem).map_err(|error| format!("unable to parse csr: {error}"))?;
    signer.check(&asked, &spec.usages)?;
    asked.check_signature().map_err(|error| format!("unable to verify certificate request signature: {error}"))?;
    let usages = Usages::parse(&spec.usages)?;
    Ok(Asked { signer, request: asked, usages })
}

/// Returns the status of a request with its certificate.
pub(super) fn issued(request: &CertificateSigningRequestView, pem: &str) -> CertificateSigningRequestStatus {
    let certificate = Base64(Istr::new(&STANDARD.encode(pem)));
    CertificateSigningRequestStatus { certificate, ..request.status.clone() }
}

/// Returns the status of a request that is refused.
pub(super) fn refused(
    request: &CertificateSigningRequestView,
    message: &str,
    now: Time,
) -> CertificateSigningRequestStatus {
    let failed = Condition {
        type_: FAILED.into(),
        status: ConditionStatus::True,
        reason: REASON.into(),
        message: message.into(),
        last_update_time: Some(now),
        ..Condition::default()
    };
    let conditions = request.status.conditions.iter().cloned().chain([failed]).collect();
    CertificateSigningRequestStatus { conditions, ..request.status.clone() }
}
