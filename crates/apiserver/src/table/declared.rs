//! Columns that a definition declares (`additionalPrinterColumns`), by paths as kubectl has them.
//!
//! A path is fields, indices, `[*]` and comparisons of one field (`[?(@.type=="Ready")]`); the first value that it finds is
//! shown. Follows `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`.

use serde_json::{Value, json};
use steersman_base::Time;

use super::cell::since;

/// The maximum number of values that a path may find on its way: only the first is shown.
const FOUND_MAX: usize = 1000;

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Items whose field at a path is, or is not, a value.
    Where(Vec<String>, bool, Value),
}

/// Returns the definitions of the columns: the name, and what is declared.
pub(super) fn definitions(columns: &[Value]) -> Value {
    let mut all = vec![json!({"name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0})];
    all.extend(columns.iter().map(|column| {
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        let described = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath")),
            words => words.to_owned(),
        };
        json!({
            "name": text("name"), "type": text("type"), "format": text("format"), "description": described,
            "priority": column["priority"].as_i64().unwrap_or(0),
        })
    }));
    Value::Array(all)
}

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources \
                    may allow a client to request the generation of an appropriate name automatically. Name is primarily \
                    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
                    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Returns the cells of an object.
pub(super) fn cells(columns: &[Value], object: &Value, now: Time) -> Value {
    let name = object["metadata"]["name"].clone();
    let cell = |column: &Value| {
        let path = column["jsonPath"].as_str().unwrap_or_default();
        let found = parse(path).map(|steps| find(&steps, object)).unwrap_or_default();
        found.first().map_or(Value::Null, |value| cell_of(column["type"].as_str().unwrap_or_default(), value, now))
    };
    std::iter::once(name).chain(columns.iter().map(cell)).collect()
}

fn cell_of(kind: &str, value: &Value, now: Time) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            #[expect(clippy::cast_possible_truncation, reason = "as upstream")]
            (None, Some(fraction)) => (fraction as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("string", Value::String(_)) => value.clone(),
        ("string", other) => other.to_string().into(),
        ("date", Value::String(time)) if time.parse::<Time>().is_ok() => since(now, time).into(),
        ("date", Value::String(_)) => "<invalid>".into(),
        _ => Value::Null,
    }
}

fn find<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![object];
    for step in steps {
        let mut next: Vec<&Value> = Vec::new();
        for value in found {
            match step {
                Step::Field(name) => next.extend(value.get(name)),
                Step::Index(at) => next.extend(value.as_array().and_then(|list| {
                    let length = i64::try_from(list.len()).ok()?;
                    list.get(usize::try_from(if *at < 0 { length + at } else { *at }).ok()?)
                })),
                Step::All => match value {
                    Value::Array(list) => next.extend(list),
                    Value::Object(map) => next.extend(map.values()),
                    _ => {}
                },
                Step::Where(path, is_equal, want) => {
                    let holds = |item: &&Value| {
                        let held = path.iter().try_fold(*item, |value, name| value.get(name));
                        held.is_some_and(|held| (held == want) == *is_equal)
                    };
                    next.extend(value.as_array().into_iter().flatten().filter(holds));
                }
            }
            if next.len() > FOUND_MAX {
                break;
            }
        }
        found = next;
    }
    found
}

/// Reads a path; none if it is another kind of path.
fn parse(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = field(after)?;
            match name.as_str() {
                "" if after.is_empty() || after.starts_with('[') => {}
                "" => return None,
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Field(name)),
            }
            rest = after;
            continue;
        }
        let inner = rest.strip_prefix('[')?;
        let end = if inner.starts_with('?') { inner.find(")]").map(|at| at + 1)? } else { inner.find(']')? };
        steps.push(bracket(&inner[..end])?);
        rest = &inner[end + 1..];
    }
    Some(steps)
}

/// A name, in which a point may be escaped, and what follows.
fn field(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return Some((name, &text[at..])),
            '\\' => name.push(chars.next()?.1),
            c => name.push(c),
        }
    }
    Some((name, ""))
}

fn bracket(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(name) = inner.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
        return Some(Step::Field(name.to_owned()));
    }
    let Some(condition) = inner.strip_prefix("?(").and_then(|it| it.strip_suffix(')')) else {
        return inner.parse().ok().map(Step::Index);
    };
    let (left, is_equal, right) = match condition.split_once("==") {
        Some((left, right)) => (left, true, right),
        None => condition.split_once("!=").map(|(left, right)| (left, false, right))?,
    };
    let names = left.trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
    let right = right.trim();
    let quoted = |quote: char| right.strip_prefix(quote).and_then(|it| it.strip_suffix(quote));
    let want = match quoted('"').or_else(|| quoted('\'')) {
        Some(text) => Value::from(text),
        None => serde_json::from_str(right).ok()?,
    };
    Some(Step::Where(names, is_equal, want))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_what_kubectl_would_show() {
        let object = json!({"metadata": {"name": "w", "creationTimestamp": "2026-11-17T12:00:00Z"},
            "spec": {"size": 3, "a.b": "c", "list": [{"n": "x"}, {"n": "y"}]},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]}});
        let now = "2026-11-17T12:05:00Z".parse().expect("a time");
        for (path, kind, want) in [
            (".spec.size", "integer", json!(3)),
            (".spec.size", "string", json!("3")),
            (".spec.size", "boolean", json!(null)),
            (".spec.missing", "string", json!(null)),
            (".spec.a\\.b", "string", json!("c")),
            (".spec['a.b']", "string", json!("c")),
            (".spec.list[1].n", "string", json!("y")),
            (".spec.list[-1].n", "string", json!("y")),
            (".spec.list[*].n", "string", json!("x")),
            (".status.conditions[?(@.type==\"Ready\")].status", "string", json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", "string", json!("True")),
            (".metadata.creationTimestamp", "date", json!("5m")),
            (".metadata.name", "date", json!("<invalid>")),
            ("{bad", "string", json!(null)),
        ] {
            let columns = [json!({"name": "c", "type": kind, "jsonPath": path})];
            assert_eq!(cells(&columns, &object, now), json!(["w", want]), "{path} as {kind}");
        }
    }
}
