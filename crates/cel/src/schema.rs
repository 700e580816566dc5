//! Structural OpenAPI schemas, as far as expressions depend on them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::rules::Rule;

/// Longest name of an object, and longest prefix of a generated one.
const NAME_LENGTH_MAX: i64 = 253;

/// A structural schema: what values look like, and which rules hold for them.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    pub(crate) kind: SchemaType,
    /// The type as it is written.
    pub(crate) type_name: Arc<str>,
    pub(crate) format: Arc<str>,
    pub(crate) items: Option<Arc<Schema>>,
    /// None if there is none, as upstream has it.
    pub(crate) properties: Option<BTreeMap<String, Arc<Schema>>>,
    pub(crate) additional: Option<Additional>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) preserve_unknown_fields: bool,
    pub(crate) list_type: Arc<str>,
    pub(crate) list_map_keys: Vec<String>,
    /// The same as identifiers.
    pub(crate) escaped_map_keys: Arc<[String]>,
    pub(crate) map_type: Option<Arc<str>>,
    pub(crate) max_items: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) required: Vec<String>,
    /// Length of the longest string of an enumeration, if there is one.
    pub(crate) longest_enum: Option<i64>,
    pub(crate) has_default: bool,
    pub(crate) rules: Vec<Rule>,
    pub(crate) all_of: Vec<Arc<Schema>>,
    /// The schema of an embedded resource as rules see it: with `kind`, `apiVersion` and `metadata`.
    pub(crate) resource_view: Option<Arc<Schema>>,
}

/// The meaning of the type of a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SchemaType {
    Object,
    Array,
    String,
    Number,
    Integer,
    Boolean,
    #[default]
    Other,
}

/// The schema of properties that are not named.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    Schema(Arc<Schema>),
    Allowed,
}

// === impl Schema ===

impl Schema {
    /// Reads a schema from its JSON form, `openAPIV3Schema` of a definition or a part of it.
    ///
    /// What does not belong there is ignored: whether a schema is a structural one is for others to check.
    #[must_use]
    pub fn new(json: &Json) -> Self {
        let text = |key: &str| json.get(key).and_then(Json::as_str).unwrap_or_default();
        let flag = |key: &str| json.get(key).and_then(Json::as_bool).unwrap_or_default();
        let number = |key: &str| json.get(key).and_then(Json::as_i64);
        let list = |key: &str| json.get(key).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let strings = |key: &str| list(key).iter().filter_map(Json::as_str).map(str::to_owned).collect::<Vec<_>>();
        let child = |json: &Json| Arc::new(Self::new(json));

        let properties = json.get("properties").and_then(Json::as_object).filter(|properties| !properties.is_empty());
        let list_map_keys = strings("x-kubernetes-list-map-keys");
        let escaped = |key: &String| crate::escape::escape(key).map_or_else(|| key.clone(), Cow::into_owned);
        let longest_enum = list("enum").iter().map(|value| value.as_str().map_or(0, str::len) as i64).max();
        let mut schema = Self {
            kind: SchemaType::named(text("type")),
            type_name: text("type").into(),
            format: text("format").into(),
            items: json.get("items").filter(|items| items.is_object()).map(child),
            properties: properties
                .map(|properties| properties.iter().map(|(name, schema)| (name.clone(), child(schema))).collect()),
            additional: match json.get("additionalProperties") {
                None | Some(Json::Null) => None,
                Some(Json::Bool(_)) => Some(Additional::Allowed),
                Some(schema) => Some(Additional::Schema(child(schema))),
            },
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            list_type: text("x-kubernetes-list-type").into(),
            escaped_map_keys: list_map_keys.iter().map(escaped).collect(),
            list_map_keys,
            map_type: json.get("x-kubernetes-map-type").and_then(Json::as_str).map(Into::into),
            max_items: number("maxItems"),
            max_length: number("maxLength"),
            max_properties: number("maxProperties"),
            required: strings("required"),
            longest_enum,
            has_default: json.get("default").is_some_and(|default| !default.is_null()),
            rules: list("x-kubernetes-validations").iter().map(Rule::new).collect(),
            all_of: list("allOf").iter().map(child).collect(),
            resource_view: None,
        };
        if schema.embedded_resource {
            schema.resource_view = Some(Arc::new(schema.with_type_and_object_meta()));
        }
        schema
    }

    /// The schema of values of a property that is not named.
    pub(crate) fn additional_schema(&self) -> Option<&Arc<Self>> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// Whether this schema or one below has rules.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.items.as_ref().is_some_and(|items| items.has_rules())
            || self.additional_schema().is_some_and(|schema| schema.has_rules())
            || self.properties.iter().flat_map(BTreeMap::values).any(|schema| schema.has_rules())
    }

    /// The schema of a whole resource: `kind`, `apiVersion`, and of `metadata` only the name.
    pub(crate) fn with_type_and_object_meta(&self) -> Self {
        let property = |name: &str| self.properties.as_ref().and_then(|properties| properties.get(name));
        let is = |schema: Option<&Arc<Self>>, kind| schema.is_some_and(|schema| schema.kind == kind);
        let meta = property("metadata");
        let of_meta = |name: &str| meta.and_then(|meta| meta.properties.as_ref()).and_then(|meta| meta.get(name));
        if is(property("kind"), SchemaType::String)
            && is(property("apiVersion"), SchemaType::String)
            && is(meta, SchemaType::Object)
            && is(of_meta("name"), SchemaType::String)
            && is(of_meta("generateName"), SchemaType::String)
        {
            return self.clone();
        }
        let string = |max_length: Option<i64>| {
            let kind = SchemaType::String;
            Arc::new(Self { kind, type_name: "string".into(), max_length, ..Self::default() })
        };
        let capped = |name: &str, longest: i64| {
            let declared = of_meta(name).and_then(|schema| schema.max_length);
            string(Some(declared.map_or(longest, |declared| declared.min(longest))))
        };
        let metadata = Self {
            kind: SchemaType::Object,
            type_name: "object".into(),
            properties: Some(BTreeMap::from([
                ("name".to_owned(), capped("name", NAME_LENGTH_MAX)),
                ("generateName".to_owned(), capped("generateName", NAME_LENGTH_MAX - 1)),
            ])),
            ..Self::default()
        };
        let mut properties = self.properties.clone().unwrap_or_default();
        properties.insert("kind".to_owned(), string(None));
        properties.insert("apiVersion".to_owned(), string(None));
        properties.insert("metadata".to_owned(), Arc::new(metadata));
        Self { properties: Some(properties), items: None, resource_view: None, ..self.clone() }
    }
}

// === impl SchemaType ===

impl SchemaType {
    fn named(name: &str) -> Self {
        match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            _ => Self::Other,
        }
    }
}
