//! What string and bytes literals mean. Follows cel-go's `parser/unescape.go`.

type Result<T> = std::result::Result<T, &'static str>;

const MALFORMED: &str = "unable to unescape string";
const BAD_CODE_POINT: &str = "invalid unicode code point";

/// The text of a string literal with its quotes.
pub(super) fn string(literal: &str) -> Result<String> {
    let literal = literal.replace("\r\n", "\n").replace('\r', "\n");
    let (content, raw) = content(&literal)?;
    if raw || !content.contains('\\') {
        return Ok(content.to_owned());
    }
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        if char != '\\' {
            text.push(char);
            continue;
        }
        let (code, after) = escape(rest, false)?;
        text.push(char::from_u32(code).ok_or(BAD_CODE_POINT)?);
        rest = after;
    }
    Ok(text)
}

/// The bytes of a bytes literal with its quotes, without the `b`.
pub(super) fn bytes(literal: &str) -> Result<Vec<u8>> {
    let literal = literal.replace("\r\n", "\n").replace('\r', "\n");
    let (content, raw) = content(&literal)?;
    if raw || !content.contains('\\') {
        return Ok(content.as_bytes().to_vec());
    }
    let mut bytes = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        if char != '\\' {
            bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let (code, after) = escape(rest, true)?;
        bytes.push(code as u8);
        rest = after;
    }
    Ok(bytes)
}

/// Returns the text between the quotes, and whether backslashes mean themselves.
fn content(literal: &str) -> Result<(&str, bool)> {
    let raw = literal.starts_with(['r', 'R']);
    let literal = if raw { &literal[1..] } else { literal };
    for quotes in ["'''", "\"\"\"", "'", "\""] {
        if literal.len() >= 2 * quotes.len()
            && let Some(content) = literal.strip_prefix(quotes).and_then(|rest| rest.strip_suffix(quotes))
        {
            return Ok((content, raw));
        }
    }
    Err(MALFORMED)
}

/// The code of an escape after its backslash, and what follows.
fn escape(text: &str, is_bytes: bool) -> Result<(u32, &str)> {
    let char = text.chars().next().ok_or("unable to unescape string, found '\\' as last character")?;
    let rest = &text[char.len_utf8()..];
    let digits = |count: usize, radix: u32| -> Result<(u32, &str)> {
        let digits = rest.get(..count).ok_or(MALFORMED)?;
        let code = u32::from_str_radix(digits, radix).map_err(|_| MALFORMED)?;
        if !is_bytes && char::from_u32(code).is_none() {
            return Err(BAD_CODE_POINT);
        }
        Ok((code, &rest[count..]))
    };
    let code = match char {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => char as u32,
        'x' | 'X' => return digits(2, 16),
        'u' if !is_bytes => return digits(4, 16),
        'U' if !is_bytes => return digits(8, 16),
        '0'..='3' => {
            let (low, rest) = digits(2, 8).map_err(|_| "unable to unescape octal sequence in string")?;
            return Ok((char.to_digit(8).unwrap_or(0) * 64 + low, rest));
        }
        _ => return Err(MALFORMED),
    };
    Ok((code, rest))
}
