//! ClusterTrustBundles.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::Cell;

/// The rules of ClusterTrustBundles.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .with_strategy(Strategy { selectable_fields: &[SelectableField::at("spec.signerName")], ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::TextOr("/spec/signerName", "<none>")]);
