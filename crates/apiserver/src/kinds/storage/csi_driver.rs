//! CSIDrivers: `pkg/apis/storage/v1/defaults.go`.

use serde_json::Value;
use steersman_base::validation::dns1123_subdomain;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, one_of_if_set, problems};
use crate::kinds::shared::json::{default_to, each, is_empty, is_set, items, number, same, set, text, with};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Generation, Strategy};
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
    .validated(|new, old, errors| {
        let path = Path::new("spec");
        spec(&new["spec"], &path, errors);
        if let Some(old) = old {
            let at = path.child("attachedRequired");
            check::immutable(&new["spec"]["attachRequired"], &old["spec"]["attachRequired"], &at, errors);
            let modes = "volumeLifecycleModes";
            check::immutable(&new["spec"][modes], &old["spec"][modes], &path.child(modes), errors);
        }
    })
    .warned(|new, old, warnings| {
        let spec = &new["spec"];
        let requests = &spec["tokenRequests"];
        let is_changed = old.is_none_or(|old| !same(&old["spec"]["tokenRequests"], requests));
        if is_changed && !is_empty(requests) && !is_set(&spec["serviceAccountTokenInSecrets"]) {
            warnings.push(
                "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
                 possible logging of tokens in volume attributes"
                    .to_owned(),
            );
        }
    })
    .with_strategy(Strategy {
        generation: Generation::ContentFromNone,
        unconditional_update: false,
        ..Strategy::RETURNS_DELETED
    })
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

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    const TOKEN_SECONDS_MIN: i64 = 600;
    const TOKEN_SECONDS_MAX: i64 = 1 << 32;
    const UPDATE_SECONDS_MIN: i64 = 10;
    let policies = &["File", "None", "ReadWriteOnceWithFSType"];
    one_of_if_set(&spec["fsGroupPolicy"], policies, &path.child("fsGroupPolicy"), errors);
    let mut audiences: Vec<&str> = Vec::new();
    each(&spec["tokenRequests"], &path.child("tokenRequests"), |request, path| {
        let audience = text(&request["audience"]);
        if audiences.contains(&audience) {
            errors.push(FieldError::duplicate(&path.child("audience"), audience));
            return;
        }
        audiences.push(audience);
        let seconds = &request["expirationSeconds"];
        let path = path.child("expirationSeconds");
        if is_set(seconds) && number(seconds) < TOKEN_SECONDS_MIN {
            let detail = "may not specify a duration less than 10 minutes";
            errors.push(FieldError::invalid(&path, seconds.clone(), detail));
        }
        if number(seconds) > TOKEN_SECONDS_MAX {
            let detail = "may not specify a duration larger than 2^32 seconds";
            errors.push(FieldError::invalid(&path, seconds.clone(), detail));
        }
    });
    let modes = path.child("volumeLifecycleModes");
    for mode in items(&spec["volumeLifecycleModes"]) {
        if !["Persistent", "Ephemeral"].contains(&text(mode)) {
            errors.push(FieldError::not_supported(&modes, text(mode), &["Persistent", "Ephemeral"]));
        }
    }
    let period = &spec["nodeAllocatableUpdatePeriodSeconds"];
    if is_set(period) && number(period) < UPDATE_SECONDS_MIN {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.push(FieldError::invalid(&path, period.clone(), "must be greater than or equal to 10 seconds"));
    }
    let in_secrets = &spec["serviceAccountTokenInSecrets"];
    if is_set(in_secrets) && is_empty(&spec["tokenRequests"]) {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(FieldError::invalid(&path.child("serviceAccountTokenInSecrets"), in_secrets.clone(), detail));
    }
}

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
