//! Splits a text into tokens, with the longest match of the grammar's rules at each place.

use crate::source::{Issues, Source};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Eof,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Not,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscapedIdent,
}

/// A token and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

struct Lexer<'s> {
    chars: &'s [char],
}

/// The tokens of a text, the last of them [`Token::Eof`]. What is none is reported and skipped.
pub(crate) fn tokens(source: &Source, issues: &mut Issues) -> Vec<Lexeme> {
    let lexer = Lexer { chars: &source.chars };
    let mut lexemes = Vec::new();
    let mut at = 0;
    while at < source.chars.len() {
        if let Some(end) = lexer.blank(at) {
            at = end;
            continue;
        }
        match lexer.token(at) {
            Ok((token, end)) => {
                lexemes.push(Lexeme { token, start: at, end });
                at = end;
            }
            Err(failed_at) => {
                let end = (failed_at + 1).min(source.chars.len());
                let text: String = source.chars[at..end].iter().collect();
                let text = text.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
                issues.report(source.location(at), format!("Syntax error: token recognition error at: '{text}'"));
                at = end;
            }
        }
    }
    lexemes.push(Lexeme { token: Token::Eof, start: at, end: at });
    lexemes
}

// === impl Lexer ===

impl Lexer<'_> {
    fn get(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    /// The end of white space or of a comment that starts here.
    fn blank(&self, at: usize) -> Option<usize> {
        match self.get(at)? {
            '\t' | ' ' | '\r' | '\n' | '\u{c}' => Some(at + 1),
            '/' if self.get(at + 1) == Some('/') => {
                Some(self.chars[at..].iter().position(|char| *char == '\n').map_or(self.chars.len(), |len| at + len))
            }
            _ => None,
        }
    }

    /// The token that starts here and its end, or the place of the character that fits no token.
    fn token(&self, at: usize) -> Result<(Token, usize), usize> {
        let first = self.chars[at];
        let next = self.get(at + 1);
        let either = |second, two, one: Option<Token>| match one {
            _ if next == Some(second) => Ok((two, at + 2)),
            Some(one) => Ok((one, at + 1)),
            None => Err(at + 1),
        };
        let one = |token| Ok((token, at + 1));
        match first {
            '=' => either('=', Token::Equals, None),
            '!' => either('=', Token::NotEquals, Some(Token::Not)),
            '<' => either('=', Token::LessEquals, Some(Token::Less)),
            '>' => either('=', Token::GreaterEquals, Some(Token::Greater)),
            '&' => either('&', Token::And, None),
            '|' => either('|', Token::Or, None),
            '[' => one(Token::LeftBracket),
            ']' => one(Token::RightBracket),
            '{' => one(Token::LeftBrace),
            '}' => one(Token::RightBrace),
            '(' => one(Token::LeftParen),
            ')' => one(Token::RightParen),
            ',' => one(Token::Comma),
            '-' => one(Token::Minus),
            '?' => one(Token::Question),
            ':' => one(Token::Colon),
            '+' => one(Token::Plus),
            '*' => one(Token::Star),
            '/' => one(Token::Slash),
            '%' => one(Token::Percent),
            '.' if next.is_some_and(|char| char.is_ascii_digit()) => {
                Ok((Token::Float, self.exponent(self.digits(at + 1))))
            }
            '.' => one(Token::Dot),
            '0'..='9' => Ok(self.number(at)),
            '"' | '\'' => self.string(at, false).map(|end| (Token::String, end)),
            '`' => self.escaped_ident(at),
            'a'..='z' | 'A'..='Z' | '_' => Ok(self.word(at)),
            _ => Err(at),
        }
    }

    fn digits(&self, at: usize) -> usize {
        at + self.chars[at..].iter().take_while(|char| char.is_ascii_digit()).count()
    }

    /// The end of an exponent, or this place if there is none.
    fn exponent(&self, at: usize) -> usize {
        if !matches!(self.get(at), Some('e' | 'E')) {
            return at;
        }
        let digits = at + 1 + usize::from(matches!(self.get(at + 1), Some('+' | '-')));
        if digits < self.chars.len() && self.chars[digits].is_ascii_digit() { self.digits(digits) } else { at }
    }

    fn number(&self, at: usize) -> (Token, usize) {
        let hex = |at: usize| at + self.chars[at..].iter().take_while(|char| char.is_ascii_hexdigit()).count();
        let end = match (self.chars[at], self.get(at + 1)) {
            ('0', Some('x')) if hex(at + 2) > at + 2 => hex(at + 2),
            _ => {
                let whole = self.digits(at);
                let fraction = match self.get(whole) {
                    Some('.') if self.get(whole + 1).is_some_and(|char| char.is_ascii_digit()) => {
                        self.digits(whole + 1)
                    }
                    _ => whole,
                };
                let end = self.exponent(fraction);
                if end > whole {
                    return (Token::Float, end);
                }
                whole
            }
        };
        if matches!(self.get(end), Some('u' | 'U')) { (Token::Uint, end + 1) } else { (Token::Int, end) }
    }

    fn word(&self, at: usize) -> (Token, usize) {
        let is_part = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
        let end = at + self.chars[at..].iter().take_while(|char| is_part(char)).count();
        let word: String = self.chars[at..end.min(at + 8)].iter().collect();
        // A prefix is part of a string only if the whole string is one; otherwise it is a name.
        if end < self.chars.len() && matches!(self.chars[end], '"' | '\'') {
            let (bytes, raw) = match &*word {
                "b" | "B" => (true, false),
                "r" | "R" => (false, true),
                "br" | "bR" | "Br" | "BR" => (true, true),
                _ => return (Token::Ident, end),
            };
            if let Ok(end) = self.string(end, raw) {
                return (if bytes { Token::Bytes } else { Token::String }, end);
            }
        }
        let token = match &*word {
            "in" => Token::In,
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            _ => Token::Ident,
        };
        (token, end)
    }

    fn escaped_ident(&self, at: usize) -> Result<(Token, usize), usize> {
        let is_part = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-' | '/' | ' ');
        let end = at + 1 + self.chars[at + 1..].iter().take_while(|char| is_part(char)).count();
        if end > at + 1 && self.get(end) == Some('`') { Ok((Token::EscapedIdent, end + 1)) } else { Err(end) }
    }

    /// The end of a string whose quote is here.
    fn string(&self, at: usize, raw: bool) -> Result<usize, usize> {
        let quote = self.chars[at];
        if self.get(at + 1) == Some(quote) {
            if self.get(at + 2) == Some(quote)
                && let Ok(end) = self.long_string(at + 3, quote, raw)
            {
                return Ok(end);
            }
            return Ok(at + 2);
        }
        let mut at = at + 1;
        loop {
            match self.get(at).ok_or(at)? {
                '\n' | '\r' => return Err(at),
                char if char == quote => return Ok(at + 1),
                '\\' if !raw => at = self.escape(at)?,
                _ => at += 1,
            }
        }
    }

    fn long_string(&self, mut at: usize, quote: char, raw: bool) -> Result<usize, usize> {
        loop {
            match self.get(at).ok_or(at)? {
                char if char == quote && self.chars[at..].starts_with(&[quote; 3]) => return Ok(at + 3),
                '\\' if !raw => at = self.escape(at)?,
                _ => at += 1,
            }
        }
    }

    /// The end of an escape whose backslash is here.
    fn escape(&self, at: usize) -> Result<usize, usize> {
        let count = |from: usize, count: usize, is: fn(&char) -> bool| {
            let found = self.chars[from.min(self.chars.len())..].iter().take(count).take_while(|char| is(char)).count();
            if found == count { Ok(from + count) } else { Err(from + found) }
        };
        let is_octal = |char: &char| matches!(char, '0'..='7');
        match self.get(at + 1).ok_or(at + 1)? {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => Ok(at + 2),
            'x' | 'X' => count(at + 2, 2, char::is_ascii_hexdigit),
            'u' => count(at + 2, 4, char::is_ascii_hexdigit),
            'U' => count(at + 2, 8, char::is_ascii_hexdigit),
            '0'..='3' => count(at + 2, 2, is_octal),
            _ => Err(at + 1),
        }
    }
}
