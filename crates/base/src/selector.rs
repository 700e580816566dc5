//! Label selectors, equality- and set-based.
//!
//! Two types, as upstream: [`LabelSelector`] is what an object declares in its JSON, anything a user may write;
//! [`Selector`] is what is left after validation: sorted requirements, compact, quick to match, and printable in the
//! syntax of queries, `app=web,tier in (a,b),!canary`.
//!
//! 1. An empty selector matches everything; an absent one matches nothing.
//! 2. All requirements must hold. `!=` and `notin` hold where the label is absent; `>` and `<` do not hold where the
//!    label is absent or no number.
//! 3. Printing and parsing again gives an equal selector. Selectors that state the same requirements are equal, in
//!    whatever order they were stated.
//!
//! Follows `apimachinery/pkg/labels` of Kubernetes 1.37, but for the printed form: `==` is `=`, numbers behind `>` and
//! `<` have no leading zeros, and what was stated twice stands once.

mod declared;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::BuildHasher;

pub use declared::{LabelSelector, LabelSelectorRequirement};
pub use parse::ParseSelectorError;

use crate::validation::{FieldError, FieldErrors, label_value, qualified_name};
use crate::{Istr, StringMap};

/// Requirements on labels, all of which must hold; or nothing at all, which no labels match.
///
/// ```
/// use steersman_base::{Selector, StringMap};
///
/// let selector: Selector = "app=web, tier in (front, back), !canary".parse()?;
/// assert!(selector.matches(&StringMap::from([("app", "web"), ("tier", "back")])));
/// assert!(!selector.matches(&StringMap::from([("app", "web")])));
/// assert_eq!(selector.to_string(), "app=web,!canary,tier in (back,front)");
/// # Ok::<(), steersman_base::selector::ParseSelectorError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Selector(Option<Box<[Requirement]>>);

/// A requirement on one label. Created by [`new`](Requirement::new), which validates.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    key: Istr,
    operator: Operator,
}

/// The relation between a label and values. The lists of a [`Requirement`] are sorted and without repetition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// The label has this value.
    Equals(Istr),
    /// The label has another value, or is not there.
    NotEquals(Istr),
    /// The label has one of these values.
    In(Box<[Istr]>),
    /// The label has none of these values, or is not there.
    NotIn(Box<[Istr]>),
    /// The label is a whole number above this one.
    GreaterThan(i64),
    /// The label is a whole number below this one.
    LessThan(i64),
}

/// A map of labels that a [`Selector`] can match.
pub trait Labels {
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

// === impl Selector ===

impl Selector {
    /// The selector that every set of labels matches.
    #[must_use]
    pub fn everything() -> Self {
        Self(Some(Box::default()))
    }

    /// The selector that no labels match.
    #[must_use]
    pub const fn nothing() -> Self {
        Self(None)
    }

    /// The selector with these requirements.
    #[must_use]
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort();
        requirements.dedup();
        Self(Some(requirements.into()))
    }

    /// The selector that wants exactly these values, such as a Service's or a ReplicationController's. Nothing is
    /// validated: what is no label, no label matches.
    #[must_use]
    pub fn from_labels(labels: &StringMap) -> Self {
        let equals =
            |(key, value): (&Istr, &Istr)| Requirement::unchecked(key.clone(), Operator::Equals(value.clone()));
        Self(Some(labels.iter().map(equals).collect()))
    }

    /// The selector that a field declares: nothing if the field is absent, everything if it is empty.
    ///
    /// # Errors
    /// If a key, operator or value is invalid; the error names each field.
    pub fn from_declared(declared: Option<&LabelSelector>) -> Result<Self, FieldErrors> {
        declared.map_or(Ok(Self::nothing()), LabelSelector::compile)
    }

    /// This selector with more requirements. Nothing stays nothing.
    #[must_use]
    pub fn and(self, requirements: impl IntoIterator<Item = Requirement>) -> Self {
        match self.0 {
            Some(held) => Self::new(held.into_iter().chain(requirements)),
            None => self,
        }
    }

    /// Whether these labels meet all requirements.
    #[must_use]
    pub fn matches(&self, labels: &impl Labels) -> bool {
        self.0.as_ref().is_some_and(|requirements| requirements.iter().all(|requirement| requirement.matches(labels)))
    }

    /// Whether it restricts nothing.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.as_ref().is_some_and(|requirements| requirements.is_empty())
    }

    /// Whether it is [`nothing`](Selector::nothing). Requirements that contradict each other are not found out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    /// The requirements, by key. There are none in both everything and nothing: ask [`is_nothing`](Self::is_nothing).
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The one value that a label must have, if there is one.
    #[must_use]
    pub fn requires_exact_match(&self, key: &str) -> Option<&Istr> {
        self.exact_matches().find(|(held, _)| *held == key).map(|(_, value)| value)
    }

    /// Labels that must have one certain value, by key: what an index can be asked for. The rest is for
    /// [`matches`](Self::matches) to decide.
    pub fn exact_matches(&self) -> impl Iterator<Item = (&Istr, &Istr)> {
        self.requirements().iter().filter_map(|requirement| Some((&requirement.key, requirement.operator.exact()?)))
    }
}

