//! Flags and feature gates, as controllers read them.
//!
//! 1. A controller reads its options itself, in one function from [`Flags`] to its options; the command line knows no
//!    controller by name.
//! 2. Every question has a default, which is the answer without a command line, as in a test.
//! 3. Questions are recorded, so that a test can compare names and defaults with the table of flags; values that cannot
//!    be used are recorded as problems, so that a program can refuse to start.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

/// A source of flags and feature gates: a command line, or an embedded cluster that knows its own keys.
pub trait FlagSource: Send + Sync {
    /// Returns the value of a flag; `None` if there is no such flag.
    fn flag(&self, name: &str) -> Option<FlagValue>;

    /// Whether a feature gate is on; `None` if there is no such gate.
    fn gate(&self, name: &str) -> Option<bool>;

    /// Returns the file that a flag names; `None` if it names none.
    ///
    /// # Errors
    /// The file cannot be read; the error is a sentence for people.
    fn file(&self, name: &str) -> Result<Option<FlagFile>, String>;

    /// Returns how many API servers the cluster may have.
    fn api_servers(&self) -> ApiServers {
        ApiServers::One
    }
}

/// The value of a flag.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FlagValue {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A duration.
    Duration(Duration),
    /// Any text.
    Text(String),
}

/// A file that a flag names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagFile {
    /// The file's path, or another source of the text.
    pub path: String,
    /// The content.
    pub text: String,
}

impl FlagFile {
    /// Reads the file.
    ///
    /// # Errors
    /// The problem and the path, if it cannot be read.
    pub fn read(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
        Ok(Self { path: path.to_owned(), text })
    }
}

/// The number of API servers a cluster may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiServers {
    /// One server: it knows everything that it has accepted.
    One,
    /// Several servers: one may not know yet what another has accepted.
    Several,
}

/// Flags and feature gates, as one controller reads them.
pub struct Flags<'a> {
    source: Option<&'a dyn FlagSource>,
    asked: RefCell<Vec<Asked>>,
    problems: RefCell<Vec<String>>,
}

/// A question about a flag or gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The name of the flag or gate.
    pub name: &'static str,
    /// The kind of question, and the default.
    pub what: AskedFor,
}

/// The kind of question, and the default.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedFor {
    /// The value of a flag.
    Flag(FlagValue),
    /// The file that a flag names.
    File,
    /// A feature gate.
    Gate(bool),
}

// === impl Flags ===

impl<'a> Flags<'a> {
    /// Creates the flags of a source.
    #[must_use]
    pub fn of(source: &'a dyn FlagSource) -> Self {
        Self { source: Some(source), ..Self::defaults() }
    }

    /// Creates flags without a command line: every answer is the default.
    #[must_use]
    pub fn defaults() -> Self {
        Self { source: None, asked: RefCell::default(), problems: RefCell::default() }
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self, name: &'static str, default: bool) -> bool {
        self.value(name, FlagValue::Bool(default), default, |value| match value {
            FlagValue::Bool(on) => Some(on),
            _ => None,
        })
    }

    /// Returns the number of a flag.
    #[must_use]
    pub fn int(&self, name: &'static str, default: i64) -> i64 {
        self.value(name, FlagValue::Int(default), default, |value| match value {
            FlagValue::Int(int) => Some(int),
            _ => None,
        })
    }

    /// Returns the number of a flag, which may have a fraction.
    #[must_use]
    pub fn float(&self, name: &'static str, default: f64) -> f64 {
        self.value(name, FlagValue::Float(default), default, |value| match value {
            FlagValue::Float(number) => Some(number),
            _ => None,
        })
    }

    /// Returns the duration of a flag.
    #[must_use]
    pub fn duration(&self, name: &'static str, default: Duration) -> Duration {
        self.value(name, FlagValue::Duration(default), default, |value| match value {
            FlagValue::Duration(time) => Some(time),
            _ => None,
        })
    }

    /// Returns the text of a flag.
    #[must_use]
    pub fn text(&self, name: &'static str, default: &str) -> String {
        self.value(name, FlagValue::Text(default.to_owned()), default.to_owned(), |value| match value {
            FlagValue::Text(text) => Some(text),
            _ => None,
        })
    }

    /// Whether a feature gate is on.
    #[must_use]
    pub fn gate(&self, name: &'static str, default: bool) -> bool {
        self.note(name, AskedFor::Gate(default));
        let Some(source) = self.source else { return default };
        source.gate(name).unwrap_or_else(|| {
            self.problem(format!("there is no feature gate {name}"));
            default
        })
    }

