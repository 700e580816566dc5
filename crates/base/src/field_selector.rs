//! Field selectors: `spec.nodeName=n1,status.phase!=Failed`.
//!
//! Values may hold anything; `,`, `=` and `\` are written as `\,`, `\=` and `\\`. Which fields there are is for the
//! resource to know: a selector is matched against a function from field to value, and an absent field is empty.
//!
//! Follows `apimachinery/pkg/fields` of Kubernetes 1.37.

use std::fmt;
use std::str::FromStr;

use crate::Istr;

/// Terms on fields, all of which must hold, sorted; none of them: everything matches.
///
/// ```
/// use steersman_base::FieldSelector;
///
/// let selector: FieldSelector = "spec.nodeName=n1,status.phase!=Failed".parse()?;
/// let field = |name: &str| match name { "spec.nodeName" => "n1", "status.phase" => "Running", _ => "" };
/// assert!(selector.matches(field));
/// assert_eq!(selector.requires_exact_match("spec.nodeName").unwrap(), "n1");
/// # Ok::<(), steersman_base::field_selector::ParseFieldSelectorError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldSelector(Box<[FieldTerm]>);

/// A requirement on one field.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldTerm {
    /// Path of the field, such as `metadata.name`.
    pub field: Istr,
    /// Whether it must have the value or must not.
    pub relation: Relation,
    /// The value, as it is, not escaped.
    pub value: Istr,
}

/// The relation between a field and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// It has the value.
    Equals,
    /// It has another value.
    NotEquals,
}

/// A text that is not a field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFieldSelectorError {
    /// A term without `=`, `==` or `!=`.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator {
        /// The whole text.
        selector: String,
        /// The term that is not understood.
        term: String,
    },
    /// A backslash in front of something that needs none, or at the end.
    #[error("invalid field selector: invalid escape sequence: {sequence} in '{term}'")]
    Escape {
        /// The backslash and what follows it.
        sequence: String,
        /// The term it is in.
        term: String,
    },
    /// A `=` in a value that lacks its backslash.
    #[error("invalid field selector: unescaped character in value: {character} in '{term}'")]
    Unescaped {
        /// The character.
        character: char,
        /// The term it is in.
        term: String,
    },
}

// === impl FieldSelector ===

impl FieldSelector {
    /// The selector that every object matches.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector with these terms.
    #[must_use]
    pub fn new(terms: impl IntoIterator<Item = FieldTerm>) -> Self {
        let mut terms: Vec<_> = terms.into_iter().collect();
        terms.sort();
        terms.dedup();
        Self(terms.into())
    }

    /// The selector that wants one field to have one value.
    #[must_use]
    pub fn equals(field: &str, value: &str) -> Self {
        Self::new([FieldTerm { field: field.into(), relation: Relation::Equals, value: value.into() }])
    }

    /// The selector that wants one field to have any other value.
    #[must_use]
    pub fn not_equals(field: &str, value: &str) -> Self {
        Self::new([FieldTerm { field: field.into(), relation: Relation::NotEquals, value: value.into() }])
    }

    /// Whether all terms hold, for an object whose fields `value_of` knows.
    #[must_use]
    pub fn matches<V: AsRef<str>>(&self, value_of: impl Fn(&str) -> V) -> bool {
        let holds =
            |term: &FieldTerm| (value_of(&term.field).as_ref() == &*term.value) == (term.relation == Relation::Equals);
        self.0.iter().all(holds)
    }

    /// Whether it restricts nothing.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The terms, by field.
    #[must_use]
    pub fn terms(&self) -> &[FieldTerm] {
        &self.0
    }

    /// The one value that a field must have, if there is one.
    #[must_use]
    pub fn requires_exact_match(&self, field: &str) -> Option<&Istr> {
        let exact = |term: &&FieldTerm| term.field == field && term.relation == Relation::Equals;
        self.0.iter().find(exact).map(|term| &term.value)
    }
}

impl FromStr for FieldSelector {
    type Err = ParseFieldSelectorError;
    fn from_str(text: &str) -> Result<Self, ParseFieldSelectorError> {
        let mut terms = Vec::new();
        for term in split_terms(text).filter(|term| !term.is_empty()) {
            let parts = split_term(term);
            let (field, relation, value) = parts.ok_or_else(|| ParseFieldSelectorError::NoOperator {
                selector: text.to_owned(),
                term: term.to_owned(),
            })?;
            let value = unescape(value, term)?;
            // A bare operator has no meaning, and upstream ignores it.
            if !field.is_empty() || !value.is_empty() {
                terms.push(FieldTerm { field: field.into(), relation, value: value.into() });
            }
        }
        Ok(Self::new(terms))
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            fmt::Display::fmt(term, f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_everything() { f.write_str("everything") } else { fmt::Display::fmt(self, f) }
    }
}

// === impl FieldTerm ===

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.relation {
            Relation::Equals => "=",
            Relation::NotEquals => "!=",
        };
        write!(f, "{}{operator}{}", self.field, escape(&self.value))
    }
}

