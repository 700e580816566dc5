//! IPAddresses.

use crate::kinds::{NameRule, Rules};
use crate::table::{Cell, TableRow, cell};

/// The rules of IPAddresses.
pub(crate) static RULES: Rules =
    Rules::named(NameRule::Subdomain).printed(&[Cell::Name, Cell::Made(parent), Cell::Age]);

fn parent(row: &TableRow<'_>) -> String {
    let Some(parent) = row.at("/spec/parentRef") else { return "<none>".to_owned() };
    let [group, resource, namespace, name] =
        ["group", "resource", "namespace", "name"].map(|field| cell::text(parent, field));
    let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let parts = [resource.to_lowercase(), namespace.to_owned(), name.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}
