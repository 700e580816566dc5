//! Failures of commands: a sentence for people and an exit code for scripts.

use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line was wrong: exit code 2.
    Usage(String),
    /// An error: exit code 1. The text says what to do.
    Error(String),
    /// The reason is on the screen already (a test's output, a list of violations): exit code 1.
    Reported,
}

/// The result of a command or a part of one.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

// === impl Failure ===

impl Failure {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    pub(crate) fn usage(problem: &str, usage: &str) -> Self {
        Self::Usage(format!("{problem}\n\n{usage}"))
    }

    /// Makes a failure out of an I/O error: `.map_err(Failure::io("reading", path))`.
    pub(crate) fn io(doing: &str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let what = format!("{doing} {}", path.display());
        move |error| Self::Error(format!("{what}: {error}"))
    }

    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Usage(text) => {
                eprintln!("xtask: {text}");
                ExitCode::from(2)
            }
            Self::Error(text) => {
                eprintln!("xtask: {text}");
                ExitCode::FAILURE
            }
            Self::Reported => ExitCode::FAILURE,
        }
    }
}
