//! VolumeAttributesClasses.

use crate::kinds::shared::volume;
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::table::Cell;

const PROTECTION: &str = "kubernetes.io/vac-protection";

/// The rules of VolumeAttributesClasses.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .admitted(Admission {
        mutate: |lookup, new, old| {
            if old.is_none() && lookup.protects_storage() {
                volume::add_finalizer(new, PROTECTION);
            }
            Ok(())
        },
        ..Admission::NONE
    })
    .with_strategy(Strategy::RETURNS_DELETED)
    .printed(&[Cell::Name, Cell::Text("/driverName"), Cell::Age]);
