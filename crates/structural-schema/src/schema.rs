//! A schema as it is written in `openAPIV3Schema`.
//!
//! 1. **Everything is read.** Fields that no structural schema may have are kept too, so that
//!    [`definition`](crate::definition) can name them.
//! 2. **Small.** What few nodes have is boxed: a schema of a hundred thousand empty properties is a few megabytes.
//! 3. **Bounded.** A schema is at most [`DEPTH_MAX`] levels deep; its patterns share one budget ([`crate::pattern`]).

mod parse;

use std::collections::BTreeMap;

use serde_json::Value;

pub use parse::TooDeep;

use crate::pattern::Pattern;
use std::sync::Arc;

/// The maximum depth of a schema.
pub const DEPTH_MAX: usize = 128;

/// One node of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// `type`; empty if there is none.
    pub type_name: TypeName,
    /// `nullable`
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserves_unknown: Option<bool>,
    /// `x-kubernetes-embedded-resource`
    pub is_embedded: bool,
    /// `x-kubernetes-int-or-string`
    pub is_int_or_string: bool,
    /// `properties`
    pub properties: BTreeMap<String, Schema>,
    /// `items`, if it is one schema.
    pub items: Option<Box<Schema>>,
    /// `additionalProperties`
    pub additional: Option<Box<Additional>>,
    /// `default`; null is none.
    pub default: Option<Box<Value>>,
    /// `x-kubernetes-list-type`, `x-kubernetes-list-map-keys`, `x-kubernetes-map-type`
    pub topology: Option<Box<Topology>>,
    /// The constraints of the value.
    pub values: Option<Box<Values>>,
    /// `x-kubernetes-validations`: kept and checked for their form. Evaluating them is the caller's work.
    pub rules: Option<Box<[Rule]>>,
    /// `title`, `description`, `externalDocs`, `example`
    pub(crate) docs: Option<Box<Docs>>,
    /// Fields that JSON schema has and a CustomResourceDefinition may not.
    pub(crate) unsupported: Option<Box<Unsupported>>,
}

/// The name of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TypeName {
    /// No type is given.
    #[default]
    None,
    /// `string`
    String,
    /// `number`
    Number,
    /// `integer`
    Integer,
    /// `boolean`
    Boolean,
    /// `array`
    Array,
    /// `object`
    Object,
    /// Anything else.
    Other(Box<str>),
}

/// `additionalProperties`: a schema, or whether there may be any.
#[derive(Clone, Debug, PartialEq)]
pub struct Additional {
    /// Whether there may be other properties.
    pub allows: bool,
    /// The constraints of their values.
    pub schema: Option<Schema>,
}

