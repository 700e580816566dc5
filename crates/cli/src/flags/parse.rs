//! Pure: a command line in the syntax of Go's pflag.
//!
//! 1. `--flag=value`, `--flag value`, `-v=4`, `-v 4`, `-v4`; a switch alone is `true` and never takes the next word.
//! 2. `_` in a name is `-`, as Kubernetes normalises.
//! 3. The last use counts, of switches and single values; lists add up, the first use replacing the default.
//! 4. `--` ends the flags. The program takes no other words.

use std::collections::BTreeMap;
use std::time::Duration;

use super::nearest::{did_you_mean, nearest};
use super::{Flag, Value};

/// The flags and what they are set to.
#[derive(Debug)]
pub(crate) struct Parsed {
    values: BTreeMap<&'static str, Value>,
    /// Those that were given, in the order of their first use.
    given: Vec<&'static Flag>,
}

/// Why a command line cannot be taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FlagError {
    #[error("there is no flag {written}{}", did_you_mean(.nearest.as_deref()))]
    Unknown { written: String, nearest: Option<String> },
    #[error("{written:?} is not a flag: it has no name")]
    Nameless { written: String },
    #[error("--{name} needs a value: {}", .example)]
    NeedsValue { name: &'static str, example: String },
    #[error("--{name}: {value:?} {problem}")]
    Value { name: &'static str, value: String, problem: String },
    #[error("no arguments are taken besides flags, but there is {word:?}{}", did_you_mean(.nearest.as_deref()))]
    Argument { word: String, nearest: Option<String> },
}

/// Reads a command line.
pub(crate) fn parse(table: &'static [Flag], words: impl IntoIterator<Item = String>) -> Result<Parsed, FlagError> {
    let mut parsed =
        Parsed { values: table.iter().map(|flag| (flag.name, flag.default_value())).collect(), given: Vec::new() };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            return words.find(|word| !word.is_empty()).map_or(Ok(parsed), |word| Err(argument(table, word)));
        }
        if let Some(long) = word.strip_prefix("--") {
            parsed.long(table, long, &mut words)?;
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            parsed.short(table, short, &mut words)?;
        } else if !word.is_empty() {
            return Err(argument(table, word));
        }
    }
    Ok(parsed)
}

fn argument(table: &[Flag], word: String) -> FlagError {
    let bare = word.split('=').next().unwrap_or_default().replace('_', "-");
    // The dashes were probably forgotten.
    let nearest = nearest(&bare, table.iter().map(|flag| flag.name)).filter(|_| word.len() > 2);
    let nearest = nearest.map(|name| format!("--{name}"));
    FlagError::Argument { word, nearest }
}

// === impl Parsed ===

impl Parsed {
    fn long(
        &mut self,
        table: &'static [Flag],
        text: &str,
        words: &mut impl Iterator<Item = String>,
    ) -> Result<(), FlagError> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
        if name.is_empty() || name.starts_with('-') {
            return Err(FlagError::Nameless { written: format!("--{text}") });
        }
        let normal = name.replace('_', "-");
        let Some(flag) = table.iter().find(|flag| flag.name == normal) else {
            let visible = table.iter().filter(|flag| !flag.hidden).map(|flag| flag.name);
            let nearest = nearest(&normal, visible).map(|name| format!("--{name}"));
            return Err(FlagError::Unknown { written: format!("--{name}"), nearest });
        };
        let value = value.or_else(|| flag.alone().map(ToOwned::to_owned)).or_else(|| words.next());
        self.set(flag, value)
    }

    /// One word of one-letter flags: `-v4`, `-hv=4`.
    fn short(
        &mut self,
        table: &'static [Flag],
        text: &str,
        words: &mut impl Iterator<Item = String>,
    ) -> Result<(), FlagError> {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let Some(flag) = table.iter().find(|flag| flag.short == Some(letter)) else {
                // `-leader-elect` is meant as `--leader-elect`.
                let name = text.split('=').next().unwrap_or_default().replace('_', "-");
                let nearest = nearest(&name, table.iter().filter(|flag| !flag.hidden).map(|flag| flag.name));
                let nearest = nearest.filter(|_| name.len() > 1).map(|name| format!("--{name}"));
                return Err(FlagError::Unknown { written: format!("-{text}"), nearest });
            };
            let value = match rest.strip_prefix('=') {
                Some(value) => Some(std::mem::take(&mut rest)).and(Some(value.to_owned())),
                None => match flag.alone() {
                    Some(alone) => Some(alone.to_owned()),
                    None if rest.is_empty() => words.next(),
                    None => Some(std::mem::take(&mut rest).to_owned()),
                },
            };
            self.set(flag, value)?;
        }
        Ok(())
    }

    fn set(&mut self, flag: &'static Flag, value: Option<String>) -> Result<(), FlagError> {
        let Some(value) = value else {
            let example = format!("--{}={}", flag.name, flag.type_name);
            return Err(FlagError::NeedsValue { name: flag.name, example });
        };
        let first = !self.is_given(flag.name);
        let before = self.values.remove(flag.name).unwrap_or_else(|| flag.default_value());
        let after = before.set(flag.kind, &value, first);
        let after = after.map_err(|problem| FlagError::Value { name: flag.name, value, problem })?;
        self.values.insert(flag.name, after);
        if first {
            self.given.push(flag);
        }
        Ok(())
    }

    /// Those that were given, in the order of their first use.
    pub(crate) fn given(&self) -> &[&'static Flag] {
        &self.given
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|flag| flag.name == name)
    }

    /// Every flag with its value, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(&name, value)| (name, value))
    }

    pub(crate) fn value(&self, name: &str) -> &Value {
        // The names are written in this program; a test reads all of them.
        self.values.get(name).unwrap_or_else(|| unreachable!("there is no flag --{name} in the table"))
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_set()
    }

    pub(crate) fn int(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Int(number) => *number,
            other => unreachable!("--{name} is not a whole number: {other:?}"),
        }
    }

    pub(crate) fn float(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Float32(number) => f64::from(*number),
            Value::Float(number) => *number,
            other => unreachable!("--{name} is not a number: {other:?}"),
        }
    }

    /// None is shorter than zero.
    pub(crate) fn duration(&self, name: &str) -> Duration {
        self.value(name).as_duration().unwrap_or_else(|| unreachable!("--{name} is not a duration"))
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(text) => text,
            other => unreachable!("--{name} is not a text: {other:?}"),
        }
    }

    /// A text, if it is not empty.
    pub(crate) fn some_text(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(crate) fn texts(&self, name: &str) -> &[String] {
        match self.value(name) {
            Value::Texts(list) | Value::Plain(list) => list,
            other => unreachable!("--{name} is not a list: {other:?}"),
        }
    }
}
