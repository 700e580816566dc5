//! Whether an object is what its schema says.
//!
//! 1. **Upstream's answers.** Messages, reasons, paths and which branch of `anyOf` or `oneOf` is blamed are those of
//!    kube-openapi's validator. Where it walks a hash map, properties come in the order of their names.
//! 2. **Ratcheting.** In an update, what is wrong with a part that has not changed is not an error, where the part can be
//!    found in the old object: properties by name, items of lists of type `map` by their keys.
//! 3. **Bounded.** At most [`PROBLEMS_MAX`] problems of an object are kept; a text is matched in linear time.
//!
//! Follows `kube-openapi/pkg/validation/validate` and `apiextensions-apiserver/pkg/apiserver/validation`.

mod number;
mod outcome;
mod ratchet;

use serde_json::{Map, Value};
use steersman_base::go::quote;
use steersman_base::validation::FieldError;

pub use outcome::PROBLEMS_MAX;

use crate::format;
use crate::path::Path;
use crate::schema::{Schema, TypeName, Values};
use crate::text::Kind;
use outcome::{Bad, Outcome};
use ratchet::Pair;

/// The way in which a schema is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// For objects: formats that mean nothing are ignored, and `x-kubernetes-int-or-string` is a type.
    Object,
    /// For default values, as upstream reads a schema then.
    Default,
}

#[derive(Clone, Copy)]
struct Validator {
    reading: Reading,
}

/// Checks a new object, or a part of it that is at `prefix`.
#[must_use]
pub fn validate(schema: &Schema, value: &Value, prefix: &str) -> Vec<FieldError> {
    Validator { reading: Reading::Object }.value(schema, value, &Path::root(""), None).into_errors(prefix)
}

/// Checks the change of an object, or of a part of it that is at `prefix`: what has not changed is not held against it.
#[must_use]
pub fn validate_update(schema: &Schema, value: &Value, old: &Value, prefix: &str) -> Vec<FieldError> {
    let pair = Pair { schema, new: value, old };
    Validator { reading: Reading::Object }.value(schema, value, &Path::root(""), Some(pair)).into_errors(prefix)
}

/// Checks a default value.
pub(crate) fn validate_default(schema: &Schema, value: &Value, prefix: &str) -> Vec<FieldError> {
    Validator { reading: Reading::Default }.value(schema, value, &Path::root(""), None).into_errors(prefix)
}

// === impl Validator ===

impl Validator {
    fn value<'a>(self, schema: &'a Schema, value: &'a Value, path: &Path<'_>, pair: Option<Pair<'a>>) -> Outcome<'a> {
        let outcome = self.unratcheted(schema, value, path, pair);
        match pair {
            Some(pair) if !outcome.is_valid() && pair.is_unchanged() => outcome.forgiven(),
            _ => outcome,
        }
    }

