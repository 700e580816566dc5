//! Types from OpenAPI: the definitions of built-in kinds, and the structural schemas of custom resources.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::zero::Zero;
use super::{Atom, Field, ListType, MapType, Relation, Scalar, Schema, TypeId, Types};

/// Types that upstream treats by name, because their OpenAPI does not say what they are.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
/// The metadata of custom resources, by the name that their schemas refer to it by.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Deeper than a parser lets a schema be nested.
const DEPTH_MAX: usize = 256;

/// Named types that refer to each other.
#[derive(Clone)]
pub struct Definitions {
    types: Arc<Types>,
    names: HashMap<Box<str>, TypeId>,
}

/// Why a schema is no description of types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A reference to a definition that does not exist.
    #[error("schema error: no type found matching: {0}")]
    UnknownType(String),
    /// A `type` that OpenAPI does not have.
    #[error("unrecognized type: '{0}'")]
    UnrecognizedType(String),
    /// A list type other than `atomic`, `set` and `map`.
    #[error("unknown list type {0}")]
    UnknownListType(String),
    /// A map type other than `atomic` and `granular`.
    #[error("unknown map type {0}")]
    UnknownMapType(String),
    /// A list of type `map` without `x-kubernetes-list-map-keys`.
    #[error("missing map keys")]
    MissingMapKeys,
    /// Too many levels of inlined schemas.
    #[error("schema is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
}

/// Reads schemas into a table.
struct Builder {
    atoms: Vec<Atom>,
    names: HashMap<Box<str>, TypeId>,
    /// References that treat a named type as atomic or granular: the reference, the name's type, whether it is atomic.
    overrides: Vec<(TypeId, TypeId, bool)>,
}

/// The settings of a schema and of everything that is inlined in it.
#[derive(Clone, Copy)]
struct Scope {
    preserve_unknown: bool,
    depth: usize,
}

impl Scope {
    const ROOT: Self = Self { preserve_unknown: false, depth: 0 };
}

// === impl Definitions ===

impl Definitions {
    /// Reads definitions by name; a `$ref` ends in the name it refers to.
    ///
    /// # Errors
    ///
    /// A schema is malformed or refers to a name that is not defined.
    pub fn from_schemas<'a>(schemas: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Result<Self, SchemaError> {
        let schemas: Vec<_> = schemas.into_iter().collect();
        let mut builder = Builder { atoms: Types::common(), names: HashMap::new(), overrides: Vec::new() };
        for (name, _) in &schemas {
            let id = builder.push(Atom::default());
            builder.names.insert((*name).into(), id);
        }
        for (name, schema) in schemas {
            let atom = match name {
                QUANTITY => Atom { scalar: Some(Scalar::Untyped), ..Atom::default() },
                RAW_EXTENSION => builder.atoms[TypeId::ATOMIC.0 as usize].clone(),
                _ => builder.atom(schema, Scope::ROOT)?,
            };
            let id = builder.names[name];
            builder.atoms[id.0 as usize] = atom;
        }
        let names = std::mem::take(&mut builder.names);
        Ok(Self { types: Arc::new(builder.finish()), names })
    }

    /// The schema of a definition.
    pub fn schema(&self, name: &str) -> Option<Schema> {
        let root = *self.names.get(name)?;
        Some(Schema::new(Arc::clone(&self.types), root))
    }
}

impl Schema {
    /// The schema of a custom resource, from the `openAPIV3Schema` of its version. `None` stands for a version without
    /// one that keeps unknown fields, whose types are deduced.
    ///
    /// # Errors
    ///
    /// The schema is not structural, or a list or map type is unknown.
    pub fn custom_resource(schema: Option<&Value>) -> Result<Self, SchemaError> {
        let Some(schema) = schema else {
            return Ok(Self::deduced());
        };
        let mut builder = Builder { atoms: Types::common(), names: HashMap::new(), overrides: Vec::new() };
        let meta = object_meta();
        let atom = builder.atom(&meta, Scope::ROOT)?;
        let id = builder.push(atom);
        builder.names.insert(OBJECT_META.into(), id);
        let mut atom = builder.atom(schema, Scope::ROOT)?;
        builder.add_type_meta(&mut atom)?;
        let root = builder.push(atom);
        let schema = Self::new(Arc::new(builder.finish()), root);
        Ok(schema.with_zero(Value::Object(Map::new())))
    }
}

// === impl Builder ===

impl Builder {
    fn push(&mut self, atom: Atom) -> TypeId {
        let id = TypeId(u32::try_from(self.atoms.len()).unwrap_or(u32::MAX));
        self.atoms.push(atom);
        id
    }

    fn finish(mut self) -> Types {
        for (id, base, atomic) in std::mem::take(&mut self.overrides) {
            let mut atom = self.atoms[base.0 as usize].clone();
            if let Some(map) = &mut atom.map {
                map.atomic = atomic;
            } else if let Some(list) = atom.list.as_mut().filter(|_| atomic) {
                list.relation = Relation::Atomic;
            }
            self.atoms[id.0 as usize] = atom;
        }
        Types { atoms: self.atoms }
    }

