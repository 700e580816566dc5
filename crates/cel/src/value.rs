//! Values. Those of an object are borrowed from its JSON and looked at through its schema, only as far as an expression
//! goes.
//!
//! Errors are values too, as in cel-go: `&&`, `||` and `?:` may never look at them, lists may have them as items.

mod convert;
mod equal;
mod json;
mod list;
mod map;
mod text;

use std::sync::Arc;

use serde_json::Value as Json;

use crate::authz::Authz;
use crate::gotime::Timestamp;
use crate::made::Made;
use crate::opaque::Opaque;
use crate::types::Type;

pub(crate) use json::{from_json, from_plain_json};
pub(crate) use list::List;
pub(crate) use map::{Key, Map};

/// A value of CEL.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Str<'a>),
    Bytes(Arc<[u8]>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    Type(Arc<Type>),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Arc<Value<'a>>>),
    Opaque(Arc<Opaque>),
    /// The authorizer, one of its checks, or a decision.
    Authz(Arc<Authz<'a>>),
    /// A value that an expression makes of a type of patches.
    Made(Arc<Made<'a>>),
    /// A field without a type, of which only equality is known.
    Preserved(&'a Json),
    Error(Arc<str>),
}

/// A string of the object, or one that was made.
#[derive(Clone, Debug)]
pub(crate) enum Str<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

/// The operations of a type's values, as cel-go's traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    Adder,
    Comparer,
    Divider,
    Lister,
    Matcher,
    Modder,
    Multiplier,
    Negator,
    Receiver,
    Sizer,
    Subtractor,
}

// === impl Value ===

impl<'a> Value<'a> {
    pub(crate) fn error(message: impl Into<Arc<str>>) -> Self {
        Self::Error(message.into())
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::error("no such overload")
    }

    /// The error if this is one, otherwise that of an overload that does not exist.
    pub(crate) fn or_no_such_overload(&self) -> Self {
        match self {
            Self::Error(_) => self.clone(),
            _ => Self::no_such_overload(),
        }
    }

    pub(crate) fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Str::Shared(text.into()))
    }

    pub(crate) fn opaque(of: Opaque) -> Self {
        Self::Opaque(Arc::new(of))
    }

    pub(crate) fn authz(of: Authz<'a>) -> Self {
        Self::Authz(Arc::new(of))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub(crate) fn list(values: Vec<Self>) -> Self {
        Self::List(List::Values(Arc::new(values)))
    }

    pub(crate) fn strings(texts: impl IntoIterator<Item = String>) -> Self {
        Self::list(texts.into_iter().map(Self::string).collect())
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    pub(crate) fn is_false(&self) -> bool {
        matches!(self, Self::Bool(false))
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&List<'a>> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The type it has when it is looked at.
    pub(crate) fn runtime_type(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::Type(_) => Type::Type(None),
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Opaque(opaque) => opaque.runtime_type(),
            Self::Authz(authz) => authz.runtime_type(),
            Self::Made(made) => Type::Struct(made.type_name.clone()),
            Self::Preserved(_) => Type::Opaque("unknown".into(), Arc::new([])),
            Self::Error(_) => Type::Error,
        }
    }

    pub(crate) fn type_name(&self) -> String {
        self.runtime_type().name().to_owned()
    }

    pub(crate) fn has(&self, of: Trait) -> bool {
        match self {
            Self::Bool(_) => matches!(of, Trait::Comparer | Trait::Negator),
            Self::Int(_) => matches!(
                of,
                Trait::Adder
                    | Trait::Comparer
                    | Trait::Divider
                    | Trait::Modder
                    | Trait::Multiplier
                    | Trait::Negator
                    | Trait::Subtractor
            ),
            Self::Uint(_) => matches!(
                of,
                Trait::Adder | Trait::Comparer | Trait::Divider | Trait::Modder | Trait::Multiplier | Trait::Subtractor
            ),
            Self::Double(_) => matches!(
                of,
                Trait::Adder
                    | Trait::Comparer
                    | Trait::Divider
                    | Trait::Multiplier
                    | Trait::Negator
                    | Trait::Subtractor
            ),
            Self::String(_) => {
                matches!(of, Trait::Adder | Trait::Comparer | Trait::Matcher | Trait::Receiver | Trait::Sizer)
            }
            Self::Bytes(_) => matches!(of, Trait::Adder | Trait::Comparer | Trait::Sizer),
            Self::Duration(_) => {
                matches!(of, Trait::Adder | Trait::Comparer | Trait::Negator | Trait::Receiver | Trait::Subtractor)
            }
            Self::Timestamp(_) => {
                matches!(of, Trait::Adder | Trait::Comparer | Trait::Receiver | Trait::Subtractor)
            }
            Self::List(_) => matches!(of, Trait::Adder | Trait::Sizer | Trait::Lister),
            Self::Map(_) => matches!(of, Trait::Sizer),
            _ => false,
        }
    }

    /// Returns the number of its items, characters or bytes, if it has any.
    pub(crate) fn size(&self) -> Option<u64> {
        Some(match self {
            Self::String(text) => text.as_str().chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Opaque(opaque) => return opaque.size(),
            _ => return None,
        })
    }

    /// Whether it is what its type starts with: zero, empty, false.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) | Self::Duration(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.as_str().is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Timestamp(time) => time.is_zero(),
            // Lists and maps of the object do not say that they are empty.
            Self::List(list) => !list.is_json() && list.len() == 0,
            Self::Map(map) => !map.is_json() && map.len() == 0,
            Self::Made(made) => made.fields.is_empty(),
            _ => false,
        }
    }

    /// Whether it can be passed where a type is declared.
    pub(crate) fn fits(&self, declared: &Type) -> bool {
        match declared {
            Type::Dyn | Type::Any | Type::Param(_) => true,
            Type::List(item) => match self {
                Self::List(list) => list.get(0).is_none_or(|first| first.fits(item)),
                _ => false,
            },
            Type::Map(key, value) => match self {
                Self::Map(map) => map
                    .keys()
                    .first()
                    .is_none_or(|first| first.fits(key) && map.find(first).is_some_and(|found| found.fits(value))),
                _ => false,
            },
            declared => self.runtime_type().name() == declared.name(),
        }
    }
}

// === impl Str ===

impl Str<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}
