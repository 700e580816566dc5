//! The document of version 2 as protobuf, in the messages of gnostic (`openapiv2/OpenAPIv2.proto`).
//!
//! Go clients read the document in no other form: kubectl does whenever it looks up a kind that the documents of version 3 do
//! not describe, for example that of a `List`. The messages follow the JSON closely, so a table of fields is all that the
//! encoder needs to know about each.

use serde_json::{Map, Value};

/// A message: its fields by their names in JSON, and the number of the field that has whatever starts with `x-`.
struct Message {
    fields: &'static [Field],
    extensions: u32,
}

struct Field {
    name: &'static str,
    number: u32,
    form: Form,
}

/// The way in which a JSON value becomes a field.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Texts,
    Bool,
    Integer,
    Number,
    /// A message that has any value as YAML.
    Any,
    Anys,
    Message(&'static Message),
    Messages(&'static Message),
    /// A message whose only field, with this number, has entries of a name and a message.
    Named(u32, &'static Message),
    /// A message whose field 1 is this form: an alternative of a `oneof`, or a list with one element.
    Wrapped(&'static Form),
    /// A schema, or a boolean.
    SchemaOrBool,
    /// One text as a list of texts within a message.
    Types,
    Parameters,
    /// Security requirements: names with lists of texts.
    Requirements,
}

const fn field(name: &'static str, number: u32, form: Form) -> Field {
    Field { name, number, form }
}

static DOCUMENT: Message = Message {
    fields: &[
        field("swagger", 1, Form::Text),
        field("info", 2, Form::Message(&INFO)),
        field("consumes", 6, Form::Texts),
        field("produces", 7, Form::Texts),
        field("paths", 8, Form::Named(2, &PATH)),
        field("definitions", 9, Form::Named(1, &SCHEMA)),
        field("security", 12, Form::Requirements),
        field("securityDefinitions", 13, Form::Named(1, &SECURITY)),
    ],
    extensions: 16,
};

static INFO: Message =
    Message { fields: &[field("title", 1, Form::Text), field("version", 2, Form::Text)], extensions: 7 };

/// The alternative for keys in headers, the only one that Kubernetes uses.
static SECURITY: Message = Message { fields: &[field("", 2, Form::Message(&API_KEY))], extensions: 0 };

static API_KEY: Message = Message {
    fields: &[
        field("type", 1, Form::Text),
        field("name", 2, Form::Text),
        field("in", 3, Form::Text),
        field("description", 4, Form::Text),
    ],
    extensions: 5,
};

static PATH: Message = Message {
    fields: &[
        field("get", 2, Form::Message(&OPERATION)),
        field("put", 3, Form::Message(&OPERATION)),
        field("post", 4, Form::Message(&OPERATION)),
        field("delete", 5, Form::Message(&OPERATION)),
        field("options", 6, Form::Message(&OPERATION)),
        field("head", 7, Form::Message(&OPERATION)),
        field("patch", 8, Form::Message(&OPERATION)),
        field("parameters", 9, Form::Parameters),
    ],
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        field("tags", 1, Form::Texts),
        field("description", 3, Form::Text),
        field("operationId", 5, Form::Text),
        field("produces", 6, Form::Texts),
        field("consumes", 7, Form::Texts),
        field("parameters", 8, Form::Parameters),
        field("responses", 9, Form::Named(1, &RESPONSE)),
        field("schemes", 10, Form::Texts),
        field("deprecated", 11, Form::Bool),
    ],
    extensions: 13,
};

/// The alternative for a response that is no reference.
static RESPONSE: Message = Message { fields: &[field("", 1, Form::Message(&PLAIN_RESPONSE))], extensions: 0 };

static PLAIN_RESPONSE: Message = Message {
    fields: &[field("description", 1, Form::Text), field("schema", 2, Form::Wrapped(&Form::Message(&SCHEMA)))],
    extensions: 5,
};

static BODY: Message = Message {
    fields: &[
        field("description", 1, Form::Text),
        field("name", 2, Form::Text),
        field("in", 3, Form::Text),
        field("required", 4, Form::Bool),
        field("schema", 5, Form::Message(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY: Message = Message {
    fields: &[
        field("required", 1, Form::Bool),
        field("in", 2, Form::Text),
        field("description", 3, Form::Text),
        field("name", 4, Form::Text),
        field("type", 6, Form::Text),
        field("format", 7, Form::Text),
        field("uniqueItems", 20, Form::Bool),
    ],
    extensions: 23,
};

static IN_PATH: Message = Message {
    fields: &[
        field("required", 1, Form::Bool),
        field("in", 2, Form::Text),
        field("description", 3, Form::Text),
        field("name", 4, Form::Text),
        field("type", 5, Form::Text),
        field("format", 6, Form::Text),
        field("uniqueItems", 19, Form::Bool),
    ],
    extensions: 22,
};

static SCHEMA: Message = Message {
    fields: &[
        field("$ref", 1, Form::Text),
        field("format", 2, Form::Text),
        field("title", 3, Form::Text),
        field("description", 4, Form::Text),
        field("default", 5, Form::Any),
        field("multipleOf", 6, Form::Number),
        field("maximum", 7, Form::Number),
        field("exclusiveMaximum", 8, Form::Bool),
        field("minimum", 9, Form::Number),
        field("exclusiveMinimum", 10, Form::Bool),
        field("maxLength", 11, Form::Integer),
        field("minLength", 12, Form::Integer),
        field("pattern", 13, Form::Text),
        field("maxItems", 14, Form::Integer),
        field("minItems", 15, Form::Integer),
        field("uniqueItems", 16, Form::Bool),
        field("maxProperties", 17, Form::Integer),
        field("minProperties", 18, Form::Integer),
        field("required", 19, Form::Texts),
        field("enum", 20, Form::Anys),
        field("additionalProperties", 21, Form::SchemaOrBool),
        field("type", 22, Form::Types),
        field("items", 23, Form::Wrapped(&Form::Message(&SCHEMA))),
        field("allOf", 24, Form::Messages(&SCHEMA)),
        field("properties", 25, Form::Named(1, &SCHEMA)),
        field("readOnly", 27, Form::Bool),
        field("example", 30, Form::Any),
    ],
    extensions: 31,
};

/// Returns a document of version 2 as protobuf.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 << 20);
    if let Value::Object(document) = document {
        DOCUMENT.write(document, &mut bytes);
    }
    bytes
}

// === impl Message ===

impl Message {
    fn write(&self, object: &Map<String, Value>, bytes: &mut Vec<u8>) {
        for field in self.fields {
            // A field without a name is the alternative that the whole object is.
            if let (true, Form::Message(message)) = (field.name.is_empty(), field.form) {
                nested(field.number, bytes, |bytes| message.write(object, bytes));
            } else if let Some(value) = object.get(field.name) {
                field.form.write(field.number, value, bytes);
            }
        }
        for (name, value) in object.iter().filter(|(name, _)| self.extensions > 0 && name.starts_with("x-")) {
            nested(self.extensions, bytes, |bytes| {
                text(1, name, bytes);
                Form::Any.write(2, value, bytes);
            });
        }
    }
}

// === impl Form ===

impl Form {
    fn write(self, number: u32, value: &Value, bytes: &mut Vec<u8>) {
        match (self, value) {
            (Self::Text, Value::String(value)) => text(number, value, bytes),
            (Self::Texts, Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).for_each(|value| text(number, value, bytes));
            }
            (Self::Bool, Value::Bool(value)) => {
                varint(u64::from(number) << 3, bytes);
                varint(u64::from(*value), bytes);
            }
            (Self::Integer, Value::Number(value)) => {
                varint(u64::from(number) << 3, bytes);
                varint(value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned)).unwrap_or_default(), bytes);
            }
            (Self::Number, Value::Number(value)) => {
                varint(u64::from(number) << 3 | 1, bytes);
                bytes.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
            }
            // Every JSON text is a YAML text.
            (Self::Any, value) => nested(number, bytes, |bytes| text(2, &format!("{value}\n"), bytes)),
            (Self::Anys, Value::Array(values)) => {
                values.iter().for_each(|value| Self::Any.write(number, value, bytes));
            }
            (Self::Message(message), Value::Object(object)) => {
                nested(number, bytes, |bytes| message.write(object, bytes));
            }
            (Self::Messages(message), Value::Array(values)) => {
                values.iter().for_each(|value| Self::Message(message).write(number, value, bytes));
            }
            (Self::Named(inner, message), Value::Object(entries)) => nested(number, bytes, |bytes| {
                for (name, value) in entries {
                    nested(inner, bytes, |bytes| {
                        text(1, name, bytes);
                        Self::Message(message).write(2, value, bytes);
                    });
                }
            }),
            (Self::Wrapped(form), value) => nested(number, bytes, |bytes| form.write(1, value, bytes)),
            (Self::SchemaOrBool, Value::Bool(_)) => nested(number, bytes, |bytes| Self::Bool.write(2, value, bytes)),
            (Self::SchemaOrBool, value) => {
                nested(number, bytes, |bytes| Self::Message(&SCHEMA).write(1, value, bytes));
            }
            (Self::Types, Value::String(value)) => nested(number, bytes, |bytes| text(1, value, bytes)),
            (Self::Types, value) => nested(number, bytes, |bytes| Self::Texts.write(1, value, bytes)),
            (Self::Parameters, Value::Array(values)) => {
                values.iter().for_each(|value| nested(number, bytes, |bytes| parameter(value, bytes)));
            }
            (Self::Requirements, Value::Array(values)) => {
                values.iter().filter_map(Value::as_object).for_each(|value| requirement(number, value, bytes));
            }
            // What has another type than OpenAPI gives it is left out.
            _ => {}
        }
    }
}

/// Writes the alternatives of a parameter, from the outermost: no reference; in the body or not; where else.
fn parameter(value: &Value, bytes: &mut Vec<u8>) {
    nested(1, bytes, |bytes| match value["in"].as_str() {
        Some("body") => Form::Message(&BODY).write(1, value, bytes),
        Some("path") => nested(2, bytes, |bytes| Form::Message(&IN_PATH).write(4, value, bytes)),
        _ => nested(2, bytes, |bytes| Form::Message(&QUERY).write(3, value, bytes)),
    });
}

fn requirement(number: u32, names: &Map<String, Value>, bytes: &mut Vec<u8>) {
    nested(number, bytes, |bytes| {
        for (name, scopes) in names {
            nested(1, bytes, |bytes| {
                text(1, name, bytes);
                nested(2, bytes, |bytes| Form::Texts.write(1, scopes, bytes));
            });
        }
    });
}

/// Writes a field with a length: the content first, to know it.
fn nested(number: u32, bytes: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    content(&mut inner);
    delimited(number, &inner, bytes);
}

fn text(number: u32, text: &str, bytes: &mut Vec<u8>) {
    delimited(number, text.as_bytes(), bytes);
}

fn delimited(number: u32, content: &[u8], bytes: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 2, bytes);
    varint(content.len() as u64, bytes);
    bytes.extend_from_slice(content);
}

fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 0x80")]
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::encode;

    #[test]
    fn a_document_has_the_bytes_that_gnostic_writes() {
        // By hand, after the numbers in OpenAPIv2.proto.
        let document = json!({"swagger": "2.0", "definitions": {"a.B": {"type": "object", "x-k": [1]}}});
        let schema =
            [&[0xb2, 1, 8, 0x0a, 6][..], b"object", &[0xfa, 1, 13, 0x0a, 3], b"x-k", &[0x12, 6, 0x12, 4], b"[1]\n"]
                .concat();
        let named = [&[0x0a, 3][..], b"a.B", &[0x12, u8::try_from(schema.len()).unwrap()], &schema].concat();
        let definitions = [&[0x0a, u8::try_from(named.len()).unwrap()][..], &named].concat();
        let want = [&[0x0a, 3][..], b"2.0", &[0x4a, u8::try_from(definitions.len()).unwrap()], &definitions].concat();
        assert_eq!(encode(&document), want);
    }

    #[test]
    fn a_parameter_is_wrapped_in_its_alternatives() {
        let parameter = json!({"name": "p", "in": "path", "required": true});
        let document = json!({"paths": {"/a": {"parameters": [parameter]}}});
        let path_parameter = [&[8, 1, 0x12, 4][..], b"path", &[0x22, 1, b'p']].concat();
        let mut want = path_parameter;
        // Path parameter, no body, no reference, parameters of a path.
        for tag in [0x22, 0x12, 0x0a, 0x4a] {
            want = [&[tag, u8::try_from(want.len()).unwrap()][..], &want].concat();
        }
        want = [&[0x0a, 2][..], b"/a", &[0x12, u8::try_from(want.len()).unwrap()], &want].concat();
        for tag in [0x12, 0x42] {
            want = [&[tag, u8::try_from(want.len()).unwrap()][..], &want].concat();
        }
        assert_eq!(encode(&document), want);
    }
}
