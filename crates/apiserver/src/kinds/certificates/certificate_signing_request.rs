//! CertificateSigningRequests: who asks is set by the server, what was asked for never changes, and approving, denying and
//! signing have paths of their own.
//!
//! Follows `pkg/registry/certificates/certificates/strategy.go` and `pkg/apis/certificates/validation/validation.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use steersman_base::validation::{dns1123_label, dns1123_subdomain};
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{ObjectIdentifier, PrintableStringRef, Utf8StringRef};
use x509_cert::request::CertReq;

use super::{pem, signing};
use crate::auth::User;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::required;
use crate::kinds::shared::json::{copy, default_zero_to, each, each_mut, is_empty, items, set, text, unset, with};
use crate::kinds::shared::meta;
use crate::kinds::{Handler, NameRule, PartRules, Resets, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::{Cell, TableRow, duration};

/// The rules of CertificateSigningRequests.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .prepared(prepare)
    .validated(|new, old, errors| match old {
        None => whole(new, None, errors),
        Some(old) => update(new, old, Allowed::Neither, errors),
    })
    .status_prepared(prepare_status)
    .status_validated(|new, old, errors| update(new, old, Allowed::Certificate, errors))
    .resets(&["spec", "status"])
    .status_resets(&["spec", "status.conditions"])
    .recording_user(record_user)
    .admitted(Admission { validate: signing::may_sign, ..Admission::NONE })
    .with_strategy(Strategy { selectable_fields: &[SelectableField::at("spec.signerName")], ..Strategy::DEFAULT })
    .with_subresources(&[("approval", Handler::Part(&APPROVAL))])
    .printed(&[
        Cell::Name,
        Cell::Age,
        Cell::TextOr("/spec/signerName", "<none>"),
        Cell::Text("/spec/username"),
        Cell::Made(|row| {
            let seconds = row.at("/spec/expirationSeconds").and_then(Value::as_i64);
            seconds.map_or_else(|| "<none>".to_owned(), duration::human)
        }),
        Cell::Made(certificate_status),
    ]);

/// The rules of a write of the approval.
static APPROVAL: PartRules = PartRules {
    prepare: prepare_approval,
    validate: |new, old, errors| update(new, old, Allowed::Approval, errors),
    raises_generation: false,
    resets: Resets::These(&["spec", "status.certificate"]),
};

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

const APPROVED: &str = "Approved";

const DENIED: &str = "Denied";

const FAILED: &str = "Failed";

const EXPIRATION_SECONDS_MIN: i64 = 600;

const DOMAIN_LENGTH_MAX: usize = 253;

const SIGNER_LENGTH_MAX: usize = 571;

const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";

const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The part of a request that a path may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// Neither the certificate nor an approval.
    Neither,
    /// The certificate: `status`.
    Certificate,
    /// Approvals and denials: `approval`.
    Approval,
}

/// A new request is neither approved nor signed; a changed one asks for what it asked for.
fn prepare(new: &mut Value, old: Option<&Value>) {
    match old {
        None => set(new, "status", json!({})),
        Some(old) => {
            copy(new, old, "spec");
            copy(new, old, "status");
        }
    }
}

/// A write of the status keeps approvals and denials as they are, if it has as many.
pub(crate) fn prepare_status(new: &mut Value, old: &Value, now: &str) {
    for kind in [APPROVED, DENIED] {
        let held: Vec<Value> = of_type(old, kind).cloned().collect();
        if held.len() == of_type(new, kind).count() {
            let mut held = held.into_iter();
            each_condition(new, |condition| {
                if text(&condition["type"]) == kind
                    && let Some(before) = held.next()
                {
                    *condition = before;
                }
            });
        }
    }
    set_times(new, old, now);
}

/// A write of the approval changes the conditions and nothing else of spec and status.
pub(crate) fn prepare_approval(new: &mut Value, old: &Value, now: &str) {
    set_times(new, old, now);
    let conditions = new["status"].get("conditions").cloned();
    copy(new, old, "spec");
    copy(new, old, "status");
    with(new, "status", |status| match conditions {
        Some(conditions) => set(status, "conditions", conditions),
        None => {
            unset(status, "conditions");
        }
    });
}

