//! Building the tree, and noticing keys that are written twice.
//!
//! Almost no body has a duplicate, so the first reading only notices that there is one; a second one, with the place in
//! hand, finds out where.

use std::fmt::{self, Write};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Budget, DuplicateKeyPolicy};

use super::plain;
use crate::findings::{Findings, duplicate_field, shown_path};

/// More than the largest body (3 MiB) of the smallest nodes that make sense; the default is too low for big lists.
const YAML_NODES_MAX: usize = 1 << 20;
/// Upstream reads the first document only, but has to skip the others.
const YAML_DOCUMENTS_MAX: usize = 1024;
/// Less than serde_json's: the YAML parser takes some 16 KiB of stack for each level in builds without optimisation, and a
/// thread has 2 MiB. A thread that runs out of stack takes the process with it.
pub(super) const YAML_DEPTH_MAX: usize = 64;

/// The maximum number of events that aliases may stand for in a small text; each may take 160 bytes. In a larger one it
/// is one for some bytes. Aliases of aliases would make a tree of any size from a few hundred bytes.
const YAML_ALIASED_EVENTS_MIN: usize = 1 << 12;
const YAML_BYTES_PER_ALIASED_EVENT: usize = 4;
/// The maximum bytes of the scalars of a small text, and of a larger one for each byte of text; without aliases it is
/// one at most.
const YAML_SCALAR_BYTES_MIN: usize = 1 << 16;
const YAML_SCALAR_BYTES_PER_BYTE: usize = 8;
/// The error of go-yaml for a text in which aliases stand for too much.
const ALIASING: &str = "document contains excessive aliasing";

/// The results of a reading besides the tree.
#[derive(Default)]
struct Found {
    /// The current path; kept only in the second reading.
    path: Option<String>,
    has_duplicates: bool,
    duplicates: Findings,
}

struct Seed<'a>(&'a mut Found);

/// A key: YAML may have numbers and booleans for keys.
struct Key(String);

/// A tree without its findings.
struct Plain(Value);

pub(super) fn from_json(text: &str) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut found = Found::default();
    let mut value = read(text, &mut found)?;
    if found.has_duplicates {
        found.path = Some(String::new());
        // There is never more than one tree.
        drop(std::mem::take(&mut value));
        value = read(text, &mut found)?;
    }
    Ok((value, found.duplicates.into_sentences()))
}

fn read(text: &str, found: &mut Found) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Seed(found).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The first document of a YAML text.
pub(super) fn from_yaml(text: &str) -> Result<(Value, Vec<String>), String> {
    let mut found = Found::default();
    if plain::is_same_in_yaml(text)
        && let Ok(value) = read(text, &mut found)
        && !found.has_duplicates
    {
        return Ok((value, Vec::new()));
    }
    from_other_yaml(text)
}

/// [`from_yaml`] of a text that is no JSON.
pub(super) fn from_other_yaml(text: &str) -> Result<(Value, Vec<String>), String> {
    let first = |documents: Vec<Plain>| documents.into_iter().next().map_or(Value::Null, |Plain(value)| value);
    // Our parser names a duplicate only when it refuses it; almost no text has one.
    let (line, error) = match read_yaml(text, DuplicateKeyPolicy::Error) {
        Ok(documents) => return Ok((first(documents), Vec::new())),
        Err(refused) => refused,
    };
    let documents = read_yaml(text, DuplicateKeyPolicy::LastWins).map_err(|(line, error)| at_line(line, &error))?;
    Ok((first(documents), vec![format!("yaml: unmarshal errors:\n  line {line}: {error}")]))
}

