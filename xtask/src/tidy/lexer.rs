//! Just enough of Rust's grammar to distinguish code from comments and strings, and to find functions.
//!
//! [`Source::code`] is the text with comments, strings and character literals replaced by spaces. Every
//! line keeps its number, so a search in it finds code only and knows where.

use std::ops::Range;

/// A Rust file.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    /// As long as `text` in characters per line, without what is not code.
    pub(crate) code: String,
    /// Lines (from 1) of modules under `#[cfg(test)]`.
    pub(crate) test_lines: Vec<Range<usize>>,
}

/// A function with a body.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// From the line of `fn` to the line of the closing brace.
    pub(crate) lines: Range<usize>,
}

/// Replaces by spaces what is not code.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skipped(&chars, at);
        if end > at {
            code.extend(chars[at..end].iter().map(|char| if *char == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            code.push(chars[at]);
            at += 1;
        }
    }
    code
}

/// The end of the comment or literal that starts at `at`; `at` itself if none does.
fn skipped(chars: &[char], at: usize) -> usize {
    let next = |offset: usize| chars.get(at + offset).copied();
    match (chars[at], next(1)) {
        ('/', Some('/')) => find(chars, at, |char| char == '\n').unwrap_or(chars.len()),
        ('/', Some('*')) => block_comment(chars, at),
        ('"', _) => string(chars, at),
        ('\'', Some('\\')) => find(chars, at + 3, |char| char == '\'').map_or(chars.len(), |end| end + 1),
        // `'a'` is a character, `'a` a lifetime.
        ('\'', Some(_)) if next(2) == Some('\'') => at + 3,
        ('r' | 'b' | 'c', Some(_)) if !at.checked_sub(1).is_some_and(|before| is_word(chars[before])) => raw(chars, at),
        _ => at,
    }
}

fn find(chars: &[char], from: usize, matches: impl Fn(char) -> bool) -> Option<usize> {
    chars.get(from..)?.iter().position(|char| matches(*char)).map(|offset| from + offset)
}

