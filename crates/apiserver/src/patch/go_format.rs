//! Values as Go's `%v` prints them, because upstream prints maps into its messages.

use serde_json::Value;

/// `map[a:1 b:[x y] c:<nil>]`
pub(super) fn value(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    text
}

fn write(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(value) => text.push_str(value),
        Value::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                write(text, element);
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push_str("map[");
            for (index, (key, entry)) in entries.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(key);
                text.push(':');
                write(text, entry);
            }
            text.push(']');
        }
    }
}
