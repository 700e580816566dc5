//! Objects as upstream's error messages show them: the JSON of its internal Go structs.
//!
//! Where a whole struct is the bad value (an immutable pod template, say), upstream prints the fields by their Go names, in
//! their Go order, and all of them. `data/go-structs.tsv` lists them per struct, as `GoName:jsonName:type` with the types
//! `s` string, `t` boolean, `n` number, `*T` pointer, `[T` list, `{T` map, `=T` what prints itself, `vT` what has JSON
//! names already, or the name of another struct.

mod diff;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::Value;

use super::meta::META_FIELDS;
use crate::field::Shown;

/// A field of a struct.
struct Field {
    name: &'static str,
    json: &'static str,
    kind: &'static str,
}

/// JSON that keeps the order of its fields.
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

static STRUCTS: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let field = |text: &'static str| {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().unwrap_or_default();
        Field { name: next(), json: next(), kind: next() }
    };
    let lines = include_str!("../../../data/go-structs.tsv").lines();
    lines
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, fields)| (name, fields.split(' ').map(field).collect()))
        .collect()
});

/// Shows a value as the Go struct of this name.
pub(crate) fn show(name: &str, value: &Value) -> Shown {
    let mut text = String::new();
    tree(name, value).compact(&mut text);
    Shown::Text(text)
}

/// Returns the difference between two values, as the Go struct of this name: upstream's `diff.Diff`.
pub(crate) fn difference(name: &str, old: &Value, new: &Value) -> String {
    let lines = |value: &Value| {
        let mut text = String::new();
        tree(name, value).pretty(0, &mut text);
        text
    };
    diff::unified(&lines(old), &lines(new))
}

fn tree(kind: &str, value: &Value) -> Tree {
    if let Some(kind) = kind.strip_prefix('*') {
        return if value.is_null() { Tree::null() } else { tree(kind, value) };
    }
    if let Some(kind) = kind.strip_prefix('[') {
        let items = value.as_array().filter(|items| !items.is_empty());
        return items.map_or_else(Tree::null, |items| Tree::List(items.iter().map(|item| tree(kind, item)).collect()));
    }
    if let Some(kind) = kind.strip_prefix('{') {
        let entries = value.as_object().filter(|map| !map.is_empty()).map(|_| super::json::entries(value));
        return entries.map_or_else(Tree::null, |entries| {
            Tree::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), tree(kind, value))).collect())
        });
    }
    match kind {
        "s" | "b" => Tree::Leaf(quoted(value.as_str().unwrap_or_default())),
        "t" => Tree::Leaf(value.as_bool().unwrap_or_default().to_string()),
        "n" => Tree::Leaf(value.as_number().map_or_else(|| "0".to_owned(), ToString::to_string)),
        "=Quantity" if value.is_null() => Tree::Leaf(quoted("0")),
        "=IntOrString" if value.is_null() => Tree::Leaf("0".to_owned()),
        "vLabelSelector" => Tree::Object(named(value, &["matchLabels", "matchExpressions"])),
        "vObjectMeta" => Tree::Object(named(value, &META_FIELDS)),
        kind if kind.starts_with(['=', 'v']) => plain(value),
        kind => match STRUCTS.get(kind) {
            Some(fields) => structure(fields, value),
            None => plain(value),
        },
    }
}

fn structure(fields: &[Field], value: &Value) -> Tree {
    let mut out = Vec::new();
    for field in fields {
        if field.kind == "vObjectMeta" {
            // Embedded without a name: its fields stand among the others.
            out.extend(named(&value[field.json], &META_FIELDS));
        } else {
            out.push((field.name.to_owned(), tree(field.kind, &value[field.json])));
        }
    }
    Tree::Object(out)
}

/// The fields that have JSON names, in this order; others are left out.
fn named(value: &Value, fields: &[&str]) -> Vec<(String, Tree)> {
    let there = fields.iter().filter(|field| !super::json::is_empty(&value[**field]));
    there.map(|field| ((*field).to_owned(), plain(&value[*field]))).collect()
}

fn plain(value: &Value) -> Tree {
    match value {
        Value::Array(items) => Tree::List(items.iter().map(plain).collect()),
        Value::Object(_) => {
            let entries = super::json::entries(value).into_iter();
            Tree::Object(entries.map(|(key, value)| (key.to_owned(), plain(value))).collect())
        }
        Value::String(text) => Tree::Leaf(quoted(text)),
        other => Tree::Leaf(other.to_string()),
    }
}

/// A string as Go writes it: safe inside HTML.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

// === impl Tree ===

impl Tree {
    fn null() -> Self {
        Self::Leaf("null".to_owned())
    }

    fn compact(&self, out: &mut String) {
        match self {
            Self::Leaf(text) => out.push_str(text),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    item.compact(out);
                }
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (index, (name, field)) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    let _ = write!(out, "{comma}{}:", quoted(name));
                    field.compact(out);
                }
                out.push('}');
            }
        }
    }

    /// One field a line, indented by a space, as `json.MarshalIndent(…, "", " ")`.
    fn pretty(&self, depth: usize, out: &mut String) {
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        };
        match self {
            Self::Leaf(text) => out.push_str(text),
            Self::List(items) if items.is_empty() => out.push_str("[]"),
            Self::Object(fields) if fields.is_empty() => out.push_str("{}"),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    line(out, depth + 1);
                    item.pretty(depth + 1, out);
                }
                line(out, depth);
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (index, (name, field)) in fields.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    line(out, depth + 1);
                    let _ = write!(out, "{}: ", quoted(name));
                    field.pretty(depth + 1, out);
                }
                line(out, depth);
                out.push('}');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_struct_is_shown_with_all_its_fields_in_their_order() {
        let spec = json!({"maxUnavailable": 1, "minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}});
        let want = r#"{"MinAvailable":1,"Selector":{"matchLabels":{"app":"a"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}"#;
        assert_eq!(show("PodDisruptionBudgetSpec", &spec).to_string(), want);
    }

    #[test]
    fn a_changed_field_is_shown_with_three_lines_around_it() {
        let old = json!({"name": "a"});
        let new = json!({"name": "b"});
        let text = difference("LocalObjectReference", &old, &new);
        assert_eq!(text, "@@ -1,3 +1,3 @@\n {\n- \"Name\": \"a\"\n+ \"Name\": \"b\"\n }\n");
    }
}
