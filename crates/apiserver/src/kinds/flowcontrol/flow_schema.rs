//! FlowSchemas: `pkg/apis/flowcontrol/v1/defaults.go`.

use crate::kinds::shared::json::{default_zero_to, with};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, cell};

/// The rules of FlowSchemas.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|object| with(object, "spec", |spec| default_zero_to(spec, "matchingPrecedence", 1000)))
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy::GENERATION)
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/priorityLevelConfiguration/name"),
        Cell::Int("/spec/matchingPrecedence"),
        Cell::TextOr("/spec/distinguisherMethod/type", "<none>"),
        Cell::Age,
        Cell::Made(|row| {
            row.condition("/status/conditions", "Dangling").map_or("?", |it| cell::text(it, "status")).to_owned()
        }),
    ]);