impl fmt::Debug for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Escapes a value for a field selector.
#[must_use]
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// The parts between the commas that no backslash protects.
fn split_terms(text: &str) -> impl Iterator<Item = &str> {
    let mut protected = false;
    text.split(move |c: char| {
        let splits = c == ',' && !protected;
        protected = c == '\\' && !protected;
        splits
    })
}

/// A field's path holds no operator, so the first one splits.
fn split_term(term: &str) -> Option<(&str, Relation, &str)> {
    let at = term.find("!=").into_iter().chain(term.find('=')).min()?;
    let (field, rest) = term.split_at(at);
    Some(if let Some(value) = rest.strip_prefix("!=") {
        (field, Relation::NotEquals, value)
    } else {
        (field, Relation::Equals, rest.strip_prefix("==").unwrap_or(&rest[1..]))
    })
}

fn unescape(value: &str, term: &str) -> Result<String, ParseFieldSelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    let sequence = ['\\'].into_iter().chain(other).collect();
                    return Err(ParseFieldSelectorError::Escape { sequence, term: term.to_owned() });
                }
            },
            ',' | '=' => return Err(ParseFieldSelectorError::Unescaped { character: c, term: term.to_owned() }),
            c => plain.push(c),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selector(text: &str) -> FieldSelector {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_selector_prints_in_canonical_form() {
        let check = |given: &str, want: &str| assert_eq!(selector(given).to_string(), want, "{given}");
        check("", "");
        check(",", "");
        check("a=a,", "a=a");
        check("a=a,=,!=", "a=a");
        check("x=a,y=b,z=c", "x=a,y=b,z=c");
        check("x=a,a==x,m!=n", "a=x,m!=n,x=a");
        check("x=", "x=");
        check(r"x=a||y\=b", r"x=a||y\=b");
        check(r"k=\,,k2=v2", r"k=\,,k2=v2");
        check(r"k=\\,k2=v2", r"k=\\,k2=v2");
        check(r"k=\\\,,k2=v2", r"k=\\\,,k2=v2");
        check("함=수,목=록", "목=록,함=수");
        check("a!b!=c", "a!b!=c");
    }

    #[test]
    fn what_is_no_selector_is_named_in_the_error() {
        let check = |given: &str, want: &str| assert_eq!(given.parse::<FieldSelector>().unwrap_err().to_string(), want);
        check("x", "invalid selector: 'x'; can't understand 'x'");
        check("x=a,b", "invalid selector: 'x=a,b'; can't understand 'b'");
        check("x in (a,b)", "invalid selector: 'x in (a,b)'; can't understand 'x in (a'");
        check("x=a||y=b", "invalid field selector: unescaped character in value: = in 'x=a||y=b'");
        check("x==a==b", "invalid field selector: unescaped character in value: = in 'x==a==b'");
        check(r"k=\a", r"invalid field selector: invalid escape sequence: \a in 'k=\a'");
        check(r"k=\", r"invalid field selector: invalid escape sequence: \ in 'k=\'");
        check(r"k=\\\", r"invalid field selector: invalid escape sequence: \ in 'k=\\\'");
    }

    #[test]
    fn all_terms_must_hold_and_an_absent_field_is_empty() {
        let check = |text: &str, want: bool| {
            let field = |name: &str| match name {
                "metadata.name" => "web",
                "odd" => r"a,b=c\",
                _ => "",
            };
            assert_eq!(selector(text).matches(field), want, "{text}");
        };
        check("", true);
        check("metadata.name=web", true);
        check("metadata.name=db", false);
        check("metadata.name!=db", true);
        check("metadata.name!=web", false);
        check("metadata.name=web,metadata.name!=web", false);
        check("spec.nodeName=", true);
        check("spec.nodeName!=", false);
        check(r"odd=a\,b\=c\\", true);
    }

    #[test]
    fn one_value_can_be_required() {
        let wanted = selector("a=1,b!=2,c!=3,c=4");
        assert_eq!(wanted.requires_exact_match("a").unwrap(), "1");
        assert_eq!(wanted.requires_exact_match("b"), None);
        assert_eq!(wanted.requires_exact_match("c").unwrap(), "4");
    }

    proptest! {
        #[test]
        fn printing_and_parsing_gives_the_selector_back(
            terms in proptest::collection::vec(("[a-z.]{1,5}", any::<bool>(), r"[ab,=\\!é]{0,6}"), 0..4)
        ) {
            let given = FieldSelector::new(terms.into_iter().map(|(field, equal, value)| FieldTerm {
                field: field.into(),
                relation: if equal { Relation::Equals } else { Relation::NotEquals },
                value: value.into(),
            }));
            prop_assert_eq!(selector(&given.to_string()), given);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in r"[ab,=\\!é]{0,12}") {
            if let Ok(parsed) = text.parse::<FieldSelector>() {
                prop_assert_eq!(selector(&parsed.to_string()), parsed);
            }
        }
    }
}