    fn unratcheted<'a>(
        self,
        schema: &'a Schema,
        value: &'a Value,
        path: &Path<'_>,
        pair: Option<Pair<'a>>,
    ) -> Outcome<'a> {
        let mut all = Outcome::default();
        let kind = Kind::of(value);
        let values = schema.values();
        if kind == Kind::Null {
            all.merge(self.type_of(schema, kind, path));
            one_of_values(values, value, path, &mut all);
            return all;
        }
        if self.is_typed(schema) {
            all.merge(self.type_of(schema, kind, path));
            all.count();
        }
        all.merge(self.junctions(values, value, path));
        all.count();
        match value {
            Value::String(text) => {
                string(values, value, text, path, &mut all);
                all.count();
                if let Some(check) = format::check(self.format(schema)) {
                    if !check(text) {
                        let format = self.format(schema);
                        all.add(path, Bad::Type(text.clone()), |at| {
                            format!("{at} in body must be of type {format}: {}", quote(text))
                        });
                    }
                    all.count();
                }
            }
            Value::Number(_) => {
                all.merge(number::check(self.number_type(schema), schema.values(), kind, path));
                all.count();
            }
            Value::Array(items) => {
                all.merge(self.items(schema, items, path, pair));
                all.count();
            }
            _ => {}
        }
        one_of_values(values, value, path, &mut all);
        all.count();
        if let Value::Object(map) = value {
            all.merge(self.object(schema, map, path, pair));
            all.count();
        }
        all.count();
        all
    }

    fn format(self, schema: &Schema) -> &str {
        let format = &*schema.values().format;
        match self.reading {
            Reading::Default => format,
            Reading::Object if format.is_empty() => format,
            // An int-or-string has two types, and upstream knows a format only for one or none.
            Reading::Object if format::is_supported(format, self.single_type(schema)) => format,
            Reading::Object => "",
        }
    }

    fn single_type(self, schema: &Schema) -> &TypeName {
        if self.has_two_types(schema) { &TypeName::None } else { &schema.type_name }
    }

    fn has_two_types(self, schema: &Schema) -> bool {
        self.reading == Reading::Object && schema.is_int_or_string
    }

    fn is_typed(self, schema: &Schema) -> bool {
        self.has_two_types(schema) || schema.type_name != TypeName::None || !self.format(schema).is_empty()
    }

    /// The type and format by which numbers are bounded.
    fn number_type(self, schema: &Schema) -> (&TypeName, &str) {
        let type_name @ (TypeName::Integer | TypeName::Number) = self.single_type(schema) else {
            return (&TypeName::None, "");
        };
        let format = &*schema.values().format;
        match (type_name, format) {
            (TypeName::Integer, "int32" | "int64") | (TypeName::Number, "float" | "double") => (type_name, format),
            _ => (type_name, ""),
        }
    }

    fn type_of<'a>(self, schema: &'a Schema, kind: Kind, path: &Path<'_>) -> Outcome<'a> {
        let is_two = self.has_two_types(schema);
        let names = if is_two { "integer,string" } else { schema.type_name.as_str() };
        let allows = |name: &str| if is_two { name == "integer" || name == "string" } else { names == name };
        let mut result = Outcome::default();
        if kind == Kind::Null {
            if names.is_empty() || names == "null" || schema.nullable {
                result.count();
            } else {
                result.add_type(path, names, "null");
            }
            return result;
        }
        let format = self.format(schema);
        let is_whole = matches!(kind, Kind::Float(number) if crate::text::is_whole(number)) && allows("integer");
        let is_number = matches!(kind, Kind::Int(_)) && allows("number");
        let is_fitting = allows(kind.type_name()) || is_whole || is_number;
        let is_text_like = matches!(kind, Kind::String | Kind::Array);
        if !(is_text_like || format.is_empty() || is_fitting || kind.format_name() == format) {
            result.add_type(path, format, kind.format_name());
        } else if (is_text_like && !format.is_empty() && !allows("number") && !allows("integer")) || is_fitting {
            result.count();
        } else {
            result.add_type(path, names, kind.type_name());
        }
        result
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`.
    fn junctions<'a>(self, values: &'a Values, value: &'a Value, path: &Path<'_>) -> Outcome<'a> {
        let mut main = Outcome::default();
        if !values.any_of.is_empty() {
            self.any_of(&values.any_of, value, path, &mut main);
        }
        if !values.one_of.is_empty() {
            self.one_of(&values.one_of, value, path, &mut main);
        }
        if !values.all_of.is_empty() {
            let mut valid = 0;
            for schema in &values.all_of {
                let outcome = self.value(schema, value, path, None);
                valid += usize::from(outcome.is_valid());
                main.merge(outcome);
            }
            if valid != values.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                main.add_composite(|| format!("{} must validate all the schemas (allOf){none}", quoted(path)));
            }
        }
        if let Some(not) = &values.not
            && self.value(not, value, path, None).is_valid()
        {
            main.add_composite(|| format!("{} must not validate the schema (not)", quoted(path)));
        }
        main.count();
        main
    }

    fn any_of<'a>(self, schemas: &'a [Schema], value: &'a Value, path: &Path<'_>, main: &mut Outcome<'a>) {
        let mut best: Option<Outcome<'a>> = None;
        for schema in schemas {
            let outcome = self.value(schema, value, path, None);
            if outcome.is_valid() {
                main.merge(outcome);
                return;
            }
            if best.as_ref().is_none_or(|best| outcome.matches() > best.matches()) {
                best = Some(outcome);
            }
        }
        main.add_composite(|| format!("{} must validate at least one schema (anyOf)", quoted(path)));
        if let Some(best) = best {
            main.merge(best);
        }
    }

    fn one_of<'a>(self, schemas: &'a [Schema], value: &'a Value, path: &Path<'_>, main: &mut Outcome<'a>) {
        let mut best: Option<Outcome<'a>> = None;
        let mut first: Option<Outcome<'a>> = None;
        let mut valid = 0;
        for schema in schemas {
            let outcome = self.value(schema, value, path, None);
            if outcome.is_valid() {
                valid += 1;
                best = None;
                first.get_or_insert(outcome);
            } else if valid == 0 && best.as_ref().is_none_or(|best| outcome.matches() > best.matches()) {
                best = Some(outcome);
            }
        }
        if valid == 1 {
            main.merge(first.unwrap_or_default());
            return;
        }
        let found =
            if valid == 0 { "Found none valid".to_owned() } else { format!("Found {valid} valid alternatives") };
        main.add_composite(|| format!("{} must validate one and only one schema (oneOf). {found}", quoted(path)));
        if let Some(best) = best {
            main.merge(best);
        }
    }

    fn items<'a>(self, schema: &'a Schema, items: &'a [Value], path: &Path<'_>, pair: Option<Pair<'a>>) -> Outcome<'a> {
        let mut result = Outcome::default();
        if let Some(of_items) = &schema.items {
            let old = pair.map(Pair::items);
            for (at, item) in items.iter().enumerate() {
                let pair = old.as_ref().and_then(|old| old.pair(of_items, item));
                result.merge(self.value(of_items, item, &path.index(at), pair));
            }
        }
        let values = schema.values();
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = values.min_items.filter(|min| size < *min) {
            result.add(path, Bad::Value(size.into()), |at| format!("{at} in body should have at least {min} items"));
        }
        if let Some(max) = values.max_items.filter(|max| size > *max) {
            result.add(path, Bad::TooMany(size, max), |at| format!("{at} in body should have at most {max} items"));
        }
        result.count();
        result
    }

    fn object<'a>(
        self,
        schema: &'a Schema,
        map: &'a Map<String, Value>,
        path: &Path<'_>,
        pair: Option<Pair<'a>>,
    ) -> Outcome<'a> {
        let mut result = Outcome::default();
        let values = schema.values();
        let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(min) = values.min_properties.filter(|min| size < *min) {
            let bad = Bad::Value(size.into());
            result.add(path, bad, |at| format!("{at} in body should have at least {min} properties"));
        }
        if let Some(max) = values.max_properties.filter(|max| size > *max) {
            let bad = Bad::TooMany(size, max);
            result.add(path, bad, |at| format!("{at} in body should have at most {max} properties"));
        }
        let is_root = path.is_root();
        let pair_of = |name: &str, schema: &'a Schema| {
            let is_type_meta = is_root && matches!(name, "kind" | "apiVersion");
            pair.filter(|_| !is_type_meta).and_then(|pair| pair.property(name, schema))
        };
        if let Some(additional) = &schema.additional {
            for (name, value) in map.iter().filter(|(name, _)| !schema.properties.contains_key(*name)) {
                match &additional.schema {
                    _ if !additional.allows => result.add(path, Bad::Value(name.as_str().into()), |at| {
                        format!("{at}.{name} in body is a forbidden property")
                    }),
                    Some(schema) => {
                        result.merge(self.value(schema, value, &path.extra(name), pair_of(name, schema)));
                    }
                    None => {}
                }
            }
        }
        if map.len() < schema.properties.len() {
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    result.merge(self.value(property, value, &path.child(name), pair_of(name, property)));
                }
            }
        } else {
            for (name, property) in &schema.properties {
                if let Some(value) = map.get(name) {
                    result.merge(self.value(property, value, &path.child(name), pair_of(name, property)));
                }
            }
        }
        for name in values.required.iter().filter(|name| !map.contains_key(*name)) {
            result.add(&path.extra(name), Bad::Missing, |at| format!("{at} in body is required"));
        }
        result
    }
}

fn quoted(path: &Path<'_>) -> String {
    quote(&path.to_string())
}

fn string<'a>(values: &'a Values, value: &'a Value, text: &str, path: &Path<'_>, all: &mut Outcome<'a>) {
    let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = values.max_length.filter(|max| length() > *max) {
        all.add(path, Bad::TooLong(max), |at| format!("{at} in body should be at most {max} chars long"));
    } else if let Some(min) = values.min_length.filter(|min| length() < *min) {
        all.add(path, Bad::Held(value), |at| format!("{at} in body should be at least {min} chars long"));
    } else if let Some(pattern) = values.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        all.add(path, Bad::Held(value), |at| format!("{at} in body should match '{}'", pattern.as_str()));
    }
}

fn one_of_values<'a>(values: &'a Values, value: &'a Value, path: &Path<'_>, all: &mut Outcome<'a>) {
    let allowed = &values.one_of_values;
    if !allowed.is_empty() && !allowed.iter().any(|allowed| is_same(value, allowed)) {
        all.add(path, Bad::NotOneOf(value, allowed), |at| format!("{at} in body should be one of {allowed:?}"));
    }
}

/// Whether a value is one of an `enum`, after Go has converted it to the type of the other; null is none.
fn is_same(value: &Value, allowed: &Value) -> bool {
    match (Kind::of(value), Kind::of(allowed)) {
        (Kind::Null, _) | (_, Kind::Null) => false,
        (Kind::Int(value), Kind::Int(allowed)) => value == allowed,
        (Kind::Int(value), Kind::Float(allowed)) => value as f64 == allowed,
        (Kind::Float(value), Kind::Float(allowed)) => value == allowed,
        (Kind::Float(value), Kind::Int(allowed)) => crate::text::go_int(value) == allowed,
        // Go converts a number to the character that has it.
        (Kind::Int(value), Kind::String) => {
            let c = u32::try_from(value).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            allowed.as_str().is_some_and(|allowed| allowed.chars().eq([c]))
        }
        _ => value == allowed,
    }
}
