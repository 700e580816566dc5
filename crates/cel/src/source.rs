//! The text of an expression, and what is wrong with it, printed as cel-go prints it.

use std::fmt;

/// The number of errors that cel-go prints before it only counts them.
const ERRORS_MAX: usize = 100;
/// Lines longer than this are not repeated below an error.
const SNIPPET_LENGTH_MAX: usize = 16_384;

/// The text of an expression, by code points.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) chars: Vec<char>,
    /// Offsets of the lines after the first, and one past the end.
    line_offsets: Vec<usize>,
}

/// A place in a text: the line from 1, the column from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) line: i64,
    pub(crate) column: i64,
}

/// No place at all, for errors of the whole expression.
pub(crate) const NOWHERE: Location = Location { line: -1, column: -1 };

/// One error and where it is.
#[derive(Clone, Debug)]
struct Issue {
    location: Location,
    message: String,
}

/// The errors of an expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct Issues {
    issues: Vec<Issue>,
    /// With those that were not kept.
    count: usize,
}

// === impl Source ===

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut line_offsets: Vec<usize> =
            chars.iter().enumerate().filter(|(_, char)| **char == '\n').map(|(at, _)| at + 1).collect();
        line_offsets.push(if chars.is_empty() { 0 } else { chars.len() + 1 });
        Self { chars, line_offsets }
    }

    pub(crate) fn location(&self, offset: usize) -> Location {
        if self.chars.is_empty() {
            // As cel-go has it: before the first column.
            return Location { line: 1, column: -1 };
        }
        let before = self.line_offsets.partition_point(|line| *line <= offset);
        let start = if before == 0 { 0 } else { self.line_offsets[before - 1] };
        Location { line: before as i64 + 1, column: (offset - start) as i64 }
    }

    fn line_offset(&self, line: i64) -> Option<usize> {
        match usize::try_from(line).ok()? {
            0 => None,
            1 => Some(0),
            line => self.line_offsets.get(line - 2).copied().filter(|_| line <= self.line_offsets.len()),
        }
    }

    fn snippet(&self, line: i64) -> Option<String> {
        let start = self.line_offset(line)?;
        if self.chars.is_empty() {
            return None;
        }
        let end = self.line_offset(line + 1).map_or(self.chars.len(), |end| end - 1);
        Some(self.chars.get(start..end)?.iter().collect())
    }
}

// === impl Issues ===

impl Issues {
    pub(crate) fn report(&mut self, location: Location, message: impl Into<String>) {
        self.count += 1;
        if self.count <= ERRORS_MAX {
            self.issues.push(Issue { location, message: message.into() });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The errors in the order of their places, each with its line and a mark below it.
    pub(crate) fn display(&mut self, source: &Source) -> String {
        self.issues.sort_by_key(|issue| issue.location);
        let mut texts: Vec<String> = self.issues.iter().map(|issue| issue.display(source)).collect();
        if self.count > ERRORS_MAX {
            texts.push(format!("{} more errors were truncated", self.count - ERRORS_MAX));
        }
        texts.join("\n")
    }
}

impl Issue {
    fn display(&self, source: &Source) -> String {
        let Location { line, column } = self.location;
        let mut text = format!("ERROR: <input>:{line}:{}: {}", column + 1, self.message);
        let Some(snippet) = source.snippet(line).filter(|snippet| snippet.len() <= SNIPPET_LENGTH_MAX) else {
            return text;
        };
        let snippet = snippet.replace('\t', " ");
        text.push_str("\n | ");
        text.push_str(&snippet);
        text.push_str("\n | ");
        let mut chars = snippet.chars();
        for char in chars.by_ref().take(usize::try_from(column).unwrap_or(0)) {
            text.push(if char.len_utf8() > 1 { '\u{ff0e}' } else { '.' });
        }
        text.push(if chars.next().is_some_and(|char| char.len_utf8() > 1) { '\u{ff3e}' } else { '^' });
        text
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_line() {
        let source = Source::new("a +\n\tüb");
        let mut issues = Issues::default();
        issues.report(source.location(6), "late");
        issues.report(source.location(0), "early");
        assert_eq!(
            issues.display(&source),
            "ERROR: <input>:1:1: early\n | a +\n | ^\nERROR: <input>:2:3: late\n |  üb\n | .．^"
        );
    }
}