    /// Reads the file that a flag names; `None` if it names none, or if the file cannot be used, which is a
    /// [problem](Self::problems).
    #[must_use]
    pub fn file<T>(&self, name: &'static str, read: impl FnOnce(&FlagFile) -> Result<T, String>) -> Option<T> {
        self.note(name, AskedFor::File);
        let file = self.source?.file(name);
        let made = file.and_then(|file| file.map(|file| read(&file)).transpose());
        made.unwrap_or_else(|problem| {
            self.problem(format!("--{name}: {problem}"));
            None
        })
    }

    /// Returns how many API servers the cluster may have.
    #[must_use]
    pub fn api_servers(&self) -> ApiServers {
        self.source.map_or(ApiServers::One, FlagSource::api_servers)
    }

    /// Returns the questions so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// Returns the problems, as sentences for people.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.problems.borrow().clone()
    }

    fn value<T>(
        &self,
        name: &'static str,
        asked: FlagValue,
        default: T,
        read: impl FnOnce(FlagValue) -> Option<T>,
    ) -> T {
        self.note(name, AskedFor::Flag(asked));
        let Some(source) = self.source else { return default };
        match source.flag(name) {
            None => self.problem(format!("there is no flag --{name}")),
            Some(value) => match read(value) {
                Some(value) => return value,
                None => self.problem(format!("--{name} is a flag of another type")),
            },
        }
        default
    }

    fn note(&self, name: &'static str, what: AskedFor) {
        self.asked.borrow_mut().push(Asked { name, what });
    }

    fn problem(&self, problem: String) {
        self.problems.borrow_mut().push(problem);
    }
}

impl fmt::Debug for Flags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flags").field("asked", &self.asked).field("problems", &self.problems).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given;

    impl FlagSource for Given {
        fn flag(&self, name: &str) -> Option<FlagValue> {
            match name {
                "on" => Some(FlagValue::Bool(true)),
                "seven" => Some(FlagValue::Int(7)),
                "half" => Some(FlagValue::Float(0.5)),
                "hour" => Some(FlagValue::Duration(Duration::from_secs(3600))),
                "word" => Some(FlagValue::Text("word".into())),
                _ => None,
            }
        }

        fn gate(&self, name: &str) -> Option<bool> {
            (name == "Gate").then_some(false)
        }

        fn file(&self, name: &str) -> Result<Option<FlagFile>, String> {
            match name {
                "key" => Ok(Some(FlagFile { path: "a.key".into(), text: "secret".into() })),
                "unreadable" => Err("cannot read b.key".into()),
                _ => Ok(None),
            }
        }
    }

    #[test]
    fn without_a_command_line_the_default_is_the_answer_and_nothing_is_wrong() {
        let flags = Flags::defaults();
        assert!(flags.is_on("on", true) && !flags.is_on("on", false) && flags.gate("Gate", true));
        assert_eq!((flags.int("seven", 3), flags.text("word", "none")), (3, "none".to_owned()));
        assert_eq!(flags.duration("hour", Duration::from_secs(5)), Duration::from_secs(5));
        assert!((flags.float("half", 0.25) - 0.25).abs() < f64::EPSILON);
        assert_eq!(flags.file("key", |file| Ok(file.text.clone())), None);
        assert_eq!(flags.problems(), [""; 0]);
        let asked = flags.asked();
        let want = Asked { name: "hour", what: AskedFor::Flag(FlagValue::Duration(Duration::from_secs(5))) };
        assert!(asked.contains(&want), "{asked:?}");
    }

    #[test]
    fn a_command_line_answers_and_what_it_cannot_answer_is_a_problem() {
        let flags = Flags::of(&Given);
        assert!(flags.is_on("on", false) && !flags.gate("Gate", true));
        assert_eq!((flags.int("seven", 3), flags.text("word", "")), (7, "word".to_owned()));
        assert_eq!(flags.duration("hour", Duration::ZERO), Duration::from_secs(3600));
        assert!((flags.float("half", 0.25) - 0.5).abs() < f64::EPSILON);
        assert_eq!(flags.file("key", |file| Ok(file.text.clone())).as_deref(), Some("secret"));
        assert_eq!(flags.file("not given", |file| Ok(file.text.clone())), None);
        assert_eq!(flags.problems(), [""; 0]);

        assert_eq!(flags.int("nowhere", 3), 3);
        assert_eq!(flags.int("on", 4), 4);
        assert!(flags.gate("Nowhere", true));
        assert_eq!(flags.file("unreadable", |file| Ok(file.text.clone())), None);
        assert_eq!(flags.file("key", |file| Err::<(), _>(format!("cannot use {}: no key", file.path))), None);
        assert_eq!(
            flags.problems(),
            [
                "there is no flag --nowhere",
                "--on is a flag of another type",
                "there is no feature gate Nowhere",
                "--unreadable: cannot read b.key",
                "--key: cannot use a.key: no key",
            ]
        );
    }
}
