//! Go's regular expressions, translated for the `regex` crate. Both follow RE2 and match in linear time; they differ in
//! what `\d` means (ASCII in Go), in what may be left unescaped, and in the words of errors.

mod chars;

use std::fmt::Write;

use chars::{POSIX, bounds, cases, class_char, escaped_char, perl_class, push_class_char, push_escaped, unicode_class};
use regex::{Regex, RegexBuilder};

/// The most memory that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 16 << 20;
/// The maximum depth of groups, and the maximum count of a repetition.
const NESTING_MAX: usize = 1000;
const REPEAT_MAX: u32 = 1000;

/// Compiles a pattern, or says what is wrong with it in Go's words.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translator::new(pattern).run().map_err(|error| format!("error parsing regexp: {error}"))?;
    RegexBuilder::new(&translated)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(u32::MAX >> 8)
        .build()
        .map_err(|_| format!("error parsing regexp: expression too large: `{pattern}`"))
}

struct Translator<'p> {
    pattern: &'p str,
    rest: &'p str,
    out: String,
    /// Whether letters match both cases, for each open group.
    fold: Vec<bool>,
    /// The last repetition, if nothing came since.
    repeated: Option<usize>,
    /// Whether there is something that could repeat.
    repeatable: bool,
    names: Vec<String>,
}

type Translated<T> = Result<T, String>;