/// Returns the organizations that a request asks for; none if it cannot be parsed.
pub(crate) fn organizations(request: &Value) -> Option<Vec<String>> {
    let parsed = parse(text(&request["spec"]["request"])).ok()?;
    let asked = parsed.info.subject.iter().filter(|attribute| attribute.oid == ORGANIZATION).filter_map(|attribute| {
        let value = &attribute.value;
        let utf8 = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
        utf8.or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|text| text.as_str().to_owned())).ok()
    });
    Some(asked.collect())
}

fn conditions(request: &Value) -> &[Value] {
    items(&request["status"]["conditions"])
}

fn of_type<'a>(request: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    conditions(request).iter().filter(move |condition| text(&condition["type"]) == kind)
}

fn each_condition(request: &mut Value, f: impl FnMut(&mut Value)) {
    if let Some(status) = request.get_mut("status") {
        each_mut(status, "conditions", f);
    }
}

/// Conditions without times get them; one that was so before keeps its transition.
fn set_times(new: &mut Value, old: &Value, now: &str) {
    each_condition(new, |condition| {
        default_zero_to(condition, "lastUpdateTime", now);
        let held = conditions(old).iter().find(|held| {
            held["type"] == condition["type"]
                && held["status"] == condition["status"]
                && !is_empty(&held["lastTransitionTime"])
        });
        let since = held.map_or_else(|| now.into(), |held| held["lastTransitionTime"].clone());
        default_zero_to(condition, "lastTransitionTime", since);
    });
}

/// The request inside; in Go's words what is wrong with it, where they do not name Go's parser.
fn parse(encoded: &str) -> Result<CertReq, String> {
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    let begin = "-----BEGIN ";
    let first = String::from_utf8_lossy(&pem).find(begin).and_then(|at| pem.get(at..).map(<[u8]>::to_vec));
    let block = first.filter(|block| block.starts_with(PEM_BEGIN.as_bytes()));
    let der = block.and_then(|block| CertificateSigningRequestDer::from_pem_slice(&block).ok());
    let der = der.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let parsed = CertReq::from_der(&der).map_err(|error| format!("asn1: structure error: {error}"))?;
    pem::check_signature(&parsed)?;
    Ok(parsed)
}

/// Checks a request, metadata aside. Errors that it had before are not held against a change.
fn whole(request: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = &request["spec"];
    let path = Path::new("spec");
    if let Err(problem) = parse(text(&spec["request"])) {
        let shown = text(&spec["request"]);
        errors.push(FieldError::invalid(&path.child("request"), shown, problem));
    }
    let usages = items(&spec["usages"]);
    if usages.is_empty() {
        errors.push(FieldError::required(&path.child("usages"), ""));
    }
    if old.is_none() {
        each(&spec["usages"], &path.child("usages"), |usage, path| {
            if !USAGES.contains(&text(usage)) {
                errors.push(FieldError::not_supported(path, text(usage), USAGES));
            }
        });
        for (at, usage) in usages.iter().enumerate() {
            if usages[..at].contains(usage) {
                errors.push(FieldError::duplicate(&path.child("usages").index(at), text(usage)));
            }
        }
    }
    let signer = text(&spec["signerName"]);
    if old.is_none() && signer == LEGACY_SIGNER {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid(&path.child("signerName"), signer, detail));
    } else {
        signer_name(signer, &path.child("signerName"), errors);
    }
    if let Some(seconds) = spec["expirationSeconds"].as_i64().filter(|seconds| *seconds < EXPIRATION_SECONDS_MIN) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
    }
    check_conditions(request, &Path::new("status").child("conditions"), errors);
    let certificate = &request["status"]["certificate"];
    let is_old = old.is_some_and(|old| {
        let before = &old["status"]["certificate"];
        before == certificate || pem::check_certificates(text(before)).is_err()
    });
    if let Some(problem) = pem::check_certificates(text(certificate)).err().filter(|_| !is_old) {
        let path = Path::new("status").child("certificate");
        errors.push(FieldError::invalid(&path, "<certificate data>", problem));
    }
}

