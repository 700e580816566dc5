//! What the fields of a kind are: which lists are sets, which are keyed, what is replaced as a whole.
//!
//! 1. **One form for all kinds.** Types of built-in kinds come from OpenAPI definitions ([`Definitions`]), types of custom
//!    resources from their structural schema ([`Schema::custom_resource`]); an object without a schema has deduced types
//!    ([`Schema::deduced`]): objects are granular, lists are atomic.
//! 2. **Recursion by name.** Types refer to each other by number, so `JSONSchemaProps` within itself is one entry.
//! 3. **Immutable and shared.** A [`Schema`] is a handle; cloning it costs nothing.
//!
//! Follows `schema/elements.go` of structured-merge-diff v6 and `pkg/schemaconv` of kube-openapi.

mod openapi;
mod zero;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use openapi::{Definitions, SchemaError};

/// The type of an object, and the types it is made of.
#[derive(Clone)]
pub struct Schema {
    pub(crate) types: Arc<Types>,
    pub(crate) root: TypeId,
    zero: Arc<Value>,
}

/// Types by number.
pub(crate) struct Types {
    atoms: Vec<Atom>,
}

/// The number of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeId(u32);

/// The kinds that a value may have; several where the schema names no type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Atom {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<ListType>,
    pub(crate) map: Option<MapType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

/// An object: a struct has fields, a map elements, and there may be both.
#[derive(Clone, Debug)]
pub(crate) struct MapType {
    /// Ordered by name.
    pub(crate) fields: Vec<Field>,
    /// The type of members that are no fields; [`TypeId::NONE`] where there may be none.
    pub(crate) element: TypeId,
    pub(crate) atomic: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Arc<str>,
    pub(crate) ty: TypeId,
    pub(crate) default: Option<Value>,
    zero: zero::Zero,
}

#[derive(Clone, Debug)]
pub(crate) struct ListType {
    pub(crate) element: TypeId,
    pub(crate) relation: Relation,
}

/// The relation of the items of a list.
#[derive(Clone, Debug)]
pub(crate) enum Relation {
    Atomic,
    Set,
    Keyed(Arc<[Arc<str>]>),
}

/// The kinds of an atom that a value can have, and the one it is treated as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice(u8);

/// A type seen as one of its kinds.
pub(crate) enum Shape<'a> {
    Map(&'a MapType),
    Scalar(Scalar),
    List(&'a ListType),
    /// A type that nothing can have.
    Nothing,
}

// === impl Schema ===

impl Schema {
    fn new(types: Arc<Types>, root: TypeId) -> Self {
        let zero = Arc::new(types.zero(root));
        Self { types, root, zero }
    }

    /// The schema of objects of which nothing is known: objects are granular, lists atomic.
    pub fn deduced() -> Self {
        Self::new(Arc::new(Types { atoms: Types::common() }), TypeId::DEDUCED)
    }

    /// The object that a write is compared with when there is none yet. For kinds that upstream has a Go type for, that
    /// is the type's zero value: structs that are no pointers exist in it, so creating an object adds what is in them
    /// and not themselves. For custom resources it is `{}`.
    pub fn zero(&self) -> &Value {
        &self.zero
    }

    /// The same schema with another zero value, where the caller knows the Go type better than OpenAPI says.
    #[must_use]
    pub fn with_zero(self, zero: Value) -> Self {
        Self { zero: Arc::new(zero), ..self }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("types", &self.types.atoms.len()).field("root", &self.root).finish()
    }
}

// === impl Types ===

impl TypeId {
    /// Anything, replaced as a whole.
    pub(crate) const ATOMIC: Self = Self(0);
    /// Anything; objects are granular, lists are not.
    pub(crate) const DEDUCED: Self = Self(1);
    /// Nothing: the type of members that are not declared.
    pub(crate) const NONE: Self = Self(2);
}

impl Types {
    pub(crate) fn atom(&self, id: TypeId) -> &Atom {
        // Ids come from the builder of the same table.
        &self.atoms[id.0 as usize]
    }

    /// The types that have fixed numbers.
    fn common() -> Vec<Atom> {
        let any = |members, atomic| Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(ListType { element: TypeId::ATOMIC, relation: Relation::Atomic }),
            map: Some(MapType { fields: Vec::new(), element: members, atomic }),
        };
        vec![any(TypeId::ATOMIC, true), any(TypeId::DEDUCED, false), Atom::default()]
    }
}

// === impl Atom ===

impl Atom {
    const MAP: u8 = 1;
    const SCALAR: u8 = 2;
    const LIST: u8 = 4;

    /// The kinds of this type that fit the value: one if there is one of them, else all, so that the mismatch is seen
    /// where the value is used.
    pub(crate) fn choose(&self, value: Option<&Value>) -> Choice {
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => Choice(Self::SCALAR),
            Some(Value::Array(_)) if self.list.is_some() => Choice(Self::LIST),
            Some(Value::Object(_)) if self.map.is_some() => Choice(Self::MAP),
            _ => self.all(),
        }
    }

    /// All kinds of this type.
    pub(crate) fn all(&self) -> Choice {
        let bit = |present: bool, bit| if present { bit } else { 0 };
        let scalar = bit(self.scalar.is_some(), Self::SCALAR);
        Choice(bit(self.map.is_some(), Self::MAP) | scalar | bit(self.list.is_some(), Self::LIST))
    }

    /// The kind a value is treated as: an object before a scalar before a list.
    pub(crate) fn shape(&self, choice: Choice) -> Shape<'_> {
        if let Some(map) = self.map.as_ref().filter(|_| choice.0 & Self::MAP != 0) {
            return Shape::Map(map);
        }
        if let Some(scalar) = self.scalar.filter(|_| choice.0 & Self::SCALAR != 0) {
            return Shape::Scalar(scalar);
        }
        match self.list.as_ref().filter(|_| choice.0 & Self::LIST != 0) {
            Some(list) => Shape::List(list),
            None => Shape::Nothing,
        }
    }
}

// === impl MapType ===

impl MapType {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let index = self.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        Some(&self.fields[index])
    }

    /// The type of a member.
    pub(crate) fn member(&self, name: &str) -> TypeId {
        self.field(name).map_or(self.element, |field| field.ty)
    }
}
