//! VolumeAttachments: `pkg/apis/storage/validation/validation.go`.

use steersman_base::validation::dns1123_subdomain;

use super::driver_name;
use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::json::{is_set, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::Cell;

/// The rules of VolumeAttachments.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, old, errors| {
        let spec = &new["spec"];
        let path = Path::new("spec");
        if let Some(old) = old {
            check::immutable(spec, &old["spec"], &path, errors);
            return;
        }
        let source = &spec["source"];
        let at = path.child("source");
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
    })
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy {
        unconditional_update: false,
        status_keeps_metadata: USER_METADATA,
        ..Strategy::RETURNS_DELETED
    })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/attacher"),
        Cell::Text("/spec/source/persistentVolumeName"),
        Cell::Text("/spec/nodeName"),
        Cell::Bool("/status/attached", false),
        Cell::Age,
    ]);
