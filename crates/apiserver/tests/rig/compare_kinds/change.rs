//! Changes of objects: which field, and what it becomes.

use serde_json::{Value, json};

/// A field by its JSON pointer, and its new value; none removes it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) pointer: String,
    pub(crate) value: Option<Value>,
}

impl Change {
    pub(crate) fn set(pointer: &str, value: Value) -> Self {
        Self { pointer: pointer.to_owned(), value: Some(value) }
    }

    /// Makes the change, and the maps on the way to it. What cannot be reached stays as it is.
    pub(crate) fn apply(&self, object: &mut Value) {
        let Some((parent, name)) = self.pointer.rsplit_once('/') else { return };
        let name = name.replace("~1", "/").replace("~0", "~");
        if self.value.is_some() {
            make_maps(object, parent);
        }
        match (object.pointer_mut(parent), &self.value) {
            (Some(Value::Object(map)), Some(value)) => {
                map.insert(name, value.clone());
            }
            (Some(Value::Object(map)), None) => {
                map.remove(&name);
            }
            (Some(Value::Array(items)), value) => {
                let Some(at) = name.parse().ok().filter(|at: &usize| *at < items.len()) else { return };
                match value {
                    Some(value) => items[at] = value.clone(),
                    None => drop(items.remove(at)),
                }
            }
            _ => {}
        }
    }

    /// A merge patch that makes the change in an object like this one: lists are sent whole.
    pub(crate) fn merge_patch(&self, like: &Value) -> Value {
        let mut changed = like.clone();
        self.apply(&mut changed);
        let mut names: Vec<&str> = self.pointer.split('/').skip(1).collect();
        let mut value = like;
        for (at, name) in names.iter().enumerate() {
            if value.is_array() {
                names.truncate(at);
                break;
            }
            value = value.get(name.replace("~1", "/")).unwrap_or(&Value::Null);
        }
        let pointer: String = names.iter().map(|name| format!("/{name}")).collect();
        let new = changed.pointer(&pointer).cloned().unwrap_or(Value::Null);
        let mut patch = json!({});
        Self::set(&pointer, new).apply(&mut patch);
        patch
    }

    /// A JSON patch that makes the change.
    pub(crate) fn json_patch(&self) -> Value {
        match &self.value {
            Some(value) => json!([{"op": "add", "path": self.pointer, "value": value}]),
            None => json!([{"op": "remove", "path": self.pointer}]),
        }
    }
}

fn make_maps(object: &mut Value, pointer: &str) {
    let mut held = object;
    for name in pointer.split('/').skip(1) {
        let Value::Object(map) = held else { return };
        held = map.entry(name.replace("~1", "/").replace("~0", "~")).or_insert_with(|| json!({}));
    }
}

/// A change of some field of an object that is likely to be refused.
pub(crate) fn bad(object: &Value, random: &mut fastrand::Rng) -> Change {
    let (pointer, value) = pick(object, random);
    if random.u8(..100) < 15 {
        return Change { pointer, value: None };
    }
    let long = "x".repeat(300);
    let values = match value {
        Value::String(_) => vec![
            json!(""),
            json!("Bad Value!"),
            json!(long),
            json!(5),
            json!("-1"),
            json!("UPPER"),
            json!({"a": 1}),
            json!(["a"]),
            json!(true),
            Value::Null,
        ],
        Value::Number(_) => vec![
            json!(-1),
            json!(0),
            json!(70_000),
            json!(i64::from(i32::MAX) + 1),
            json!(u64::MAX),
            json!("text"),
            json!(1.5),
            json!({}),
            Value::Null,
        ],
        Value::Bool(_) => vec![json!("yes"), json!(1), json!({}), Value::Null],
        Value::Array(items) => {
            let twice: Vec<&Value> = items.iter().chain(items.first()).collect();
            vec![json!(twice), json!([]), json!("text"), json!([null]), json!([{}]), json!({}), json!([5])]
        }
        Value::Object(map) => {
            let mut odd = map.clone();
            odd.insert("Bad Key!".to_owned(), json!("v"));
            vec![json!(odd), json!({}), json!("text"), json!([]), json!(5), Value::Null]
        }
        Value::Null => vec![json!({}), json!("text")],
    };
    let value = values[random.usize(..values.len())].clone();
    Change { pointer, value: Some(value) }
}

/// A change of some field of an object that may well be accepted.
pub(crate) fn good(object: &Value, random: &mut fastrand::Rng) -> Change {
    let (pointer, value) = pick(object, random);
    if random.u8(..100) < 25 {
        return Change { pointer, value: None };
    }
    let value = match value {
        Value::String(text) if random.bool() => json!(format!("{text}x")),
        Value::String(_) => json!("other"),
        Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
        Value::Bool(held) => json!(!held),
        Value::Array(items) => json!(items.iter().rev().collect::<Vec<_>>()),
        Value::Object(map) if map.values().all(Value::is_string) => {
            let mut more = map.clone();
            more.insert("other".to_owned(), json!("v"));
            json!(more)
        }
        other => other.clone(),
    };
    Change { pointer, value: Some(value) }
}

/// One of the fields of an object, at any depth, but not what says which object it is.
fn pick<'a>(object: &'a Value, random: &mut fastrand::Rng) -> (String, &'a Value) {
    let mut fields = Vec::new();
    collect(object, "", &mut fields);
    fields.retain(|(pointer, _)| !["/apiVersion", "/kind", "/metadata", "/metadata/name"].contains(&pointer.as_str()));
    fields.swap_remove(random.usize(..fields.len()))
}

fn collect<'a>(value: &'a Value, pointer: &str, fields: &mut Vec<(String, &'a Value)>) {
    let mut add = |name: &str, value: &'a Value| {
        let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        fields.push((pointer.clone(), value));
        collect(value, &pointer, fields);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| add(&at.to_string(), value)),
        _ => {}
    }
}
