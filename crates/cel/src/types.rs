//! Types, and how cel-go prints them.

use std::fmt;
use std::sync::Arc;

/// A type of CEL.
#[expect(clippy::enum_variant_names, reason = "the type of types is called so")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Dyn,
    Any,
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    /// The type of types, of this one if it is known.
    Type(Option<Arc<Type>>),
    Param(Arc<str>),
    Struct(Arc<str>),
    Opaque(Arc<str>, Arc<[Type]>),
}

/// The kind of a type, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeKind {
    Dyn,
    Any,
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List,
    Map,
    Type,
    Param,
    Struct,
    Opaque,
}

// === impl Type ===

impl Type {
    pub(crate) fn list(item: Self) -> Self {
        Self::List(Arc::new(item))
    }

    pub(crate) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::Opaque("optional_type".into(), Arc::new([of]))
    }

    pub(crate) fn kind(&self) -> TypeKind {
        match self {
            Self::Dyn => TypeKind::Dyn,
            Self::Any => TypeKind::Any,
            Self::Error => TypeKind::Error,
            Self::Null => TypeKind::Null,
            Self::Bool => TypeKind::Bool,
            Self::Int => TypeKind::Int,
            Self::Uint => TypeKind::Uint,
            Self::Double => TypeKind::Double,
            Self::String => TypeKind::String,
            Self::Bytes => TypeKind::Bytes,
            Self::Duration => TypeKind::Duration,
            Self::Timestamp => TypeKind::Timestamp,
            Self::List(_) => TypeKind::List,
            Self::Map(..) => TypeKind::Map,
            Self::Type(_) => TypeKind::Type,
            Self::Param(_) => TypeKind::Param,
            Self::Struct(_) => TypeKind::Struct,
            Self::Opaque(..) => TypeKind::Opaque,
        }
    }

    /// The name that `type()` shows.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Any => "google.protobuf.Any",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Type(_) => "type",
            Self::Param(name) | Self::Struct(name) | Self::Opaque(name, _) => name,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || *self == Self::Error
    }

    /// Returns the type of an optional's value.
    pub(crate) fn optional_of(&self) -> Option<&Self> {
        match self {
            Self::Opaque(name, params) if &**name == "optional_type" => params.first(),
            _ => None,
        }
    }

    pub(crate) fn params(&self) -> Vec<&Self> {
        match self {
            Self::List(item) => vec![item],
            Self::Map(key, value) => vec![key, value],
            Self::Type(Some(of)) => vec![of],
            Self::Opaque(_, params) => params.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether they are the same but for the names of type parameters.
    pub(crate) fn is_equivalent(&self, other: &Self) -> bool {
        if self.kind() != other.kind() {
            return false;
        }
        if self.kind() != TypeKind::Param && self.name() != other.name() {
            return false;
        }
        let ours = self.params();
        let theirs = other.params();
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| ours.is_equivalent(theirs))
    }

    /// Whether a value of the other type can be used where this one is declared.
    pub(crate) fn is_assignable_from(&self, other: &Self) -> bool {
        if self.is_dyn() || self.kind() == TypeKind::Param {
            return true;
        }
        if self.kind() != other.kind() || self.name() != other.name() {
            return false;
        }
        let ours = self.params();
        let theirs = other.params();
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| ours.is_assignable_from(theirs))
    }

    /// The name in errors of conversions, with parameters.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Param(name) => format!("<{name}>"),
            _ => {
                let params: Vec<String> = self.params().into_iter().map(Self::describe).collect();
                if params.is_empty() {
                    self.name().to_owned()
                } else {
                    format!("{}({})", self.name(), params.join(", "))
                }
            }
        }
    }

    /// Reads a type as the table of declarations writes it.
    pub(crate) fn parse(text: &str) -> Self {
        let inner = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
        if let Some(item) = inner("list(") {
            return Self::list(Self::parse(item));
        }
        if let Some(of) = inner("optional_type(") {
            return Self::optional(Self::parse(of));
        }
        if let Some(of) = inner("type(") {
            return Self::Type(Some(Arc::new(Self::parse(of))));
        }
        if let Some((key, value)) = inner("map(").and_then(|params| params.split_once(',')) {
            return Self::map(Self::parse(key), Self::parse(value));
        }
        if let Some(name) = text.strip_prefix('<') {
            return Self::Param(name.trim_end_matches('>').into());
        }
        if let Some(name) = text.strip_prefix('{') {
            return Self::Struct(name.trim_end_matches('}').into());
        }
        match text {
            "dyn" => Self::Dyn,
            "any" => Self::Any,
            "null" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "duration" => Self::Duration,
            "timestamp" => Self::Timestamp,
            "type" => Self::Type(None),
            name => Self::Opaque(name.into(), Arc::new([])),
        }
    }
}

/// As the checker's errors show it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => return f.write_str("any"),
            Self::Duration => return f.write_str("duration"),
            Self::Timestamp => return f.write_str("timestamp"),
            Self::Error => return f.write_str("!error!"),
            Self::Null => return f.write_str("null"),
            _ => f.write_str(self.name())?,
        }
        let params = self.params();
        if params.is_empty() {
            return Ok(());
        }
        for (at, param) in params.into_iter().enumerate() {
            write!(f, "{}{param}", if at == 0 { "(" } else { ", " })?;
        }
        f.write_str(")")
    }
}
