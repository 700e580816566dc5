//! Syntax errors in ANTLR's words.
//!
//! ANTLR tries to go on after an error: it drops a token if the next one fits ("extraneous input"), or acts as if one
//! were there if what follows fits ("missing"). The message says which, and the parser here does the same.

use super::{Parser, Result, Stop};
use crate::lexer::{Lexeme, Token};

/// The tokens with which an operand can start, in the order in which ANTLR lists tokens.
const OPERAND: &str =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

impl Parser<'_> {
    /// The token with which an operand starts.
    pub(super) fn expect_operand(&mut self) -> Result<Lexeme> {
        if starts_operand(self.peek()) {
            return Ok(self.tokens[self.at]);
        }
        let found = self.name_of(self.tokens[self.at]);
        if starts_operand(self.peek_second()) && self.peek() != Token::Eof {
            self.syntax_error(&format!("extraneous input {found} expecting {OPERAND}"));
            self.advance();
            return Ok(self.tokens[self.at]);
        }
        self.syntax_error(&format!("mismatched input {found} expecting {OPERAND}"));
        Err(Stop)
    }

    pub(super) fn expect(&mut self, token: Token) -> Result<Lexeme> {
        if self.peek() == token {
            return Ok(self.advance());
        }
        let found = self.name_of(self.tokens[self.at]);
        let expected = display(token);
        if self.peek_second() == token && self.peek() != Token::Eof {
            self.syntax_error(&format!("extraneous input {found} expecting {expected}"));
            self.advance();
            return Ok(self.advance());
        }
        if token == Token::RightParen && follows_operand(self.peek()) {
            self.syntax_error(&format!("missing {expected} at {found}"));
            return Ok(self.tokens[self.at]);
        }
        self.syntax_error(&format!("mismatched input {found} expecting {expected}"));
        Err(Stop)
    }

    /// The end of a list or map, where another comma could have been.
    pub(super) fn expect_end(&mut self, token: Token) -> Result<Lexeme> {
        if self.peek() == token || self.peek_second() == token {
            return self.expect(token);
        }
        let found = self.name_of(self.tokens[self.at]);
        self.syntax_error(&format!("mismatched input {found} expecting {{{}, ','}}", display(token)));
        Err(Stop)
    }

    /// Refuses the end of the text where an operand could start, or what else is named.
    pub(super) fn expect_more(&mut self, with: &str, before: &str) -> Result<()> {
        if self.peek() != Token::Eof {
            return Ok(());
        }
        let expected = OPERAND.replace(before, &format!("{with}, {before}"));
        self.syntax_error(&format!("mismatched input '<EOF>' expecting {expected}"));
        Err(Stop)
    }

    /// The error of a dot that no name follows.
    pub(super) fn no_field<T>(&mut self, optional: bool) -> Result<T> {
        let lexeme = self.tokens[self.at];
        let found = self.name_of(lexeme);
        let message = match lexeme.token {
            Token::True | Token::False | Token::Null => format!("mismatched input {found} expecting IDENTIFIER"),
            _ if optional => format!("mismatched input {found} expecting {{IDENTIFIER, ESC_IDENTIFIER}}"),
            _ => {
                let text = if lexeme.token == Token::Eof { String::new() } else { self.text(lexeme) };
                format!("no viable alternative at input '.{text}'")
            }
        };
        self.syntax_error(&message);
        Err(Stop)
    }

    fn syntax_error(&mut self, message: &str) {
        let location = self.source.location(self.tokens[self.at].start);
        self.issues.report(location, format!("Syntax error: {message}"));
    }

    fn name_of(&self, lexeme: Lexeme) -> String {
        match lexeme.token {
            Token::Eof => "'<EOF>'".to_owned(),
            _ => format!("'{}'", self.text(lexeme).replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")),
        }
    }
}

fn starts_operand(token: Token) -> bool {
    matches!(
        token,
        Token::LeftBracket
            | Token::LeftBrace
            | Token::LeftParen
            | Token::Dot
            | Token::Minus
            | Token::Not
            | Token::True
            | Token::False
            | Token::Null
            | Token::Float
            | Token::Int
            | Token::Uint
            | Token::String
            | Token::Bytes
            | Token::Ident
    )
}

/// Whether a token can follow a whole operand.
fn follows_operand(token: Token) -> bool {
    super::operator(token).is_some()
        || matches!(
            token,
            Token::Eof
                | Token::Question
                | Token::Colon
                | Token::Comma
                | Token::Dot
                | Token::LeftBracket
                | Token::RightBracket
                | Token::RightBrace
                | Token::RightParen
        )
}

fn display(token: Token) -> &'static str {
    match token {
        Token::Eof => "<EOF>",
        Token::RightParen => "')'",
        Token::RightBracket => "']'",
        Token::RightBrace => "'}'",
        Token::Colon => "':'",
        Token::Ident => "IDENTIFIER",
        _ => "token",
    }
}
