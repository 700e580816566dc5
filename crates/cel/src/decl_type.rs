//! The types of values that a schema describes, with bounds on their sizes.
//!
//! Follows `apiserver/pkg/cel/common/schemas.go` and `types.go`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::schema::{Schema, SchemaType};
use crate::types::Type;
use crate::{escape, made};

/// The largest request that a server takes; what has no bound is bounded by it.
pub(crate) const REQUEST_BYTES_MAX: i64 = 3 * 1024 * 1024;
/// Sizes of JSON forms, in bytes.
const DURATION_MAX: i64 = 32;
const DATETIME_MAX: i64 = 32;
const DURATION_MIN: i64 = 3;
const DATE: i64 = 12;
const DATETIME_MIN: i64 = 21;
const STRING_MIN: i64 = 2;
const BOOL_MIN: i64 = 4;
const NUMBER_MIN: i64 = 1;

/// A type, and how large its values can be.
#[derive(Clone, Debug)]
pub(crate) struct DeclType {
    pub(crate) shape: Shape,
    pub(crate) max_elements: i64,
    /// The fewest bytes of JSON that a value takes.
    pub(crate) min_serialized_size: i64,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Simple(Type),
    List(Arc<DeclType>),
    Map(Arc<DeclType>),
    Object(BTreeMap<String, Arc<DeclType>>),
}

/// The types of objects by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct StructTypes {
    fields: HashMap<Arc<str>, HashMap<String, Type>>,
    /// Whether there are `Object`, `Object.FIELD` and so on, and `JSONPatch`: see [`made`](crate::made).
    has_patches: bool,
}

/// The type that a schema describes, if expressions can use it.
pub(crate) fn declare(schema: &Schema, is_resource_root: bool) -> Option<Arc<DeclType>> {
    let simple = |of: Type, max_elements: i64, min_serialized_size: i64| {
        Some(Arc::new(DeclType { shape: Shape::Simple(of), max_elements, min_serialized_size }))
    };
    if schema.int_or_string {
        let max = schema.max_length.map_or(REQUEST_BYTES_MAX - 2, from_max_length);
        return simple(Type::Dyn, max, 1);
    }
    let resource;
    let schema = if is_resource_root {
        resource = schema.with_type_and_object_meta();
        &resource
    } else {
        schema
    };
    match schema.kind {
        SchemaType::Array => {
            let items = schema.items.as_ref()?;
            let item = declare(items, items.embedded_resource)?;
            let max_elements =
                schema.max_items.map_or((REQUEST_BYTES_MAX - 2) / (item.min_serialized_size + 1), |max| max.max(0));
            Some(Arc::new(DeclType { shape: Shape::List(item), max_elements, min_serialized_size: 2 }))
        }
        SchemaType::Object => object(schema),
        SchemaType::String => {
            let (of, max, min) = match &*schema.format {
                "byte" => {
                    let max = schema.max_length.map_or(REQUEST_BYTES_MAX - 2, |max| max.max(0));
                    (Type::Bytes, max, STRING_MIN)
                }
                "duration" => (Type::Duration, DURATION_MAX, DURATION_MIN),
                "date" => (Type::Timestamp, DATE, DATE),
                "date-time" => (Type::Timestamp, DATETIME_MAX, DATETIME_MIN),
                _ => {
                    let max = schema.max_length.map(from_max_length).or(schema.longest_enum);
                    (Type::String, max.unwrap_or(REQUEST_BYTES_MAX - 2), STRING_MIN)
                }
            };
            simple(of, max, min)
        }
        SchemaType::Boolean => simple(Type::Bool, 0, BOOL_MIN),
        SchemaType::Number => simple(Type::Double, 0, NUMBER_MIN),
        SchemaType::Integer => simple(Type::Int, 0, NUMBER_MIN),
        SchemaType::Other => None,
    }
}

fn object(schema: &Schema) -> Option<Arc<DeclType>> {
    if let Some(values) = schema.additional_schema() {
        let value = declare(values, values.embedded_resource)?;
        let max_elements =
            schema.max_properties.map_or((REQUEST_BYTES_MAX - 2) / (value.min_serialized_size + 6), |max| max.max(0));
        return Some(Arc::new(DeclType { shape: Shape::Map(value), max_elements, min_serialized_size: 2 }));
    }
    let mut fields = BTreeMap::new();
    let mut min_serialized_size = 2;
    for (name, property) in schema.properties.iter().flatten() {
        let Some(field) = declare(property, property.embedded_resource) else { continue };
        if schema.required.contains(name) && !property.has_default {
            min_serialized_size += name.len() as i64 + field.min_serialized_size + 4;
        }
        if let Some(name) = escape(name) {
            fields.insert(name.into_owned(), field);
        }
    }
    Some(Arc::new(DeclType { shape: Shape::Object(fields), max_elements: 0, min_serialized_size }))
}

/// A string of so many code points has at most four times as many bytes.
fn from_max_length(max_length: i64) -> i64 {
    max_length.max(0).saturating_mul(4)
}

// === impl DeclType ===

impl DeclType {
    /// The type for the checker. Objects get names from their places: `selfType.spec`, `selfType.list.@idx`.
    pub(crate) fn named(&self, name: &str, types: &mut StructTypes) -> Type {
        match &self.shape {
            Shape::Simple(of) => of.clone(),
            Shape::List(item) => Type::list(item.named(&format!("{name}.@idx"), types)),
            Shape::Map(value) => Type::map(Type::String, value.named(&format!("{name}.@elem"), types)),
            Shape::Object(fields) => {
                let fields =
                    fields.iter().map(|(field, of)| (field.clone(), of.named(&format!("{name}.{field}"), types)));
                let fields = fields.collect();
                types.fields.insert(name.into(), fields);
                Type::Struct(name.into())
            }
        }
    }

    /// The type below, by a step of a path: a field, `@items`, `@values` or `@keys`.
    pub(crate) fn step(&self, name: &str) -> Option<&Self> {
        match (&self.shape, name) {
            (Shape::List(of) | Shape::Map(of), "@items" | "@values") => Some(of),
            (Shape::Object(fields), name) => fields.get(name).map(|field| &**field),
            _ => None,
        }
    }
}

// === impl StructTypes ===

impl StructTypes {
    /// Declares a field of an object's type.
    pub(crate) fn declare(&mut self, name: &str, field: &str, of: Type) {
        self.fields.entry(name.into()).or_default().insert(field.to_owned(), of);
    }

    /// Declares an object's type, without fields if it is not declared yet.
    pub(crate) fn declare_empty(&mut self, name: &str) {
        self.fields.entry(name.into()).or_default();
    }

    /// Declares the types of patches.
    pub(crate) fn declare_patches(&mut self) {
        self.has_patches = true;
    }

    /// Whether there are the types of patches.
    pub(crate) fn has_patches(&self) -> bool {
        self.has_patches
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.fields.contains_key(name) || (self.has_patches && made::is_type(name))
    }

    pub(crate) fn field(&self, name: &str, field: &str) -> Option<&Type> {
        if self.has_patches && made::is_type(name) {
            return made::field_type(name, field);
        }
        let fields = self.fields.get(name)?;
        fields.get(field).or_else(|| escape::is_reserved(field).then(|| fields.get(&format!("__{field}__"))).flatten())
    }
}
