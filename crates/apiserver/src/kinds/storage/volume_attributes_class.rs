//! VolumeAttributesClasses: `pkg/apis/storage/validation/validation.go`.

use steersman_base::validation::qualified_name;

use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{problems, required};
use crate::kinds::shared::json::{entries, is_empty, same, text};
use crate::kinds::shared::volume;
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::table::Cell;

const PROTECTION: &str = "kubernetes.io/vac-protection";

/// The rules of VolumeAttributesClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .validated(|new, old, errors| {
        let driver = Path::new("driverName");
        let parameters = Path::new("parameters");
        if let Some(old) = old {
            if text(&new["driverName"]) != text(&old["driverName"]) {
                errors.push(FieldError::forbidden(&driver, "updates to driverName are forbidden."));
            }
            if !same(&new["parameters"], &old["parameters"]) {
                errors.push(FieldError::forbidden(&parameters, "updates to parameters are forbidden."));
            }
        }
        if required(&new["driverName"], &driver, errors) {
            let name = text(&new["driverName"]).to_lowercase();
            problems(&name, qualified_name(&name), &driver, errors);
        }
        for (key, _) in entries(&new["parameters"]).into_iter().filter(|(key, _)| key.is_empty()) {
            errors.push(FieldError::invalid(&parameters, key, "field can not be empty."));
        }
        if is_empty(&new["parameters"]) {
            errors.push(FieldError::required(&parameters, "must contain at least one key/value pair"));
        }
    })
    .admitted(Admission {
        mutate: |lookup, new, old| {
            if old.is_none() {
                volume::protect(lookup, new, PROTECTION);
            }
            Ok(())
        },
        ..Admission::NONE
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[Cell::Name, Cell::Text("/driverName"), Cell::Age]);