/// Checks the name of a signer: `ValidateSignerName`.
pub(crate) fn signer_name(name: &str, path: &Path, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid(path, name, detail));
        return;
    };
    if domain.len() > DOMAIN_LENGTH_MAX {
        errors.push(FieldError::too_long(path, DOMAIN_LENGTH_MAX));
    }
    let mut first_problem = |whole: &str, problems: &dyn Fn(&str) -> steersman_base::validation::Problems| {
        let wrong = whole.split('.').map(|label| (label, problems(label))).find(|(_, problems)| !problems.is_empty());
        for (label, problem) in wrong.into_iter().flat_map(|(label, all)| all.into_iter().map(move |it| (label, it))) {
            errors.push(FieldError::invalid(path, whole, format!("validating label {label:?}: {problem}")));
        }
    };
    first_problem(domain, &|label| dns1123_label(label));
    first_problem(rest, &|label| dns1123_subdomain(label));
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    }
    if name.len() > SIGNER_LENGTH_MAX {
        errors.push(FieldError::too_long(path, SIGNER_LENGTH_MAX));
    }
}

fn check_conditions(request: &Value, path: &Path, errors: &mut Errors) {
    let all = conditions(request);
    for (at, condition) in all.iter().enumerate() {
        let kind = text(&condition["type"]);
        let path_at = path.index(at);
        required(&condition["type"], &path_at.child("type"), errors);
        let status = text(&condition["status"]);
        let allowed: &[&str] =
            if matches!(kind, APPROVED | DENIED | FAILED) { &["True"] } else { &["False", "True", "Unknown"] };
        if required(&condition["status"], &path_at.child("status"), errors) && !allowed.contains(&status) {
            errors.push(FieldError::not_supported(&path_at.child("status"), status, allowed));
        }
        let other = if kind == APPROVED { DENIED } else { APPROVED };
        if matches!(kind, APPROVED | DENIED) && all[..at].iter().any(|it| text(&it["type"]) == other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(path, kind, detail));
        }
        if all[..at].iter().any(|it| text(&it["type"]) == kind) {
            errors.push(FieldError::duplicate(&path_at.child("type"), kind));
        }
    }
}

fn update(new: &Value, old: &Value, allowed: Allowed, errors: &mut Errors) {
    whole(new, Some(old), errors);
    let path = Path::new("status");
    let at = path.child("conditions");
    for kind in [APPROVED, DENIED, FAILED] {
        let now = of_type(new, kind).count();
        let before = of_type(old, kind).count();
        if now < before {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&at, detail));
        } else if kind != FAILED && allowed != Allowed::Approval && now > before {
            let detail = format!("updates may not add a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
    let certificate = &new["status"]["certificate"];
    let before = &old["status"]["certificate"];
    if certificate != before && allowed != Allowed::Certificate {
        let detail = "updates may not set certificate content";
        errors.push(FieldError::forbidden(&path.child("certificate"), detail));
    } else if certificate != before && !is_empty(before) {
        let detail = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden(&path.child("certificate"), detail));
    }
    meta::validate_meta(new, Some(old), NameRule::PathSegment, errors);
}

/// A certificate request for tests, as it is in the spec.
#[cfg(test)]
pub(crate) fn test_request(name: &str, organizations: &[&str]) -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    for organization in organizations {
        params.distinguished_name.push(rcgen::DnType::OrganizationName, *organization);
    }
    let key = rcgen::KeyPair::generate().expect("a key");
    STANDARD.encode(params.serialize_request(&key).expect("a request").pem().expect("PEM"))
}

/// Records who asks; what the request says about it does not count.
fn record_user(request: &mut Value, user: &User) {
    let user = user.to_json();
    with(request, "spec", |spec| {
        for field in ["username", "uid", "groups", "extra"] {
            copy(spec, &user, field);
        }
    });
}

fn certificate_status(row: &TableRow<'_>) -> String {
    let has = |kind: &str| row.condition("/status/conditions", kind).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if row.text("/status/certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}
