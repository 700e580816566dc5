//! Builds trees from tokens, and expands macros while doing so.
//!
//! Follows the grammar of cel-go 0.29 (`parser/gen/CEL.g4`) with its limits: 100,000 code points, 250 levels. On a
//! syntax error it stops where ANTLR would go on, so of several errors in one expression it reports the first.

mod aggregates;
mod macros;
mod syntax;
mod unescape;

use std::sync::Arc;

use crate::ast::{Expr, Id, Kind, Literal};
use crate::escape::RESERVED;
use crate::lexer::{self, Lexeme, Token};
use crate::source::{Issues, Location, NOWHERE, Source};

/// Longest expression, in code points.
const CODE_POINTS_MAX: usize = 100_000;
/// The maximum depth of the rules of the grammar, and of the trees.
const DEPTH_MAX: usize = 250;
/// The maximum number of nodes of a tree. `optMap` doubles its target, so a short chain of them makes a tree that fills
/// any memory; cel-go has no such bound.
const NODES_MAX: u32 = 400_000;

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) source: Source,
    pub(crate) expr: Expr,
    /// The offset at which each node starts, by its identity.
    pub(crate) offsets: Vec<u32>,
}

/// The text is not an expression; all that is wrong is in the [`Issues`].
#[derive(Debug)]
struct Stop;

type Result<T> = std::result::Result<T, Stop>;

struct Parser<'s> {
    source: &'s Source,
    tokens: Vec<Lexeme>,
    at: usize,
    offsets: Vec<u32>,
    issues: Issues,
    expr_depth: usize,
    relation_depth: usize,
    calc_depth: usize,
}

/// A tree and how deep it is, as cel-go's visitor counts.
struct Tree {
    expr: Expr,
    depth: usize,
}

/// Parses a text, or says what is wrong with it.
pub(crate) fn parse(text: &str) -> std::result::Result<Parsed, String> {
    let size = text.chars().count();
    if size > CODE_POINTS_MAX {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {CODE_POINTS_MAX}"
        ));
    }
    let source = Source::new(text);
    let mut issues = Issues::default();
    let tokens = lexer::tokens(&source, &mut issues);
    let mut parser = Parser {
        source: &source,
        tokens,
        at: 0,
        offsets: vec![0],
        issues,
        expr_depth: 0,
        relation_depth: 0,
        calc_depth: 0,
    };
    let parsed = parser.start();
    let Parser { mut issues, offsets, .. } = parser;
    match parsed {
        Ok(expr) if issues.is_empty() => Ok(Parsed { source, expr, offsets }),
        _ => Err(issues.display(&source)),
    }
}

// === impl Parser ===

