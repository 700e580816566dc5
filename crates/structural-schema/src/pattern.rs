//! Regular expressions as Go writes them.
//!
//! 1. **Go decides what is a pattern.** It is read by Go's rules and refused with Go's words ([`syntax`]); what is accepted
//!    is translated for the `regex` crate, which has the same guarantee: time linear in the text.
//! 2. **ASCII classes.** `\d`, `\w`, `\s` and `\b` are ASCII, as in Go.
//! 3. **A budget.** The patterns of one schema together compile to no more than [`COST_MAX`] states; the one that would
//!    exceed it is refused as too large. Each distinct pattern is compiled once, when it is first needed.

mod syntax;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};

/// The maximum estimated number of states of all patterns of a schema. Upstream's bound is three million for each
/// pattern; a state takes about 32 bytes here.
pub const COST_MAX: usize = 1 << 20;
/// The maximum number of bytes of one compiled pattern.
const COMPILED_BYTES_MAX: usize = 64 << 20;
/// The maximum number of bytes of the automaton that is built while matching, for each pattern.
const CACHE_BYTES_MAX: usize = 256 << 10;

/// A pattern of a schema.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    /// For the `regex` crate, or Go's sentence about it.
    translated: Result<String, String>,
    compiled: OnceLock<Option<Regex>>,
}

/// The patterns of one schema.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    known: HashMap<String, Arc<Pattern>>,
    cost: usize,
}

// === impl Pattern ===

impl Pattern {
    fn new(text: &str, translated: Result<String, String>) -> Self {
        Self { text: text.to_owned(), translated, compiled: OnceLock::new() }
    }

    /// The pattern as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the error of the pattern, in Go's words.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &self.translated {
            Err(problem) => Some(problem.clone()),
            Ok(_) if self.compiled().is_none() => Some(syntax::too_large(&self.text)),
            Ok(_) => None,
        }
    }

    /// Whether the text has a match anywhere.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled().is_some_and(|regex| regex.is_match(text))
    }

    fn compiled(&self) -> Option<&Regex> {
        let compile = || {
            let mut builder = RegexBuilder::new(self.translated.as_deref().ok()?);
            builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(CACHE_BYTES_MAX);
            builder.build().ok()
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

// === impl Patterns ===

impl Patterns {
    /// Returns a pattern, which is read if it is new.
    pub(crate) fn get(&mut self, text: &str) -> Arc<Pattern> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        let left = COST_MAX.saturating_sub(self.cost);
        let translated = syntax::translate(text, left);
        let pattern = Arc::new(Pattern::new(
            text,
            translated.map(|read| {
                self.cost += read.cost;
                read.text
            }),
        ));
        self.known.insert(text.to_owned(), Arc::clone(&pattern));
        pattern
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Arc<Pattern> {
        Patterns::default().get(text)
    }

    #[test]
    fn classes_are_ascii() {
        for (text, yes, no) in [
            (r"^\d+$", "123", "١٢٣"),
            (r"^\w+$", "az_9", "ä"),
            (r"^\s$", " ", "\u{a0}"),
            (r"^[^\D]$", "7", "x"),
            (r"\bfoo\b", "äfooä", "foox"),
            (r"^\p{Greek}+$", "αβγ", "abc"),
            (r"^[[:alpha:]&&]+$", "a&", "1"),
            (r"^a{,2}$", "a{,2}", "aa"),
            (r"^\Qa.b\E$", "a.b", "axb"),
            (r"(?i)^straße$", "STRAßE", "x"),
        ] {
            let pattern = pattern(text);
            assert_eq!(pattern.problem(), None, "{text}");
            assert!(pattern.is_match(yes) && !pattern.is_match(no), "{text}");
        }
    }

    #[test]
    fn patterns_that_go_refuses_are_refused_in_its_words() {
        for (text, want) in [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("(a{100}){100}", "invalid repeat count: `{100}`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?P<n", "invalid named capture: `(?P<n`"),
            (r"\p{Klingon}", r"invalid character class range: `\p{Klingon}`"),
        ] {
            assert_eq!(pattern(text).problem(), Some(format!("error parsing regexp: {want}")), "{text}");
        }
    }

    #[test]
    fn a_schema_full_of_large_patterns_ends_at_the_budget() {
        let mut patterns = Patterns::default();
        let refused = (0..50).filter(|n| patterns.get(&format!(r"\pL{{1000}}{n}")).translated.is_err()).count();
        assert!(refused >= 49, "{refused}");
        assert!(patterns.get("^a$").problem().is_none());
    }
}
