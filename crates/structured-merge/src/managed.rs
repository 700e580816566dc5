//! `metadata.managedFields`: who owns which fields.
//!
//! 1. **An owner is a manager, an operation and a subresource.** Updates are distinguished by API version as well; a manager
//!    that applies has one entry, whatever version it applied last.
//! 2. **Order.** Entries are written as upstream does: by operation, time, manager, API version and subresource.
//! 3. **All or nothing.** A list with one entry that cannot be read is no list of managers.
//!
//! Follows `managedfields/internal/managedfields.go` of apimachinery v0.37.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::set::{FieldSet, FieldsError};
use crate::time;
use crate::value;

/// The operation by which a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

/// The identity of an owner of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerId {
    /// The manager's name.
    pub manager: String,
    /// The operation by which it came to own them.
    pub operation: Operation,
    /// The API version of its writes; empty for [`Operation::Apply`].
    pub api_version: String,
    /// The subresource it wrote through; empty for the object itself.
    pub subresource: String,
}

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The API version in which the fields have these names.
    pub api_version: String,
    /// The fields.
    pub fields: FieldSet,
    /// The time at which they last changed, as RFC 3339 text.
    pub time: Option<String>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// The fields that each manager owns.
    pub entries: BTreeMap<ManagerId, Entry>,
}

/// Why a list of managers cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedError {
    /// Not a list of objects.
    #[error("managedFields must be a list of objects")]
    NotAList,
    /// Neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No API version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// No type of fields.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// A type of fields other than `FieldsV1`.
    #[error("invalid fieldsType {name:?} in managed fields entry {index}")]
    InvalidFieldsType {
        /// The text of the entry.
        name: String,
        /// The index of the entry.
        index: usize,
    },
    /// The fields.
    #[error("error decoding versioned set from managed fields entry {index}: error decoding set: {source}")]
    Fields {
        /// The index of the entry.
        index: usize,
        /// The error.
        source: FieldsError,
    },
}

// === impl Operation ===

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

// === impl ManagerId ===

impl ManagerId {
    /// The owner that a write makes.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.to_owned(),
        };
        Self { manager: manager.to_owned(), operation, api_version, subresource: subresource.to_owned() }
    }
}

/// As upstream compares the JSON texts it identifies managers by: a name ends in a quote.
impl Ord for ManagerId {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = self.manager.bytes().chain([b'"']).cmp(other.manager.bytes().chain([b'"']));
        by_name
            .then_with(|| self.operation.cmp(&other.operation))
            .then_with(|| self.api_version.bytes().chain([b'"']).cmp(other.api_version.bytes().chain([b'"'])))
            // A comma comes before the brace that ends a text without subresource.
            .then_with(|| self.subresource.is_empty().cmp(&other.subresource.is_empty()))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

impl PartialOrd for ManagerId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A manager as error messages name it.
impl std::fmt::Display for ManagerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |text: &str| {
            let mut out = String::new();
            value::quote(text, &mut out);
            out
        };
        f.write_str(&quoted(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quoted(&self.subresource))?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

// === impl Managed ===

impl Managed {
    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads `metadata.managedFields`; null and absent are no managers.
    ///
    /// # Errors
    ///
    /// An entry is malformed.
    pub fn decode(list: Option<&Value>) -> Result<Self, ManagedError> {
        let entries = match list {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(ManagedError::NotAList),
        };
        let mut managed = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            let (id, entry) = decode_entry(entry, index)?;
            managed.entries.insert(id, entry);
        }
        Ok(managed)
    }

    /// The list for `metadata.managedFields`; `None` if there are no managers.
    pub fn encode(&self) -> Option<Value> {
        if self.entries.is_empty() {
            return None;
        }
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by(|(a, x), (b, y)| {
            let by_time = || time::unix_seconds(x.time.as_deref()).cmp(&time::unix_seconds(y.time.as_deref()));
            a.operation
                .cmp(&b.operation)
                .then_with(by_time)
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| x.api_version.cmp(&y.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        Some(Value::Array(entries.into_iter().map(|(id, entry)| encode_entry(id, entry)).collect()))
    }
}

fn decode_entry(entry: &Value, index: usize) -> Result<(ManagerId, Entry), ManagedError> {
    let entry = entry.as_object().ok_or(ManagedError::NotAList)?;
    let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedError::Operation),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err(ManagedError::ApiVersion);
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(ManagedError::MissingFieldsType(index)),
        name => return Err(ManagedError::InvalidFieldsType { name: name.to_owned(), index }),
    }
    let fields = match entry.get("fieldsV1") {
        None => FieldSet::default(),
        Some(fields) => FieldSet::from_value(fields).map_err(|source| ManagedError::Fields { index, source })?,
    };
    let id = ManagerId::new(text("manager"), operation, api_version, text("subresource"));
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((id, Entry { api_version: api_version.to_owned(), fields, time }))
}

fn encode_entry(id: &ManagerId, entry: &Entry) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            out.insert(name.to_owned(), Value::String(value.to_owned()));
        }
    };
    put("manager", &id.manager);
    put("operation", id.operation.name());
    put("apiVersion", &entry.api_version);
    put("time", entry.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &id.subresource);
    out.insert("fieldsV1".to_owned(), entry.fields.to_value());
    Value::Object(out)
}
