//! ResourceSlices: `ValidateResourceSlice`.

use serde_json::Value;

use super::device::added;
use super::slice_spec;
use crate::field::Path;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::Cell;

/// The rules of ResourceSlices.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .timed(|slice, now| {
        let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
        for device in devices.into_iter().flatten() {
            let taints = device.get_mut("taints").and_then(Value::as_array_mut);
            taints.into_iter().flatten().for_each(|taint| added(taint, now));
        }
    })
    .validated(|slice, old, errors| {
        slice_spec::validate(&slice["spec"], old.map(|old| &old["spec"]), &Path::new("spec"), errors);
    })
    .with_strategy(Strategy {
        returns_deleted: true,
        selectable_fields: &[SelectableField::at("spec.nodeName"), SelectableField::at("spec.driver")],
        ..Strategy::GENERATION
    })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/nodeName"),
        Cell::Text("/spec/driver"),
        Cell::Text("/spec/pool/name"),
        Cell::Age,
    ]);
