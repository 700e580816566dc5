//! What claims, classes, slices and taints say of devices: `pkg/apis/resource/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain, label_value, qualified_name};
use steersman_cel::{CompileError, Environment, Program, ResultType, Variables};

use crate::field::{Errors, FieldError, FieldErrorKind, Path};
use crate::kinds::shared::check::{one_of, one_of_if_set, problems, required};
use crate::kinds::shared::json::{each, is_set, items, text};
use crate::kinds::storage::driver_name;

const POOL_BYTES_MAX: usize = 253;
const DOMAIN_BYTES_MAX: usize = 63;
const ID_BYTES_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
pub(super) const CONFIGS_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
const PARAMETERS_BYTES_MAX: usize = 10 * 1024;
const CONDITIONS_MAX: usize = 4;
const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];

/// The name of a device, a request or a counter.
pub(super) fn label(name: &str, path: &Path, errors: &mut Errors) {
    problems(name, dns1123_label(name), path, errors);
}

/// Checks each item of a list that has a bound.
pub(super) fn bounded<'a>(
    list: &'a Value,
    max: usize,
    path: &Path,
    errors: &mut Errors,
    mut check: impl FnMut(&'a Value, &Path, &mut Errors),
) {
    let count = items(list).len();
    if count > max {
        return errors.push(FieldError::too_many(path, count, max));
    }
    each(list, path, |item, path| check(item, path, errors));
}

/// Reports items whose key another one has.
pub(super) fn unique<'a>(list: &'a Value, path: &Path, errors: &mut Errors, key: impl Fn(&'a Value) -> &'a str) {
    let mut seen: Vec<&str> = Vec::new();
    each(list, path, |item, path| {
        let key = key(item);
        if seen.contains(&key) {
            errors.push(FieldError::duplicate(path, key));
        }
        seen.push(key);
    });
}

/// The name of a pool: subdomains that are separated by slashes.
pub(super) fn pool_name(name: &str, path: &Path, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    if name.len() > POOL_BYTES_MAX {
        errors.push(FieldError::too_long(path, POOL_BYTES_MAX));
    }
    name.split('/').for_each(|part| problems(part, dns1123_subdomain(part), path, errors));
}

/// The name of an attribute or a capacity, with a domain or without.
pub(super) fn attribute_name(name: &str, path: &Path, errors: &mut Errors) {
    match *name.split('/').collect::<Vec<_>>() {
        [id] => identifier(id, path, errors),
        [domain, id] => {
            if domain.is_empty() {
                errors.push(FieldError::invalid(path, "", "the domain must not be empty"));
            } else {
                if domain.len() > DOMAIN_BYTES_MAX {
                    errors.push(FieldError::too_long(path, DOMAIN_BYTES_MAX));
                }
                problems(domain, dns1123_subdomain(&domain.to_lowercase()), path, errors);
            }
            if id.is_empty() {
                errors.push(FieldError::invalid(path, "", "the name must not be empty"));
            } else {
                identifier(id, path, errors);
            }
        }
        _ => {}
    }
}

/// The name of an attribute with its domain: `ResourceFullyQualifiedName` of `apimachinery/pkg/api/validate/strfmt.go`, which has
/// other words.
pub(super) fn full_attribute_name(name: &str, path: &Path, errors: &mut Errors) {
    match *name.split('/').collect::<Vec<_>>() {
        [id] => identifier(id, path, errors),
        [prefix, id] => {
            if prefix.is_empty() {
                errors.push(FieldError::invalid(path, "", "prefix must not be empty"));
            } else {
                if prefix.len() > DOMAIN_BYTES_MAX {
                    errors.push(FieldError::too_long(path, DOMAIN_BYTES_MAX));
                }
                let details = dns1123_subdomain(prefix).into_iter().map(|detail| format!("prefix: {detail}"));
                errors.extend(details.map(|detail| FieldError::invalid(path, prefix, detail)));
            }
            if id.is_empty() {
                errors.push(FieldError::invalid(path, "", "name must not be empty"));
            } else {
                identifier(id, path, errors);
            }
        }
        _ => {}
    }
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// The name of the pool of an allocated device: `ResourcePoolName` of the same file.
pub(super) fn allocated_pool_name(name: &str, path: &Path, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    if name.len() > POOL_BYTES_MAX {
        errors.push(FieldError::too_long(path, POOL_BYTES_MAX));
    }
    for (at, part) in name.split('/').enumerate() {
        if part.is_empty() {
            errors.push(FieldError::invalid(path, name, format!("segment {at}: must not be empty")));
            continue;
        }
        let details = dns1123_subdomain(part).into_iter().map(|detail| format!("segment {at}: {detail}"));
        errors.extend(details.map(|detail| FieldError::invalid(path, part, detail)));
    }
}

fn identifier(id: &str, path: &Path, errors: &mut Errors) {
    if id.len() > ID_BYTES_MAX {
        errors.push(FieldError::too_long(path, ID_BYTES_MAX));
    }
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if id.is_empty() || !id.bytes().all(is_inner) || id.starts_with(|first: char| first.is_ascii_digit()) {
        let detail = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                      alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for \
                      validation is '[A-Za-z_][A-Za-z0-9_]*')";
        errors.push(FieldError::invalid(path, id, detail));
    }
}