    /// The type of a schema that stands in another: a reference, or a type of its own.
    fn reference(&mut self, schema: &Value, scope: Scope) -> Result<TypeId, SchemaError> {
        let inner = schema.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1).map(|all| &all[0]);
        let target = schema.get("$ref").or_else(|| inner?.get("$ref")).and_then(Value::as_str);
        let Some(target) = target else {
            let atom = self.atom(schema, scope)?;
            return Ok(self.push(atom));
        };
        let name = target.rsplit('/').next().unwrap_or(target);
        let id = *self.names.get(name).ok_or_else(|| SchemaError::UnknownType(name.to_owned()))?;
        match map_type(schema)? {
            None => Ok(id),
            Some(atomic) => {
                let reference = self.push(Atom::default());
                self.overrides.push((reference, id, atomic));
                Ok(reference)
            }
        }
    }

    fn atom(&mut self, schema: &Value, scope: Scope) -> Result<Atom, SchemaError> {
        if scope.depth > DEPTH_MAX {
            return Err(SchemaError::TooDeep);
        }
        let preserves = is_true(schema, "x-kubernetes-preserve-unknown-fields");
        let scope = Scope { preserve_unknown: scope.preserve_unknown || preserves, depth: scope.depth + 1 };
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let scalar = |scalar| Ok(Atom { scalar: Some(scalar), ..Atom::default() });
        match type_name(schema) {
            "" => Ok(Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema, scope)?),
                map: Some(self.map(schema, scope)?),
            }),
            "object" => {
                let mut atom = Atom { map: Some(self.map(schema, scope)?), ..Atom::default() };
                if is_true(schema, "x-kubernetes-embedded-resource") {
                    self.add_type_meta(&mut atom)?;
                }
                Ok(atom)
            }
            "array" => Ok(Atom { list: Some(self.list(schema, scope)?), ..Atom::default() }),
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            "string" if matches!(format, "" | "byte") => scalar(Scalar::String),
            "string" => scalar(Scalar::Untyped),
            other => Err(SchemaError::UnrecognizedType(other.to_owned())),
        }
    }

    fn map(&mut self, schema: &Value, scope: Scope) -> Result<MapType, SchemaError> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = strings(schema.get("required"));
        let mut fields = Vec::with_capacity(properties.map_or(0, Map::len));
        for (name, property) in properties.into_iter().flatten() {
            let ty = self.reference(property, scope)?;
            let zero = Zero::of(property, required.contains(&name.as_str()));
            let default = property.get("default").cloned();
            fields.push(Field { name: name.as_str().into(), ty, default, zero });
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let element = match schema.get("additionalProperties") {
            None if scope.preserve_unknown || fields.is_empty() => TypeId::DEDUCED,
            None | Some(Value::Bool(false)) => TypeId::NONE,
            Some(Value::Bool(true)) => TypeId::DEDUCED,
            Some(schema) => self.reference(schema, scope)?,
        };
        Ok(MapType { fields, element, atomic: map_type(schema)?.unwrap_or(false) })
    }

    fn list(&mut self, schema: &Value, scope: Scope) -> Result<ListType, SchemaError> {
        let relation = list_relation(schema)?;
        let element = match schema.get("items") {
            Some(items) => self.reference(items, scope)?,
            None => TypeId::ATOMIC,
        };
        Ok(ListType { element, relation })
    }

    /// Gives a type the fields that every object has.
    fn add_type_meta(&mut self, atom: &mut Atom) -> Result<(), SchemaError> {
        let Some(map) = &mut atom.map else {
            return Ok(());
        };
        let meta = match self.names.get(OBJECT_META) {
            Some(id) => *id,
            None => return Err(SchemaError::UnknownType(OBJECT_META.to_owned())),
        };
        let text = self.push(Atom { scalar: Some(Scalar::String), ..Atom::default() });
        map.fields.retain(|field| !matches!(&*field.name, "apiVersion" | "kind" | "metadata"));
        for (name, ty) in [("apiVersion", text), ("kind", text), ("metadata", meta)] {
            map.fields.push(Field { name: name.into(), ty, default: None, zero: Zero::Absent });
        }
        map.fields.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }
}

fn type_name(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => names.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    }
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether the schema says that a map is atomic, or granular, or nothing.
fn map_type(schema: &Value) -> Result<Option<bool>, SchemaError> {
    match schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
        None => Ok(None),
        Some("atomic") => Ok(Some(true)),
        Some("granular") => Ok(Some(false)),
        Some(other) => Err(SchemaError::UnknownMapType(other.to_owned())),
    }
}

fn list_relation(schema: &Value) -> Result<Relation, SchemaError> {
    let keyed = |keys: Vec<&str>| Relation::Keyed(keys.into_iter().map(Arc::from).collect());
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("atomic") => return Ok(Relation::Atomic),
        Some("set") => return Ok(Relation::Set),
        Some("map") => {
            let keys = strings(schema.get("x-kubernetes-list-map-keys"));
            return if keys.is_empty() { Err(SchemaError::MissingMapKeys) } else { Ok(keyed(keys)) };
        }
        Some(other) => return Err(SchemaError::UnknownListType(other.to_owned())),
        None => {}
    }
    // Types older than list types say it by their strategic merge.
    let merge_key = schema.get("x-kubernetes-patch-merge-key").and_then(Value::as_str);
    match schema.get("x-kubernetes-patch-strategy").and_then(Value::as_str) {
        Some("merge" | "merge,retainKeys") => Ok(merge_key.map_or(Relation::Set, |key| keyed(vec![key]))),
        _ => Ok(Relation::Atomic),
    }
}

/// The metadata of custom resources: as the definition of built-in kinds, with its references inlined.
fn object_meta() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let number = json!({"type": "integer", "format": "int64"});
    let owner = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "blockOwnerDeletion": {"type": "boolean"}, "controller": {"type": "boolean"},
    }});
    json!({"type": "object", "properties": {
        "annotations": texts, "labels": texts,
        "creationTimestamp": time, "deletionTimestamp": time,
        "deletionGracePeriodSeconds": number, "generation": number,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "generateName": text, "name": text, "namespace": text, "resourceVersion": text, "selfLink": text, "uid": text,
        "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        "ownerReferences": {"type": "array", "items": owner,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
    }})
}
