//! Objects as text, with keys in the order of upstream's Go structs, which is that of the numbers of their protobuf fields.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::table::{Field, Holds, Message, Often, Place, find};
use crate::patch::shown::Reached;

/// Writes a patched object of the kind with this OpenAPI name. Objects that the patch has reached have their keys in alphabetical
/// order, as what Go has parsed into a map, and so has what the patch has brought.
pub(crate) fn text(name: &str, object: &Value, reached: &Reached) -> String {
    let mut writer = Writer { out: String::new(), pointer: String::new(), reached };
    writer.value(object, find(name), Often::Once);
    writer.out
}

struct Writer<'a> {
    out: String,
    pointer: String,
    reached: &'a Reached,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, message: Option<&'static Message>, often: Often) {
        match value {
            Value::Array(items) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.out.push_str(if at == 0 { "" } else { "," });
                    self.inside(&at.to_string(), item, message, Often::Once);
                }
                self.out.push(']');
            }
            Value::Object(map) => {
                self.out.push('{');
                let fields = if often == Often::Map { None } else { message };
                for (at, name) in self.keys(map, fields).into_iter().enumerate() {
                    // Writing to a string does not fail.
                    let _ = write!(self.out, "{}{}:", if at == 0 { "" } else { "," }, Value::from(name));
                    let (inner, inner_often) = match (often, message.and_then(|message| field(message, name))) {
                        (Often::Map, _) => (message, Often::Once),
                        (_, Some(field)) => (of(field), field.often),
                        (_, None) => (None, Often::Once),
                    };
                    self.inside(name, &map[name], inner, inner_often);
                }
                self.out.push('}');
            }
            scalar => {
                let _ = write!(self.out, "{scalar}");
            }
        }
    }

    fn inside(&mut self, name: &str, value: &Value, message: Option<&'static Message>, often: Often) {
        let length = self.pointer.len();
        let _ = write!(self.pointer, "/{}", name.replace('~', "~0").replace('/', "~1"));
        let message = message.filter(|_| !self.reached.sent.contains(&self.pointer));
        self.value(value, message, often);
        self.pointer.truncate(length);
    }

    fn keys<'v>(&self, map: &'v Map<String, Value>, message: Option<&'static Message>) -> Vec<&'v str> {
        let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
        names.sort_unstable();
        if let Some(message) = message.filter(|_| !self.reached.objects.contains(&self.pointer)) {
            let mut order = Vec::new();
            collect(message, &mut order);
            names.sort_by_key(|name| order.iter().position(|known| known == name).unwrap_or(usize::MAX));
        }
        names
    }
}

/// The names of the fields, those of inner messages among them.
fn collect(message: &'static Message, names: &mut Vec<&'static str>) {
    for field in &message.fields {
        match (field.place, of(field)) {
            (Place::Inline, Some(inner)) => collect(inner, names),
            _ => names.push(field.name),
        }
    }
}

fn field(message: &'static Message, name: &str) -> Option<&'static Field> {
    message.fields.iter().find_map(|it| match (it.place, of(it)) {
        (Place::Inline, Some(inner)) => field(inner, name),
        _ => (it.name == name).then_some(it),
    })
}

fn of(field: &Field) -> Option<&'static Message> {
    match field.holds {
        Holds::Message(id) => id.message(),
        _ => None,
    }
}
