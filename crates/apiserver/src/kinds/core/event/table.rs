//! The cells of Events of both groups, whose fields have different names: `printEvent` of
//! `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use crate::table::{Cell, TableRow};

const UNKNOWN: &str = "<unknown>";

/// The cells of Events.
pub(crate) const CELLS: &[Cell] = &[
    Cell::Made(last_seen),
    Cell::Text("/type"),
    Cell::Text("/reason"),
    Cell::Made(|row| {
        let kind = involved(row, "kind").to_lowercase();
        let name = involved(row, "name");
        if name.is_empty() { kind } else { format!("{kind}/{name}") }
    }),
    Cell::Made(|row| involved(row, "fieldPath").to_owned()),
    Cell::Made(event_source),
    Cell::Made(|row| first(row, &["/message", "/note"]).trim().to_owned()),
    Cell::Made(first_seen),
    Cell::Value(event_count),
    Cell::Name,
];

/// The first text that is there. Events have two APIs with different names for the same fields.
fn first<'a>(row: &TableRow<'a>, paths: &[&str]) -> &'a str {
    paths.iter().map(|path| row.text(path)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn involved<'a>(row: &TableRow<'a>, field: &str) -> &'a str {
    first(row, &[&format!("/involvedObject/{field}"), &format!("/regarding/{field}")])
}

fn first_seen(row: &TableRow<'_>) -> String {
    since_first(row, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"])
}

fn last_seen(row: &TableRow<'_>) -> String {
    if row.at("/series").is_some() {
        return row.since("/series/lastObservedTime");
    }
    since_first(
        row,
        &["/lastTimestamp", "/deprecatedLastTimestamp", "/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"],
    )
}

fn since_first(row: &TableRow<'_>, paths: &[&str]) -> String {
    paths.iter().find(|path| row.at(path).is_some()).map_or_else(|| UNKNOWN.to_owned(), |path| row.since(path))
}

fn event_count(row: &TableRow<'_>) -> Value {
    let counts = ["/series/count", "/count", "/deprecatedCount"].map(|path| row.int(path));
    // An event of the new API that happened once has no count.
    let count = if row.at("/series").is_some() { counts[0] } else { counts[1].max(counts[2]).max(1) };
    count.into()
}

fn event_source(row: &TableRow<'_>) -> String {
    let component = first(
        row,
        &["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"],
    );
    match first(row, &["/source/host", "/deprecatedSource/host", "/reportingInstance"]) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
