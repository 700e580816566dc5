//! The flags of kube-controller-manager 1.37.1, in Go's syntax, from a table.
//!
//! 1. Every flag of upstream is in `data/flags.tsv` with its type, default and section; a test holds the table to the
//!    recorded facts.
//! 2. The syntax is that of Go's pflag ([`parse`]): what upstream takes, this takes, and with the same meaning.
//! 3. A flag that has no effect here is known as such ([`Effect`]), so that it can be said once at start.
//! 4. What cannot be taken is one sentence that names the flag, the value and, where there is one, the nearest match.

mod check;
mod go;
mod help;
mod nearest;
mod parse;
#[cfg(test)]
mod tests;
mod value;

use std::sync::LazyLock;

pub(super) use check::check;
pub(super) use help::help;
pub(super) use nearest::{did_you_mean, nearest};
pub(super) use parse::{Parsed, parse};
pub(super) use value::{CertKey, Value};

/// A flag, from its row.
#[derive(Debug)]
pub(super) struct Flag {
    /// The heading that `--help` shows it below.
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    /// Its type, as upstream's help calls it.
    pub(super) type_name: &'static str,
    pub(super) kind: Kind,
    /// As upstream's help shows it; empty for the zero value.
    pub(super) default: &'static str,
    pub(super) short: Option<char>,
    /// Left out of help, as upstream does with flags that will go.
    pub(super) hidden: bool,
    pub(super) effect: Effect,
    pub(super) help: &'static str,
}

/// The type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    Int32,
    Float32,
    Float64,
    Duration,
    Text,
    /// A list, of which each use of the flag adds to the one before.
    Texts,
    Int32s,
    Ip,
    CertKeys,
    Pairs,
    Quantity,
    Level,
    Patterns,
    Gates,
    Version,
}

/// The effect of a flag.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Acts,
    /// Nothing: it is taken so that upstream's command lines work.
    None,
    /// It belongs to these controllers, and has no effect while none of them is implemented.
    Of(Vec<&'static str>),
}

static TABLE: LazyLock<Vec<Flag>> = LazyLock::new(|| {
    let rows = include_str!("../data/flags.tsv").lines().skip(1);
    rows.map(Flag::from_row).collect()
});

/// Every flag, in the order of upstream's help.
pub(super) fn table() -> &'static [Flag] {
    &TABLE
}

// === impl Flag ===

impl Flag {
    /// The table is part of the program, and a test reads all of it: a row cannot be wrong.
    fn from_row(row: &'static str) -> Self {
        let mut columns = row.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let section = next();
        let name = next();
        let type_name = next();
        let default = next();
        let marks = next();
        let effect = match next() {
            "acts" => Effect::Acts,
            "none" => Effect::None,
            controllers => Effect::Of(controllers.split(',').collect()),
        };
        let short = marks.strip_prefix("short=").and_then(|letter| letter.chars().next());
        let kind = Kind::named(type_name).unwrap_or(Kind::Text);
        Self { section, name, type_name, kind, default, short, hidden: marks == "hidden", effect, help: next() }
    }

    /// The value that counts when the flag is not given.
    pub(super) fn default_value(&self) -> Value {
        let text = self.default;
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let zero = Value::zero(self.kind);
        if inner.is_empty() {
            zero
        } else {
            zero.set(self.kind, inner, true).unwrap_or_else(|_| Value::zero(self.kind))
        }
    }

    /// Returns the value of the flag without an argument; `None` if it needs one.
    pub(super) fn alone(&self) -> Option<&'static str> {
        matches!(self.kind, Kind::Bool | Kind::Version).then_some("true")
    }

    /// Whether it does something.
    pub(super) fn does_something(&self) -> bool {
        self.effect != Effect::None
    }
}

// === impl Kind ===

impl Kind {
    fn named(type_name: &str) -> Option<Self> {
        Some(match type_name {
            "bool" => Self::Bool,
            "int" => Self::Int,
            "int32" => Self::Int32,
            "float32" => Self::Float32,
            "float" => Self::Float64,
            "duration" => Self::Duration,
            "string" => Self::Text,
            "strings" => Self::Texts,
            "int32Slice" => Self::Int32s,
            "ip" => Self::Ip,
            "namedCertKey" => Self::CertKeys,
            "stringToString" => Self::Pairs,
            "quantity" => Self::Quantity,
            "Level" => Self::Level,
            "pattern=N,..." => Self::Patterns,
            "colonSeparatedMultimapStringString" => Self::Gates,
            "version[=true]" => Self::Version,
            _ => return None,
        })
    }
}
