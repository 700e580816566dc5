//! PodCertificateRequests. Follows `pkg/registry/certificates/podcertificaterequest/strategy.go` and
//! `ValidatePodCertificateRequestCreate` of `pkg/apis/certificates/validation/validation.go`.

mod issued;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use steersman_base::Time;
use steersman_base::validation::{dns1123_subdomain, qualified_name};
use x509_cert::der::Decode as _;
use x509_cert::request::CertReq;

use super::certificate_signing_request::signer_name;
use super::{pem, signing};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{immutable_struct, problems};
use crate::kinds::shared::conditions;
use crate::kinds::shared::json::{default_to, each, entries, items, number, same, text, with};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{SelectableField, Strategy, USER_METADATA};
use crate::registry::{Call, Registry};
use crate::table::{Cell, TableRow, cell, labels};

const ISSUED: &str = "Issued";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";
const KNOWN: &[&str] = &[ISSUED, DENIED, FAILED];

/// The rules of PodCertificateRequests.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|request| with(request, "spec", |spec| default_to(spec, "maxExpirationSeconds", 86_400)))
    .validated(|new, old, errors| match old {
        None => create(&new["spec"], errors),
        Some(old) => {
            immutable_struct("PodCertificateRequestSpec", &new["spec"], &old["spec"], &Path::new("spec"), errors);
        }
    })
    .status_validated(|new, old, errors| {
        validate_meta_update(new, old, errors);
        if errors.is_empty() {
            status(new, old, errors);
        }
    })
    .status_judged(may_sign)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy {
        unconditional_update: false,
        status_keeps_metadata: USER_METADATA,
        selectable_fields: &[
            SelectableField::at("spec.signerName"),
            SelectableField::at("spec.podName"),
            SelectableField::at("spec.nodeName"),
        ],
        ..Strategy::DEFAULT
    })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/podName"),
        Cell::Text("/spec/serviceAccountName"),
        Cell::Text("/spec/nodeName"),
        Cell::Text("/spec/signerName"),
        Cell::Made(|row| last_condition(row, KNOWN, "Pending")),
        Cell::Made(|row| labels::labels(row.at("/spec/unverifiedUserAnnotations"))),
    ]);

fn last_condition(row: &TableRow<'_>, kinds: &[&str], otherwise: &str) -> String {
    let mut conditions = row.list_at("/status/conditions").iter().map(|condition| cell::text(condition, "type"));
    conditions.rfind(|kind| kinds.contains(kind)).unwrap_or(otherwise).to_owned()
}

fn create(spec: &Value, errors: &mut Errors) {
    const UID_BYTES_MAX: usize = 128;
    let path = Path::new("spec");
    signer_name(text(&spec["signerName"]), &path.child("signerName"), errors);
    user_annotations(&spec["unverifiedUserAnnotations"], &path.child("unverifiedUserAnnotations"), errors);
    for (name, uid) in [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")] {
        problems(text(&spec[name]), dns1123_subdomain(text(&spec[name])), &path.child(name), errors);
        let at = path.child(uid);
        match text(&spec[uid]).len() {
            0 => errors.push(FieldError::invalid(&at, "", "must not be empty")),
            1..=UID_BYTES_MAX => {}
            _ => errors.push(FieldError::too_long(&at, UID_BYTES_MAX)),
        }
    }
    expiration(spec, &path.child("maxExpirationSeconds"), errors);
    if text(&spec["stubPKCS10Request"]).is_empty() {
        let detail = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        errors.push(FieldError::invalid_unshown(&path, detail));
    } else {
        stub(text(&spec["stubPKCS10Request"]), &path.child("stubPKCS10Request"), errors);
    }
}

/// Annotations of users have keys with a domain.
pub(crate) fn user_annotations(annotations: &Value, path: &Path, errors: &mut Errors) {
    const BYTES_MAX: usize = 256 << 10;
    let mut bytes = 0;
    for (key, value) in entries(annotations) {
        bytes += key.len() + text(value).len();
        let key = key.to_lowercase();
        let wrong = qualified_name(&key);
        if key.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if !wrong.is_empty() {
            problems(&key, wrong, path, errors);
        } else if !key.contains('/') {
            errors.push(FieldError::invalid(path, key, "must be a domain-prefixed key (such as \"acme.io/foo\")"));
        }
    }
    if bytes > BYTES_MAX {
        errors.push(FieldError::too_long(path, BYTES_MAX));
    }
}

