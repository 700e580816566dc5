//! Objects in which every field is set, made from the table of field numbers.

use serde_json::{Map, Value, json};

use super::protobuf::{Field, Label, fields_of};

/// Messages of which one field is set at a time. A list of what holds them gets one element for each.
const UNIONS: [&str; 2] = ["core.v1.VolumeSource", "core.v1.ContainerState"];

/// Deeper messages stay empty. Nothing that a view reads is so deep.
const DEPTH_MAX: usize = 16;

/// An object of the message of this name, such as `core.v1.Pod`, in which every field is set: each text and number
/// differs from all others, so that no two fields can be taken for each other.
#[must_use]
pub fn every_field(message: &str) -> Value {
    Maker { count: 0 }.object(message, 0)
}

struct Maker {
    count: i64,
}

impl Maker {
    fn object(&mut self, message: &str, depth: usize) -> Value {
        self.object_with(message, None, depth)
    }

    /// An object; of a union that it holds, only the given member is set.
    fn object_with(&mut self, message: &str, member: Option<&str>, depth: usize) -> Value {
        let mut object = Map::new();
        if depth < DEPTH_MAX {
            self.fill(message, member, &mut object, depth);
        }
        Value::Object(object)
    }

    fn fill(&mut self, message: &str, member: Option<&str>, object: &mut Map<String, Value>, depth: usize) {
        for field in fields_of(message) {
            if UNIONS.contains(&message) && member.is_some_and(|member| member != field.name) {
                continue;
            }
            match field.label {
                Label::Inline => self.fill(field.type_name, member, object, depth + 1),
                _ if UNIONS.contains(&field.type_name) => {
                    object.insert(field.name.to_owned(), self.object_with(field.type_name, member, depth + 1));
                }
                _ => {
                    object.insert(field.name.to_owned(), self.field(field, depth));
                }
            }
        }
    }

    fn field(&mut self, field: &Field, depth: usize) -> Value {
        match field.label {
            Label::Optional | Label::Inline => self.value(field, depth),
            Label::Map => {
                let mut entry = || (self.text("key"), self.value(field, depth));
                Value::Object([entry(), entry()].into_iter().collect())
            }
            Label::Repeated => {
                let union = fields_of_message(field.type_name)
                    .iter()
                    .find_map(|inner| UNIONS.iter().find(|union| **union == inner.type_name));
                match union {
                    None => json!([self.value(field, depth), self.value(field, depth)]),
                    Some(union) => fields_of(union)
                        .iter()
                        .map(|member| self.object_with(field.type_name, Some(member.name), depth + 1))
                        .collect(),
                }
            }
        }
    }

    fn value(&mut self, field: &Field, depth: usize) -> Value {
        self.count += 1;
        match field.type_name {
            "string" if field.name == "status" => json!(["True", "False"][self.count as usize % 2]),
            "string" => self.text(field.name).into(),
            "bool" => true.into(),
            "int32" | "int64" => self.count.into(),
            "meta.v1.Time" => steersman_base::Time::from_unix(1_700_000_000 + self.count).to_string().into(),
            "meta.v1.MicroTime" => {
                let micros = 1_700_000_000_000_000 + self.count;
                steersman_base::MicroTime::from_unix_micros(micros).to_string().into()
            }
            "resource.Quantity" => format!("{}m", self.count * 10 + 1).into(),
            "intstr.IntOrString" if self.count % 2 == 0 => self.count.into(),
            "intstr.IntOrString" => self.text("port").into(),
            "meta.v1.FieldsV1" => json!({"f:metadata": {"f:labels": {}}}),
            message => self.object(message, depth + 1),
        }
    }

    fn text(&mut self, name: &str) -> String {
        self.count += 1;
        format!("{name}-{}", self.count)
    }
}

fn fields_of_message(type_name: &str) -> &'static [Field] {
    if type_name.contains('.') { fields_of(type_name) } else { &[] }
}
