//! DeviceClasses: `ValidateDeviceClass`.

use serde_json::Value;

use super::device::{CONFIGS_MAX, bounded, configuration, selectors};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::json::same;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of DeviceClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .validated(validate)
    .with_strategy(Strategy { returns_deleted: true, ..Strategy::GENERATION })
    .printed(&[Cell::Name, Cell::Age]);

fn validate(class: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = &class["spec"];
    let path = Path::new("spec");
    let is_same = |field: &str| old.is_some_and(|old| same(&old["spec"][field], &spec[field]));
    if !is_same("selectors") {
        selectors(&spec["selectors"], &path.child("selectors"), errors);
    }
    bounded(&spec["config"], CONFIGS_MAX, &path.child("config"), errors, |config, path, errors| {
        configuration(config, path, errors);
    });
    if let Some(name) = spec["extendedResourceName"].as_str() {
        extended_resource_name(name, &path.child("extendedResourceName"), errors);
    }
}

/// A name with a domain that is not of Kubernetes: `ExtendedResourceName` of `apimachinery/pkg/api/validate/strfmt.go`.
fn extended_resource_name(name: &str, path: &Path, errors: &mut Errors) {
    let mut wrong = |detail: String| errors.push(FieldError::invalid(path, name, detail));
    if !name.contains('/') {
        wrong("a name must be a domain-prefixed path, such as 'example.com/my-prop'".to_owned());
    } else if name.contains("kubernetes.io/") {
        wrong("must not have \"kubernetes.io/\" domain".to_owned());
    }
    if name.starts_with("requests.") {
        wrong("must not have \"requests.\" prefix".to_owned());
    }
    let prefixed = format!("requests.{name}");
    steersman_base::validation::qualified_name(&prefixed).into_iter().for_each(wrong);
}
