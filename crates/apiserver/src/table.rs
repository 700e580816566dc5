//! Tables: what `kubectl get` prints.
//!
//! The columns of every resource are data (`data/table-columns.tsv`); what stands in them is a row of cells per
//! resource, one small file per group of kinds. A resource without such a row shows its name and when it was created,
//! a custom resource its name and age.
//!
//! Follows `pkg/printers/internalversion` of Kubernetes 1.37; wide columns are always there, clients hide them.

mod cell;
mod cluster;
mod columns;
mod duration;
mod labels;
mod network;
mod pod;
mod policy;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::{Map, Value, json};
use steersman_base::Time;

pub use duration::human as human_duration;

use crate::table::cell::{Cell, Row};

/// `includeObject` of a table request: what each row carries besides its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// `None`
    None,
    /// `Metadata`, what a request gets that does not say: a `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// `Object`
    Object,
}

/// The rows of cells of one group of kinds, by `group/resource`.
type Kinds = &'static [(&'static str, &'static [Cell])];

/// What all resources that have no row of their own show: with columns in the table, and as custom resources.
const CREATED: &[Cell] = &[Cell::Name, Cell::Text("/metadata/creationTimestamp")];
const CUSTOM: &[Cell] = &[Cell::Name, Cell::Age];

/// The table of these objects. `metadata` is that of the list, or of the object if it is a single one; what a table
/// carries of it is taken over.
#[must_use]
pub fn render(
    group: &str,
    version: &str,
    resource: &str,
    objects: &[&Value],
    metadata: &Value,
    include: IncludeObject,
    now: Time,
) -> Value {
    let columns = columns::of(group, version, resource);
    let cells = cells(group, resource).unwrap_or(if columns.is_some() { CREATED } else { CUSTOM });
    // The metadata of a list has no name.
    let list = if metadata.get("name").is_none() { objects } else { &[] };
    let rows = objects.iter().map(|object| {
        let row = Row { object, list, now };
        let mut rendered = Map::new();
        rendered.insert("cells".to_owned(), cells.iter().map(|cell| cell.render(&row)).collect());
        if let Some(conditions) = pod::row_conditions(group, resource, object) {
            rendered.insert("conditions".to_owned(), conditions);
        }
        rendered.insert("object".to_owned(), included(object, include));
        Value::Object(rendered)
    });
    let rows: Vec<Value> = rows.collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": table_metadata(metadata),
        "columnDefinitions": columns.unwrap_or_else(columns::custom),
        "rows": rows,
    })
}

fn cells(group: &str, resource: &str) -> Option<&'static [Cell]> {
    let kinds: &[Kinds] = &[pod::KINDS, workload::KINDS, network::KINDS, storage::KINDS, cluster::KINDS, policy::KINDS];
    kinds.iter().copied().flatten().find(|(name, _)| name.split_once('/') == Some((group, resource))).map(|row| row.1)
}

/// What a row says about its object.
fn included(object: &Value, include: IncludeObject) -> Value {
    match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_default(),
        }),
    }
}

fn table_metadata(metadata: &Value) -> Value {
    let kept = ["resourceVersion", "continue", "remainingItemCount"];
    kept.iter().filter_map(|name| Some(((*name).to_owned(), metadata.get(name)?.clone()))).collect::<Map<_, _>>().into()
}
