//! The level that a namespace has, by its labels `pod-security.kubernetes.io/…`.
//!
//! Follows `api/helpers.go` of `k8s.io/pod-security-admission` 0.37.

use std::fmt;

use crate::field::{Errors, FieldError, Path};

/// The labels of each mode: the level and its version.
const ENFORCE: [&str; 2] = ["pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version"];
const AUDIT: [&str; 2] = ["pod-security.kubernetes.io/audit", "pod-security.kubernetes.io/audit-version"];
const WARN: [&str; 2] = ["pod-security.kubernetes.io/warn", "pod-security.kubernetes.io/warn-version"];

/// A level; a later one is stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A version of the standards: `v1.` and this number, or the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(Option<u64>);

/// A level in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelVersion {
    pub(crate) level: Level,
    pub(crate) version: Version,
}

/// The levels that a namespace wants of its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Pods that are worse are refused.
    pub(crate) enforce: LevelVersion,
    /// Whoever writes worse ones is warned.
    pub(crate) warn: LevelVersion,
}

/// Returns the policy of a namespace with these labels, and what is wrong with them. An unknown level counts as the strictest to
/// enforce, and as none to warn about.
pub(crate) fn policy_of(label: impl Fn(&str) -> Option<String>) -> (Policy, Errors) {
    let mut errors = Errors::default();
    let mut read = |[level, version]: [&str; 2], of_error: Level| {
        let mut read = LevelVersion::PRIVILEGED;
        let of_label = label(level).map(|text| {
            let known = Level::parse(&text);
            if known.is_none() {
                errors.push(invalid(level, &text, "must be one of privileged, baseline, restricted"));
            }
            read.level = known.unwrap_or(of_error);
            known
        });
        let text = label(version);
        if let Some(text) = &text {
            match Version::parse(text) {
                Some(version) => read.version = version,
                None => errors.push(invalid(version, text, "must be \"latest\" or \"v1.x\"")),
            }
        }
        (read, of_label, text.is_some())
    };
    let (enforce, enforced, _) = read(ENFORCE, Level::Restricted);
    read(AUDIT, Level::Privileged);
    let (mut warn, warned, has_version) = read(WARN, Level::Privileged);
    // Who enforces a level and says nothing about warnings is warned about workloads whose pods will be refused.
    if warned.is_none() && enforced.flatten().is_some_and(|level| level > warn.level) {
        warn.level = enforce.level;
        if !has_version {
            warn.version = enforce.version;
        }
    }
    (Policy { enforce, warn }, errors)
}

fn invalid(label: &str, value: &str, why: &str) -> FieldError {
    FieldError::invalid(&Path::new("metadata").child("labels").key(label), value, why)
}

// === impl Level ===

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

// === impl Version ===

impl Version {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self(None));
        }
        let digits = text.strip_prefix("v1.")?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        let number = digits.parse().ok().filter(|number| is_number && i64::try_from(*number).is_ok());
        number.map(|number| Self(Some(number)))
    }

    /// The number behind `v1.`; none if it is the latest.
    pub(crate) fn number(self) -> Option<u32> {
        self.0.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }
}

// === impl LevelVersion ===

impl LevelVersion {
    const PRIVILEGED: Self = Self { level: Level::Privileged, version: Version(None) };

    /// The level that a test names.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        let (level, version) = text.split_once(':').unwrap();
        Self { level: Level::parse(level).unwrap(), version: Version::parse(version).unwrap() }
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version.0 {
            None => write!(f, "{}:latest", self.level.name()),
            Some(number) => write!(f, "{}:v1.{number}", self.level.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const PREFIX: &str = "pod-security.kubernetes.io/";

    type Labels<'a> = &'a [(&'a str, &'a str)];

    fn policy(labels: Labels<'_>) -> (String, String, Vec<String>) {
        let labels: BTreeMap<String, &str> =
            labels.iter().map(|(key, value)| (format!("{PREFIX}{key}"), *value)).collect();
        let (policy, errors) = policy_of(|label| labels.get(label).map(|value| (*value).to_owned()));
        let errors = errors.iter().map(ToString::to_string).collect();
        (policy.enforce.to_string(), policy.warn.to_string(), errors)
    }

    #[test]
    fn labels_say_what_is_enforced_and_what_is_warned_about() {
        let rows: &[(Labels<'_>, &str, &str)] = &[
            (&[], "privileged:latest", "privileged:latest"),
            (&[("enforce", "baseline")], "baseline:latest", "baseline:latest"),
            (&[("enforce", "restricted"), ("enforce-version", "v1.8")], "restricted:v1.8", "restricted:v1.8"),
            (&[("enforce", "restricted"), ("warn-version", "v1.9")], "restricted:latest", "restricted:v1.9"),
            (&[("enforce", "restricted"), ("warn", "baseline")], "restricted:latest", "baseline:latest"),
            (&[("enforce", "restricted"), ("warn", "privileged")], "restricted:latest", "privileged:latest"),
            (&[("warn", "restricted"), ("audit", "baseline")], "privileged:latest", "restricted:latest"),
            (&[("enforce", "privileged"), ("warn-version", "v1.0")], "privileged:latest", "privileged:v1.0"),
        ];
        for (labels, enforce, warn) in rows {
            assert_eq!(policy(labels), ((*enforce).to_owned(), (*warn).to_owned(), vec![]), "{labels:?}");
        }
    }

    #[test]
    fn wrong_labels_enforce_the_strictest_and_warn_about_nothing() {
        let level = |label: &str, value: &str| {
            format!(
                "metadata.labels[{PREFIX}{label}]: Invalid value: {value:?}: must be one of privileged, baseline, restricted"
            )
        };
        let version = |label: &str, value: &str| {
            format!("metadata.labels[{PREFIX}{label}]: Invalid value: {value:?}: must be \"latest\" or \"v1.x\"")
        };
        let (enforce, warn, errors) = policy(&[("enforce", "x"), ("audit", ""), ("warn", "Baseline")]);
        assert_eq!((&*enforce, &*warn), ("restricted:latest", "privileged:latest"));
        assert_eq!(errors, [level("enforce", "x"), level("audit", ""), level("warn", "Baseline")]);
        for wrong in ["v1", "v1.", "v1.01", "v2.0", "1.2", "v1.-1", "v1.+1", "v1.9223372036854775808", "Latest", ""] {
            let (enforce, _, errors) = policy(&[("enforce", "baseline"), ("enforce-version", wrong)]);
            assert_eq!(enforce, "baseline:latest", "{wrong}");
            assert_eq!(errors, [version("enforce-version", wrong)]);
        }
    }
}