impl Parser<'_> {
    fn start(&mut self) -> Result<Expr> {
        let tree = self.expr()?;
        self.expect(Token::Eof)?;
        Ok(tree.expr)
    }

    fn peek(&self) -> Token {
        self.tokens[self.at].token
    }

    fn peek_second(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)].token
    }

    fn advance(&mut self) -> Lexeme {
        let lexeme = self.tokens[self.at];
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        lexeme
    }

    fn accept(&mut self, token: Token) -> Option<Lexeme> {
        (self.peek() == token).then(|| self.advance())
    }

    fn text(&self, lexeme: Lexeme) -> String {
        self.source.chars[lexeme.start..lexeme.end].iter().collect()
    }

    fn id_at(&mut self, offset: usize) -> Id {
        self.offsets.push(offset as u32);
        (self.offsets.len() - 1) as Id
    }

    fn location(&self, id: Id) -> Location {
        self.source.location(self.offsets[id as usize] as usize)
    }

    /// Reports an error at a place, and stands something in for what is wrong.
    fn report(&mut self, offset: usize, message: impl Into<String>) -> Expr {
        self.issues.report(self.source.location(offset), message);
        Expr::new(self.id_at(offset), Kind::Unspecified)
    }

    fn stop<T>(&mut self, message: &str) -> Result<T> {
        self.issues.report(NOWHERE, message);
        Err(Stop)
    }

    /// A node above others, unless it is too deep.
    fn above(&mut self, depth: usize, expr: Expr) -> Result<Tree> {
        if depth > DEPTH_MAX {
            return self.stop("max recursion depth exceeded");
        }
        if self.offsets.len() as u32 > NODES_MAX {
            return self.stop("expression is too large after macros are expanded");
        }
        Ok(Tree { expr, depth })
    }

    /// Enters a rule of the grammar that may nest.
    fn enter(&mut self, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return self.stop(&format!("expression recursion limit exceeded: {DEPTH_MAX}"));
        }
        Ok(())
    }

    fn expr(&mut self) -> Result<Tree> {
        self.expr_depth += 1;
        self.enter(self.expr_depth)?;
        let condition = self.binary(1)?;
        let tree = if let Some(op) = self.accept(Token::Question) {
            let id = self.id_at(op.start);
            let truthy = self.binary(1)?;
            self.expect(Token::Colon)?;
            let falsy = self.expr()?;
            let depth = 1 + condition.depth.max(truthy.depth).max(falsy.depth);
            let args = vec![condition.expr, truthy.expr, falsy.expr];
            self.above(depth, call(id, "_?_:_", args))?
        } else {
            condition
        };
        self.expr_depth -= 1;
        Ok(tree)
    }

    /// Operators that bind at least this tightly: 1 `||`, 2 `&&`, 3 relations, 4 sums, 5 products.
    fn binary(&mut self, level: usize) -> Result<Tree> {
        if level <= 3 {
            self.relation_depth += 1;
            self.enter(self.relation_depth)?;
        }
        self.calc_depth += 1;
        self.enter(self.calc_depth)?;
        let mut left = self.unary()?;
        while let Some((name, tightness)) = operator(self.peek()).filter(|(_, tightness)| *tightness >= level) {
            left = if tightness <= 2 {
                self.logic(name, tightness, left)?
            } else {
                let op = self.advance();
                let id = self.id_at(op.start);
                let right = self.binary(tightness + 1)?;
                self.above(1 + left.depth.max(right.depth), call(id, name, vec![left.expr, right.expr]))?
            };
        }
        self.calc_depth -= 1;
        if level <= 3 {
            self.relation_depth -= 1;
        }
        Ok(left)
    }

    /// A chain of `&&` or `||` as a balanced tree.
    fn logic(&mut self, name: &'static str, tightness: usize, first: Tree) -> Result<Tree> {
        let mut depth = first.depth;
        let mut terms = vec![Some(first.expr)];
        let mut ops = Vec::new();
        let token = self.peek();
        while let Some(op) = self.accept(token) {
            let term = self.binary(tightness + 1)?;
            depth = depth.max(term.depth);
            terms.push(Some(term.expr));
            ops.push(self.id_at(op.start));
        }
        let expr = balanced(name, &mut terms, &ops, 0, ops.len() - 1);
        self.above(depth, expr)
    }

    fn unary(&mut self) -> Result<Tree> {
        let token = self.peek();
        let second = self.peek_second();
        let is_sign = token == Token::Minus && matches!(second, Token::Int | Token::Float);
        if !matches!(token, Token::Not | Token::Minus) || is_sign {
            return self.member();
        }
        let first = self.tokens[self.at].start;
        let mut count = 0;
        while self.accept(token).is_some() {
            count += 1;
        }
        if count % 2 == 0 {
            return self.member();
        }
        let id = self.id_at(first);
        let Tree { expr, depth } = self.member()?;
        self.above(depth, call(id, if token == Token::Not { "!_" } else { "-_" }, vec![expr]))
    }

    fn member(&mut self) -> Result<Tree> {
        let mut tree = self.primary()?;
        loop {
            tree = match self.peek() {
                Token::Dot => self.select(tree)?,
                Token::LeftBracket => self.index(tree)?,
                _ => return Ok(tree),
            };
        }
    }

    fn select(&mut self, operand: Tree) -> Result<Tree> {
        let dot = self.advance();
        let optional = self.accept(Token::Question).is_some();
        let name = self.tokens[self.at];
        let text = match name.token {
            Token::Ident => self.text(name),
            Token::EscapedIdent => {
                let text = self.text(name);
                text[1..text.len() - 1].to_owned()
            }
            _ => return self.no_field(optional),
        };
        self.advance();
        if !optional && name.token == Token::Ident && self.peek() == Token::LeftParen {
            return self.member_call(operand, &text);
        }
        let depth = operand.depth + 1;
        let field: Arc<str> = text.into();
        if optional {
            let literal = Expr::new(self.id_at(name.start), Kind::Literal(Literal::String(field)));
            let id = self.id_at(dot.start);
            return self.above(depth, call(id, "_?._", vec![operand.expr, literal]));
        }
        let id = self.id_at(dot.start);
        let kind = Kind::Select { operand: Box::new(operand.expr), field, test_only: false };
        self.above(depth, Expr::new(id, kind))
    }

    fn member_call(&mut self, target: Tree, function: &str) -> Result<Tree> {
        let open = self.advance();
        let id = self.id_at(open.start);
        let (args, depth) = self.args(target.depth)?;
        let expr = self.call_or_macro(id, function, Some(target.expr), args)?;
        self.above(depth + 1, expr)
    }

    fn index(&mut self, operand: Tree) -> Result<Tree> {
        let open = self.advance();
        self.expect_more("'?'", "'true'")?;
        let optional = self.accept(Token::Question).is_some();
        let id = self.id_at(open.start);
        let index = self.expr()?;
        self.expect(Token::RightBracket)?;
        let name = if optional { "_[?_]" } else { "_[_]" };
        self.above(1 + operand.depth.max(index.depth), call(id, name, vec![operand.expr, index.expr]))
    }

    /// Arguments up to the closing parenthesis, and the depth of the deepest of them and of what they belong to.
    fn args(&mut self, mut depth: usize) -> Result<(Vec<Expr>, usize)> {
        let mut args = Vec::new();
        if self.accept(Token::RightParen).is_some() {
            return Ok((args, depth));
        }
        self.expect_more("')'", "'.'")?;
        loop {
            let arg = self.expr()?;
            depth = depth.max(arg.depth);
            args.push(arg.expr);
            if self.accept(Token::Comma).is_none() {
                break;
            }
        }
        self.expect(Token::RightParen)?;
        Ok((args, depth))
    }

    fn primary(&mut self) -> Result<Tree> {
        let start = self.expect_operand()?;
        let leaf = |expr| Ok(Tree { expr, depth: 0 });
        match start.token {
            Token::LeftParen => {
                self.advance();
                let tree = self.expr()?;
                self.expect(Token::RightParen)?;
                Ok(tree)
            }
            Token::LeftBracket => self.list(),
            Token::LeftBrace => self.map(),
            Token::Dot | Token::Ident => self.name(),
            _ => {
                let expr = self.literal()?;
                leaf(expr)
            }
        }
    }

    fn name(&mut self) -> Result<Tree> {
        let start = self.tokens[self.at];
        let dotted = self.accept(Token::Dot).is_some();
        let name = self.expect(Token::Ident)?;
        if self.names_a_message() {
            return self.message(name, dotted);
        }
        let text = self.text(name);
        let is_call = self.peek() == Token::LeftParen;
        if RESERVED.contains(&&*text) {
            let expr = self.report(start.start, format!("reserved identifier: {text}"));
            if is_call {
                self.advance();
                self.args(0)?;
            }
            return Ok(Tree { expr, depth: 0 });
        }
        let full = if dotted { format!(".{text}") } else { text };
        if is_call {
            let open = self.advance();
            let id = self.id_at(open.start);
            let (args, depth) = self.args(0)?;
            let expr = self.call_or_macro(id, &full, None, args)?;
            return self.above(depth, expr);
        }
        let id = self.id_at(name.start);
        Ok(Tree { expr: Expr::new(id, Kind::Ident(full.into())), depth: 0 })
    }

    fn literal(&mut self) -> Result<Expr> {
        let start = self.tokens[self.at].start;
        let negative = self.accept(Token::Minus).is_some();
        let lexeme = self.advance();
        let text = self.text(lexeme);
        let literal = match lexeme.token {
            Token::Int => int(&text, negative).map(Literal::Int).ok_or("invalid int literal"),
            Token::Uint => uint(&text[..text.len() - 1]).map(Literal::Uint).ok_or("invalid uint literal"),
            Token::Float => {
                let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
                value
                    .map(|value| Literal::Double(if negative { -value } else { value }))
                    .ok_or("invalid double literal")
            }
            Token::String => unescape::string(&text).map(|text| Literal::String(text.into())),
            Token::Bytes => unescape::bytes(&text[1..]).map(|bytes| Literal::Bytes(bytes.into())),
            Token::True => Ok(Literal::Bool(true)),
            Token::False => Ok(Literal::Bool(false)),
            _ => Ok(Literal::Null),
        };
        Ok(match literal {
            Ok(literal) => {
                let id = self.id_at(start);
                Expr::new(id, Kind::Literal(literal))
            }
            Err(message) => self.report(start, message),
        })
    }
}

