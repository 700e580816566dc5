//! APIServices. They are stored, and not proxied to.

use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, cell};

/// The rules of APIServices.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { unconditional_update: false, ..Strategy::DEFAULT })
    .etcd_prefix("apiregistration.k8s.io/apiservices")
    .printed(&[Cell::Name, Cell::Made(service), Cell::Made(available), Cell::Age]);

fn service(row: &TableRow<'_>) -> String {
    row.at("/spec/service").map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}", cell::text(service, "namespace"), cell::text(service, "name")),
    )
}

fn available(row: &TableRow<'_>) -> String {
    let Some(condition) = row.condition("/status/conditions", "Available") else { return "Unknown".to_owned() };
    match (cell::text(condition, "status"), cell::text(condition, "reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