fn error<T>(code: &str, at: &str) -> Translated<T> {
    Err(format!("{code}: `{at}`"))
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Self {
        Self {
            pattern,
            rest: pattern,
            out: String::with_capacity(pattern.len() + 16),
            fold: vec![false],
            repeated: None,
            repeatable: false,
            names: Vec::new(),
        }
    }

    fn folds(&self) -> bool {
        self.fold.last().copied().unwrap_or_default()
    }

    fn run(mut self) -> Translated<String> {
        while let Some(char) = self.rest.chars().next() {
            let start = self.rest;
            match char {
                '(' => self.open()?,
                ')' => {
                    if self.fold.len() == 1 {
                        return error("unexpected )", self.pattern);
                    }
                    self.fold.pop();
                    self.rest = &start[1..];
                    self.out.push(')');
                    self.operand();
                }
                '|' => {
                    self.rest = &start[1..];
                    self.out.push('|');
                    self.repeatable = false;
                    self.repeated = None;
                }
                '*' | '+' | '?' => self.repeat(1)?,
                '{' => match bounds(start) {
                    Some((length, low, high)) => {
                        let count = &start[..length];
                        if low > REPEAT_MAX || high.is_some_and(|high| high > REPEAT_MAX || high < low) {
                            return error("invalid repeat count", count);
                        }
                        self.repeat(length)?;
                    }
                    None => self.literal('{', 1),
                },
                '[' => self.class()?,
                '\\' => self.escape()?,
                '^' | '$' | '.' => {
                    self.rest = &start[1..];
                    self.out.push(char);
                    self.operand();
                }
                char => self.literal(char, char.len_utf8()),
            }
        }
        if self.fold.len() > 1 {
            return error("missing closing )", self.pattern);
        }
        Ok(self.out)
    }

    fn operand(&mut self) {
        self.repeatable = true;
        self.repeated = None;
    }

    fn literal(&mut self, char: char, length: usize) {
        self.rest = &self.rest[length..];
        if self.folds() && char.is_alphabetic() {
            self.out.push('[');
            for char in cases(char) {
                push_class_char(&mut self.out, char);
            }
            self.out.push(']');
        } else {
            push_escaped(&mut self.out, char);
        }
        self.operand();
    }

    fn repeat(&mut self, length: usize) -> Translated<()> {
        let start = self.pattern.len() - self.rest.len();
        let mut end = start + length;
        if self.pattern[end..].starts_with('?') {
            end += 1;
        }
        let text = &self.pattern[start..end];
        if let Some(before) = self.repeated {
            return error("invalid nested repetition operator", &self.pattern[before..end]);
        }
        if !self.repeatable {
            return error("missing argument to repetition operator", &text[..length]);
        }
        self.out.push_str(text);
        self.rest = &self.pattern[end..];
        self.repeated = Some(start);
        Ok(())
    }

    fn open(&mut self) -> Translated<()> {
        if self.fold.len() > NESTING_MAX {
            return error("expression nests too deeply", self.pattern);
        }
        let rest = self.rest;
        let folds = self.folds();
        self.repeatable = false;
        self.repeated = None;
        let Some(after) = rest.strip_prefix("(?") else {
            self.fold.push(folds);
            self.out.push('(');
            self.rest = &rest[1..];
            return Ok(());
        };
        let prefix = if after.starts_with("P<") {
            4
        } else if after.starts_with('<') && !after.starts_with("<=") && !after.starts_with("<!") {
            3
        } else {
            return self.flags();
        };
        let Some(end) = rest.find('>') else { return error("invalid named capture", rest) };
        let name = &rest[prefix..end];
        let valid = !name.is_empty() && name.chars().all(|char| char == '_' || char.is_alphanumeric());
        if !valid {
            return error("invalid named capture", &rest[..=end]);
        }
        if self.names.iter().any(|known| known == name) {
            return error("duplicate capture group name", name);
        }
        self.names.push(name.to_owned());
        self.fold.push(folds);
        self.out.push('(');
        self.rest = &rest[end + 1..];
        Ok(())
    }

    fn flags(&mut self) -> Translated<()> {
        let rest = self.rest;
        let mut fold = self.folds();
        let mut sign = true;
        let mut any = false;
        let mut on = String::new();
        let mut off = String::new();
        for (at, char) in rest[2..].char_indices() {
            match char {
                'i' => {
                    fold = sign;
                    any = true;
                }
                'm' | 's' | 'U' => {
                    if sign { &mut on } else { &mut off }.push(char);
                    any = true;
                }
                '-' if sign => {
                    sign = false;
                    any = false;
                }
                ':' | ')' => {
                    if !sign && !any {
                        break;
                    }
                    self.rest = &rest[2 + at + 1..];
                    let minus = if off.is_empty() { "" } else { "-" };
                    if char == ':' {
                        let _ = write!(self.out, "(?{on}{minus}{off}:");
                        self.fold.push(fold);
                    } else {
                        if !on.is_empty() || !off.is_empty() {
                            let _ = write!(self.out, "(?{on}{minus}{off})");
                        }
                        if let Some(last) = self.fold.last_mut() {
                            *last = fold;
                        }
                    }
                    return Ok(());
                }
                _ => {
                    let end = 2 + at + char.len_utf8();
                    return error("invalid or unsupported Perl syntax", &rest[..end]);
                }
            }
        }
        if rest.contains(')') || rest.contains(':') {
            return error("invalid or unsupported Perl syntax", rest);
        }
        error("missing closing )", self.pattern)
    }

    fn escape(&mut self) -> Translated<()> {
        let rest = self.rest;
        let Some(char) = rest[1..].chars().next() else {
            return error("trailing backslash at end of expression", "");
        };
        let two = 1 + char.len_utf8();
        match char {
            'A' | 'z' => {
                self.out.push_str(&rest[..2]);
                self.rest = &rest[2..];
                self.operand();
            }
            'b' | 'B' => {
                let _ = write!(self.out, "(?-u:{})", &rest[..2]);
                self.rest = &rest[2..];
                self.operand();
            }
            'Q' => {
                let (text, after) = rest[2..].split_once("\\E").unwrap_or((&rest[2..], ""));
                for char in text.chars() {
                    self.literal(char, 0);
                }
                self.rest = after;
            }
            'p' | 'P' => {
                let length = unicode_class(rest)?;
                self.out.push_str(&rest[..length]);
                self.rest = &rest[length..];
                self.operand();
            }
            _ if perl_class(char).is_some() => {
                self.out.push_str(&perl_class(char).unwrap_or_default());
                self.rest = &rest[two..];
                self.operand();
            }
            _ => {
                let (char, length) = escaped_char(rest)?;
                self.literal(char, length);
            }
        }
        Ok(())
    }

    fn class(&mut self) -> Translated<()> {
        let whole = self.rest;
        let mut rest = &whole[1..];
        self.out.push('[');
        if let Some(after) = rest.strip_prefix('^') {
            self.out.push('^');
            rest = after;
        }
        let mut first = true;
        loop {
            let Some(char) = rest.chars().next() else { return error("missing closing ]", whole) };
            if char == ']' && !first {
                rest = &rest[1..];
                break;
            }
            // A dash is only itself at the ends.
            if char == '-' && !first && !rest[1..].starts_with(']') && !rest[1..].is_empty() {
                let next = rest[1..].chars().next().map_or(0, char::len_utf8);
                return error("invalid character class range", &rest[..1 + next]);
            }
            first = false;
            if rest.starts_with("[:")
                && let Some(end) = rest.find(":]")
            {
                let name = &rest[..end + 2];
                if !POSIX.contains(&name[2..].trim_start_matches('^').trim_end_matches(":]")) {
                    return error("invalid character class range", name);
                }
                self.out.push_str(name);
                rest = &rest[end + 2..];
                continue;
            }
            if rest.starts_with("\\p") || rest.starts_with("\\P") {
                let length = unicode_class(rest)?;
                self.out.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            let perl = rest.strip_prefix('\\').and_then(|after| after.chars().next()).and_then(perl_class);
            if let Some(perl) = perl {
                self.out.push_str(&perl);
                rest = &rest[2..];
                continue;
            }
            rest = self.range(rest, whole)?;
        }
        self.out.push(']');
        self.rest = rest;
        self.operand();
        Ok(())
    }

    /// One character of a class, or a range of them.
    fn range(&mut self, start: &'p str, whole: &str) -> Translated<&'p str> {
        let (low, mut rest) = class_char(start, whole)?;
        let mut high = low;
        if rest.starts_with('-') && !rest[1..].starts_with(']') && rest.len() > 1 {
            (high, rest) = class_char(&rest[1..], whole)?;
            if high < low {
                return error("invalid character class range", &start[..start.len() - rest.len()]);
            }
        }
        push_class_char(&mut self.out, low);
        if high != low {
            self.out.push('-');
            push_class_char(&mut self.out, high);
        }
        if self.folds() {
            for char in (low..=high).filter(char::is_ascii_alphabetic).flat_map(cases) {
                push_class_char(&mut self.out, char);
            }
        }
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        let check = |pattern: &str, text: &str, want: bool| {
            assert_eq!(compile(pattern).map(|regex| regex.is_match(text)), Ok(want), "{pattern} {text}");
        };
        check(r"^\d+$", "12", true);
        check(r"^\d+$", "١", false);
        check(r"^[\w.-]+$", "a_b.c-d", true);
        check(r"^[a-z&&b~~[]+$", "a&~[", true);
        check("a{,2}", "a{,2}", true);
        check("(?i)^HeLLo$", "hEllO", true);
        check(r"^(?P<x>a|b){2,3}?$", "aba", true);
        check(r"\bfoo\b", "a foo b", true);
        check(r"^[[:alpha:]]+$", "abc", true);
        check(r"^\Qa.b\E$", "a.b", true);
        check("^/$", "/", true);
    }

    #[test]
    fn errors_are_those_of_go() {
        let check = |pattern: &str, want: &str| {
            let error = compile(pattern).map(|_| ()).unwrap_err();
            assert_eq!(error, format!("error parsing regexp: {want}"), "{pattern}");
        };
        check("[a", "missing closing ]: `[a`");
        check("(a", "missing closing ): `(a`");
        check("a)", "unexpected ): `a)`");
        check("*a", "missing argument to repetition operator: `*`");
        check("a**", "invalid nested repetition operator: `**`");
        check(r"\y", "invalid escape sequence: `\\y`");
        check("a\\", "trailing backslash at end of expression: ``");
        check("a{1001}", "invalid repeat count: `{1001}`");
        check("[z-a]", "invalid character class range: `z-a`");
        check("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
    }
}
