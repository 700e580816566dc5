//! From JSON to [`Schema`].
//!
//! The API server has checked the types of the fields before (they are those of `JSONSchemaProps`); a field of another type
//! is as good as absent here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Additional, DEPTH_MAX, Docs, Rule, Schema, Topology, TypeName, Unsupported, Values};
use crate::pattern::Patterns;

/// The schema is more than [`DEPTH_MAX`] levels deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema is more than {DEPTH_MAX} levels deep")]
pub struct TooDeep;

impl Schema {
    /// Reads `openAPIV3Schema`.
    ///
    /// # Errors
    /// If it is too deep.
    pub fn parse(schema: &Value) -> Result<Self, TooDeep> {
        Parser { patterns: Patterns::default(), depth: 0 }.schema(schema)
    }
}

struct Parser {
    patterns: Patterns,
    depth: usize,
}

// === impl Parser ===

impl Parser {
    fn schema(&mut self, schema: &Value) -> Result<Schema, TooDeep> {
        let Value::Object(map) = schema else { return Ok(Schema::default()) };
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TooDeep);
        }
        let mut read = Schema {
            type_name: TypeName::from(text(map, "type")),
            nullable: flag(map, "nullable"),
            preserves_unknown: map.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool),
            is_embedded: flag(map, "x-kubernetes-embedded-resource"),
            is_int_or_string: flag(map, "x-kubernetes-int-or-string"),
            properties: self.schemas(map.get("properties"))?,
            default: map.get("default").filter(|it| !it.is_null()).cloned().map(Box::new),
            topology: topology(map),
            rules: rules(map),
            docs: docs(map),
            ..Schema::default()
        };
        read.additional = match map.get("additionalProperties") {
            Some(Value::Bool(allows)) => Some(Box::new(Additional { allows: *allows, schema: None })),
            Some(schema @ Value::Object(_)) => {
                Some(Box::new(Additional { allows: true, schema: Some(self.schema(schema)?) }))
            }
            _ => None,
        };
        let mut unsupported = self.unsupported(map)?;
        match map.get("items") {
            Some(schema @ Value::Object(_)) => read.items = Some(Box::new(self.schema(schema)?)),
            Some(Value::Array(list)) => {
                unsupported.item_list = list.iter().map(|it| self.schema(it)).collect::<Result<_, _>>()?;
            }
            _ => {}
        }
        if unsupported != Unsupported::default() {
            read.unsupported = Some(Box::new(unsupported));
        }
        let values = self.values(map)?;
        if values != Values::default() {
            read.values = Some(Box::new(values));
        }
        self.depth -= 1;
        Ok(read)
    }

    fn schemas(&mut self, map: Option<&Value>) -> Result<BTreeMap<String, Schema>, TooDeep> {
        let entries = map.and_then(Value::as_object).into_iter().flatten();
        entries.map(|(name, schema)| Ok((name.clone(), self.schema(schema)?))).collect()
    }

    fn list(&mut self, map: &Map<String, Value>, field: &str) -> Result<Vec<Schema>, TooDeep> {
        let list = map.get(field).and_then(Value::as_array).into_iter().flatten();
        list.map(|schema| self.schema(schema)).collect()
    }

    fn values(&mut self, map: &Map<String, Value>) -> Result<Values, TooDeep> {
        let number = |field: &str| map.get(field).and_then(Value::as_f64);
        let count = |field: &str| map.get(field).and_then(Value::as_i64);
        let pattern = text(map, "pattern");
        Ok(Values {
            format: text(map, "format").to_owned(),
            maximum: number("maximum"),
            is_maximum_exclusive: flag(map, "exclusiveMaximum"),
            minimum: number("minimum"),
            is_minimum_exclusive: flag(map, "exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern: (!pattern.is_empty()).then(|| self.patterns.get(pattern)),
            max_items: count("maxItems"),
            min_items: count("minItems"),
            unique_items: flag(map, "uniqueItems"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            required: texts(map, "required"),
            one_of_values: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            all_of: self.list(map, "allOf")?,
            any_of: self.list(map, "anyOf")?,
            one_of: self.list(map, "oneOf")?,
            not: match map.get("not") {
                Some(schema @ Value::Object(_)) => Some(Box::new(self.schema(schema)?)),
                _ => None,
            },
        })
    }

    fn unsupported(&mut self, map: &Map<String, Value>) -> Result<Unsupported, TooDeep> {
        let is_filled = |field: &str| map.get(field).and_then(Value::as_object).is_some_and(|it| !it.is_empty());
        let dependencies = match map.get("dependencies") {
            Some(Value::Object(entries)) => {
                let read = |(name, value): (&String, &Value)| {
                    let schema = value.is_object().then(|| self.schema(value)).transpose()?;
                    Ok((name.clone(), schema))
                };
                Some(entries.iter().map(read).collect::<Result<_, TooDeep>>()?)
            }
            _ => None,
        };
        Ok(Unsupported {
            id: !text(map, "id").is_empty(),
            schema: !text(map, "$schema").is_empty(),
            reference: map.get("$ref").and_then(Value::as_str).map(|it| !it.is_empty()),
            pattern_properties: is_filled("patternProperties"),
            dependencies,
            additional_items: map.get("additionalItems").is_some_and(|it| it.is_object() || it.is_boolean()),
            definitions: self.schemas(map.get("definitions"))?,
            item_list: Vec::new(),
        })
    }
}

fn text<'a>(map: &'a Map<String, Value>, field: &str) -> &'a str {
    map.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn flag(map: &Map<String, Value>, field: &str) -> bool {
    map.get(field).and_then(Value::as_bool).unwrap_or_default()
}

fn texts(map: &Map<String, Value>, field: &str) -> Vec<String> {
    let list = map.get(field).and_then(Value::as_array).into_iter().flatten();
    list.map(|it| it.as_str().unwrap_or_default().to_owned()).collect()
}

fn topology(map: &Map<String, Value>) -> Option<Box<Topology>> {
    let text = |field: &str| map.get(field).and_then(Value::as_str).map(str::to_owned);
    let read = Topology {
        list_type: text("x-kubernetes-list-type"),
        list_map_keys: texts(map, "x-kubernetes-list-map-keys"),
        map_type: text("x-kubernetes-map-type"),
    };
    (read != Topology::default()).then(|| Box::new(read))
}

fn rules(map: &Map<String, Value>) -> Option<Box<[Rule]>> {
    let list = map.get("x-kubernetes-validations")?.as_array()?;
    let rule = |value: &Value| {
        let Value::Object(map) = value else { return Rule::default() };
        Rule {
            rule: text(map, "rule").to_owned(),
            message: text(map, "message").to_owned(),
            message_expression: text(map, "messageExpression").to_owned(),
            reason: map.get("reason").and_then(Value::as_str).map(str::to_owned),
            field_path: text(map, "fieldPath").to_owned(),
            optional_old_self: map.get("optionalOldSelf").and_then(Value::as_bool),
        }
    };
    (!list.is_empty()).then(|| list.iter().map(rule).collect())
}

fn docs(map: &Map<String, Value>) -> Option<Box<Docs>> {
    let is_set = |field: &str| map.get(field).is_some_and(|it| !it.is_null());
    let read = Docs {
        title: !text(map, "title").is_empty(),
        description: !text(map, "description").is_empty(),
        other: is_set("externalDocs") || is_set("example"),
    };
    (read != Docs::default()).then(|| Box::new(read))
}