/// Rust's block comments nest.
fn block_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string(chars: &[char], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `r"…"`, `br##"…"##`, `b"…"`, `c"…"`; `b'x'` is left to the quote, `r#name` is no literal.
fn raw(chars: &[char], start: usize) -> usize {
    let mut at = start;
    while matches!(chars.get(at), Some('b' | 'c' | 'r')) && at - start < 2 {
        at += 1;
    }
    let hashes = chars[at..].iter().take_while(|char| **char == '#').count();
    if chars.get(at + hashes) != Some(&'"') {
        return start;
    }
    if chars[at - 1] != 'r' {
        return if hashes == 0 { string(chars, at) } else { start };
    }
    let body = at + hashes + 1;
    let closes = |end: usize| {
        chars[end] == '"' && chars.len() > end + hashes && chars[end + 1..=end + hashes].iter().all(|char| *char == '#')
    };
    (body..chars.len()).find(|end| closes(*end)).map_or(chars.len(), |end| end + hashes + 1)
}

pub(crate) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Where `word` stands in `line` as a word of its own, if it does.
pub(crate) fn find_word(line: &str, word: &str) -> Option<usize> {
    // Only an end of `word` that is a letter can grow into a longer word.
    let bounded = |at: usize| {
        let grows_left = word.starts_with(is_word) && line[..at].ends_with(is_word);
        let grows_right = word.ends_with(is_word) && line[at + word.len()..].starts_with(is_word);
        !grows_left && !grows_right
    };
    line.match_indices(word).map(|(at, _)| at).find(|at| bounded(*at))
}

// === impl Source ===

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut source = Self { text, code: blank(text), test_lines: Vec::new() };
        source.test_lines = source.test_modules();
        source
    }

    /// Lines of code with their numbers, tests included.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Every function with a body, those in other functions too.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let words = self.words("fn");
        words.into_iter().filter_map(|at| self.function(at)).collect()
    }

    fn function(&self, at: usize) -> Option<Function> {
        let rest = &self.code[at + "fn".len()..];
        let name: String = rest.trim_start().chars().take_while(|char| is_word(*char)).collect();
        // Without a name it is the type of a function pointer.
        if name.is_empty() {
            return None;
        }
        let body = self.body(at)?;
        Some(Function { name, lines: self.line(at)..self.line(body.end) + 1 })
    }

    fn test_modules(&self) -> Vec<Range<usize>> {
        let attributes = self.code.match_indices("#[cfg(test)]").map(|(at, _)| at);
        attributes
            .filter_map(|at| {
                let rest = self.code[at + "#[cfg(test)]".len()..].trim_start();
                let is_module = ["mod ", "pub(crate) mod ", "pub mod "].iter().any(|start| rest.starts_with(start));
                is_module.then(|| self.body(at)).flatten().map(|body| self.line(at)..self.line(body.end) + 1)
            })
            .collect()
    }

    /// The braces of the item that starts at `at`; none if a semicolon ends it first.
    fn body(&self, at: usize) -> Option<Range<usize>> {
        let mut nested = 0_i32;
        let mut braces = 0_i32;
        let mut start = None;
        for (offset, byte) in self.code.as_bytes()[at..].iter().enumerate() {
            match byte {
                b'(' | b'[' if braces == 0 => nested += 1,
                b')' | b']' if braces == 0 => nested -= 1,
                // In brackets it is the length of an array.
                b';' if braces == 0 && nested == 0 => return None,
                b'{' if nested == 0 => {
                    braces += 1;
                    start.get_or_insert(at + offset);
                }
                b'}' if nested == 0 && braces > 0 => {
                    braces -= 1;
                    if braces == 0 {
                        return Some(start?..at + offset);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Where `word` stands as a word of its own.
    fn words(&self, word: &str) -> Vec<usize> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = find_word(&self.code[from..], word) {
            found.push(from + at);
            from += at + word.len();
        }
        found
    }

    fn line(&self, at: usize) -> usize {
        self.code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, find_word};

    #[test]
    fn comments_strings_and_characters_are_blanked_and_lines_kept() {
        for (text, hidden) in [
            ("a // b\nc", vec!["// b"]),
            ("a /* b /* c */ d */ e", vec!["/* b /* c */ d */"]),
            (r#"f("x\"y", z)"#, vec![r#""x\"y""#]),
            ("r#\"a\"b\"#.c", vec!["r#\"a\"b\"#"]),
            ("br\"a\\\" + x", vec!["br\"a\\\""]),
            ("b\"a\\\"b\" + x", vec!["b\"a\\\"b\""]),
            (r"('\'', 'a', x)", vec![r"'\''", "'a'"]),
            ("&'a str + b'c'", vec!["'c'"]),
            ("r#fn + xr", vec![]),
            ("\"// a\" b", vec!["\"// a\""]),
            ("'é' + x", vec!["'é'"]),
        ] {
            let want =
                hidden.iter().fold(text.to_owned(), |text, part| text.replace(part, &" ".repeat(part.chars().count())));
            assert_eq!(Source::new(text).code, want, "{text}");
        }
        assert_eq!(Source::new("\"a\nb\" c").code, "  \n   c");
    }

    #[test]
    fn functions_are_found_with_their_lines_and_pointers_and_declarations_are_not() {
        let text = "fn a() {}\ntrait T {\n    fn declared(&self, x: [u8; 2]);\n    fn b<F>(f: F) -> [u8; 4]\n    where\n        \
                    F: Fn(),\n    {\n        fn c() { \"}\"; }\n    }\n}\ntype P = fn(u8);\n";
        let found: Vec<_> = Source::new(text).functions().into_iter().map(|f| (f.name, f.lines)).collect();
        assert_eq!(found, [("a".to_owned(), 1..2), ("b".to_owned(), 4..10), ("c".to_owned(), 8..9)]);
    }

    #[test]
    fn lines_of_test_modules_are_known() {
        let source =
            Source::new("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod x;\nfn c() {}\n");
        let lines: Vec<_> = (1..=8).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
    }

    #[test]
    fn words_are_found_whole() {
        assert_eq!(find_word("NoClient, Clients, Client", "Client"), Some(19));
        assert_eq!(find_word("mykube::x; kube::y", "kube::"), Some(11));
        assert_eq!(find_word("x.await", ".await"), Some(1));
    }
}
