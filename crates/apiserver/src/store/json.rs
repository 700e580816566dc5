//! JSON of objects, byte for byte as serde_json writes it.
//!
//! Most of an object's bytes are strings without anything to escape: serde_json looks at them byte by byte, and hands every
//! comma to a writer. Here they are compared in blocks and copied.

use serde_json::Value;

/// Enough for two registers of the smallest processor that we are compiled for.
const BLOCK: usize = 32;

/// Writes a value.
pub(super) fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(entries) => {
            out.push(b'{');
            for (at, (key, entry)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                string(key, out);
                out.push(b':');
                write(entry, out);
            }
            out.push(b'}');
        }
        Value::Number(number) => {
            // Writing into memory does not fail.
            let _ = serde_json::to_writer(out, number);
        }
    }
}

/// Writes a string in quotes.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    if has_escapes(text.as_bytes()) {
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether a string has quotes, backslashes or control characters.
fn has_escapes(text: &[u8]) -> bool {
    // Without an early end within a block, so that a block is a few instructions.
    let is_any =
        |bytes: &[u8]| bytes.iter().fold(false, |any, byte| any | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\'));
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    blocks.iter().any(|block| is_any(block)) || is_any(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        write(value, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn all_letters_are_escaped_as_serde_json_does() {
        for letter in (0..0x300).filter_map(char::from_u32) {
            for text in [letter.to_string(), format!("{}{letter}{}", "x".repeat(31), "y".repeat(40))] {
                let value = json!({text.clone(): [text, 1, -1, 1.5, 1e300, u64::MAX, true, false, null, {}, []]});
                assert_eq!(written(&value), value.to_string());
            }
        }
    }

    proptest! {
        #[test]
        fn strings_are_written_as_serde_json_does(text: String) {
            let value = Value::from(text);
            prop_assert_eq!(written(&value), value.to_string());
        }
    }
}
