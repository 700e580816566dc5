//! ClusterTrustBundles. Follows `ValidateClusterTrustBundle` of `pkg/apis/certificates/validation/validation.go`, and the plug-in
//! ClusterTrustBundleAttest.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_base::validation::{Problems, dns1123_subdomain};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::BasicConstraints;

use super::certificate_signing_request::signer_name;
use super::{pem, signing};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::problems;
use crate::kinds::shared::json::text;
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::Cell;

/// The rules of ClusterTrustBundles.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .validated(validate)
    .admitted(Admission { validate: signing::may_attest, ..Admission::NONE })
    .with_strategy(Strategy { selectable_fields: &[SelectableField::at("spec.signerName")], ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::TextOr("/spec/signerName", "<none>")]);

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let signer = text(&new["spec"]["signerName"]);
    let name = text(&new["metadata"]["name"]);
    if !name.is_empty() {
        problems(name, name_problems(name, signer), &Path::new("metadata").child("name"), errors);
    }
    let at = Path::new("spec").child("signerName");
    if !signer.is_empty() {
        signer_name(signer, &at, errors);
    }
    // What is stored may be older than the rules of its parser.
    if old.is_none_or(|old| text(&old["spec"]["trustBundle"]) != text(&new["spec"]["trustBundle"])) {
        trust_bundle(text(&new["spec"]["trustBundle"]), &Path::new("spec").child("trustBundle"), errors);
    }
    if old.is_some_and(|old| text(&old["spec"]["signerName"]) != signer) {
        errors.push(FieldError::invalid(&at, signer, "field is immutable"));
    }
}

/// Returns what is wrong with the name of a bundle. That of a signer has the signer's name in its own:
/// `example.com:mine:rest` for `example.com/mine`.
pub(crate) fn name_problems(name: &str, signer: &str) -> Problems {
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        _ if signer.is_empty() && name.contains(':') => {
            vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()]
        }
        _ if signer.is_empty() => dns1123_subdomain(name),
        Some(rest) => dns1123_subdomain(rest),
        None => vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")],
    }
}

/// A bundle consists of certificates of authorities, each once, and nothing else.
fn trust_bundle(bundle: &str, path: &Path, errors: &mut Errors) {
    const BYTES_MAX: usize = 1 << 20;
    if bundle.len() > BYTES_MAX {
        errors.push(FieldError::too_long(path, BYTES_MAX));
        return;
    }
    let invalid = |detail: String| FieldError::invalid(path, "<value omitted>", detail);
    let count = errors.len();
    let mut anchors: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (at, block) in pem::blocks(bundle).into_iter().enumerate() {
        match problem(&block) {
            Some(problem) => errors.push(invalid(format!("entry {at} {problem}"))),
            None => anchors.entry(block.der).or_default().push(at),
        }
    }
    if errors.len() > count {
        return;
    }
    if anchors.is_empty() {
        errors.push(invalid("at least one trust anchor must be provided".to_owned()));
    }
    let mut repeated: Vec<_> = anchors.into_values().filter(|indices| indices.len() > 1).collect();
    repeated.sort_unstable();
    for indices in repeated {
        let indices: Vec<_> = indices.iter().map(ToString::to_string).collect();
        errors.push(invalid(format!("duplicate trust anchor (indices [{}])", indices.join(" "))));
    }
}

fn problem(block: &pem::Block) -> Option<String> {
    if block.kind != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.kind));
    }
    if block.has_headers {
        return Some("has PEM block headers".to_owned());
    }
    let Ok(certificate) = Certificate::from_der(&block.der) else {
        return Some("does not parse as X.509".to_owned());
    };
    match certificate.tbs_certificate().get_extension::<BasicConstraints>() {
        Err(_) => Some("does not parse as X.509".to_owned()),
        Ok(Some((_, constraints))) if constraints.ca => None,
        Ok(_) => Some("does not have the CA bit set".to_owned()),
    }
}
