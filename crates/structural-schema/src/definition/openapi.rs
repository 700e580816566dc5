//! Fields that are not supported, and extensions that do not fit together. Follows
//! `ValidateCustomResourceDefinitionOpenAPISchema`.

use serde_json::Value;
use steersman_base::validation::FieldError;

use super::{Errors, Requirements};
use crate::field_path::resolve;
use crate::path::Path;
use crate::schema::{Rule, Schema, TypeName};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const REASONS: &[&str] = &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The rules for a part of the schema.
#[derive(Clone)]
struct Context {
    requirements: Requirements,
    /// Why there may be no defaults.
    no_defaults: Option<String>,
    /// Whether the part describes metadata.
    is_metadata: bool,
}

/// Checks a whole schema.
pub(super) fn validate(schema: &Schema, path: &Path<'_>, requirements: Requirements) -> Vec<FieldError> {
    let context = Context { requirements, no_defaults: None, is_metadata: false };
    let mut errors = Errors::default();
    context.schema(schema, true, path, &mut errors);
    errors.0
}

/// Whether this is a set whose items are merged field by field.
pub(super) fn has_granular_set_items(schema: &Schema) -> bool {
    schema.list_type() == "set" && schema.items.as_deref().is_some_and(is_granular)
}

/// Whether this is a set or a map whose keys may be missing or null.
pub(super) fn has_loose_map_keys(schema: &Schema) -> bool {
    let mut errors = Errors::default();
    map_keys(schema, &Path::root(""), &mut errors);
    !errors.0.is_empty()
}

fn is_granular(items: &Schema) -> bool {
    let topology = items.topology.as_deref();
    match items.type_name {
        TypeName::Array => topology.and_then(|it| it.list_type.as_deref()).is_some_and(|it| it != "atomic"),
        TypeName::Object => topology.and_then(|it| it.map_type.as_deref()) != Some("atomic"),
        _ => false,
    }
}

// === impl Context ===

impl Context {
    fn schema(&self, schema: &Schema, is_root: bool, path: &Path<'_>, errors: &mut Errors) {
        self.fields(schema, path, errors);
        let values = schema.values();
        if values.unique_items {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            errors.push(FieldError::forbidden(path.child("uniqueItems").field(), detail));
        }
        self.additional(schema, path, errors);
        self.properties(schema, is_root, path, errors);
        if let Some(not) = &values.not {
            self.schema(not, false, &path.child("not"), errors);
        }
        for (name, schemas) in [("allOf", &values.all_of), ("oneOf", &values.one_of), ("anyOf", &values.any_of)] {
            let at = path.child(name);
            for (index, schema) in schemas.iter().enumerate() {
                self.schema(schema, false, &at.index(index), errors);
            }
        }
        let unsupported = schema.unsupported.as_deref();
        for (name, schema) in unsupported.into_iter().flat_map(|it| &it.definitions) {
            self.schema(schema, false, &path.child("definitions").key(name), errors);
        }
        if let Some(items) = &schema.items {
            self.schema(items, false, &path.child("items"), errors);
        }
        for (index, schema) in unsupported.into_iter().flat_map(|it| &it.item_list).enumerate() {
            self.schema(schema, false, &path.child("items").index(index), errors);
        }
        for (name, schema) in unsupported.and_then(|it| it.dependencies.as_ref()).into_iter().flatten() {
            if let Some(schema) = schema {
                self.schema(schema, false, &path.child("dependencies").key(name), errors);
            }
        }
        if schema.preserves_unknown == Some(false) {
            let at = path.child("x-kubernetes-preserve-unknown-fields");
            errors.push(FieldError::invalid(at.field(), false, "must be true or undefined"));
        }
        map_type(schema, path, errors);
        self.list_type(schema, path, errors);
        if self.requirements.map_keys {
            map_keys(schema, path, errors);
        }
        for (index, rule) in schema.rules().iter().enumerate() {
            rule_form(rule, schema, &path.child("x-kubernetes-validations").index(index), errors);
        }
    }

