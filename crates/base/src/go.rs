//! Values in Go's words, as error messages of upstream have them.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns the name of the type of a JSON value, as Go's decoder calls it.
#[must_use]
pub const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns a string in double quotes, as `%q` prints it.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            char if char < ' ' || char == '\u{7f}' => {
                let _ = write!(quoted, "\\x{:02x}", char as u32);
            }
            char if is_printable(char) => quoted.push(char),
            char if (char as u32) < 0x1_0000 => {
                let _ = write!(quoted, "\\u{:04x}", char as u32);
            }
            char => {
                let _ = write!(quoted, "\\U{:08x}", char as u32);
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Whether Go prints a character as it is; characters that Unicode has not assigned are taken for printable.
fn is_printable(char: char) -> bool {
    let is_invisible = matches!(
        char,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0001}'..='\u{e007f}'
            | '\u{f0000}'..
    );
    char == ' ' || !(char.is_control() || char.is_whitespace() || is_invisible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_go_does() {
        assert_eq!(quote("a\"\u{1}ü"), "\"a\\\"\\x01ü\"");
        assert_eq!(quote("\t\u{85}\u{200b}\\"), r#""\t\u0085\u200b\\""#);
        assert_eq!(quote("\u{a0}\u{2000}\u{3000}\u{e000}\u{e0001} "), r#""\u00a0\u2000\u3000\ue000\U000e0001 ""#);
        assert_eq!(quote("❤\u{fe0f}"), "\"❤\u{fe0f}\"", "a variation selector is a mark, and printed");
    }
}
