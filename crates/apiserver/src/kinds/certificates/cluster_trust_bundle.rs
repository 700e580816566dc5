//! ClusterTrustBundles. Follows `ValidateClusterTrustBundle` of `pkg/apis/certificates/validation/validation.go`; the
//! certificates are not looked at.

use serde_json::Value;
use steersman_base::validation::dns1123_subdomain;

use super::certificate_signing_request::signer_name;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::problems;
use crate::kinds::shared::json::text;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::Cell;

/// The rules of ClusterTrustBundles.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .validated(validate)
    .with_strategy(Strategy { selectable_fields: &[SelectableField::at("spec.signerName")], ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::TextOr("/spec/signerName", "<none>")]);

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let signer = text(&new["spec"]["signerName"]);
    name(text(&new["metadata"]["name"]), signer, &Path::new("metadata").child("name"), errors);
    let at = Path::new("spec").child("signerName");
    if !signer.is_empty() {
        signer_name(signer, &at, errors);
    }
    if old.is_some_and(|old| text(&old["spec"]["signerName"]) != signer) {
        errors.push(FieldError::invalid(&at, signer, "field is immutable"));
    }
}

/// The bundle of a signer has the signer's name in its own: `example.com:mine:rest` for `example.com/mine`.
fn name(name: &str, signer: &str, path: &Path, errors: &mut Errors) {
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        _ if name.is_empty() => {}
        _ if signer.is_empty() && name.contains(':') => {
            let detail = "ClusterTrustBundle without signer name must not have \":\" in its name";
            errors.push(FieldError::invalid(path, name, detail));
        }
        _ if signer.is_empty() => problems(name, dns1123_subdomain(name), path, errors),
        Some(rest) => problems(name, dns1123_subdomain(rest), path, errors),
        None => {
            let detail = format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}");
            errors.push(FieldError::invalid(path, name, detail));
        }
    }
}
