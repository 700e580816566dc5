//! Resource versions.

use std::cmp::Ordering;
use std::fmt;

use ecow::EcoString;
use serde::{Deserialize, Serialize};

/// The version of an object or of a list, as the server gave it.
///
/// Two versions are comparable only if they belong to one resource and both are plain digits without leading zeros, which
/// every Kubernetes API server since 1.35 promises; they are compared by length and then by text, so that no number
/// type bounds them. All other versions are not comparable, and nothing waits for them.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceVersion(EcoString);

// === impl ResourceVersion ===

impl ResourceVersion {
    /// Returns the version with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(EcoString::from(text))
    }

    /// Returns the text, as used in a query or a precondition.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether no version was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares two versions of the same resource; `None` if they are not comparable.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        (self.is_ordered() && other.is_ordered())
            .then(|| self.0.len().cmp(&other.0.len()).then_with(|| self.as_str().cmp(other.as_str())))
    }

    /// Whether a store at this version shows what was written at `written`; `true` if they are not comparable, so that
    /// nobody waits forever.
    #[must_use]
    pub fn has_reached(&self, written: &Self) -> bool {
        self.compare(written) != Some(Ordering::Less)
    }

    /// Whether this version is known to be newer than `other`.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Greater)
    }

    fn is_ordered(&self) -> bool {
        let digits = self.0.as_bytes();
        !digits.is_empty() && digits[0] != b'0' && digits.iter().all(u8::is_ascii_digit)
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_length_then_text_and_never_as_numbers() {
        let check = |left: &str, right: &str, want: Option<Ordering>| {
            let left = ResourceVersion::new(left);
            let right = ResourceVersion::new(right);
            assert_eq!(left.compare(&right), want, "{left} against {right}");
            assert_eq!(right.compare(&left), want.map(Ordering::reverse), "{right} against {left}");
        };
        check("9", "10", Some(Ordering::Less));
        check("10", "10", Some(Ordering::Equal));
        check("18446744073709551616", "18446744073709551615", Some(Ordering::Greater));
        check("abc", "abc", Some(Ordering::Equal));
        check("abc", "10", None);
        check("", "10", None);
        check("0", "10", None);
        check("010", "9", None);
        check("-1", "9", None);
    }

    #[test]
    fn versions_that_cannot_be_compared_are_not_waited_for() {
        assert!(ResourceVersion::new("abc").has_reached(&"12".into()));
        assert!(!ResourceVersion::new("11").has_reached(&"12".into()));
        assert!(ResourceVersion::new("12").has_reached(&"12".into()));
    }
}
