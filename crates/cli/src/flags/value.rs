//! Pure: what a flag was set to.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use steersman_base::Quantity;

use super::Kind;
use super::go::{self, Float};

/// The value of a flag. It is printed as Go prints it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i64),
    Float32(f32),
    Float(f64),
    /// In nanoseconds; Go's durations may be negative.
    Duration(i64),
    Text(String),
    Texts(Vec<String>),
    Ints(Vec<i64>),
    Ip(IpAddr),
    CertKeys(Vec<CertKey>),
    Pairs(BTreeMap<String, String>),
    Quantity(Quantity),
    /// Items of a list that is not shown in brackets.
    Plain(Vec<String>),
}

/// A certificate for some host names: `cert,key[:name,…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertKey {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) names: Vec<String>,
}

// === impl Value ===

impl Value {
    pub(super) fn zero(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(false),
            Kind::Int | Kind::Int32 | Kind::Level => Self::Int(0),
            Kind::Float32 => Self::Float32(0.0),
            Kind::Float64 => Self::Float(0.0),
            Kind::Duration => Self::Duration(0),
            Kind::Text => Self::Text(String::new()),
            Kind::Version => Self::Text("false".into()),
            Kind::Texts => Self::Texts(Vec::new()),
            Kind::Int32s => Self::Ints(Vec::new()),
            Kind::Ip => Self::Ip(IpAddr::from([0, 0, 0, 0])),
            Kind::CertKeys => Self::CertKeys(Vec::new()),
            Kind::Pairs => Self::Pairs(BTreeMap::new()),
            Kind::Quantity => Self::Quantity(Quantity::default()),
            Kind::Patterns | Kind::Gates => Self::Plain(Vec::new()),
        }
    }

    /// The value after the flag was set to `text`; `first` says that what was there is only the default, which lists
    /// replace. The error completes the sentence *"text" …*.
    pub(super) fn set(self, kind: Kind, text: &str, first: bool) -> Result<Self, String> {
        let before = if first { Self::zero(kind) } else { self };
        Ok(match (kind, before) {
            (Kind::Texts, Self::Texts(list)) => Self::Texts([list, go::parse_csv(text)?].concat()),
            (Kind::Int32s, Self::Ints(list)) => Self::Ints([list, ints(text)?].concat()),
            (Kind::CertKeys, Self::CertKeys(mut list)) => {
                list.push(CertKey::parse(text)?);
                Self::CertKeys(list)
            }
            (Kind::Pairs, Self::Pairs(mut map)) => {
                map.extend(pairs(text)?);
                Self::Pairs(map)
            }
            (Kind::Gates, Self::Plain(list)) => Self::Plain([list, gates(text)?].concat()),
            (Kind::Patterns, _) => Self::Plain(patterns(text)?),
            (_, before) => before.single(kind, text)?,
        })
    }

    fn single(self, kind: Kind, text: &str) -> Result<Self, String> {
        Ok(match kind {
            Kind::Bool => Self::Bool(go::parse_bool(text).ok_or("is neither true nor false")?),
            Kind::Int => Self::Int(go::parse_int(text).ok_or("is not a whole number")?),
            Kind::Int32 => Self::Int(int32(text)?),
            Kind::Level => {
                let level = text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse::<i32>().ok());
                Self::Int(level.flatten().ok_or("is not a level: a whole number, 0 or more")?.into())
            }
            Kind::Float32 => Self::Float32(float32(text).ok_or(NUMBER)?),
            Kind::Float64 => Self::Float(float(text).ok_or(NUMBER)?),
            Kind::Duration => {
                Self::Duration(go::parse_duration(text).ok_or("is not a duration such as 1h2m3s or 500ms")?)
            }
            Kind::Ip if text.is_empty() => self,
            Kind::Ip => Self::Ip(text.trim().parse().map_err(|_| "is not an IP address")?),
            Kind::Quantity => Self::Quantity(text.parse().map_err(|_| "is not a quantity such as 512, 1K or 2Mi")?),
            Kind::Version => Self::Text(version(text)?),
            _ => Self::Text(text.to_owned()),
        })
    }

    /// Whether the flag is set: true, not zero, not empty.
    pub(crate) fn is_set(&self) -> bool {
        match self {
            Self::Bool(on) => *on,
            Self::Int(number) => *number != 0,
            Self::Float32(number) => *number != 0.0,
            Self::Float(number) => *number != 0.0,
            Self::Duration(nanos) => *nanos != 0,
            Self::Text(text) => !text.is_empty(),
            Self::Texts(list) | Self::Plain(list) => !list.is_empty(),
            Self::Ints(list) => !list.is_empty(),
            Self::Ip(_) => true,
            Self::CertKeys(list) => !list.is_empty(),
            Self::Pairs(map) => !map.is_empty(),
            Self::Quantity(quantity) => quantity.value() != 0,
        }
    }

    /// A duration; none below zero.
    pub(crate) fn as_duration(&self) -> Option<Duration> {
        match self {
            Self::Duration(nanos) => Some(Duration::from_nanos(u64::try_from(*nanos).unwrap_or(0))),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| format!("[{}]", items.join(","));
        match self {
            Self::Bool(on) => write!(f, "{on}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float32(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Duration(nanos) => f.write_str(&go::show_duration(*nanos)),
            Self::Text(text) => f.write_str(text),
            Self::Texts(items) => f.write_str(&list(items.clone())),
            Self::Ints(items) => f.write_str(&list(items.iter().map(ToString::to_string).collect())),
            Self::Ip(address) => write!(f, "{address}"),
            Self::CertKeys(items) => {
                f.write_str(&format!("[{}]", items.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")))
            }
            Self::Pairs(map) => f.write_str(&list(map.iter().map(|(key, value)| format!("{key}={value}")).collect())),
            Self::Quantity(quantity) => write!(f, "{quantity}"),
            Self::Plain(items) => f.write_str(&items.join(",")),
        }
    }
}

// === impl CertKey ===

impl CertKey {
    /// `cert,key[:name,…]`.
    fn parse(text: &str) -> Result<Self, String> {
        let (files, names) = text.split_once(':').unwrap_or((text, ""));
        let (cert, key) = files.split_once(',').ok_or("is not of the form cert,key or cert,key:name,…")?;
        let cert = cert.trim();
        let key = key.trim();
        if cert.is_empty() || key.is_empty() || key.contains(',') {
            return Err("is not of the form cert,key or cert,key:name,…".into());
        }
        let names: Vec<_> =
            names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect();
        if names.is_empty() && text.contains(':') {
            return Err("has no names behind the colon".into());
        }
        Ok(Self { cert: cert.into(), key: key.into(), names })
    }
}

impl fmt::Display for CertKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.names.is_empty() { "" } else { ":" };
        write!(f, "{},{}{colon}{}", self.cert, self.key, self.names.join(","))
    }
}

const NUMBER: &str = "is not a number, or too large";

fn float(text: &str) -> Option<f64> {
    let number = match go::parse_float(text)? {
        Float::Decimal(text) => text.parse().ok()?,
        Float::Hexadecimal(number) => number,
    };
    fits(number, text).then_some(number)
}

fn float32(text: &str) -> Option<f32> {
    let number: f32 = match go::parse_float(text)? {
        Float::Decimal(text) => text.parse().ok()?,
        #[expect(clippy::cast_possible_truncation, reason = "the nearest number that fits; what does not, is infinite")]
        Float::Hexadecimal(number) => number as f32,
    };
    fits(number.into(), text).then_some(number)
}

/// Go refuses what does not fit, where Rust calls it infinite.
fn fits(number: f64, text: &str) -> bool {
    number.is_finite() || text.to_ascii_lowercase().contains("inf") || number.is_nan()
}

fn int32(text: &str) -> Result<i64, String> {
    let number = go::parse_int(text).ok_or("is not a whole number")?;
    i32::try_from(number).map(i64::from).map_err(|_| format!("is not between {} and {}", i32::MIN, i32::MAX))
}

fn ints(text: &str) -> Result<Vec<i64>, String> {
    text.split(',').map(|item| int32(item.trim())).collect()
}

/// `key=value,…`. One pair alone keeps its commas, as in Go.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let items =
        if text.matches('=').count() == 1 { vec![text.trim_matches('"').to_owned()] } else { go::parse_csv(text)? };
    let pair = |item: &String| item.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    items.iter().map(|item| pair(item).ok_or_else(|| "is not of the form key=value,…".to_owned())).collect()
}

