//! Volumes, claims and classes of storage.

mod claim;
mod volume;

use steersman_base::validation::{dns1123_subdomain, qualified_name};

use super::check::{self, Errors, one_of_if_set, problems, required};
use super::json::{default_to, entries, is_empty, is_set, set, text, with};
use super::{NameRule, Rules};
use crate::field::{FieldError, Path};

pub(super) use claim::{
    PERSISTENT_VOLUME_CLAIM, defaults as claim_defaults, spec as claim_spec, spec_defaults as claim_spec_defaults,
};
pub(super) use volume::PERSISTENT_VOLUME;

/// The rules of a kind of the group `storage.k8s.io`.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "StorageClass" => &STORAGE_CLASS,
        "CSIDriver" => &CSI_DRIVER,
        "VolumeAttachment" => &VOLUME_ATTACHMENT,
        _ => return None,
    })
}

/// Follows `pkg/apis/storage/v1/defaults.go` and `pkg/apis/storage/validation/validation.go`.
static STORAGE_CLASS: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|class| {
        default_to(class, "reclaimPolicy", "Delete");
        default_to(class, "volumeBindingMode", "Immediate");
    })
    .validated(|new, old, errors| {
        let path = Path::new("provisioner");
        if required(&new["provisioner"], &path, errors) {
            let name = text(&new["provisioner"]).to_lowercase();
            problems(&name, qualified_name(&name), &path, errors);
        }
        for (key, _) in entries(&new["parameters"]).into_iter().filter(|(key, _)| key.is_empty()) {
            errors.push(FieldError::invalid(&Path::new("parameters"), key, "field can not be empty."));
        }
        if !is_empty(&new["reclaimPolicy"]) {
            one_of_if_set(&new["reclaimPolicy"], &["Delete", "Retain"], &Path::new("reclaimPolicy"), errors);
        }
        let modes = &["Immediate", "WaitForFirstConsumer"];
        one_of_if_set(&new["volumeBindingMode"], modes, &Path::new("volumeBindingMode"), errors);
        if let Some(old) = old {
            for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                check::immutable_unshown(&new[field], &old[field], &Path::new(field), errors);
            }
        }
    });

static CSI_DRIVER: Rules = Rules::named(NameRule::Subdomain).defaulted(|driver| {
    with(driver, "spec", |spec| {
        default_to(spec, "attachRequired", true);
        default_to(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        for field in
            ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount", "preventPodSchedulingIfMissing"]
        {
            default_to(spec, field, false);
        }
        if is_empty(&spec["volumeLifecycleModes"]) {
            set(spec, "volumeLifecycleModes", vec!["Persistent"]);
        }
    });
});

static VOLUME_ATTACHMENT: Rules = Rules::named(NameRule::Subdomain).validated(|new, old, errors| {
    let (spec, path) = (&new["spec"], Path::new("spec"));
    if let Some(old) = old {
        check::immutable(spec, &old["spec"], &path, errors);
        return;
    }
    let (source, at) = (&spec["source"], path.child("source"));
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (is_set(&source["inlineVolumeSpec"]), source["persistentVolumeName"].as_str()) {
        (false, None) => errors.push(FieldError::required(&at, detail)),
        (true, Some(_)) => errors.push(FieldError::forbidden(&at, detail)),
        (false, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(FieldError::required(&at.child("persistentVolumeName"), detail));
        }
        _ => {}
    }
    let node = text(&spec["nodeName"]);
    problems(node, dns1123_subdomain(node), &path.child("nodeName"), errors);
    driver_name(text(&spec["attacher"]), &path.child("attacher"), errors);
});

/// The name of a CSI driver: `ValidateCSIDriverName` of `pkg/apis/core/validation/validation.go`.
pub(super) fn driver_name(name: &str, path: &Path, errors: &mut Errors) {
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
