//! Tables: what `kubectl get` prints.
//!
//! The columns of every resource are data (`data/table-columns.tsv`); the cells of a kind are in its file, as the [`Printer`]
//! of its rule set. A kind without cells shows its name and when it was created, a custom resource its name and the columns
//! that its definition declares, or its age.
//!
//! Follows `pkg/printers/internalversion` of Kubernetes 1.37; wide columns are always there, clients hide them.

pub(crate) mod cell;
mod columns;
mod declared;
pub(crate) mod duration;
pub(crate) mod labels;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use steersman_base::{Resource, Time};

pub(crate) use cell::{Cell, TableRow};

/// `includeObject` of a table request: what each row carries besides its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    /// `None`
    None,
    /// `Metadata`, the default: a `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// `Object`
    Object,
}

/// The columns and cells of a kind in tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    /// The cells of a row, one for each column.
    pub(crate) cells: Option<&'static [Cell]>,
    /// Returns the conditions of a row, by which clients hide it.
    pub(crate) conditions: fn(&Value) -> Option<Value>,
    /// An annotation that rows do not carry.
    pub(crate) hidden_annotation: Option<&'static str>,
}

/// The cells of kinds that have none of their own.
const CREATED: &[Cell] = &[Cell::Name, Cell::Text("/metadata/creationTimestamp")];
/// The cells of custom resources.
const CUSTOM: &[Cell] = &[Cell::Name, Cell::Age];

/// Returns the table of these objects. `declared` are the columns of a custom resource's definition, `metadata` is that of the list, or of the object if it is a single one.
#[must_use]
pub(crate) fn render(
    resource: &Resource,
    printer: &Printer,
    declared: &[Value],
    objects: &[&Value],
    metadata: &Value,
    include: IncludeObject,
    now: Time,
) -> Value {
    let columns = columns::of(&resource.group, &resource.version, &resource.plural);
    let cells = printer.cells.unwrap_or(if columns.is_some() { CREATED } else { CUSTOM });
    // The metadata of a list has no name.
    let list = if metadata.get("name").is_none() { objects } else { &[] };
    let rows = objects.iter().map(|object| {
        let row = TableRow { object, list, now };
        let mut rendered = Map::new();
        let shown = match declared {
            [] => cells.iter().map(|cell| cell.render(&row)).collect(),
            columns => declared::cells(columns, object, now),
        };
        rendered.insert("cells".to_owned(), shown);
        if let Some(conditions) = (printer.conditions)(object) {
            rendered.insert("conditions".to_owned(), conditions);
        }
        let mut included = included(object, include);
        if let Some(annotation) = printer.hidden_annotation {
            hide_annotation(&mut included, annotation);
        }
        rendered.insert("object".to_owned(), included);
        Value::Object(rendered)
    });
    let rows: Vec<Value> = rows.collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": table_metadata(metadata),
        "columnDefinitions": match declared {
            [] => columns.unwrap_or_else(columns::custom),
            declared => declared::definitions(declared),
        },
        "rows": rows,
    })
}

/// Returns the object of a row.
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

fn hide_annotation(object: &mut Value, annotation: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.remove(annotation);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn table_metadata(metadata: &Value) -> Value {
    let kept = ["resourceVersion", "continue", "remainingItemCount"];
    kept.iter().filter_map(|name| Some(((*name).to_owned(), metadata.get(name)?.clone()))).collect::<Map<_, _>>().into()
}

// === impl Printer ===

impl Printer {
    /// The printer of a kind about which nothing is special.
    pub(crate) const DEFAULT: Self = Self { cells: None, conditions: |_| None, hidden_annotation: None };
}
