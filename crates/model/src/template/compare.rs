//! Whether two pod specs describe the same pod.
//!
//! Follows what `apiequality.Semantic.DeepEqual` makes of Go's types, which the Deployment controller of Kubernetes 1.37.1
//! compares templates with. `data/pod-spec-fields.tsv` holds those types, because JSON alone does not contain them:
//!
//! 1. A field that is no pointer may as well be absent as be empty: `""`, `0`, `false`, a struct of such fields.
//! 2. A field that is a pointer (`*` in the table) says something by being there: `automountServiceAccountToken: false`, an
//!    `emptyDir` or a label selector without anything in it, a storage class without a name.
//! 3. A list or map may as well be absent as be empty. The entries of a map count by key *and* value: `worker: ""` is an
//!    entry.
//! 4. Quantities are equal by value. The order of fields does not count; that of lists does.
//! 5. Of a field that is newer than the table, only `null` and an empty list are as good as absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};
use steersman_base::Quantity;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// Whether its presence has a meaning.
    is_pointer: bool,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Text, number, or whether something is so.
    Plain,
    Quantity,
    Struct(&'static str),
    List(&'static str),
    Map(&'static str),
    /// Something that is newer than the table.
    Unknown,
}

/// Fields by struct and name.
type Fields = BTreeMap<(&'static str, &'static str), &'static str>;

static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let rows = include_str!("../../data/pod-spec-fields.tsv").lines().skip(1);
    rows.filter_map(|row| {
        let mut columns = row.split('\t');
        Some(((columns.next()?, columns.next()?), columns.next()?))
    })
    .collect()
});

/// The kind of all that is in an object that is newer than the table.
const UNKNOWN: Kind = Kind { is_pointer: true, what: What::Unknown };

/// Whether two JSON texts of a pod's spec describe the same pod.
pub(super) fn same_spec(left: &str, right: &str) -> bool {
    let parse = |text: &str| if text.is_empty() { Ok(Value::Null) } else { serde_json::from_str(text) };
    match (parse(left), parse(right)) {
        (Ok(left), Ok(right)) => same(Kind::named("PodSpec"), &left, &right),
        _ => left == right,
    }
}

fn same(kind: Kind, left: &Value, right: &Value) -> bool {
    let absent = (is_absent(kind, left), is_absent(kind, right));
    if absent.0 || absent.1 {
        return absent.0 && absent.1;
    }
    match (kind.what, left, right) {
        (What::Struct(name), Value::Object(left), Value::Object(right)) => {
            same_entries(left, right, |field| Kind::of_field(name, field), Entries::Fields)
        }
        (What::Map(of), Value::Object(left), Value::Object(right)) => {
            same_entries(left, right, |_| Kind::named(of), Entries::Counted)
        }
        (What::Unknown, Value::Object(left), Value::Object(right)) => {
            same_entries(left, right, |_| UNKNOWN, Entries::Fields)
        }
        (What::List(of), Value::Array(left), Value::Array(right)) => same_items(Kind::named(of), left, right),
        (What::Unknown, Value::Array(left), Value::Array(right)) => same_items(UNKNOWN, left, right),
        (What::Quantity, left, right) => left == right || same_quantity(left, right),
        (_, left, right) => left == right,
    }
}

/// The meaning of an absent entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entries {
    /// The same as one that is empty.
    Fields,
    /// Something of its own: it is a map.
    Counted,
}

fn same_entries(
    left: &Map<String, Value>,
    right: &Map<String, Value>,
    kind: impl Fn(&str) -> Kind,
    entries: Entries,
) -> bool {
    if entries == Entries::Counted && !left.keys().all(|key| right.contains_key(key)) {
        return false;
    }
    if entries == Entries::Counted && left.len() != right.len() {
        return false;
    }
    let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let field = |object: &Map<String, Value>, key: &str| object.get(key).cloned().unwrap_or(Value::Null);
    keys.into_iter().all(|key| match (left.get(key), right.get(key)) {
        (Some(left), Some(right)) => same(kind(key), left, right),
        _ => same(kind(key), &field(left, key), &field(right, key)),
    })
}

fn same_items(kind: Kind, left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(kind, left, right))
}

/// Whether a value means the same as an absent one.
fn is_absent(kind: Kind, value: &Value) -> bool {
    match (kind.what, value) {
        (_, Value::Null) => true,
        (What::List(_) | What::Unknown, Value::Array(list)) => list.is_empty(),
        (What::Map(_), Value::Object(map)) => map.is_empty(),
        _ if kind.is_pointer => false,
        (What::Plain, Value::String(text)) => text.is_empty(),
        (What::Plain, Value::Bool(is_so)) => !is_so,
        (What::Plain, Value::Number(number)) => number.as_i64() == Some(0),
        (What::Quantity, value) => same_quantity(value, &Value::from("0")),
        (What::Struct(name), Value::Object(object)) => {
            object.iter().all(|(field, value)| is_absent(Kind::of_field(name, field), value))
        }
        _ => false,
    }
}

fn same_quantity(left: &Value, right: &Value) -> bool {
    let parse = |value: &Value| -> Option<Quantity> {
        match value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    };
    matches!((parse(left), parse(right)), (Some(left), Some(right)) if left == right)
}

// === impl Kind ===

impl Kind {
    fn of_field(of: &'static str, field: &str) -> Self {
        // The table lives as long as the program, so a shorter key finds what is in it.
        FIELDS.get(&(of, field)).map_or(UNKNOWN, |kind| Self::named(kind))
    }

    /// As the table writes it: `*bool`, `list<Container>`, `map<quantity>`.
    fn named(text: &'static str) -> Self {
        let (is_pointer, text) = text.strip_prefix('*').map_or((false, text), |text| (true, text));
        let inner = |of: &str| text.strip_prefix(of).and_then(|rest| rest.strip_suffix('>'));
        let what = match (inner("list<"), inner("map<"), text) {
            (Some(of), _, _) => What::List(of),
            (_, Some(of), _) => What::Map(of),
            (_, _, "string" | "bool" | "int" | "intstr" | "time") => What::Plain,
            (_, _, "quantity") => What::Quantity,
            (_, _, "any") => What::Unknown,
            (_, _, name) => What::Struct(name),
        };
        Self { is_pointer, what }
    }
}

#[cfg(test)]
mod tests;