fn read_yaml(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Vec<Plain>, (u64, String)> {
    let mut budget = Budget::default();
    budget.max_nodes = YAML_NODES_MAX;
    budget.max_events = YAML_NODES_MAX * 2;
    budget.max_documents = YAML_DOCUMENTS_MAX;
    budget.max_depth = YAML_DEPTH_MAX;
    budget.max_aliases = YAML_NODES_MAX;
    budget.max_anchors = YAML_NODES_MAX;
    budget.enforce_alias_anchor_ratio = false;
    budget.max_total_scalar_bytes = YAML_SCALAR_BYTES_MIN + YAML_SCALAR_BYTES_PER_BYTE * text.len();
    let aliased = YAML_ALIASED_EVENTS_MIN.max(text.len() / YAML_BYTES_PER_ALIASED_EVENT);
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: aliased },
        budget: Some(budget),
        duplicate_keys: duplicate_keys,
        // Go reads `0644` as octal, which is how everyone writes file modes.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_slice_multiple_with_options(text.as_bytes(), options).map_err(|error| describe(&error))
}

fn describe(error: &serde_saphyr::Error) -> (u64, String) {
    let mut cause = error.without_snippet();
    while let serde_saphyr::Error::AliasError { error, .. } = cause {
        cause = error;
    }
    let breach = match cause {
        serde_saphyr::Error::AliasReplayLimitExceeded { .. } => return (0, ALIASING.to_owned()),
        serde_saphyr::Error::Budget { breach, .. } => Some(breach),
        _ => None,
    };
    if matches!(breach, Some(BudgetBreach::ScalarBytes { .. } | BudgetBreach::Nodes { .. })) {
        return (0, ALIASING.to_owned());
    }
    let line = error.location().map_or(0, |location| location.line());
    if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = error.without_snippet() {
        return (line, format!("key {:?} already set in map", shown_path(key)));
    }
    (line, shown_path(&error.to_string()).into_owned())
}

fn at_line(line: u64, error: &str) -> String {
    if line == 0 { format!("yaml: {error}") } else { format!("yaml: line {line}: {error}") }
}

// === impl Found ===

impl Found {
    /// Goes a step down and returns how to come back.
    fn enter(&mut self, step: impl FnOnce(&mut String)) -> usize {
        let Some(path) = &mut self.path else { return 0 };
        let length = path.len();
        step(path);
        length
    }

    fn back(&mut self, length: usize) {
        if let Some(path) = &mut self.path {
            path.truncate(length);
        }
    }

    fn duplicate(&mut self) {
        self.has_duplicates = true;
        if let Some(path) = &self.path {
            self.duplicates.add(|| duplicate_field(path));
        }
    }
}

// === impl Seed ===

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            let length = self.0.enter(|path| {
                // Writing to a string does not fail.
                let _ = write!(path, "[{}]", elements.len());
            });
            let Some(element) = sequence.next_element_seed(Seed(self.0))? else { break };
            self.0.back(length);
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Map::new();
        while let Some(Key(key)) = map.next_key::<Key>()? {
            let length = self.0.enter(|path| {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key);
            });
            let value = map.next_value_seed(Seed(self.0))?;
            if entries.insert(key, value).is_some() {
                self.0.duplicate();
            }
            self.0.back(length);
        }
        Ok(Value::Object(entries))
    }
}

// === impl Plain ===

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seed(&mut Found::default()).deserialize(deserializer).map(Self)
    }
}

// === impl Key ===

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyScalar;
        impl Visitor<'_> for AnyScalar {
            type Value = String;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, key: &str) -> Result<String, E> {
                Ok(key.to_owned())
            }

            fn visit_string<E>(self, key: String) -> Result<String, E> {
                Ok(key)
            }

            fn visit_bool<E>(self, key: bool) -> Result<String, E> {
                Ok(key.to_string())
            }

            fn visit_i64<E>(self, key: i64) -> Result<String, E> {
                Ok(key.to_string())
            }

            fn visit_u64<E>(self, key: u64) -> Result<String, E> {
                Ok(key.to_string())
            }

            fn visit_f64<E>(self, key: f64) -> Result<String, E> {
                Ok(key.to_string())
            }
        }
        deserializer.deserialize_any(AnyScalar).map(Self)
    }
}
