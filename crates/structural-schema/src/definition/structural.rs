//! Structural schemas. Follows `apiextensions-apiserver/pkg/apiserver/schema/{validation,complete,convert}.go`.

use steersman_base::validation::FieldError;

use super::Errors;
use crate::path::Path;
use crate::schema::{Schema, TypeName, Values};

/// The level of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why a schema cannot be read as a structural one at all.
pub(super) fn unsupported(schema: &Schema) -> Option<String> {
    let mut problem = None;
    schema.any(&mut |schema| {
        problem = unsupported_here(schema);
        problem.is_some()
    });
    problem
}

fn unsupported_here(schema: &Schema) -> Option<String> {
    let not_supported = |name: &str| Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    if let Some(unsupported) = &schema.unsupported {
        let found = [
            (unsupported.id, "id"),
            (unsupported.schema, "schema"),
            (unsupported.reference == Some(true), "$ref"),
            (unsupported.pattern_properties, "patternProperties"),
            (unsupported.dependencies.as_ref().is_some_and(|it| !it.is_empty()), "dependencies"),
            (unsupported.additional_items, "additionalItems"),
            (!unsupported.definitions.is_empty(), "definitions"),
        ];
        if let Some((_, name)) = found.into_iter().find(|(is_there, _)| *is_there) {
            return not_supported(name);
        }
        if !unsupported.item_list.is_empty() {
            return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
    }
    (schema.preserves_unknown == Some(false))
        .then(|| "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned())
}

/// Returns the reasons why a schema is not structural, in the order of the messages.
pub(super) fn validate(schema: &Schema, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    invariants(schema, Level::Root, path, &mut errors);
    complete_values(schema.values(), schema, path, path, &mut errors);
    errors.0.sort_by_cached_key(ToString::to_string);
    errors.0
}

fn invariants(schema: &Schema, level: Level, path: &Path<'_>, errors: &mut Errors) {
    if schema.type_name == TypeName::Array && schema.items.is_none() {
        errors.push(FieldError::required(path.child("items").field(), "must be specified"));
    }
    if let Some(items) = &schema.items {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in &schema.properties {
        invariants(property, Level::Field, &properties.key(name), errors);
    }
    if let Some(additional) = &schema.additional {
        let at = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(at.field(), "must not be used at the root"));
        }
        if let Some(schema) = &additional.schema {
            invariants(schema, Level::Field, &at, errors);
        }
    }
    extensions(schema, path, errors);
    let is_pattern = |schemas: &[Schema]| is_int_or_string_pattern(schemas);
    let values = schema.values();
    let skips_any_of = is_pattern(&values.any_of);
    let skips_in_all_of = values.all_of.first().is_some_and(|first| is_pattern(&first.values().any_of));
    nested_values(values, skips_any_of, skips_in_all_of, path, errors);
    types(schema, level, path, errors);
    if schema.is_embedded && schema.additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(path.child("additionalProperties").field(), detail));
    }
    metadata(schema, level, path, errors);
    if schema.is_embedded && !schema.keeps_unknown() && schema.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(properties.field(), detail));
    }
}

fn extensions(schema: &Schema, path: &Path<'_>, errors: &mut Errors) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if schema.is_int_or_string && schema.keeps_unknown() {
        errors.push(FieldError::invalid(path.child("x-kubernetes-preserve-unknown-fields").field(), true, detail));
    }
    if schema.is_int_or_string && schema.is_embedded {
        errors.push(FieldError::invalid(path.child("x-kubernetes-embedded-resource").field(), true, detail));
    }
}

fn types(schema: &Schema, level: Level, path: &Path<'_>, errors: &mut Errors) {
    let at = path.child("type");
    let name = schema.type_name.as_str();
    if schema.is_embedded && schema.type_name != TypeName::Object {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match name {
            "" => FieldError::required(at.field(), detail),
            name => FieldError::invalid(at.field(), name, detail),
        });
    } else if name.is_empty() && !schema.is_int_or_string && !schema.keeps_unknown() {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at.field(), detail));
    }
    if level == Level::Root && !name.is_empty() && schema.type_name != TypeName::Object {
        errors.push(FieldError::invalid(at.field(), name, "must be object at the root"));
    }
}

/// The metadata of an object is described by the API, not by its schema.
fn metadata(schema: &Schema, level: Level, path: &Path<'_>, errors: &mut Errors) {
    let is_object = level == Level::Root || schema.is_embedded;
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        let wrong = |property: &&Schema| property.type_name != TypeName::String;
        if let Some(property) = schema.properties.get(name).filter(wrong).filter(|_| is_object) {
            let at = properties.key(name);
            errors.push(FieldError::invalid(at.child("type").field(), property.type_name.as_str(), "must be string"));
        }
    }
    let Some(metadata) = schema.properties.get("metadata") else { return };
    let at = properties.key("metadata");
    if is_object && metadata.type_name != TypeName::Object {
        let name = metadata.type_name.as_str();
        errors.push(FieldError::invalid(at.child("type").field(), name, "must be object"));
    }
    if level == Level::Root {
        let mut rest = metadata.clone();
        if rest.properties.keys().all(|name| name == "name" || name == "generateName") {
            rest.properties.clear();
        }
        rest.type_name = TypeName::None;
        rest.default = None;
        if rest != Schema::default() {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                          specified";
            errors.push(FieldError::forbidden(at.field(), detail));
        }
    }
}

