//! The facts of `data/schemas.tsv`, found by name or kind and parsed on first use.
//!
//! A line is `name`, `kinds`, `openapi`, `fields`, separated by tabs. `kinds` are `group/version/kind`, separated by
//! spaces. `fields` are `name=holds;type;embedded`, separated by spaces: `holds` is `p` (pointer), `s` (struct), `l`
//! (slice), `m` (map) or `v` (any other value), then `e` for `omitempty` and `z` for `omitzero`; `type` is the Go type
//! without its pointer; `embedded` the names of the embedded Go structs that the field is in.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::kinds::shared::json::is_empty;
use crate::schema::complete::is_always_written;

const FACTS: &str = include_str!("../../data/schemas.tsv");

/// A struct: what a JSON object may hold.
#[derive(Debug)]
pub(crate) struct Struct {
    /// Its Go type without package: `DeploymentSpec`.
    pub(crate) short: &'static str,
    /// Its fields, ordered by name.
    pub(crate) fields: Vec<Field>,
    /// Whether any field has a default other than its zero value.
    pub(crate) has_defaults: bool,
    /// The places of the fields that are written even if they are absent.
    pub(crate) written: Vec<usize>,
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The Go type without pointer: `int32`, `[]v1.Container`.
    pub(crate) go: &'static str,
    /// The embedded Go structs it is in, which show in error messages: `VolumeSource`.
    pub(crate) embedded: &'static str,
    pub(crate) shape: Shape,
    /// Whether an absent value differs from a zero one.
    pub(crate) pointer: bool,
    pub(crate) omit: Omit,
    /// A default that is not the zero value.
    pub(crate) default: Option<Value>,
    pub(crate) patching: Patching,
}

/// The shape of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A struct of the table.
    Struct(Id),
    /// A list of one shape.
    List(Box<Shape>),
    /// A map from strings to one shape.
    Map(Box<Shape>),
    String,
    /// Base64.
    Bytes,
    Bool,
    Int32,
    Int64,
    Float,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// A struct of the table, a list of it, or something else that is left alone (`JSONSchemaPropsOrBool`).
    StructOr(Id),
    /// Any JSON.
    Any,
}

/// The rule by which a field is omitted, from its JSON tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omit {
    Never,
    /// `omitempty`, which never holds for a struct.
    Empty,
    /// `omitzero`
    Zero,
}

/// The treatment of a field by a strategic merge patch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patching {
    /// Lists are merged, not replaced.
    pub(crate) merge: bool,
    /// Objects are replaced, not merged.
    pub(crate) replace: bool,
    /// The field of the elements by which lists of objects are merged.
    pub(crate) merge_key: Option<Box<str>>,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(u16);

struct Line {
    name: &'static str,
    openapi: &'static str,
    fields: &'static str,
    parsed: OnceLock<Struct>,
}

/// Group, version and kind.
type Kind = (&'static str, &'static str, &'static str);

struct Table {
    lines: Vec<Line>,
    by_name: HashMap<&'static str, Id>,
    by_kind: HashMap<Kind, Id>,
}

/// The struct of which nothing is known.
pub(crate) static UNKNOWN: Struct = Struct { short: "", fields: Vec::new(), has_defaults: false, written: Vec::new() };

/// The schema of a kind; none for custom resources.
pub(crate) fn find(group: &str, version: &str, kind: &str) -> Option<&'static Struct> {
    table().by_kind.get(&(group, version, kind)).map(|id| id.schema())
}

/// The schema of this name: `io.k8s.api.core.v1.Pod`.
pub(crate) fn named(name: &str) -> Option<&'static Struct> {
    table().by_name.get(name).map(|id| id.schema())
}

/// The name of a kind's schema.
pub(crate) fn name_of(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let table = table();
    let id = table.by_kind.get(&(group, version, kind))?;
    table.lines.get(usize::from(id.0)).map(|line| line.name)
}

/// Whether a Go struct of this name, without its package, is in the table.
pub(crate) fn has_struct(short: &str) -> bool {
    table().lines.iter().any(|line| line.name.rsplit('.').next() == Some(short) && !line.fields.is_empty())
}

/// The names of the schemas of all kinds of a group and version.
pub(crate) fn names_in(group: &str, version: &str) -> impl Iterator<Item = &'static str> {
    let table = table();
    let ids = table.by_kind.iter().filter(move |(kind, _)| (kind.0, kind.1) == (group, version)).map(|(_, id)| *id);
    ids.filter_map(|id| table.lines.get(usize::from(id.0))).map(|line| line.name)
}

/// The name and the OpenAPI text of a schema.
pub(crate) fn document(name: &str) -> Option<(&'static str, &'static str)> {
    let table = table();
    let id = table.by_name.get(name)?;
    table.lines.get(usize::from(id.0)).map(|line| (line.name, line.openapi))
}