/// The merge strategy of lists and maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// `x-kubernetes-list-type`
    pub list_type: Option<String>,
    /// `x-kubernetes-list-map-keys`
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`
    pub map_type: Option<String>,
}

/// The constraints of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// `format`, as it is written.
    pub format: String,
    /// `maximum`
    pub maximum: Option<f64>,
    /// `exclusiveMaximum`
    pub is_maximum_exclusive: bool,
    /// `minimum`
    pub minimum: Option<f64>,
    /// `exclusiveMinimum`
    pub is_minimum_exclusive: bool,
    /// `multipleOf`
    pub multiple_of: Option<f64>,
    /// `maxLength`
    pub max_length: Option<i64>,
    /// `minLength`
    pub min_length: Option<i64>,
    /// `pattern`
    pub pattern: Option<Arc<Pattern>>,
    /// `maxItems`
    pub max_items: Option<i64>,
    /// `minItems`
    pub min_items: Option<i64>,
    /// `uniqueItems`
    pub unique_items: bool,
    /// `maxProperties`
    pub max_properties: Option<i64>,
    /// `minProperties`
    pub min_properties: Option<i64>,
    /// `required`
    pub required: Vec<String>,
    /// `enum`
    pub one_of_values: Vec<Value>,
    /// `allOf`
    pub all_of: Vec<Schema>,
    /// `anyOf`
    pub any_of: Vec<Schema>,
    /// `oneOf`
    pub one_of: Vec<Schema>,
    /// `not`
    pub not: Option<Box<Schema>>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// `message`
    pub message: String,
    /// `messageExpression`
    pub message_expression: String,
    /// `reason`
    pub reason: Option<String>,
    /// `fieldPath`
    pub field_path: String,
    /// `optionalOldSelf`
    pub optional_old_self: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Docs {
    pub(crate) title: bool,
    pub(crate) description: bool,
    pub(crate) other: bool,
}

/// Keywords that no CustomResourceDefinition may have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unsupported {
    pub(crate) id: bool,
    pub(crate) schema: bool,
    /// `$ref`: whether it is there, and whether it is not empty.
    pub(crate) reference: Option<bool>,
    pub(crate) pattern_properties: bool,
    /// `dependencies` that are schemas, by name.
    pub(crate) dependencies: Option<BTreeMap<String, Option<Schema>>>,
    pub(crate) additional_items: bool,
    pub(crate) definitions: BTreeMap<String, Schema>,
    /// `items` as a list.
    pub(crate) item_list: Vec<Schema>,
}

static NO_VALUES: Values = Values::NONE;

// === impl Schema ===

impl Schema {
    /// The constraints of the value.
    #[must_use]
    pub fn values(&self) -> &Values {
        self.values.as_deref().unwrap_or(&NO_VALUES)
    }

    /// `x-kubernetes-list-type`, or the empty string.
    #[must_use]
    pub fn list_type(&self) -> &str {
        self.topology.as_ref().and_then(|it| it.list_type.as_deref()).unwrap_or_default()
    }

    /// `x-kubernetes-list-map-keys`
    #[must_use]
    pub fn list_map_keys(&self) -> &[String] {
        self.topology.as_ref().map_or(&[], |it| &it.list_map_keys)
    }

    /// The schema of properties that are not declared, if there is one.
    #[must_use]
    pub fn additional_schema(&self) -> Option<&Self> {
        self.additional.as_ref()?.schema.as_ref()
    }

    /// The schema of a property: its own, or that of properties that are not declared.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional_schema())
    }

    /// Whether unknown fields are kept here.
    #[must_use]
    pub fn keeps_unknown(&self) -> bool {
        self.preserves_unknown == Some(true)
    }

    /// `x-kubernetes-validations`
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// Whether this schema or one inside it, nested ones included, is as asked.
    pub fn any(&self, wanted: &mut dyn FnMut(&Self) -> bool) -> bool {
        if wanted(self) {
            return true;
        }
        let values = self.values();
        let nested = [&values.all_of, &values.any_of, &values.one_of];
        self.items.as_ref().is_some_and(|it| it.any(wanted))
            || nested.into_iter().flatten().any(|it| it.any(wanted))
            || values.not.as_ref().is_some_and(|it| it.any(wanted))
            || self.properties.values().any(|it| it.any(wanted))
            || self.additional_schema().is_some_and(|it| it.any(wanted))
    }

    /// Whether a default is anywhere in the schema.
    #[must_use]
    pub fn has_defaults(&self) -> bool {
        self.any(&mut |schema| schema.default.is_some())
    }

    /// Whether a rule of `x-kubernetes-validations` is anywhere in the schema.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.any(&mut |schema| schema.rules.is_some())
    }

    /// Whether this is `{type: name}` and nothing else.
    pub(crate) fn is_only(&self, name: &TypeName) -> bool {
        *self == Self { type_name: name.clone(), ..Self::default() }
    }
}

// === impl Values ===

impl Values {
    const NONE: Self = Self {
        format: String::new(),
        maximum: None,
        is_maximum_exclusive: false,
        minimum: None,
        is_minimum_exclusive: false,
        multiple_of: None,
        max_length: None,
        min_length: None,
        pattern: None,
        max_items: None,
        min_items: None,
        unique_items: false,
        max_properties: None,
        min_properties: None,
        required: Vec::new(),
        one_of_values: Vec::new(),
        all_of: Vec::new(),
        any_of: Vec::new(),
        one_of: Vec::new(),
        not: None,
    };
}

// === impl TypeName ===

impl TypeName {
    /// The name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "",
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for TypeName {
    fn from(name: &str) -> Self {
        match name {
            "" => Self::None,
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            other => Self::Other(other.into()),
        }
    }
}
