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
    .rechecked()
    .validated(|new, old, errors| {
        let spec = &new["spec"];
        let path = Path::new("spec");
        let count = errors.len();
        driver_name(text(&spec["attacher"]), &path.child("attacher"), errors);
        if old.is_none() {
            errors.reword(count, |detail| {
                // Checked declaratively upstream.
                let detail = detail.replace(
                    "a lowercase RFC 1123 subdomain must consist of lower case",
                    "an RFC 1123 subdomain must consist of",
                );
                detail.replace("'example.com'", "'Example.com'")
            });
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
        if let Some(name) = source["persistentVolumeName"].as_str() {
            problems(name, dns1123_subdomain(name), &at.child("persistentVolumeName"), errors);
        }
        if let Some(old) = old {
            check::immutable_unshown(spec, &old["spec"], &path, errors);
        }
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
