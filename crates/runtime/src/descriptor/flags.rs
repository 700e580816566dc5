//! What the command line and the feature gates say, as controllers ask for it.
//!
//! 1. A controller reads its options itself, in one function from [`Flags`] to its options; the command line knows no
//!    controller by name.
//! 2. Every question names the default. Without a command line, as in a test, the default is the answer.
//! 3. What was asked for is recorded, so that a test can compare names and defaults with the table of flags; what cannot
//!    be used is recorded as a problem, so that a program can refuse to start.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

/// Where flags and feature gates come from: a command line, or an embedded cluster that knows its own keys.
pub trait FlagSource: Send + Sync {
    /// The value of a flag; `None` if there is no such flag.
    fn flag(&self, name: &str) -> Option<FlagValue>;

    /// Whether a feature gate is on; `None` if there is no such gate.
    fn gate(&self, name: &str) -> Option<bool>;

    /// The file that a flag names; `None` if it names none.
    ///
    /// # Errors
    /// Why the file cannot be read, as a sentence for people.
    fn file(&self, name: &str) -> Result<Option<FlagFile>, String>;

    /// How many API servers the cluster may have.
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
    /// A length of time.
    Duration(Duration),
    /// Any text.
    Text(String),
}

/// A file that a flag names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagFile {
    /// The file's path, or where else the text comes from.
    pub path: String,
    /// The content.
    pub text: String,
}

/// How many API servers a cluster may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiServers {
    /// One: what it has accepted, it knows.
    One,
    /// Several: what one has accepted, the others may not know yet.
    Several,
}

/// Flags and feature gates, as one controller asks for them.
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
    /// What was asked for, and the default.
    pub what: AskedFor,
}

/// What was asked for, and the answer without a command line.
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
    /// The flags of a source.
    #[must_use]
    pub fn of(source: &'a dyn FlagSource) -> Self {
        Self { source: Some(source), ..Self::defaults() }
    }

    /// No command line: every answer is the default.
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

    /// The number that a flag sets.
    #[must_use]
    pub fn int(&self, name: &'static str, default: i64) -> i64 {
        self.value(name, FlagValue::Int(default), default, |value| match value {
            FlagValue::Int(int) => Some(int),
            _ => None,
        })
    }

    /// The length of time that a flag sets.
    #[must_use]
    pub fn duration(&self, name: &'static str, default: Duration) -> Duration {
        self.value(name, FlagValue::Duration(default), default, |value| match value {
            FlagValue::Duration(time) => Some(time),
            _ => None,
        })
    }

    /// The text that a flag sets.
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

    /// What is made of the file that a flag names; `None` if it names none, or if that is no use, which is a
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

    /// How many API servers the cluster may have.
    #[must_use]
    pub fn api_servers(&self) -> ApiServers {
        self.source.map_or(ApiServers::One, FlagSource::api_servers)
    }

    /// What was asked for so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// What is wrong with what was asked for, as sentences for people.
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
