//! ResourceClaimTemplates: `pkg/apis/resource/{v1/defaults.go,validation/validation.go}`.

use super::claim_spec;
use super::resource_claim::device_requests;
use crate::field::Path;
use crate::kinds::shared::check::immutable_struct;
use crate::kinds::shared::json::object_mut;
use crate::kinds::shared::meta::validate_template;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of ResourceClaimTemplates.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|object| {
        if let Some(spec) = object_mut(object, "spec").and_then(|spec| object_mut(spec, "spec")) {
            device_requests(spec);
        }
    })
    .rechecked()
    .validated(|template, old, errors| {
        let spec = &template["spec"];
        let path = Path::new("spec");
        validate_template(&spec["metadata"], &path.child("metadata"), errors);
        claim_spec::validate(&spec["spec"], &path.child("spec"), errors);
        if let Some(old) = old {
            immutable_struct("ResourceClaimTemplateSpec", spec, &old["spec"], &path, errors);
        }
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[Cell::Name, Cell::Age]);
