//! Finding ends: of a string, and of an object or list, without looking at each byte by itself.

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// All but the top bit of each byte.
const SEVENS: u64 = 0x7f * ONES;
const QUOTES: u64 = each(b'"');
const BACKSLASHES: u64 = each(b'\\');
/// The bit by which curly brackets differ from square ones.
const CURLY: u64 = each(0x20);
/// The number of bytes processed together.
const BLOCK: usize = 64;

/// The same byte eight times.
const fn each(byte: u8) -> u64 {
    byte as u64 * ONES
}

/// Returns the offset at which the string whose content begins at `at` first has a quote, a backslash or a control
/// character.
#[inline]
pub(super) fn end_of_string(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(chunk) = text.get(at..)?.first_chunk() {
        let bytes = u64::from_le_bytes(*chunk);
        // The lowest byte found is one of them; those above it may be mistaken, for the subtraction borrows.
        let quote = bytes ^ QUOTES;
        let backslash = bytes ^ BACKSLASHES;
        let control = bytes.wrapping_sub(each(b' ')) & !bytes;
        let found = (quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash | control) & !SEVENS;
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = text.get(at..)?;
    rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).map(|found| at + found)
}

/// Returns the end of the object or list that begins at `start`: behind its closing bracket.
///
/// Brackets are counted and not distinguished.
pub(super) fn end_of_nested(text: &[u8], start: usize) -> Option<usize> {
    let mut rest = &text[start..];
    let mut depth = 0;
    let mut state = Strings::default();
    let mut padded = [0; BLOCK];
    loop {
        let block = if let Some(block) = rest.first_chunk() {
            block
        } else {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        };
        let marks = Marks::of(block);
        let outside = !state.next(marks.quotes, marks.backslashes);
        let opens = marks.opens & outside;
        let mut closes = marks.closes & outside;
        let opened = opens.count_ones();
        let closed = closes.count_ones();
        if closed >= depth {
            // The end may be here. Count up to each closing bracket.
            let mut at_close = depth;
            let mut seen = 0;
            while closes != 0 {
                let at = closes.trailing_zeros();
                let before = (1 << at) - 1;
                at_close += (opens & before & !seen).count_ones();
                seen = before;
                at_close = at_close.checked_sub(1)?;
                if at_close == 0 {
                    let end = text.len() - rest.len() + at as usize + 1;
                    return (end <= text.len()).then_some(end);
                }
                closes &= closes - 1;
            }
        }
        depth = depth + opened - closed;
        rest = rest.get(BLOCK..)?;
    }
}

/// The kinds of the bytes of a block: one bit each, the lowest for the first byte.
struct Marks {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
}

/// Whether the last block ended within a string, and whether it ended with a backslash that counts.
#[derive(Default)]
struct Strings {
    /// All ones within a string.
    inside: u64,
    is_escaped: bool,
}

// === impl Marks ===

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut marks = Self { quotes: 0, backslashes: 0, opens: 0, closes: 0 };
        let (chunks, _) = block.as_chunks::<8>();
        let mut has_backslash = 0;
        for (at, chunk) in chunks.iter().enumerate() {
            let bytes = u64::from_le_bytes(*chunk);
            let curly = bytes | CURLY;
            let shift = 8 * at;
            marks.quotes |= zeros(bytes ^ QUOTES) << shift;
            let backslash = bytes ^ BACKSLASHES;
            has_backslash |= backslash.wrapping_sub(ONES) & !backslash & !SEVENS;
            marks.opens |= zeros(curly ^ each(b'{')) << shift;
            marks.closes |= zeros(curly ^ each(b'}')) << shift;
        }
        // Few blocks have one.
        if has_backslash != 0 {
            for (at, chunk) in chunks.iter().enumerate() {
                marks.backslashes |= zeros(u64::from_le_bytes(*chunk) ^ BACKSLASHES) << (8 * at);
            }
        }
        marks
    }
}

/// Returns which of the eight bytes are zero: one bit each.
#[inline]
fn zeros(bytes: u64) -> u64 {
    let zeros = !(((bytes & SEVENS) + SEVENS) | bytes | SEVENS) >> 7;
    // Moves the lowest bit of each byte to the top byte, the first byte's to its lowest bit.
    zeros.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

// === impl Strings ===

impl Strings {
    /// Returns the bytes of the next block that are within strings, the opening quote counted, the closing one not.
    fn next(&mut self, mut quotes: u64, mut backslashes: u64) -> u64 {
        if backslashes != 0 || self.is_escaped {
            let mut escaped = u64::from(std::mem::take(&mut self.is_escaped));
            backslashes &= !escaped;
            while backslashes != 0 {
                let at = backslashes.trailing_zeros();
                if at == 63 {
                    self.is_escaped = true;
                    break;
                }
                escaped |= 2 << at;
                // A backslash behind a backslash escapes nothing.
                backslashes &= !(3 << at);
            }
            quotes &= !escaped;
        }
        // Each bit becomes the parity of the quotes up to it.
        let mut inside = quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            inside ^= inside << shift;
        }
        inside ^= self.inside;
        self.inside = if inside >> 63 == 1 { u64::MAX } else { 0 };
        inside
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_end_of_an_object_is_found_whatever_stands_in_its_strings() {
        let check = |nested: &str| {
            for before in [0, 1, 7, 61, 62, 63, 64, 65] {
                let text = format!("{}{nested}]}}\"tail", " ".repeat(before));
                assert_eq!(
                    end_of_nested(text.as_bytes(), before),
                    Some(before + nested.len()),
                    "{before} before {nested}"
                );
            }
            assert_eq!(end_of_nested(&nested.as_bytes()[..nested.len() - 1], 0), None, "{nested} without its end");
        };
        check("{}");
        check("[]");
        check("[[],[{}]]");
        check(r#"{"a":"}","b":["]"]}"#);
        check(r#"{"a":"\"}","b":"\\","c":"\\\"]"}"#);
        check(&format!(r#"{{"{}":"{}\\"}}"#, "x".repeat(61), "\\\\".repeat(40)));
        check(&format!("{}{}", "[".repeat(200), "]".repeat(200)));
    }

    #[test]
    fn the_end_of_a_string_is_its_first_special_byte() {
        let check = |text: &str, want| assert_eq!(end_of_string(text.as_bytes(), 0), want, "{text:?}");
        check("", None);
        check("abc", None);
        check("abcdefghijk\"", Some(11));
        check("abc\\\"defghij", Some(3));
        check("abcdefg\n\"", Some(7));
        check("äöüß\u{7f}\"", Some(9));
        check("12345678\"", Some(8));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            r#"[a-z"\\{}\[\]\n€]{0,20}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 200, 8, |inner| {
            let key = r#"[a-z"\\{}\[\]]{0,12}"#;
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..8).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_skipped_to_its_end(value in any_json(), before in 0_usize..70) {
            let list = Value::Array(vec![value]);
            for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap()] {
                let text = format!("{}{text},}}]\"", "\"".repeat(before));
                prop_assert_eq!(end_of_nested(text.as_bytes(), before), Some(text.len() - 4));
            }
        }
    }
}
