//! PodTemplates.

use super::pod::{defaults, gated, validation};
use crate::field::Path;
use crate::kinds::core::pod::warnings;
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::Strategy;
use crate::table::{Cell, labels};

/// The rules of PodTemplates.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(defaults::template)
    .prepared(|new, old| gated::drop_disabled(new, old, "/template/spec"))
    .warned(|new, old, warnings| warnings::template_at("template", &new["template"], (new, old), warnings))
    .admitted(Admission::of_template("/template"))
    .validated(|new, _, errors| validation::template(&new["template"], &Path::new("template"), errors))
    .with_strategy(Strategy { returns_deleted: true, ..Strategy::GENERATION })
    .printed(&[
        Cell::Name,
        Cell::Joined("/template/spec/containers", "name"),
        Cell::Joined("/template/spec/containers", "image"),
        Cell::Made(|row| labels::labels(row.at("/template/metadata/labels"))),
    ]);
