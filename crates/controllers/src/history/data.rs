//! Pure: the data of a revision as Go writes it, and its hash.
//!
//! Go encodes the object, decodes it as a map and encodes that: fields are sorted, numbers have passed through a float,
//! and `<`, `>`, `&` and two line separators are escaped.

use std::fmt::Write as _;

use serde_json::{Number, Value, json};
use steersman_model::template::Template;

/// Letters and digits that form no words: upstream's.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The bytes of an owner's name that the name of its revision has at most.
const PREFIX_MAX: usize = 223;
/// Beyond this, not every whole number is a float.
const EXACT_MAX: u64 = 1 << 53;

/// Returns the patch that restores a template.
pub(crate) fn patch(template: &Template) -> String {
    let metadata = template.metadata_json();
    // What the API server has accepted is JSON.
    let spec: Value = serde_json::from_str(template.spec().as_str()).unwrap_or_default();
    let template = json!({ "$patch": "replace", "metadata": metadata, "spec": spec });
    let mut text = String::new();
    write(&mut text, &json!({ "spec": { "template": template } }));
    text
}

/// Whether two patches are the same: byte for byte, or in what they say. A server may write an escaped letter as itself.
pub(crate) fn is_same(left: &str, right: &str) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    left == right || parsed(left).is_some_and(|left| parsed(right) == Some(left))
}

/// Returns the hash of a patch, as upstream's `HashControllerRevision`.
pub(crate) fn hash(data: &str, collisions: i32) -> String {
    let probe = collisions.to_string();
    // FNV-1 of 32 bits.
    let sum = data
        .bytes()
        .chain(probe.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    let letter = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    sum.to_string().bytes().map(letter).collect()
}

/// Returns the name of an owner's revision with this hash.
pub(crate) fn name(owner: &str, hash: &str) -> String {
    format!("{}-{hash}", owner.get(..PREFIX_MAX).unwrap_or(owner))
}

fn write(text: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_text(text, name);
                text.push(':');
                write(text, value);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(text, item);
            }
            text.push(']');
        }
        Value::String(string) => write_text(text, string),
        Value::Number(number) => write_number(text, number),
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
    }
}

fn write_number(text: &mut String, number: &Number) {
    let is_exact = number.as_i64().is_some_and(|whole| whole.unsigned_abs() <= EXACT_MAX);
    // Writing to a string cannot fail. Both languages write the shortest digits that make the same float.
    let _ = match number.as_f64() {
        Some(float) if !is_exact => write!(text, "{float}"),
        _ => write!(text, "{number}"),
    };
}

fn write_text(text: &mut String, string: &str) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            _ => text.push(letter),
        }
    }
    text.push('"');
}