/// Whether a signer is one of Kubernetes' own, whose certificates of pods last a day at most.
pub(crate) fn is_kubernetes_signer(signer: &str) -> bool {
    let host = signer.split('/').next().unwrap_or_default();
    host == "kubernetes.io" || host.ends_with(".kubernetes.io")
}

fn expiration(spec: &Value, path: &Path, errors: &mut Errors) {
    const MIN: i64 = 60 * 60;
    const DAY: i64 = 24 * 60 * 60;
    let max = if is_kubernetes_signer(text(&spec["signerName"])) { DAY } else { 91 * DAY };
    let seconds = number(&spec["maxExpirationSeconds"]);
    if !(MIN..=max).contains(&seconds) {
        errors.push(FieldError::invalid(path, seconds, format!("must be in the range [{MIN}, {max}]")));
    }
}

/// A request that shows the key of the pod and nothing else: it must be signed with that key.
fn stub(encoded: &str, path: &Path, errors: &mut Errors) {
    const BYTES_MAX: usize = 10 << 10;
    let der = STANDARD.decode(encoded).unwrap_or_default();
    if der.len() > BYTES_MAX {
        errors.push(FieldError::too_long(path, BYTES_MAX));
        return;
    }
    let Ok(request) = CertReq::from_der(&der) else {
        errors.push(FieldError::invalid_unshown(path, "must be a valid PKCS#10 CSR"));
        return;
    };
    match pem::key_problem(&request.info.public_key) {
        Some((Some(shown), problem)) => errors.push(FieldError::invalid(path, shown, problem)),
        Some((None, problem)) => errors.push(FieldError::invalid_unshown(path, problem)),
        None if pem::check_signature(&request).is_err() => {
            errors.push(FieldError::invalid_unshown(path, "invalid signature"));
        }
        None => {}
    }
}

fn status(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::new("status");
    let now = &new["status"];
    let mut count = 0;
    each(&now["conditions"], &path.child("conditions").child(""), |condition, at| {
        let kind = text(&condition["type"]);
        if !KNOWN.contains(&kind) {
            errors.push(FieldError::not_supported(&at.child("type"), kind, KNOWN));
            return;
        }
        count += 1;
        if count > 1 {
            let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(FieldError::invalid(&at.child("type"), kind, detail));
        }
        if text(&condition["status"]) != "True" {
            errors.push(FieldError::not_supported(&at.child("status"), text(&condition["status"]), &["True"]));
        }
    });
    conditions::validate(&now["conditions"], &path.child("conditions"), errors);
    if !errors.is_empty() {
        return;
    }
    let mut only = |wanted: &Value, detail: &str| {
        if !same(now, wanted) {
            errors.push(FieldError::invalid_unshown(&path, detail));
        }
    };
    if KNOWN.iter().any(|kind| is(old, kind)) {
        only(&old["status"], "immutable after PodCertificateRequest is issued, denied, or failed");
    } else if is(new, DENIED) || is(new, FAILED) {
        let conditions = serde_json::json!({"conditions": now["conditions"]});
        only(
            &conditions,
            "non-condition status fields must be empty when denying or failing the PodCertificateRequest",
        );
    } else if is(new, ISSUED) {
        issued::validate(new, errors);
    } else {
        only(&old["status"], "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"");
    }
}

fn is(request: &Value, kind: &str) -> bool {
    let is_true = |condition: &Value| text(&condition["type"]) == kind && text(&condition["status"]) == "True";
    items(&request["status"]["conditions"]).iter().any(is_true)
}

/// A certificate starts now, and whoever changes the status may sign for the signer.
fn may_sign(registry: &Registry, call: &Call, new: &Value, old: &Value, errors: &mut Errors) {
    const SKEW_SECONDS: i64 = 5 * 60;
    if same(&new["status"], &old["status"]) {
        return;
    }
    let begins = text(&new["status"]["notBefore"]);
    let now = registry.clock.now();
    let is_near = |time: Time| (time.unix() - now.unix()).abs() < SKEW_SECONDS;
    if is(new, ISSUED) && !begins.parse().is_ok_and(is_near) {
        let detail = "must be set to within 5 minutes of kube-apiserver's current time";
        errors.push(FieldError::invalid(&Path::new("status").child("notBefore"), begins, detail));
        return;
    }
    let signer = text(&old["spec"]["signerName"]);
    if !signing::is_allowed(registry, &call.user, "sign", signer) {
        let detail = format!("User {:?} is not permitted to \"sign\" for signer {signer:?}", call.user.name);
        errors.push(FieldError::forbidden(&Path::new("spec").child("signerName"), detail));
    }
}