/// `[{type: integer}, {type: string}]`
fn is_int_or_string_pattern(schemas: &[Schema]) -> bool {
    matches!(schemas, [first, second] if first.is_only(&TypeName::Integer) && second.is_only(&TypeName::String))
}

fn nested_values(values: &Values, skips_any_of: bool, skips_in_all_of: bool, path: &Path<'_>, errors: &mut Errors) {
    if !skips_any_of {
        let at = path.child("anyOf");
        for (index, schema) in values.any_of.iter().enumerate() {
            nested(schema, false, &at.index(index), errors);
        }
    }
    let at = path.child("allOf");
    for (index, schema) in values.all_of.iter().enumerate() {
        nested(schema, skips_in_all_of && index == 0, &at.index(index), errors);
    }
    let at = path.child("oneOf");
    for (index, schema) in values.one_of.iter().enumerate() {
        nested(schema, false, &at.index(index), errors);
    }
    if let Some(schema) = &values.not {
        nested(schema, false, &path.child("not"), errors);
    }
    if let Some(pattern) = &values.pattern
        && let Some(problem) = pattern.problem()
    {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.push(FieldError::invalid(path.child("pattern").field(), pattern.as_str(), detail));
    }
}

/// A schema under `allOf`, `anyOf`, `oneOf` or `not`: it only restricts values.
fn nested(schema: &Schema, skips_any_of: bool, path: &Path<'_>, errors: &mut Errors) {
    nested_values(schema.values(), skips_any_of, false, path, errors);
    if let Some(items) = &schema.items {
        nested(items, false, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in &schema.properties {
        nested(property, false, &properties.key(name), errors);
    }
    let topology = schema.topology.as_deref();
    let has_additional = schema.additional.as_ref().is_some_and(|it| it.allows);
    let docs = schema.docs.as_deref();
    let forbidden = [
        (schema.type_name != TypeName::None, "type", "empty"),
        (has_additional, "additionalProperties", "undefined"),
        (schema.default.is_some(), "default", "undefined"),
        (docs.is_some_and(|docs| docs.title), "title", "empty"),
        (docs.is_some_and(|docs| docs.description), "description", "empty"),
        (schema.nullable, "nullable", "false"),
        (schema.keeps_unknown(), "x-kubernetes-preserve-unknown-fields", "false"),
        (schema.is_embedded, "x-kubernetes-embedded-resource", "false"),
        (schema.is_int_or_string, "x-kubernetes-int-or-string", "false"),
        (topology.is_some_and(|it| !it.list_map_keys.is_empty()), "x-kubernetes-list-map-keys", "empty"),
        (topology.is_some_and(|it| it.list_type.is_some()), "x-kubernetes-list-type", "undefined"),
        (topology.is_some_and(|it| it.map_type.is_some()), "x-kubernetes-map-type", "undefined"),
        (schema.rules.is_some(), "x-kubernetes-validations", "empty"),
    ];
    for (_, name, must) in forbidden.into_iter().filter(|(is_there, ..)| *is_there) {
        errors.push(FieldError::forbidden(path.child(name).field(), format!("must be {must} to be structural")));
    }
    if schema.properties.contains_key("metadata") {
        let at = properties.key("metadata");
        errors.push(FieldError::forbidden(at.field(), "must not be specified in a nested context"));
    }
}

/// Whatever nested schemas restrict is described outside them. Only the root is looked at, as upstream.
fn complete_values(values: &Values, outside: &Schema, outside_path: &Path<'_>, path: &Path<'_>, errors: &mut Errors) {
    if let Some(schema) = &values.not {
        complete(schema, Some(outside), outside_path, &path.child("not"), errors);
    }
    for (name, schemas) in [("allOf", &values.all_of), ("anyOf", &values.any_of), ("oneOf", &values.one_of)] {
        let at = path.child(name);
        for (index, schema) in schemas.iter().enumerate() {
            complete(schema, Some(outside), outside_path, &at.index(index), errors);
        }
    }
}

fn complete(schema: &Schema, outside: Option<&Schema>, outside_path: &Path<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Some(outside) = outside else {
        errors.push(FieldError::required(outside_path.field(), format!("because it is defined in {path}")));
        return;
    };
    complete_values(schema.values(), outside, outside_path, path, errors);
    if let Some(items) = &schema.items {
        complete(items, outside.items.as_deref(), &outside_path.child("items"), &path.child("items"), errors);
    }
    let outside_properties = outside_path.child("properties");
    let properties = path.child("properties");
    for (name, property) in &schema.properties {
        let at = properties.key(name);
        complete(property, outside.properties.get(name), &outside_properties.key(name), &at, errors);
    }
}
