//! Pure: JSON values as YAML and as CBOR, as far as `/statusz` and `/flagz` need them.

use serde_json::{Map, Value};

/// RFC 8949, 3.4.6: what follows is CBOR. Upstream puts it before every object.
const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

// RFC 8949, 3.1: the upper three bits of an item's first byte.
const UNSIGNED: u8 = 0 << 5;
const NEGATIVE: u8 = 1 << 5;
const BYTES: u8 = 2 << 5;
const ARRAY: u8 = 4 << 5;
const MAP: u8 = 5 << 5;

const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
const FLOAT_64: u8 = 0xfb;

/// Words that YAML 1.1 does not read as text, in lower case; Go's writers quote them.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

/// Encodes a value as YAML: fields in alphabetical order, lists not indented, as upstream's serializer does.
pub(super) fn yaml(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => yaml_fields(&mut text, fields, 0),
        other => {
            text.push_str(&scalar(other));
            text.push('\n');
        }
    }
    text
}

fn yaml_fields(text: &mut String, fields: &Map<String, Value>, indent: usize) {
    for (name, value) in fields {
        text.extend(std::iter::repeat_n(' ', indent));
        text.push_str(&plain_or_quoted(name));
        text.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                text.push('\n');
                yaml_fields(text, fields, indent + 2);
            }
            // Only texts and numbers: these pages have no other lists.
            Value::Array(items) if !items.is_empty() => {
                text.push('\n');
                for item in items {
                    text.extend(std::iter::repeat_n(' ', indent));
                    text.push_str("- ");
                    text.push_str(&scalar(item));
                    text.push('\n');
                }
            }
            other => {
                text.push(' ');
                text.push_str(&scalar(other));
                text.push('\n');
            }
        }
    }
}

/// Encodes a value in one line. JSON is YAML, so values other than text stay as they are.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => plain_or_quoted(text),
        other => other.to_string(),
    }
}

/// Returns the text without quotes, where no reader could take it for anything else.
fn plain_or_quoted(text: &str) -> String {
    let begins_plainly = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    let is_word = WORDS.contains(&text.to_ascii_lowercase().as_str());
    if begins_plainly && text.bytes().all(is_plain) && !is_word {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

/// Encodes a value as self-described CBOR, in the deterministic form of RFC 8949, 4.2.1. Texts are byte strings, as in
/// upstream.
pub(super) fn cbor(value: &Value) -> Vec<u8> {
    let mut bytes = SELF_DESCRIBED.to_vec();
    cbor_item(&mut bytes, value);
    bytes
}

fn cbor_item(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(NULL),
        Value::Bool(value) => bytes.push(if *value { TRUE } else { FALSE }),
        Value::String(text) => cbor_text(bytes, text),
        Value::Array(items) => {
            cbor_head(bytes, ARRAY, items.len() as u64);
            items.iter().for_each(|item| cbor_item(bytes, item));
        }
        Value::Object(fields) => {
            cbor_head(bytes, MAP, fields.len() as u64);
            let mut fields: Vec<_> = fields.iter().collect();
            // Sorted by the encoded names, which begin with the length.
            fields.sort_by_key(|(name, _)| (name.len(), *name));
            for (name, value) in fields {
                cbor_text(bytes, name);
                cbor_item(bytes, value);
            }
        }
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => cbor_head(bytes, UNSIGNED, number),
            // -1 is encoded as 0, -2 as 1, ….
            (None, Some(number)) => cbor_head(bytes, NEGATIVE, !number.cast_unsigned()),
            (None, None) => {
                bytes.push(FLOAT_64);
                bytes.extend(number.as_f64().unwrap_or_default().to_be_bytes());
            }
        },
    }
}

fn cbor_text(bytes: &mut Vec<u8>, text: &str) {
    cbor_head(bytes, BYTES, text.len() as u64);
    bytes.extend(text.as_bytes());
}

/// The kind of an item and its number, in as few bytes as possible.
fn cbor_head(bytes: &mut Vec<u8>, kind: u8, number: u64) {
    let wide = number.to_be_bytes();
    match number {
        0..=23 => bytes.push(kind | wide[7]),
        24..=0xff => bytes.extend([kind | 24, wide[7]]),
        0x100..=0xffff => bytes.extend([&[kind | 25], &wide[6..]].concat()),
        0x1_0000..=0xffff_ffff => bytes.extend([&[kind | 26], &wide[4..]].concat()),
        _ => bytes.extend([&[kind | 27], &wide[..]].concat()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_is_written_as_gos_serializer_does() {
        let value = json!({
            "kind": "Statusz", "apiVersion": "config.k8s.io/v1beta1", "metadata": {"name": "x"}, "uptimeSeconds": 7,
            "paths": ["/configz", "/metrics"], "startTime": "2026-11-15T10:57:55Z", "emulationVersion": "1.37",
            "flags": {"v": "2", "leader-elect": "true", "empty": "", "quoted": "a: \"b\"\nc"}, "none": {}, "no": [],
        });
        let want = r#"apiVersion: config.k8s.io/v1beta1
emulationVersion: "1.37"
flags:
  empty: ""
  leader-elect: "true"
  quoted: "a: \"b\"\nc"
  v: "2"
kind: Statusz
metadata:
  name: x
"no": []
none: {}
paths:
- /configz
- /metrics
startTime: "2026-11-15T10:57:55Z"
uptimeSeconds: 7
"#;
        assert_eq!(yaml(&value), want);
        assert_eq!(yaml(&json!({})), "{}\n");
    }

    /// From RFC 8949, appendix A, with byte strings for texts.
    #[test]
    fn cbor_is_deterministic_and_describes_itself() {
        let check = |value: Value, want: &[u8]| {
            let got = cbor(&value);
            assert_eq!(got[..3], SELF_DESCRIBED);
            assert_eq!(&got[3..], want, "{value}");
        };
        check(json!(0), &[0x00]);
        check(json!(23), &[0x17]);
        check(json!(24), &[0x18, 0x18]);
        check(json!(1000), &[0x19, 0x03, 0xe8]);
        check(json!(1_000_000), &[0x1a, 0x00, 0x0f, 0x42, 0x40]);
        check(json!(1_000_000_000_000_u64), &[0x1b, 0x00, 0x00, 0x00, 0xe8, 0xd4, 0xa5, 0x10, 0x00]);
        check(json!(-1), &[0x20]);
        check(json!(-1000), &[0x39, 0x03, 0xe7]);
        check(json!(1.1), &[0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a]);
        check(json!([true, false, null]), &[0x83, 0xf5, 0xf4, 0xf6]);
        check(json!("IETF"), &[0x44, 0x49, 0x45, 0x54, 0x46]);
        check(json!({"aa": 1, "b": [2, 3]}), &[0xa2, 0x41, 0x62, 0x82, 0x02, 0x03, 0x42, 0x61, 0x61, 0x01]);
    }
}