/// Selectors of devices: expressions about `device`.
pub(super) fn selectors(selectors: &Value, path: &Path, errors: &mut Errors) {
    bounded(selectors, SELECTORS_MAX, path, errors, |selector, path, errors| {
        if errors.is_full() {
            return;
        }
        if !is_set(&selector["cel"]) {
            return errors.push(FieldError::required(&path.child("cel"), ""));
        }
        let expression = text(&selector["cel"]["expression"]);
        let path = path.child("cel").child("expression");
        if expression.len() > EXPRESSION_BYTES_MAX {
            return errors.push(FieldError::too_long(&path, EXPRESSION_BYTES_MAX));
        }
        match Program::new(expression, Variables::devices(), Environment::New, ResultType::BoolOrAny) {
            Ok(_) => {}
            Err(CompileError::Invalid(detail)) => errors.push(FieldError::invalid(&path, expression, detail)),
            Err(CompileError::Internal(detail)) => {
                errors.push(FieldError { kind: FieldErrorKind::Internal, path, value: None, detail });
            }
        }
    });
}

/// A configuration of a claim, a class or an allocation.
pub(super) fn configuration(config: &Value, path: &Path, errors: &mut Errors) {
    let path = path.child("opaque");
    let opaque = &config["opaque"];
    if !is_set(opaque) {
        return errors.push(FieldError::required(&path, ""));
    }
    driver_name(text(&opaque["driver"]), &path.child("driver"), errors);
    raw(&opaque["parameters"], PARAMETERS_BYTES_MAX, &path.child("parameters"), errors);
}

/// An object of any kind.
pub(super) fn raw(object: &Value, bytes_max: usize, path: &Path, errors: &mut Errors) {
    if !is_set(object) {
        errors.push(FieldError::required(path, ""));
    } else if object.to_string().len() > bytes_max {
        errors.push(FieldError::too_long(path, bytes_max));
    } else if !object.is_object() {
        errors.push(FieldError::invalid(path, "<value omitted>", "must be a valid JSON object"));
    }
}

/// Sets the time at which a taint was added, if it is left out.
pub(super) fn added(taint: &mut Value, now: &str) {
    if let Some(taint) = taint.as_object_mut().filter(|taint| taint.get("timeAdded").is_none_or(Value::is_null)) {
        taint.insert("timeAdded".to_owned(), now.into());
    }
}

/// A taint. On an update, only an effect that changes is checked.
pub(super) fn taint(taint: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    let key = text(&taint["key"]);
    problems(key, qualified_name(key), &path.child("key"), errors);
    let value = text(&taint["value"]);
    problems(value, label_value(value), &path.child("value"), errors);
    if old.is_none_or(|old| old["effect"] != taint["effect"]) {
        one_of(&taint["effect"], EFFECTS, &path.child("effect"), errors);
    }
}

/// Tolerations of taints.
pub(super) fn tolerations(tolerations: &Value, path: &Path, errors: &mut Errors) {
    each(tolerations, path, |toleration, path| {
        let key = text(&toleration["key"]);
        if !key.is_empty() {
            problems(key, qualified_name(key), &path.child("key"), errors);
        }
        let value = text(&toleration["value"]);
        match text(&toleration["operator"]) {
            "Exists" if !value.is_empty() => {
                let detail = "must be empty for operator `Exists`";
                errors.push(FieldError::invalid(&path.child("value"), value, detail));
            }
            "Equal" => problems(value, label_value(value), &path.child("value"), errors),
            _ => one_of(&toleration["operator"], &["Equal", "Exists"], &path.child("operator"), errors),
        }
        if !text(&toleration["effect"]).is_empty() {
            one_of_if_set(&toleration["effect"], EFFECTS, &path.child("effect"), errors);
        }
    });
}

/// The conditions that bind a device, and those that show that it cannot be bound.
pub(super) fn binding_conditions(device: &Value, path: &Path, errors: &mut Errors) {
    const BINDING: &str = "bindingConditions";
    const FAILURE: &str = "bindingFailureConditions";
    for field in [BINDING, FAILURE] {
        bounded(&device[field], CONDITIONS_MAX, &path.child(field), errors, |condition, path, errors| {
            problems(text(condition), qualified_name(text(condition)), path, errors);
        });
    }
    unique(&device[BINDING], &path.child(BINDING), errors, text);
    let mut seen: Vec<&str> = Vec::new();
    each(&device[FAILURE], &path.child(FAILURE), |condition, path| {
        let name = text(condition);
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        }
        seen.push(name);
        if items(&device[BINDING]).contains(condition) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.push(FieldError::invalid(path, name, detail));
        }
    });
    for (field, other) in [(BINDING, FAILURE), (FAILURE, BINDING)] {
        if items(&device[field]).is_empty() && !items(&device[other]).is_empty() {
            let detail = format!("{field} are required to use {other}");
            errors.push(FieldError::invalid(&path.child(field), device[field].clone(), detail));
        }
    }
}

/// A UUID in its usual form.
pub(super) fn uuid(uid: &str, path: &Path, errors: &mut Errors) {
    let is_fine = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    if uid.len() != 36 || !uid.bytes().enumerate().all(is_fine) {
        let detail = "must be a lowercase UUID in 8-4-4-4-12 format";
        errors.push(FieldError::invalid(path, uid, detail));
    }
}

/// The class of a request.
pub(super) fn class_name(name: &Value, path: &Path, errors: &mut Errors) {
    if required(name, path, errors) {
        problems(text(name), dns1123_subdomain(text(name)), path, errors);
    }
}
