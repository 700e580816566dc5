//! Addresses of mail, as `net/mail.ParseAddress` of Go 1.26 reads them (RFC 5322, and some of its obsolete forms).

use super::uri::parse_ip;

/// The maximum depth of nested comments.
const COMMENTS_MAX: usize = 64;

/// Whether this is one address, with or without a name.
pub(super) fn is_address(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    matches!(parser.address(true), Some(1)) && parser.skip_comments() && parser.rest.is_empty()
}

struct Parser<'a> {
    rest: &'a str,
}

// === impl Parser ===

impl<'a> Parser<'a> {
    /// Reads an address or a group, and says how many addresses it has.
    fn address(&mut self, groups: bool) -> Option<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        if self.spec() {
            self.skip_space();
            if self.rest.starts_with('(') {
                self.comment()?;
            }
            return Some(1);
        }
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if groups && self.consume(':') {
            return self.group();
        }
        (self.consume('<') && self.spec() && self.consume('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        let mut count = 0;
        if self.consume(';') {
            return self.skip_comments().then_some(count);
        }
        loop {
            self.skip_space();
            count += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.consume(';') {
                return self.skip_comments().then_some(count);
            }
            if !self.consume(',') {
                return None;
            }
        }
    }

    /// Reads `local@domain`, or nothing.
    fn spec(&mut self) -> bool {
        let start = self.rest;
        let read = self.spec_parts().is_some();
        if !read {
            self.rest = start;
        }
        read
    }

    fn spec_parts(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted().filter(|length| *length > 0)?;
        } else {
            self.atom().filter(|atom| is_dot_atom(atom))?;
        }
        if !self.consume('@') {
            return None;
        }
        self.skip_space();
        if self.consume('[') {
            let (literal, after) = self.rest.split_once(']')?;
            let is_text = |c: char| c.is_ascii_graphic() && !matches!(c, '[' | '\\') || !c.is_ascii();
            self.rest = after;
            return (literal.chars().all(is_text) && parse_ip(literal).is_some()).then_some(());
        }
        self.atom().filter(|atom| is_dot_atom(atom)).map(|_| ())
    }

    /// Reads words; at least one.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return None;
            }
            self.skip_space();
            if self.rest.is_empty() {
                return Some(());
            }
            let read = if self.rest.starts_with('"') { self.quoted().is_some() } else { self.atom().is_some() };
            if !read {
                return (words > 0).then_some(());
            }
            words += 1;
        }
    }

    /// Reads a quoted string, and says how long it is.
    fn quoted(&mut self) -> Option<usize> {
        let mut is_escaped = false;
        let mut length = 0;
        for (at, c) in self.rest.char_indices().skip(1) {
            let is_space = matches!(c, ' ' | '\t');
            let is_visible = c.is_ascii_graphic() || !c.is_ascii();
            match c {
                _ if is_escaped && (is_visible || is_space) => {
                    is_escaped = false;
                    length += 1;
                }
                _ if is_escaped => return None,
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(length);
                }
                '\\' => is_escaped = true,
                _ if is_visible || is_space => length += 1,
                _ => return None,
            }
        }
        None
    }

    fn atom(&mut self) -> Option<&'a str> {
        let is_text = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
        let end = self.rest.find(|c| !is_text(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return None;
        }
        self.rest = rest;
        Some(atom)
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.rest.starts_with('(') {
            if self.comment().is_none() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    fn comment(&mut self) -> Option<()> {
        let mut depth = 0;
        let mut is_escaped = false;
        for (at, c) in self.rest.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return Some(());
            }
            if depth > COMMENTS_MAX {
                return None;
            }
        }
        None
    }

    fn consume(&mut self, c: char) -> bool {
        let after = self.rest.strip_prefix(c);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }
}

fn is_dot_atom(atom: &str) -> bool {
    !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..")
}