/// An absent selector, which matches nothing.
impl Default for Selector {
    fn default() -> Self {
        Self::nothing()
    }
}

/// The syntax of queries. Everything prints as the empty string; so does nothing, which that syntax cannot express.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements().iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            fmt::Display::fmt(requirement, f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("nothing"),
            Some(requirements) if requirements.is_empty() => f.write_str("everything"),
            Some(_) => fmt::Display::fmt(self, f),
        }
    }
}

// === impl Requirement ===

impl Requirement {
    /// The requirement that this label relates so to its values.
    ///
    /// # Errors
    /// If the key is no qualified name, a value is no label value (a negative number is none), or a list of values is
    /// empty.
    pub fn new(key: &str, operator: Operator) -> Result<Self, FieldErrors> {
        let mut errors = Vec::new();
        let problems = qualified_name(key);
        if !problems.is_empty() {
            errors.push(FieldError::invalid("key", key, problems.join("; ")));
        }
        if matches!(&operator, Operator::In(values) | Operator::NotIn(values) if values.is_empty()) {
            let detail = "for 'in', 'notin' operators, values set can't be empty";
            errors.push(FieldError::invalid("values", serde_json::json!([]), detail));
        }
        let mut check = |at: usize, value: &str| {
            let problems = label_value(value);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(format!("values[{at}][{key}]"), value, problems.join("; ")));
            }
        };
        match &operator {
            Operator::GreaterThan(bound) | Operator::LessThan(bound) => check(0, itoa::Buffer::new().format(*bound)),
            other => other.values().iter().enumerate().for_each(|(at, value)| check(at, value)),
        }
        FieldErrors::check(errors)?;
        Ok(Self::unchecked(Istr::interned(key), operator))
    }

    fn unchecked(key: Istr, operator: Operator) -> Self {
        Self { key, operator: operator.normal() }
    }

    /// The label it is about.
    #[must_use]
    pub fn key(&self) -> &Istr {
        &self.key
    }

    /// Returns the relation and its values.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Whether these labels meet it.
    #[must_use]
    pub fn matches(&self, labels: &impl Labels) -> bool {
        let label = labels.label(&self.key);
        let number = || label.and_then(|value| value.parse::<i64>().ok());
        let is_any = |values: &[Istr]| label.is_some_and(|value| values.iter().any(|wanted| *wanted == *value));
        match &self.operator {
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Equals(wanted) => label == Some(wanted),
            Operator::NotEquals(unwanted) => label != Some(unwanted),
            Operator::In(wanted) => is_any(wanted),
            Operator::NotIn(unwanted) => !is_any(unwanted),
            Operator::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Operator::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.operator {
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals(value) => write!(f, "{key}={value}"),
            Operator::NotEquals(value) => write!(f, "{key}!={value}"),
            Operator::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Operator::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Operator::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Operator::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

impl fmt::Debug for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl Operator ===

impl Operator {
    /// [`In`](Operator::In) these values.
    #[must_use]
    pub fn is_in<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::In(values.into_iter().map(Istr::interned).collect())
    }

    /// [`NotIn`](Operator::NotIn) these values.
    #[must_use]
    pub fn is_not_in<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::NotIn(values.into_iter().map(Istr::interned).collect())
    }

    /// The values it compares with; none for numbers.
    #[must_use]
    pub fn values(&self) -> &[Istr] {
        match self {
            Self::Equals(value) | Self::NotEquals(value) => std::slice::from_ref(value),
            Self::In(values) | Self::NotIn(values) => values,
            Self::Exists | Self::DoesNotExist | Self::GreaterThan(_) | Self::LessThan(_) => &[],
        }
    }

    fn exact(&self) -> Option<&Istr> {
        match self {
            Self::Equals(value) => Some(value),
            Self::In(values) if values.len() == 1 => values.first(),
            _ => None,
        }
    }

    fn normal(self) -> Self {
        let sorted = |values: Box<[Istr]>| {
            if values.is_sorted_by(|left, right| left < right) {
                return values;
            }
            let mut values = values.into_vec();
            values.sort();
            values.dedup();
            values.into()
        };
        match self {
            Self::In(values) => Self::In(sorted(values)),
            Self::NotIn(values) => Self::NotIn(sorted(values)),
            other => other,
        }
    }
}

// === impl Labels ===

impl Labels for StringMap {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(Istr::as_str)
    }
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<S: BuildHasher> Labels for HashMap<String, String, S> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// No map has no labels.
impl<L: Labels> Labels for Option<L> {
    fn label(&self, key: &str) -> Option<&str> {
        self.as_ref()?.label(key)
    }
}

impl<L: Labels + ?Sized> Labels for &L {
    fn label(&self, key: &str) -> Option<&str> {
        (**self).label(key)
    }
}