    /// Fields that no version of a definition may have.
    fn fields(&self, schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
        let name = schema.type_name.as_str();
        if self.requirements.valid_types && matches!(schema.type_name, TypeName::Other(_)) {
            errors.push(FieldError::not_supported(path.child("type").field(), name, TYPES));
        }
        let mut forbidden = |field: &str, detail: String| {
            errors.push(FieldError::forbidden(path.child(field).field(), detail));
        };
        if let (Some(reason), true) = (&self.no_defaults, schema.default.is_some()) {
            forbidden("default", format!("must not be set {reason}"));
        }
        if let Some(unsupported) = &schema.unsupported {
            let found = [
                (unsupported.id, "id"),
                (unsupported.additional_items, "additionalItems"),
                (unsupported.pattern_properties, "patternProperties"),
                (!unsupported.definitions.is_empty(), "definitions"),
                (unsupported.dependencies.is_some(), "dependencies"),
                (unsupported.reference.is_some(), "$ref"),
            ];
            for (_, name) in found.into_iter().filter(|(is_there, _)| *is_there) {
                forbidden(name, format!("{name} is not supported"));
            }
        }
        if name == "null" {
            forbidden("type", "type cannot be set to null, use nullable as an alternative".to_owned());
        }
        if schema.unsupported.as_ref().is_some_and(|it| !it.item_list.is_empty()) {
            forbidden("items", "items must be a schema object and not an array".to_owned());
        }
        if self.is_metadata && schema.is_embedded {
            forbidden("x-kubernetes-embedded-resource", "must not be used inside of resource meta".to_owned());
        }
    }

    fn additional(&self, schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
        let Some(additional) = &schema.additional else { return };
        let at = path.child("additionalProperties");
        if !schema.properties.is_empty() && (!additional.allows || additional.schema.is_some()) {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(at.field(), detail));
        }
        let Some(schema) = &additional.schema else { return };
        if self.is_metadata {
            let reason = "inside additionalProperties applying to object metadata".to_owned();
            Self { no_defaults: Some(reason), ..self.clone() }.schema(schema, false, &at, errors);
        } else {
            self.schema(schema, false, &at, errors);
        }
    }

    fn properties(&self, schema: &Schema, is_root: bool, path: &Path<'_>, errors: &mut Errors) {
        let properties = path.child("properties");
        for (name, property) in &schema.properties {
            let at = properties.key(name);
            let is_meta = matches!(&**name, "metadata" | "kind" | "apiVersion");
            if (is_root || schema.is_embedded) && is_meta {
                let mut inside = Self { is_metadata: true, ..self.clone() };
                if is_root {
                    inside.no_defaults = Some(format!("in top-level {name}"));
                }
                inside.schema(property, false, &at, errors);
            } else {
                self.schema(property, false, &at, errors);
            }
        }
    }

    fn list_type(&self, schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
        let topology = schema.topology.as_deref();
        let list_type = topology.and_then(|it| it.list_type.as_deref());
        let at = path.child("x-kubernetes-list-type");
        if let Some(list_type) = list_type {
            if schema.type_name != TypeName::Array {
                must_be(schema, "array", "x-kubernetes-list-type", path, errors);
            } else if list_type == "set"
                && self.requirements.atomic_sets
                && let Some(items) = schema.items.as_deref().filter(|items| is_granular(items))
            {
                let field = if items.type_name == TypeName::Array { "list" } else { "map" };
                let held = items.topology.as_ref().and_then(|it| it.list_type.clone());
                errors.push(FieldError::invalid(
                    path.child("items").child(&format!("x-kubernetes-{field}-type")).field(),
                    held.map_or(Value::Null, Value::from),
                    "must be atomic as item of a list with x-kubernetes-list-type=set",
                ));
            }
            if !matches!(list_type, "atomic" | "set" | "map") {
                errors.push(FieldError::not_supported(at.field(), list_type, &["atomic", "set", "map"]));
            }
        }
        if !schema.list_map_keys().is_empty() {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match list_type {
                None => errors.push(FieldError::required(at.field(), detail)),
                Some("map") => {}
                Some(other) => errors.push(FieldError::invalid(at.field(), other, detail)),
            }
        }
        if list_type == Some("map") {
            list_map(schema, path, errors);
        }
    }
}

