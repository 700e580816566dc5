//! The syntax of selectors in queries.
//!
//! ```text
//! selector    = [ requirement { "," requirement } ]
//! requirement = [ "!" ] KEY | KEY ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ] | KEY ( "in" | "notin" ) "(" values ")"
//! values      = [ VALUE ] { "," [ VALUE ] }
//! ```
//! White space separates words and means nothing else. `in` and `notin` are words like any other where a key or a value
//! is due.

use std::str::FromStr;

use super::{Operator, Requirement, Selector};
use crate::Istr;
use crate::validation::{FieldError, FieldErrors, label_value, qualified_name};

/// A text that is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse the selector string {selector:?}: {reason}")]
pub struct ParseSelectorError {
    selector: String,
    reason: String,
}

struct Parser<'a> {
    /// The rest of the input.
    rest: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", ">", "<", "(", ")", ","];
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

// === impl ParseSelectorError ===

impl ParseSelectorError {
    /// Returns the text that was parsed.
    #[must_use]
    pub fn selector(&self) -> &str {
        &self.selector
    }

    /// Returns the error in upstream's words.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

// === impl Selector ===

impl FromStr for Selector {
    type Err = ParseSelectorError;
    fn from_str(text: &str) -> Result<Self, ParseSelectorError> {
        let requirements = Parser { rest: text }.selector();
        let requirements = requirements.map_err(|reason| ParseSelectorError { selector: text.to_owned(), reason })?;
        Ok(Self::new(requirements))
    }
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn selector(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        match self.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Symbol("!") => {}
            other @ Token::Symbol(_) => return Err(unexpected(other, "!, identifier, or 'end of string'")),
        }
        loop {
            let requirement = self.requirement();
            requirements.push(requirement.map_err(|problem| format!("unable to parse requirement: {problem}"))?);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Symbol(",") => {}
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
            match self.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                other => return Err(unexpected(other, "identifier after ','")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.take("!");
        let key = self.word()?;
        let problems = qualified_name(key);
        if !problems.is_empty() {
            return Err(FieldError::invalid("key", key, problems.join("; ")).to_string());
        }
        let operator = if negated {
            Operator::DoesNotExist
        } else if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            Operator::Exists
        } else {
            self.operator(key)?
        };
        Requirement::new(key, operator).map_err(|errors| errors.to_string())
    }

    fn operator(&mut self, key: &str) -> Result<Operator, String> {
        Ok(match self.next() {
            Token::Word("in") => Operator::In(self.values()?),
            Token::Word("notin") => Operator::NotIn(self.values()?),
            Token::Symbol("=" | "==") => Operator::Equals(self.value()?.into()),
            Token::Symbol("!=") => Operator::NotEquals(self.value()?.into()),
            Token::Symbol(">") => Operator::GreaterThan(self.number(key)?),
            Token::Symbol("<") => Operator::LessThan(self.number(key)?),
            other => return Err(unexpected(other, OPERATORS)),
        })
    }

    /// `(a,b)`; each value may be empty.
    fn values(&mut self) -> Result<Box<[Istr]>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Token::Word(_) => self.word()?,
                Token::Symbol("," | ")") => "",
                other if values.is_empty() => return Err(unexpected(other, "',', ')' or identifier")),
                other => return Err(unexpected(other, "',', or identifier")),
            };
            values.push(Istr::interned(value));
            match self.next() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => return Ok(values.into()),
                other => return Err(unexpected(other, "',' or ')'")),
            }
        }
    }

    /// The value behind `=`, which may be empty.
    fn value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) { Ok("") } else { self.word() }
    }

    /// The number behind `>` or `<`. It must be a label value too: a sign makes none, and what no label can be is not
    /// compared with.
    fn number(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value()?;
        let number = value.parse::<i64>();
        let mut errors = Vec::new();
        if number.is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid("values[0]", value, detail));
        }
        let problems = label_value(value);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(format!("values[0][{key}]"), value, problems.join("; ")));
        }
        FieldErrors::check(errors).map_err(|errors| errors.to_string())?;
        number.map_err(|error| error.to_string())
    }

    fn word(&mut self) -> Result<&'a str, String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(unexpected(other, "identifier")),
        }
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    fn peek(&self) -> Token<'a> {
        Parser { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
        let text = self.rest.trim_start_matches(BLANKS);
        let token = if text.is_empty() {
            Token::End
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol)) {
            Token::Symbol(symbol)
        } else {
            let end = text.find(|c| BLANKS.contains(&c) || "=!()<>,".contains(c)).unwrap_or(text.len());
            Token::Word(&text[..end])
        };
        self.rest = &text[token.text().len()..];
        token
    }
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

fn unexpected(found: Token<'_>, expected: &str) -> String {
    format!("found '{}', expected: {expected}", found.text())
}