fn call(id: Id, function: &str, args: Vec<Expr>) -> Expr {
    Expr::new(id, Kind::Call { function: function.into(), target: None, args })
}

/// The function of a binary operator, and how tightly it binds.
fn operator(token: Token) -> Option<(&'static str, usize)> {
    Some(match token {
        Token::Or => ("_||_", 1),
        Token::And => ("_&&_", 2),
        Token::Less => ("_<_", 3),
        Token::LessEquals => ("_<=_", 3),
        Token::Greater => ("_>_", 3),
        Token::GreaterEquals => ("_>=_", 3),
        Token::Equals => ("_==_", 3),
        Token::NotEquals => ("_!=_", 3),
        Token::In => ("@in", 3),
        Token::Plus => ("_+_", 4),
        Token::Minus => ("_-_", 4),
        Token::Star => ("_*_", 5),
        Token::Slash => ("_/_", 5),
        Token::Percent => ("_%_", 5),
        _ => return None,
    })
}

fn balanced(name: &str, terms: &mut [Option<Expr>], ops: &[Id], low: usize, high: usize) -> Expr {
    let mid = (low + high).div_ceil(2);
    let mut take = |at: usize| terms[at].take().unwrap_or(Expr::new(0, Kind::Unspecified));
    let left = if mid == low { take(mid) } else { balanced(name, terms, ops, low, mid - 1) };
    let mut take = |at: usize| terms[at].take().unwrap_or(Expr::new(0, Kind::Unspecified));
    let right = if mid == high { take(mid + 1) } else { balanced(name, terms, ops, mid + 1, high) };
    call(ops[mid], name, vec![left, right])
}

fn int(text: &str, negative: bool) -> Option<i64> {
    let value = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16)).ok()?;
    let value = i128::from(value);
    i64::try_from(if negative { -value } else { value }).ok()
}

fn uint(text: &str) -> Option<u64> {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16)).ok()
}
