//! Lists, maps and messages.

use super::{Parser, Result, Tree};
use crate::ast::{Element, Entry, Expr, Field, Kind};
use crate::lexer::{Lexeme, Token};

impl Parser<'_> {
    /// Whether what follows a name is the rest of a message's name and its brace.
    pub(super) fn names_a_message(&self) -> bool {
        let mut rest = self.tokens[self.at..].iter().map(|lexeme| lexeme.token);
        loop {
            match rest.next() {
                Some(Token::LeftBrace) => return true,
                Some(Token::Dot) if rest.next() == Some(Token::Ident) => {}
                _ => return false,
            }
        }
    }

    pub(super) fn message(&mut self, first: Lexeme, dotted: bool) -> Result<Tree> {
        let mut name = if dotted { ".".to_owned() } else { String::new() };
        name.push_str(&self.text(first));
        while self.accept(Token::Dot).is_some() {
            let part = self.advance();
            name.push('.');
            name.push_str(&self.text(part));
        }
        let open = self.advance();
        let id = self.id_at(open.start);
        let mut fields = Vec::new();
        let mut depth = 0;
        while self.peek() != Token::RightBrace {
            if self.peek() == Token::Comma && self.peek_second() == Token::RightBrace {
                break;
            }
            let optional = self.accept(Token::Question).is_some();
            let field = self.tokens[self.at];
            let field_name = match field.token {
                Token::EscapedIdent => {
                    self.advance();
                    let text = self.text(field);
                    text[1..text.len() - 1].to_owned()
                }
                _ => {
                    let field = self.expect(Token::Ident)?;
                    self.text(field)
                }
            };
            let colon = self.expect(Token::Colon)?;
            let field_id = self.id_at(colon.start);
            let value = self.expr()?;
            depth = depth.max(value.depth);
            fields.push(Field { id: field_id, name: field_name.into(), value: value.expr, optional });
            if self.accept(Token::Comma).is_none() {
                break;
            }
        }
        self.accept(Token::Comma);
        self.expect(Token::RightBrace)?;
        self.above(depth, Expr::new(id, Kind::Struct { type_name: name.into(), fields }))
    }

    pub(super) fn list(&mut self) -> Result<Tree> {
        let open = self.advance();
        let id = self.id_at(open.start);
        let mut elements = Vec::new();
        let mut depth = 0;
        while self.peek() != Token::RightBracket {
            if self.peek() == Token::Comma && self.peek_second() == Token::RightBracket && elements.is_empty() {
                self.advance();
                break;
            }
            let optional = self.accept(Token::Question).is_some();
            let element = self.expr()?;
            depth = depth.max(element.depth);
            elements.push(Element { expr: element.expr, optional });
            if self.accept(Token::Comma).is_none() {
                break;
            }
        }
        self.expect_end(Token::RightBracket)?;
        self.above(depth, Expr::new(id, Kind::List { elements }))
    }

    pub(super) fn map(&mut self) -> Result<Tree> {
        let open = self.advance();
        let id = self.id_at(open.start);
        let mut entries = Vec::new();
        let mut depth = 0;
        while self.peek() != Token::RightBrace {
            if self.peek() == Token::Comma && self.peek_second() == Token::RightBrace && entries.is_empty() {
                self.advance();
                break;
            }
            let optional = self.accept(Token::Question).is_some();
            let key = self.expr()?;
            self.expect(Token::Colon)?;
            let value = self.expr()?;
            depth = depth.max(key.depth).max(value.depth);
            entries.push(Entry { key: key.expr, value: value.expr, optional });
            if self.accept(Token::Comma).is_none() {
                break;
            }
        }
        self.expect_end(Token::RightBrace)?;
        self.above(depth, Expr::new(id, Kind::Map { entries }))
    }
}
