//! YAML that is JSON, which is what clients send when they apply: kubectl, client-go and kube all encode configurations as JSON.
//!
//! A JSON parser reads such a text some fifty times faster than a YAML parser, and gives the same tree, but for details: YAML has
//! other rules for white space, for letters that cannot be printed, for fractions, and for the length of keys. So what a text may
//! have is listed here; all others are the YAML parser's.

use super::tree::YAML_DEPTH_MAX;

/// Longer texts may have more nodes than the YAML parser takes.
const BYTES_MAX: usize = 1 << 20;
/// The YAML parser takes 1024 letters.
const KEY_BYTES_MAX: usize = 1000;
/// So many digits fit into 64 bits.
const DIGITS_MAX: usize = 18;

/// Whether a text that is JSON is also YAML that means the same. It is not said whether it is JSON.
pub(super) fn is_same_in_yaml(text: &str) -> bool {
    text.starts_with('{')
        && text.len() <= BYTES_MAX
        && has_plain_tokens(text.as_bytes())
        && (text.is_ascii() || text.chars().all(|letter| letter.is_ascii() || is_plain(letter)))
}

/// Whether all tokens have forms that both languages read in the same way.
fn has_plain_tokens(text: &[u8]) -> bool {
    let mut at = 0;
    let mut depth = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth >= YAML_DEPTH_MAX {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => match string(&text[at..]) {
                Some(length) => {
                    at += length;
                    let spaces = text[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\n')).count();
                    let is_key = text.get(at + spaces) == Some(&b':');
                    // A key is followed by its colon at once.
                    if is_key && (spaces > 0 || length > KEY_BYTES_MAX) {
                        return false;
                    }
                    at += spaces;
                }
                None => return false,
            },
            b'-' | b'0'..=b'9' => {
                let digits = text[at - 1..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
                let is_negative_zero = *byte == b'-' && text.get(at) == Some(&b'0');
                at += digits - 1;
                if digits > DIGITS_MAX || is_negative_zero || matches!(text.get(at), Some(b'.' | b'e' | b'E' | b'+')) {
                    return false;
                }
            }
            b' ' | b'\n' | b',' | b':' | b'a'..=b'z' => {}
            _ => return false,
        }
    }
    true
}

/// The bytes up to behind the quote that ends a string; none if something in it may have another meaning in YAML.
fn string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if matches!(text.get(at + 1)?, b'"' | b'\\' | b'n' | b'r' | b't' | b'/') => at += 2,
            // What Go's encoder escapes: `<`, `>` and `&`.
            b'\\' if text[at..].starts_with(b"\\u00") => at += b"\\u00".len(),
            b'\\' | ..b' ' | b'\x7f' => return None,
            _ => at += 1,
        }
    }
}

/// Whether a letter beyond ASCII is one like all others.
fn is_plain(letter: char) -> bool {
    !matches!(letter, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
