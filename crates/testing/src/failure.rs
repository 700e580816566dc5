//! The failure of a scenario.

use std::fmt;

/// The failure of a scenario, with the state of the cluster.
pub struct Failure(String);

/// Fails with `seen`, unless `is_so`.
///
/// # Errors
/// `is_so` is false.
pub fn expect(is_so: bool, what: &str, seen: &impl fmt::Debug) -> Result<(), Failure> {
    if is_so { Ok(()) } else { Err(Failure::new(format!("not so: {what}; seen: {seen:?}"))) }
}

/// Fails with both values, unless they are equal.
///
/// # Errors
/// The values differ.
pub fn expect_eq<T: PartialEq + fmt::Debug>(what: &str, got: &T, want: &T) -> Result<(), Failure> {
    if got == want { Ok(()) } else { Err(Failure::new(format!("{what}: {got:?} instead of {want:?}"))) }
}

// === impl Failure ===

impl Failure {
    /// Creates a failure with this text.
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(text)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