fn must_be(schema: &Schema, want: &str, extension: &str, path: &Path<'_>, errors: &mut Errors) {
    let detail = format!("must be {want} if {extension} is specified");
    let at = path.child("type").field();
    errors.push(match schema.type_name.as_str() {
        "" => FieldError::required(at, detail),
        name => FieldError::invalid(at, name, detail),
    });
}

fn map_type(schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
    let Some(map_type) = schema.topology.as_ref().and_then(|it| it.map_type.as_deref()) else { return };
    if schema.type_name != TypeName::Object {
        must_be(schema, "object", "x-kubernetes-map-type", path, errors);
    }
    if !matches!(map_type, "atomic" | "granular") {
        let at = path.child("x-kubernetes-map-type").field();
        errors.push(FieldError::not_supported(at, map_type, &["atomic", "granular"]));
    }
}

fn list_map(schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
    let keys = schema.list_map_keys();
    let at = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at.field(), detail));
    }
    let items_path = path.child("items");
    let Some(items) = schema.items.as_deref() else {
        if schema.unsupported.as_ref().is_none_or(|it| it.item_list.is_empty()) {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(items_path.field(), detail));
        }
        return;
    };
    if items.type_name != TypeName::Object {
        errors.push(FieldError::invalid(
            items_path.child("type").field(),
            items.type_name.as_str(),
            "must be object if parent array's x-kubernetes-list-type is map",
        ));
        return;
    }
    let properties = items_path.child("properties");
    for (index, key) in keys.iter().enumerate() {
        match items.properties.get(key) {
            Some(property) if matches!(property.type_name, TypeName::Array | TypeName::Object) => {
                errors.push(FieldError::invalid(
                    properties.key(key).child("type").field(),
                    "object",
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                ));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(at.field(), keys.to_vec(), detail));
            }
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(at.field(), keys.to_vec(), "must not contain duplicate entries"));
        }
        if errors.0.len() >= super::ERRORS_MAX {
            return;
        }
    }
}

/// Items and keys of sets and maps are never null, and keys are always there.
fn map_keys(schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
    let (Some(items), list_type @ ("set" | "map")) = (schema.items.as_deref(), schema.list_type()) else { return };
    let at = path.child("items");
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at.child("nullable").field(), detail));
    }
    if list_type == "set" {
        return;
    }
    let properties = at.child("properties");
    for key in schema.list_map_keys() {
        let Some(property) = items.properties.get(key) else { continue };
        let at = properties.key(key);
        if property.default.is_none() && !items.values().required.contains(key) {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(at.child("default").field(), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at.child("nullable").field(), detail));
        }
    }
}

fn rule_form(rule: &Rule, schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let message = rule.message.trim();
    let at = path.child("message");
    if rule.rule.trim().is_empty() {
        errors.push(FieldError::required(path.child("rule").field(), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        errors.push(FieldError::invalid(at.field(), &*rule.message, "must be non-empty if specified"));
    } else if has_lines(message) {
        errors.push(FieldError::invalid(at.field(), &*rule.message, "must not contain line breaks"));
    } else if has_lines(rule.rule.trim()) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(at.field(), detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let at = path.child("messageExpression");
        errors.push(FieldError::required(at.field(), "messageExpression must be non-empty if specified"));
    }
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
        errors.push(FieldError::not_supported(path.child("reason").field(), reason, REASONS));
    }
    if rule.field_path.is_empty() {
        return;
    }
    let at = path.child("fieldPath");
    if rule.field_path.trim().is_empty() {
        errors.push(FieldError::invalid(at.field(), &*rule.field_path, "must be non-empty if specified"));
    }
    if has_lines(&rule.field_path) {
        errors.push(FieldError::invalid(at.field(), &*rule.field_path, "must not contain line breaks"));
    }
    if super::structural::unsupported(schema).is_none() && resolve(&rule.field_path, schema, true).is_err() {
        errors.push(FieldError::invalid(at.field(), &*rule.field_path, "must be a valid path"));
    }
}