/// `[component:]Name=value,…`; the one component is `kube`.
fn gates(text: &str) -> Result<Vec<String>, String> {
    let mut list = Vec::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let (component, gate) = item.split_once(':').unwrap_or(("kube", item));
        match component.trim() {
            "" | "kube" if gate.trim().is_empty() => {}
            "" | "kube" => list.push(gate.trim().to_owned()),
            other => return Err(format!("names the component {other:?}; there is only kube")),
        }
    }
    Ok(list)
}

/// `pattern=N,…`.
fn patterns(text: &str) -> Result<Vec<String>, String> {
    let items: Vec<&str> = text.split(',').filter(|item| !item.is_empty()).collect();
    for item in &items {
        let level = item.split_once('=').filter(|(pattern, _)| !pattern.is_empty()).map(|(_, level)| level);
        if level.and_then(|level| level.parse::<u32>().ok()).is_none_or(|level| level > i32::MAX as u32) {
            return Err(format!("is not of the form pattern=N: {item:?}"));
        }
    }
    Ok(items.into_iter().map(ToOwned::to_owned).collect())
}

/// `true`, `raw`, or a version to report instead of our own.
fn version(text: &str) -> Result<String, String> {
    match text {
        "raw" => Ok(text.to_owned()),
        _ if text.starts_with("v1.37.1") => Ok(text.to_owned()),
        _ if text.starts_with('v') => Err("is not the version this is, which starts with v1.37.1".into()),
        _ => match go::parse_bool(text) {
            Some(on) => Ok(on.to_string()),
            None => Err("is neither true, false nor raw".into()),
        },
    }
}
