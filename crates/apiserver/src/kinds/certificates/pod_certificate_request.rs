//! PodCertificateRequests.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{SelectableField, Strategy, USER_METADATA};
use crate::table::{Cell, TableRow, cell, labels};

/// The rules of PodCertificateRequests.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy {
        status_keeps_metadata: USER_METADATA,
        selectable_fields: &[
            SelectableField::at("spec.signerName"),
            SelectableField::at("spec.podName"),
            SelectableField::at("spec.nodeName"),
        ],
        ..Strategy::DEFAULT
    })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/podName"),
        Cell::Text("/spec/serviceAccountName"),
        Cell::Text("/spec/nodeName"),
        Cell::Text("/spec/signerName"),
        Cell::Made(|row| last_condition(row, &["Issued", "Denied", "Failed"], "Pending")),
        Cell::Made(|row| labels::labels(row.at("/spec/unverifiedUserAnnotations"))),
    ]);

fn last_condition(row: &TableRow<'_>, kinds: &[&str], otherwise: &str) -> String {
    let mut conditions = row.list_at("/status/conditions").iter().map(|condition| cell::text(condition, "type"));
    conditions.rfind(|kind| kinds.contains(kind)).unwrap_or(otherwise).to_owned()
}
