//! Character classes.

use regex::Regex;

use super::{NOTHING, Parsed, Parser, TABLE_COST, before, error, escape};

const POSIX: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// `\d` and its like, by their letter: ASCII, as in Go.
pub(super) fn perl(letter: char) -> String {
    let set = match letter.to_ascii_lowercase() {
        'd' => "0-9",
        's' => r"\t\n\x{c}\r\x{20}",
        _ => "0-9A-Za-z_",
    };
    let sign = if letter.is_ascii_uppercase() { "^" } else { "" };
    format!("[{sign}{set}]")
}

impl<'a> Parser<'a> {
    /// A class in brackets: its translation, what it costs, and what follows.
    pub(super) fn class(&mut self, at: &'a str) -> Parsed<(String, usize, &'a str)> {
        let mut rest = &at[1..];
        let is_negated = rest.starts_with('^');
        if is_negated {
            rest = &rest[1..];
        }
        let mut inner = String::new();
        let mut cost = 2;
        let mut is_first = true;
        while is_first || !rest.starts_with(']') {
            is_first = false;
            if let Some((text, after)) = posix(rest)? {
                inner.push_str(&text);
                rest = after;
                cost += 4;
                continue;
            }
            match rest.strip_prefix('\\').and_then(|it| it.chars().next()) {
                Some('p' | 'P') => {
                    let (text, after) = self.table(rest)?;
                    inner.push_str(&text);
                    rest = after;
                    cost += TABLE_COST;
                    continue;
                }
                Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
                    inner.push_str(&perl(c));
                    rest = &rest[2..];
                    cost += 4;
                    continue;
                }
                _ => {}
            }
            let start = rest;
            let (low, after) = character(rest, at)?;
            let mut high = low;
            rest = after;
            if rest.starts_with('-') && rest.len() >= 2 && !rest.starts_with("-]") {
                let (end, after) = character(&rest[1..], at)?;
                high = end;
                rest = after;
                if high < low {
                    return Err(error("invalid character class range", before(start, rest)));
                }
            }
            range(&mut inner, low, high);
            cost += 2;
            if cost > self.cost_max {
                return Err(super::too_large(self.whole));
            }
        }
        let text = match (inner.is_empty(), is_negated) {
            (true, false) => NOTHING.to_owned(),
            (true, true) => r"[\x{0}-\x{10ffff}]".to_owned(),
            (false, false) => format!("[{inner}]"),
            (false, true) => format!("[^{inner}]"),
        };
        Ok((text, cost, &rest[1..]))
    }

    /// `\pN`, `\p{Greek}`, `\P{^Greek}`: its translation, and what follows.
    pub(super) fn table(&mut self, at: &'a str) -> Parsed<(String, &'a str)> {
        let mut is_negated = at.starts_with(r"\P");
        let invalid = |part: &str| Err(error("invalid character class range", part));
        let after = &at[2..];
        let (whole, name, rest) = match after.chars().next() {
            None => return invalid(at),
            Some('{') => match at.find('}') {
                None => return invalid(at),
                Some(end) => (&at[..=end], &at[3..end], &at[end + 1..]),
            },
            Some(c) => {
                let end = 2 + c.len_utf8();
                (&at[..end], &at[2..end], &at[end..])
            }
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                is_negated = !is_negated;
                name
            }
            None => name,
        };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '_' | '-'));
        if !is_name || name.len() > 64 || !self.is_table(name) {
            return invalid(whole);
        }
        let letter = if is_negated { 'P' } else { 'p' };
        Ok((format!(r"\{letter}{{{name}}}"), rest))
    }

    fn is_table(&mut self, name: &str) -> bool {
        if let Some(known) = self.tables.get(name) {
            return *known;
        }
        let exists = Regex::new(&format!(r"\p{{{name}}}")).is_ok();
        self.tables.insert(name.to_owned(), exists);
        exists
    }
}

/// `[:alpha:]`: its translation and what follows, if it is one.
fn posix(at: &str) -> Parsed<Option<(String, &str)>> {
    let Some(inner) = at.strip_prefix("[:") else { return Ok(None) };
    let Some(end) = inner.find(":]") else { return Ok(None) };
    let name = inner[..end].strip_prefix('^').unwrap_or(&inner[..end]);
    let whole = &at[..end + 4];
    if !POSIX.contains(&name) {
        return Err(error("invalid character class range", whole));
    }
    Ok(Some((whole.to_owned(), &at[end + 4..])))
}

fn character<'a>(at: &'a str, class: &str) -> Parsed<(u32, &'a str)> {
    match at.chars().next() {
        None => Err(error("missing closing ]", class)),
        Some('\\') => escape(at),
        Some(c) => Ok((c as u32, &at[c.len_utf8()..])),
    }
}

/// Adds a range, without the surrogates, which no text has.
fn range(inner: &mut String, low: u32, high: u32) {
    const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;
    let low = if SURROGATES.contains(&low) { 0xE000 } else { low };
    let high = if SURROGATES.contains(&high) { 0xD7FF } else { high };
    if low <= high {
        inner.push_str(&format!(r"\x{{{low:x}}}-\x{{{high:x}}}"));
    }
}
