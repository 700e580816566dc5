//! Go's syntax of regular expressions, translated. Follows `regexp/syntax/parse.go` of Go 1.26 with the flags `Perl`.

mod class;

use std::collections::HashMap;

/// The maximum depth of groups. Go's bound is a thousand; the compiler of the `regex` crate recurses.
const DEPTH_MAX: usize = 200;
/// The largest repeat count, also of nested repeats multiplied; Go's bound.
const REPEAT_MAX: usize = 1000;
/// The cost of a class that is a table of Unicode.
const TABLE_COST: usize = 1000;
/// The cost of `.`: all sequences of bytes that are a character.
const ANY_COST: usize = 16;
/// Matches nothing.
const NOTHING: &str = "[a&&b]";

/// A pattern for the `regex` crate.
pub(super) struct Translated {
    pub(super) text: String,
    /// About how many states it has.
    pub(super) cost: usize,
}

/// Part of a sequence: what a repetition applies to.
struct Piece {
    text: String,
    cost: usize,
    /// The largest product of nested repeat counts in it.
    repeats: usize,
    /// Whether it only sets flags.
    is_flags: bool,
}

/// A group that is open.
struct Group {
    open: String,
    /// The text before the last `|`.
    before: String,
    cost: usize,
    repeats: usize,
    pieces: Vec<Piece>,
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    groups: Vec<Group>,
    cost_max: usize,
    /// Names of Unicode tables, and whether they exist.
    tables: HashMap<String, bool>,
}

/// The count of a repetition.
#[derive(Clone, Copy)]
enum Times {
    /// `*`, `+`, `?`
    Sign,
    /// `{min,}`
    AtLeast(usize),
    /// `{min,max}`
    AtMost(usize),
}

/// A count in braces.
#[derive(Clone, Copy)]
enum Count {
    Number(usize),
    /// A number that is larger than any that counts.
    Huge,
    /// No number: there is no largest count.
    Open,
}

type Parsed<T> = Result<T, String>;

/// Translates a pattern that may have so many states; the error is Go's sentence.
pub(super) fn translate(pattern: &str, cost_max: usize) -> Parsed<Translated> {
    let mut parser =
        Parser { whole: pattern, rest: pattern, groups: vec![Group::new("")], cost_max, tables: HashMap::new() };
    parser.all()
}

/// The sentence about a pattern that is too large.
pub(super) fn too_large(pattern: &str) -> String {
    error("expression too large", pattern)
}

fn error(problem: &str, part: &str) -> String {
    format!("error parsing regexp: {problem}: `{part}`")
}

/// A character outside classes.
fn literal(c: char) -> String {
    if c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() {
        c.to_string()
    } else {
        format!(r"\x{{{:x}}}", c as u32)
    }
}