/// Adds the names of the schemas that a schema refers to.
pub(crate) fn collect_references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(entries) => {
            found.extend(entries.get("$ref").and_then(Value::as_str).map(str::to_owned));
            entries.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(elements) => elements.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

/// The OpenAPI text of every schema, by name, in order.
pub(crate) fn documents() -> impl Iterator<Item = (&'static str, &'static str)> {
    table().lines.iter().map(|line| (line.name, line.openapi))
}

/// Parses `group/version/kind`.
fn parse_kind(text: &'static str) -> Option<Kind> {
    let (group, rest) = text.split_once('/')?;
    let (version, kind) = rest.split_once('/')?;
    Some((group, version, kind))
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(Table::read)
}

// === impl Table ===

impl Table {
    /// Cuts the text into lines, which takes well under a millisecond; the schemas are parsed when asked for.
    fn read() -> Self {
        let mut table = Self { lines: Vec::new(), by_name: HashMap::new(), by_kind: HashMap::new() };
        for line in FACTS.lines() {
            let mut columns = line.split('\t');
            let mut column = || columns.next().unwrap_or_default();
            let name = column();
            let kinds = column();
            let openapi = column();
            let fields = column();
            let id = Id(u16::try_from(table.lines.len()).unwrap_or(u16::MAX));
            table.by_name.insert(name, id);
            table.by_kind.extend(kinds.split(' ').filter_map(parse_kind).map(|kind| (kind, id)));
            table.lines.push(Line { name, openapi, fields, parsed: OnceLock::new() });
        }
        table
    }
}

// === impl Id ===

impl Id {
    pub(crate) fn schema(self) -> &'static Struct {
        table().lines.get(usize::from(self.0)).map_or(&UNKNOWN, |line| line.parsed.get_or_init(|| Struct::parse(line)))
    }
}

// === impl Struct ===

impl Struct {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|field| field.name.cmp(name)).ok().and_then(|index| self.fields.get(index))
    }

    fn parse(line: &Line) -> Self {
        let openapi: Value = serde_json::from_str(line.openapi).unwrap_or_default();
        let facts: HashMap<&'static str, &'static str> =
            line.fields.split(' ').filter_map(|fact| fact.split_once('=')).collect();
        let mut fields: Vec<Field> = openapi
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| {
                let (name, fact) = facts.get_key_value(name.as_str())?;
                Some(Field::parse(name, fact, property))
            })
            .collect();
        fields.sort_unstable_by_key(|field| field.name);
        Self {
            short: line.name.rsplit('.').next().unwrap_or_default(),
            has_defaults: fields.iter().any(|field| field.default.is_some()),
            written: (0..fields.len()).filter(|at| is_always_written(&fields[*at])).collect(),
            fields,
        }
    }
}

// === impl Field ===

impl Field {
    fn parse(name: &'static str, fact: &'static str, property: &Value) -> Self {
        let mut parts = fact.split(';');
        let mut part = || parts.next().unwrap_or_default();
        let holds = part();
        let go = part();
        let embedded = part();
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        let strategies = text("x-kubernetes-patch-strategy").unwrap_or_default();
        Self {
            name,
            go,
            embedded,
            shape: Shape::parse(property),
            pointer: holds.starts_with('p'),
            omit: match holds {
                holds if holds.contains('z') => Omit::Zero,
                holds if holds.ends_with('e') => Omit::Empty,
                _ => Omit::Never,
            },
            // OpenAPI writes Go's zero values as defaults; they say nothing.
            default: property.get("default").filter(|default| !is_empty(default)).cloned(),
            patching: Patching {
                merge: strategies.split(',').any(|strategy| strategy == "merge"),
                replace: strategies.split(',').any(|strategy| strategy == "replace"),
                merge_key: text("x-kubernetes-patch-merge-key").map(Box::from),
            },
        }
    }
}

// === impl Shape ===

impl Shape {
    fn parse(property: &Value) -> Self {
        if let Some(name) = property.get("$ref").and_then(Value::as_str) {
            return Self::named(name);
        }
        let text = |key: &str| property.get(key).and_then(Value::as_str).unwrap_or_default();
        match (text("type"), text("format")) {
            ("string", "byte") => Self::Bytes,
            ("string", _) => Self::String,
            ("boolean", _) => Self::Bool,
            ("integer", "int32") => Self::Int32,
            ("integer", _) => Self::Int64,
            ("number", _) => Self::Float,
            ("array", _) => property.get("items").map_or(Self::Any, |items| Self::List(Box::new(Self::parse(items)))),
            ("object", _) => property
                .get("additionalProperties")
                .map_or(Self::Any, |values| Self::Map(Box::new(Self::parse(values)))),
            _ => Self::Any,
        }
    }

    /// The types that read themselves, and all others.
    fn named(name: &str) -> Self {
        let own = |name: &str| table().by_name.get(name).copied();
        match name.rsplit_once('.').map_or(("", name), |(package, name)| (package, name)) {
            ("io.k8s.apimachinery.pkg.apis.meta.v1", "Time") => Self::Time,
            ("io.k8s.apimachinery.pkg.apis.meta.v1", "MicroTime") => Self::MicroTime,
            ("io.k8s.apimachinery.pkg.api.resource", "Quantity") => Self::Quantity,
            ("io.k8s.apimachinery.pkg.util.intstr", "IntOrString") => Self::IntOrString,
            ("io.k8s.apimachinery.pkg.runtime", "RawExtension")
            | ("io.k8s.apimachinery.pkg.apis.meta.v1", "FieldsV1" | "Patch") => Self::Any,
            ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1", "JSON" | "JSONSchemaPropsOrStringArray") => {
                Self::Any
            }
            (
                package @ "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
                "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool",
            ) => own(&format!("{package}.JSONSchemaProps")).map_or(Self::Any, Self::StructOr),
            _ => own(name).map_or(Self::Any, Self::Struct),
        }
    }
}
