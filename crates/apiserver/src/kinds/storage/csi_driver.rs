//! CSIDrivers: `pkg/apis/storage/v1/defaults.go`.

use serde_json::Value;
use steersman_base::validation::dns1123_subdomain;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::problems;
use crate::kinds::shared::json::{default_to, is_empty, set, with};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, cell};

/// The rules of CSIDrivers.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|driver| {
        with(driver, "spec", |spec| {
            default_to(spec, "attachRequired", true);
            default_to(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            for field in [
                "podInfoOnMount",
                "storageCapacity",
                "requiresRepublish",
                "seLinuxMount",
                "preventPodSchedulingIfMissing",
            ] {
                default_to(spec, field, false);
            }
            if is_empty(&spec["volumeLifecycleModes"]) {
                set(spec, "volumeLifecycleModes", vec!["Persistent"]);
            }
        });
    })
    .with_strategy(Strategy { unconditional_update: false, ..Strategy::RETURNS_DELETED })
    .printed(&[
        Cell::Name,
        Cell::Bool("/spec/attachRequired", true),
        Cell::Bool("/spec/podInfoOnMount", false),
        Cell::Bool("/spec/storageCapacity", false),
        Cell::Made(|row| {
            let requests = row.at("/spec/tokenRequests").and_then(Value::as_array);
            requests.map_or_else(|| "<unset>".to_owned(), |requests| cell::joined(requests, "audience"))
        }),
        Cell::Bool("/spec/requiresRepublish", false),
        Cell::Made(|row| {
            let modes = cell::joined(row.list_at("/spec/volumeLifecycleModes"), "");
            if modes.is_empty() { "<none>".to_owned() } else { modes }
        }),
        Cell::Age,
    ]);

/// Checks the name of a CSI driver: `ValidateCSIDriverName` of `pkg/apis/core/validation/validation.go`.
pub(crate) fn driver_name(name: &str, path: &Path, errors: &mut Errors) {
    const LENGTH_MAX: usize = 63;
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name.len() > LENGTH_MAX {
        errors.push(FieldError::too_long(path, LENGTH_MAX));
    }
    problems(name, dns1123_subdomain(&name.to_lowercase()), path, errors);
}