/// The start of `whole` that is before `after`.
fn before<'a>(whole: &'a str, after: &str) -> &'a str {
    &whole[..whole.len() - after.len()]
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn all(&mut self) -> Parsed<Translated> {
        let mut last_repeat = "";
        while let Some(c) = self.rest.chars().next() {
            let at = self.rest;
            let mut repeat = "";
            match c {
                '(' if at.starts_with("(?") => self.perl_group()?,
                '(' => self.open("(?:", &at[1..])?,
                '|' => {
                    self.group().alternative();
                    self.rest = &at[1..];
                }
                ')' => self.close()?,
                '^' | '$' => self.take(1, c.to_string(), 1),
                '.' => self.take(1, ".".to_owned(), ANY_COST),
                '[' => {
                    let (text, cost, rest) = self.class(at)?;
                    self.rest = rest;
                    self.push(text, cost);
                }
                '*' | '+' | '?' => {
                    self.repeat(&c.to_string(), Times::Sign, at, &at[1..], last_repeat)?;
                    repeat = at;
                }
                '{' => {
                    if self.counted(at, last_repeat)? {
                        repeat = at;
                    } else {
                        self.take(1, literal('{'), 1);
                    }
                }
                '\\' => self.escaped(at)?,
                c => self.take(c.len_utf8(), literal(c), c.len_utf8()),
            }
            last_repeat = repeat;
            if self.groups.iter().map(|it| it.cost).sum::<usize>() > self.cost_max {
                return Err(too_large(self.whole));
            }
        }
        match self.groups.pop() {
            Some(group) if self.groups.is_empty() => {
                let cost = group.cost;
                Ok(Translated { text: group.finish().text, cost })
            }
            _ => Err(error("missing closing )", self.whole)),
        }
    }

    fn group(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::new(""));
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn push(&mut self, text: String, cost: usize) {
        self.group().push(Piece { text, cost, repeats: 1, is_flags: false });
    }

    fn take(&mut self, bytes: usize, text: String, cost: usize) {
        self.rest = &self.rest[bytes..];
        self.push(text, cost);
    }

    fn open(&mut self, open: &str, rest: &'a str) -> Parsed<()> {
        if self.groups.len() > DEPTH_MAX {
            return Err(error("expression nests too deeply", self.whole));
        }
        self.groups.push(Group::new(open));
        self.rest = rest;
        Ok(())
    }

    fn close(&mut self) -> Parsed<()> {
        if self.groups.len() < 2 {
            return Err(error("unexpected )", self.whole));
        }
        if let Some(group) = self.groups.pop() {
            let piece = group.finish();
            self.group().push(piece);
        }
        self.rest = &self.rest[1..];
        Ok(())
    }

    /// `(?flags)`, `(?flags:…)`, `(?P<name>…)`, `(?<name>…)`
    fn perl_group(&mut self) -> Parsed<()> {
        let at = self.rest;
        let name_at = if at.starts_with("(?P<") && at.len() > 4 {
            Some(4)
        } else if at.starts_with("(?<") && at.len() > 3 {
            Some(3)
        } else {
            None
        };
        if let Some(start) = name_at {
            let Some(end) = at.find('>') else { return Err(error("invalid named capture", at)) };
            let name = at.get(start..end).unwrap_or_default();
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return Err(error("invalid named capture", &at[..=end]));
            }
            return self.open("(?:", &at[end + 1..]);
        }
        let mut on = String::new();
        let mut off = String::new();
        let mut is_negative = false;
        let mut saw_flag = false;
        let mut rest = &at[2..];
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                'i' | 'm' | 's' | 'U' => {
                    saw_flag = true;
                    if c != 'U' {
                        if is_negative { &mut off } else { &mut on }.push(c);
                    }
                }
                '-' if !is_negative => {
                    is_negative = true;
                    saw_flag = false;
                }
                ':' | ')' if !is_negative || saw_flag => {
                    on.retain(|flag| !off.contains(flag));
                    let sign = if off.is_empty() { "" } else { "-" };
                    if c == ':' {
                        return self.open(&format!("(?{}{sign}{}:", unique(&on), unique(&off)), rest);
                    }
                    self.rest = rest;
                    if !on.is_empty() || !off.is_empty() {
                        let text = format!("(?{}{sign}{})", unique(&on), unique(&off));
                        self.group().push(Piece { text, cost: 0, repeats: 1, is_flags: true });
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(error("invalid or unsupported Perl syntax", before(at, rest)))
    }

    /// Applies `{n}`, `{n,}` or `{n,m}`, and says whether it is one.
    fn counted(&mut self, at: &'a str, last_repeat: &str) -> Parsed<bool> {
        let Some((min, max, after)) = counts(at) else { return Ok(false) };
        let (text, times) = match (min, max) {
            (Count::Number(min), Count::Open) if min <= REPEAT_MAX => (format!("{{{min},}}"), Times::AtLeast(min)),
            (Count::Number(min), Count::Number(max)) if min <= max && max <= REPEAT_MAX => {
                (format!("{{{min},{max}}}"), Times::AtMost(max))
            }
            _ => return Err(error("invalid repeat count", before(at, after))),
        };
        self.repeat(&text, times, at, after, last_repeat)?;
        Ok(true)
    }

    /// Repeats the last piece.
    fn repeat(&mut self, operator: &str, times: Times, at: &'a str, after: &'a str, last_repeat: &str) -> Parsed<()> {
        let after = after.strip_prefix('?').unwrap_or(after);
        if !last_repeat.is_empty() {
            return Err(error("invalid nested repetition operator", before(last_repeat, after)));
        }
        let group = self.group();
        let Some(piece) = group.pieces.iter_mut().rev().find(|piece| !piece.is_flags) else {
            return Err(error("missing argument to repetition operator", before(at, after)));
        };
        let cost = piece.cost;
        let most = match times {
            Times::Sign => 0,
            Times::AtLeast(count) | Times::AtMost(count) => count,
        };
        if matches!(times, Times::Sign) {
            piece.cost += 2;
        } else {
            piece.cost = piece.cost.saturating_mul(most.max(1)).saturating_add(1);
            piece.repeats = match times {
                Times::AtMost(0) => 1,
                _ => piece.repeats.saturating_mul(most.max(1)),
            };
            if most >= 2 && piece.repeats > REPEAT_MAX {
                return Err(error("invalid repeat count", before(at, after)));
            }
        }
        group.cost = group.cost.saturating_add(piece.cost - cost);
        // A flag that stands in between does not matter to what stands before it.
        piece.text = format!("(?:{}){operator}", piece.text);
        self.rest = after;
        Ok(())
    }

    fn escaped(&mut self, at: &'a str) -> Parsed<()> {
        let second = at[1..].chars().next();
        match second {
            Some('A') => self.take(2, r"\A".to_owned(), 1),
            Some('z') => self.take(2, r"\z".to_owned(), 1),
            Some('b') => self.take(2, r"(?-u:\b)".to_owned(), 1),
            Some('B') => self.take(2, r"(?-u:\B)".to_owned(), 1),
            Some('C') => return Err(error("invalid escape sequence", &at[..2])),
            Some('Q') => {
                let quoted = &at[2..];
                let (text, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
                text.chars().for_each(|c| self.push(literal(c), c.len_utf8()));
                self.rest = rest;
            }
            Some('p' | 'P') => {
                let (text, rest) = self.table(at)?;
                self.rest = rest;
                self.push(text, TABLE_COST);
            }
            Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => self.take(2, class::perl(c), 4),
            _ => {
                let (c, rest) = escape(at)?;
                self.rest = rest;
                match char::from_u32(c) {
                    Some(c) => self.push(literal(c), c.len_utf8()),
                    None => self.push(NOTHING.to_owned(), 1),
                }
            }
        }
        Ok(())
    }
}

fn unique(flags: &str) -> String {
    let mut seen = String::new();
    flags.chars().for_each(|flag| {
        if !seen.contains(flag) {
            seen.push(flag);
        }
    });
    seen
}

/// The counts of `{n,m}` and what follows; none if this is no repetition.
fn counts(at: &str) -> Option<(Count, Count, &str)> {
    let (min, rest) = integer(at.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (min, rest),
        Some(rest) if rest.starts_with('}') => (Count::Open, rest),
        Some(rest) => integer(rest)?,
    };
    Some((min, max, rest.strip_prefix('}')?))
}

fn integer(at: &str) -> Option<(Count, &str)> {
    let digits = at.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || (digits > 1 && at.starts_with('0')) {
        return None;
    }
    let number = at[..digits].parse().ok().filter(|_| digits < 9);
    Some((number.map_or(Count::Huge, Count::Number), &at[digits..]))
}

/// The code point of an escape sequence, and what follows.
fn escape(at: &str) -> Parsed<(u32, &str)> {
    let Some(c) = at[1..].chars().next() else {
        return Err(error("trailing backslash at end of expression", ""));
    };
    let mut rest = &at[1 + c.len_utf8()..];
    let octal = |rest: &str| rest.bytes().next().filter(|b| (b'0'..=b'7').contains(b)).map(|b| u32::from(b - b'0'));
    match c {
        '0'..='7' if c == '0' || octal(rest).is_some() => {
            let mut code = c as u32 - '0' as u32;
            for _ in 1..3 {
                let Some(digit) = octal(rest) else { break };
                code = code * 8 + digit;
                rest = &rest[1..];
            }
            return Ok((code, rest));
        }
        'x' => {
            if let Some((code, rest)) = hexadecimal(rest) {
                return Ok((code, rest));
            }
            let read = hexadecimal_end(rest);
            rest = &rest[read..];
        }
        'a' => return Ok((7, rest)),
        'f' => return Ok((12, rest)),
        'n' => return Ok((10, rest)),
        'r' => return Ok((13, rest)),
        't' => return Ok((9, rest)),
        'v' => return Ok((11, rest)),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok((c as u32, rest)),
        _ => {}
    }
    Err(error("invalid escape sequence", before(at, rest)))
}

fn hexadecimal(at: &str) -> Option<(u32, &str)> {
    let (digits, rest) = match at.strip_prefix('{') {
        Some(braced) => braced.split_once('}')?,
        None => (at.get(..2)?, at.get(2..)?),
    };
    let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits.trim_start_matches('0'), 16);
    let code = if digits.bytes().all(|b| b == b'0') { Ok(0) } else { code };
    (is_hex).then_some(code.ok().filter(|code| *code <= 0x10_FFFF)?).map(|code| (code, rest))
}

