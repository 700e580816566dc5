//! Semantic versions, read as `blang/semver` reads them.

use std::cmp::Ordering;
use std::fmt;

use crate::gofmt::quote;

/// A version.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    pub(crate) numbers: [u64; 3],
    prerelease: Vec<Part>,
    build: Vec<String>,
}

/// A part of what follows the dash; numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str, which: &str) -> Result<u64, String> {
    if !is_digits(text) {
        return Err(format!("Invalid character(s) found in {which} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        let mut which = which.to_owned();
        which[..1].make_ascii_uppercase();
        return Err(format!("{which} number must not contain leading zeroes {}", quote(text)));
    }
    text.parse().map_err(|_| {
        let problem = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {problem}", quote(text))
    })
}

fn part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if is_digits(text) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
        }
        return text
            .parse()
            .map(Part::Number)
            .map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text)));
    }
    if is_word(text) {
        return Ok(Part::Word(text.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", quote(text)))
}

// === impl Semver ===

impl Semver {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = *parts else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = number(major, "major")?;
        let minor = number(minor, "minor")?;
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, prerelease) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let patch = number(patch, "patch")?;
        let prerelease = prerelease.map_or_else(|| Ok(Vec::new()), |text| text.split('.').map(part).collect())?;
        let mut builds = Vec::new();
        for text in build.iter().flat_map(|build| build.split('.')) {
            if text.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_word(text) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(text)));
            }
            builds.push(text.to_owned());
        }
        Ok(Self { numbers: [major, minor, patch], prerelease, build: builds })
    }

    /// Reads a version that may have a `v`, leading zeroes or too few numbers.
    pub(crate) fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in parts.iter_mut().filter(|part| part.len() > 1) {
            let trimmed = part.trim_start_matches('0');
            let digit = trimmed.starts_with(|char: char| char.is_ascii_digit());
            *part = if digit { trimmed.to_owned() } else { format!("0{trimmed}") };
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    pub(crate) fn compare(&self, other: &Self) -> i64 {
        let order = self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.prerelease.cmp(&other.prerelease),
            }
        });
        order as i64
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (at, part) in self.prerelease.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match part {
                Part::Number(number) => write!(f, "{number}")?,
                Part::Word(word) => f.write_str(word)?,
            }
        }
        for (at, build) in self.build.iter().enumerate() {
            write!(f, "{}{build}", if at == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}
