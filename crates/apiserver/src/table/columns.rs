//! The columns of each resource: a line of `data/table-columns.tsv` is `group/version/resource`, a tab, and the column
//! definitions as JSON.

use serde_json::{Value, json};

const FACTS: &str = include_str!("../../data/table-columns.tsv");

/// Returns the column definitions of a built-in resource.
pub(super) fn of(group: &str, version: &str, resource: &str) -> Option<Value> {
    let columns = FACTS.lines().find_map(|line| {
        let (key, columns) = line.split_once('\t')?;
        let mut parts = key.split('/');
        let is_it = [group, version, resource].iter().all(|part| parts.next() == Some(part));
        is_it.then_some(columns)
    })?;
    serde_json::from_str(columns).ok()
}

/// Returns the columns of a custom resource that declares none.
pub(super) fn custom() -> Value {
    json!([
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "Age", "type": "date", "format": "", "description": "", "priority": 0},
    ])
}
