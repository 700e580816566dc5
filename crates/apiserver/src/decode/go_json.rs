//! What Go's `encoding/json` says about a text, for the messages of a 400.

/// Upstream's bound on nesting; ours is lower, and checked by serde_json.
const DEPTH_MAX: usize = 10_000;

/// A reader of one JSON text that only wants to know where it breaks.
struct Scanner<'a> {
    rest: &'a [u8],
}

/// The kind of an open bracket around the next value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    Array,
}

type Scan = Result<(), String>;

/// The first syntax error, in Go's words; none if the text is JSON.
pub(super) fn syntax_error(text: &[u8]) -> Option<String> {
    Scanner { rest: text }.text().err()
}

/// The text with U+FFFD for each half of a surrogate pair, if it has any: Go takes them, serde_json does not.
pub(super) fn mend_surrogates(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(_), _) => {
                mended.push_str("\\ufffd");
                changed = true;
                rest = &rest[6..];
                continue;
            }
            // The next character belongs to the backslash, whatever it is.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    mended.push_str(rest);
    changed.then_some(mended)
}

/// The surrogate that this text begins with.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| (0xd800..=0xdfff).contains(code))
}

// === impl Scanner ===

impl Scanner<'_> {
    fn text(&mut self) -> Scan {
        let mut open: Vec<Open> = Vec::new();
        loop {
            // At the start of a value.
            self.space();
            match self.next("looking for beginning of value")? {
                b'{' => {
                    self.space();
                    if self.peek() == Some(b'}') {
                        self.rest = &self.rest[1..];
                    } else {
                        self.key("looking for beginning of object key string")?;
                        open.push(Open::Object);
                        if open.len() > DEPTH_MAX {
                            return Err("exceeded max depth".to_owned());
                        }
                        continue;
                    }
                }
                b'[' => {
                    self.space();
                    if self.peek() == Some(b']') {
                        self.rest = &self.rest[1..];
                    } else {
                        open.push(Open::Array);
                        if open.len() > DEPTH_MAX {
                            return Err("exceeded max depth".to_owned());
                        }
                        continue;
                    }
                }
                b'"' => self.string()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                first @ (b'-' | b'0'..=b'9') => self.number(first)?,
                other => return Err(invalid(other, "looking for beginning of value")),
            }
            // After a value: close what ends here, until another value begins.
            loop {
                self.space();
                match open.last() {
                    None => {
                        return match self.peek() {
                            None => Ok(()),
                            Some(other) => Err(invalid(other, "after top-level value")),
                        };
                    }
                    Some(Open::Object) => match self.next("after object key:value pair")? {
                        b',' => {
                            self.space();
                            self.key("looking for beginning of object key string")?;
                            break;
                        }
                        b'}' => {
                            open.pop();
                        }
                        other => return Err(invalid(other, "after object key:value pair")),
                    },
                    Some(Open::Array) => match self.next("after array element")? {
                        b',' => break,
                        b']' => {
                            open.pop();
                        }
                        other => return Err(invalid(other, "after array element")),
                    },
                }
            }
        }
    }

    fn key(&mut self, place: &str) -> Scan {
        match self.next(place)? {
            b'"' => self.string()?,
            other => return Err(invalid(other, place)),
        }
        self.space();
        match self.next("after object key")? {
            b':' => Ok(()),
            other => Err(invalid(other, "after object key")),
        }
    }

    fn string(&mut self) -> Scan {
        loop {
            match self.next("in string literal")? {
                b'"' => return Ok(()),
                b'\\' => match self.next("in string escape code")? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.next("in \\u hexadecimal character escape")?;
                            if !digit.is_ascii_hexdigit() {
                                return Err(invalid(digit, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    other => return Err(invalid(other, "in string escape code")),
                },
                control @ 0..0x20 => return Err(invalid(control, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Scan {
        for expected in word.bytes().skip(1) {
            let byte = self.next("")?;
            if byte != expected {
                return Err(invalid(byte, &format!("in literal {word} (expecting {})", quote(expected))));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Scan {
        let mut first = first;
        if first == b'-' {
            first = self.next("in numeric literal")?;
            if !first.is_ascii_digit() {
                return Err(invalid(first, "in numeric literal"));
            }
        }
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.rest = &self.rest[1..];
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.rest = &self.rest[1..];
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.rest = &self.rest[1..];
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digit(&mut self, place: &str) -> Scan {
        let digit = self.next(place)?;
        if digit.is_ascii_digit() { Ok(()) } else { Err(invalid(digit, place)) }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.rest = &self.rest[1..];
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.rest = &self.rest[1..];
        }
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self, _place: &str) -> Result<u8, String> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| "unexpected end of JSON input".to_owned())?;
        self.rest = rest;
        Ok(*first)
    }
}

fn invalid(byte: u8, place: &str) -> String {
    format!("invalid character {} {place}", quote(byte))
}

/// A byte as Go quotes it: bytes beyond ASCII are shown as the character of that number.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x00..0x20 | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!(r"'\u{byte:04x}'"),
        printable => format!("'{}'", char::from(printable)),
    }
}