/// Returns the number of bytes that Go has read of a bad hexadecimal escape when it gives up.
fn hexadecimal_end(at: &str) -> usize {
    match at.strip_prefix('{') {
        Some(braced) => {
            let mut code: u32 = 0;
            let mut read = 1;
            for c in braced.chars() {
                read += c.len_utf8();
                let Some(digit) = c.to_digit(16) else { break };
                code = code.saturating_mul(16).saturating_add(digit);
                if code > 0x10_FFFF {
                    break;
                }
            }
            read
        }
        None => at.chars().take(2).map(char::len_utf8).sum(),
    }
}

// === impl Group ===

impl Group {
    fn new(open: &str) -> Self {
        Self { open: open.to_owned(), before: String::new(), cost: 0, repeats: 1, pieces: Vec::new() }
    }

    fn push(&mut self, piece: Piece) {
        self.cost = self.cost.saturating_add(piece.cost);
        self.pieces.push(piece);
    }

    fn flush(&mut self) {
        for piece in self.pieces.drain(..) {
            self.repeats = self.repeats.max(piece.repeats);
            self.before.push_str(&piece.text);
        }
    }

    fn alternative(&mut self) {
        self.flush();
        self.before.push('|');
        self.cost += 1;
    }

    fn finish(mut self) -> Piece {
        self.flush();
        let close = if self.open.is_empty() { "" } else { ")" };
        Piece {
            text: format!("{}{}{close}", self.open, self.before),
            cost: self.cost,
            repeats: self.repeats,
            is_flags: false,
        }
    }
}
