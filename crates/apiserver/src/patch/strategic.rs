//! Strategic merge patch: a merge patch that knows which lists are merged, and by which field.
//!
//! Follows `apimachinery/pkg/util/strategicpatch` of Kubernetes 1.37, including which mistake of a patch is a 400 and
//! which a 500.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::order::{Identity, Places, arrange};
use super::work::Work;
use super::{PatchError, go_format};
use crate::schema::{Field, Shape, Struct};

/// `$patch: replace | delete | merge`, in an object or in an element of a list.
const DIRECTIVE: &str = "$patch";
/// `$retainKeys: [...]`: every other key goes.
const RETAIN_KEYS: &str = "$retainKeys";
/// `$deleteFromPrimitiveList/<list>: [...]`
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
/// `$setElementOrder/<list>: [...]`
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// The schema of the object that is being merged.
#[derive(Clone, Copy)]
enum Level<'a> {
    Struct(&'static Struct),
    /// A map or free-form JSON: it has no lists that merge.
    Other(&'a Shape),
}

/// Merges a patch, which is an object, into an object of this schema.
pub(super) fn apply(schema: &'static Struct, original: Value, patch: Value, work: &Work) -> Result<Value, PatchError> {
    let original = match original {
        Value::Object(original) => original,
        _ => Object::new(),
    };
    let Value::Object(patch) = patch else { return Ok(Value::Object(original)) };
    merge_objects(original, patch, Level::Struct(schema), work).map(Value::Object)
}

fn merge_objects(mut original: Object, mut patch: Object, level: Level<'_>, work: &Work) -> Result<Object, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, level, work)?;
    for (name, value) in patch {
        let (name, deletes) = match name.strip_prefix(DELETE_FROM_PRIMITIVE_LIST) {
            None => (name, false),
            Some(rest) => match rest.strip_prefix('/') {
                Some(name) => (name.to_owned(), true),
                None => return Err(PatchError::bad_request("invalid patch format of primitive list")),
            },
        };
        if value.is_null() {
            original.remove(&name);
            continue;
        }
        let merged = match (original.remove(&name), value) {
            (None, _) if deletes => continue,
            (Some(Value::Object(original)), Value::Object(patch)) => {
                let field = level.field(&name)?;
                let merged = if field.patching.replace {
                    patch
                } else {
                    merge_objects(original, patch, Level::of(&field.shape), work)?
                };
                Some(Value::Object(merged))
            }
            (Some(Value::Array(original)), Value::Array(patch)) => {
                let list = level.list(&name)?;
                let merged = match (deletes, list.merges) {
                    (true, _) if !original.is_empty() || !patch.is_empty() => {
                        delete_elements(original, patch, &list, work)?
                    }
                    (_, true) => merge_lists(original, patch, &list, work)?,
                    (_, false) => patch,
                };
                Some(Value::Array(merged))
            }
            // A list to delete from that is none stays as it is.
            (Some(original), _) if deletes => Some(original),
            (Some(original), value) if is_same_type(&original, &value) => without_directives(value),
            (_, mut value) => {
                discard_nulls(&mut value);
                without_directives(value)
            }
        };
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(original)
}

/// Applies `$retainKeys`: the patch may only set what it retains.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::bad_request("invalid patch format of retainKeys");
    let Value::Array(keys) = keys else { return Err(malformed()) };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_retained = |name: &str| keys.contains(name);
    let is_directive = |name: &str| name.starts_with(DELETE_FROM_PRIMITIVE_LIST) || name.starts_with(SET_ELEMENT_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !is_retained(name)) {
        return Err(malformed());
    }
    original.retain(|name, _| is_retained(name));
    Ok(())
}

/// Merges and orders the lists that have a `$setElementOrder`, and takes them out of the patch.
fn merge_ordered_lists(
    original: &mut Object,
    patch: &mut Object,
    level: Level<'_>,
    work: &Work,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let malformed = || PatchError::bad_request("invalid patch format of setElementOrder list");
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(no_list(other.as_ref())),
        };
        let name =
            directive.strip_prefix(SET_ELEMENT_ORDER).and_then(|rest| rest.strip_prefix('/')).ok_or_else(malformed)?;
        let in_original = list_of(original.get(name))?;
        let in_patch = list_of(patch.get(name))?;
        let field = level.list(name)?;
        check_order(in_patch.as_deref().unwrap_or_default(), &order, field.key(), work)?;
        let merged = match (&in_original, in_patch) {
            (None, None) => continue,
            (Some(original), None) => original.clone(),
            (None, Some(patch)) => patch.into_iter().filter_map(without_directives).collect(),
            (Some(original), Some(patch)) if field.merges => merge_lists(original.clone(), patch, &field, work)?,
            (Some(_), Some(patch)) => patch,
        };
        let in_original = in_original.unwrap_or_default();
        let has_objects = has_objects(&in_original, list_of(patch.get(name))?.as_deref().unwrap_or_default())?;
        patch.remove(name);
        let key = field.key().or(has_objects.then_some(""));
        [&merged, &order, &in_original].into_iter().try_for_each(|list| check_keys(list, key))?;
        let identity = Identity(field.key());
        let patch_order = Places::of(&order, identity, work)?;
        let server_order = Places::of(&in_original, identity, work)?;
        let arranged = arrange(merged, &patch_order, &server_order, in_original.len());
        original.insert(name.to_owned(), Value::Array(arranged));
    }
    Ok(())
}

/// Checks that the elements of a patch are in the order that it sets.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>, work: &Work) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    check_keys(order, key)?;
    let mut rest = order.iter().map(|element| Identity(key).of(element));
    for element in patch.iter().filter(|element| element.get(DIRECTIVE).is_none()) {
        check_keys(std::slice::from_ref(element), key)?;
        let wanted = Identity(key).of(element);
        work.spend(wanted.len())?;
        if !rest.by_ref().any(|other| other == wanted) {
            return Err(PatchError::internal(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
                go_format::value(&Value::Array(patch.to_vec())),
                go_format::value(&Value::Array(order.to_vec())),
            )));
        }
    }
    Ok(())
}

/// Merges two lists that are not just replaced.
fn merge_lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    list: &List<'_>,
    work: &Work,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !has_objects(&original, &patch)? {
        let server_count = original.len();
        let mut places = Places::of(&original, Identity(None), work)?;
        let patch_order = Places::of(&patch, Identity(None), work)?;
        let mut merged: Vec<Value> = Vec::with_capacity(original.len() + patch.len());
        for (place, element) in original.into_iter().chain(patch).enumerate() {
            if places.add(&element, place, work)? == place {
                merged.push(element);
            }
        }
        return Ok(arrange(merged, &patch_order, &places, server_count));
    }
    let key = list.key().ok_or_else(|| PatchError::internal("cannot merge lists without merge key for struct"))?;
    let (mut merged, patch) = apply_element_directives(original, patch, key, work)?;
    let server_count = merged.len();
    let mut places = Places::of(&merged, Identity(Some(key)), work)?;
    let patch_order = Places::of(&patch, Identity(Some(key)), work)?;
    for element in patch {
        check_keys(std::slice::from_ref(&element), Some(key))?;
        let place = places.add(&element, merged.len(), work)?;
        if place == merged.len() {
            merged.push(element);
            continue;
        }
        if let (Some(Value::Object(into)), Value::Object(from)) = (merged.get_mut(place), element) {
            *into = merge_objects(std::mem::take(into), from, list.elements, work)?;
        }
    }
    check_keys(&merged, Some(key))?;
    Ok(arrange(merged, &patch_order, &places, server_count))
}

/// Carries out the elements of a patch that are directives; what is left of the list and of the patch.
fn apply_element_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    work: &Work,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replaces = false;
    for element in patch {
        let Some(directive) = element.get(DIRECTIVE) else {
            plain.push(element);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let name = element.get(key).ok_or_else(|| no_key(&element, key))?.to_string();
                work.spend(name.len())?;
                deleted.insert(name);
            }
            Some("replace") => replaces = true,
            Some("merge") => return Err(PatchError::internal("merging lists cannot yet be specified in the patch")),
            _ => return Err(unknown_directive(directive, element.as_object().unwrap_or(&Object::new()))),
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    if !deleted.is_empty() {
        work.spend(original.len())?;
        original.retain(|other| other.get(key).is_none_or(|name| !deleted.contains(&name.to_string())));
    }
    Ok((original, plain))
}

/// Only lists of scalars are deleted from; in lists of objects the elements say so themselves.
fn delete_elements(
    mut original: Vec<Value>,
    deleted: Vec<Value>,
    list: &List<'_>,
    work: &Work,
) -> Result<Vec<Value>, PatchError> {
    if has_objects(&original, &deleted)? {
        return merge_lists(original, deleted, list, work);
    }
    let deleted = Places::of(&deleted, Identity(None), work)?;
    original.retain(|element| deleted.get(element).is_none());
    Ok(original)
}

/// Whether the elements of two lists are objects; they must all be of one type, and not lists.
fn has_objects(left: &[Value], right: &[Value]) -> Result<bool, PatchError> {
    let mut elements = left.iter().chain(right);
    let Some(first) = elements.next() else {
        return Err(PatchError::internal("no elements in any of the given slices"));
    };
    if first.is_array() {
        return Err(PatchError::unprocessable());
    }
    if !elements.all(|element| is_same_type(first, element)) {
        let lists = [left, right].map(|list| go_format::value(&Value::Array(list.to_vec()))).join(" ");
        return Err(PatchError::internal(format!("list element types are not identical: [{lists}]")));
    }
    Ok(first.is_object())
}

/// The value without what is only meant for merging; none if that is all of it.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => None,
        Value::Object(object) => Some(Value::Object(
            object.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?))).collect(),
        )),
        Value::Array(elements) => Some(Value::Array(elements.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => object.retain(|_, value| {
            discard_nulls(value);
            !value.is_null()
        }),
        Value::Array(elements) => elements.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

fn is_same_type(left: &Value, right: &Value) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

fn list_of(value: Option<&Value>) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list.clone())),
        other => Err(no_list(other)),
    }
}

/// Every element of a list that is merged by a key must have it.
fn check_keys(elements: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    let Some(key) = key else { return Ok(()) };
    elements.iter().find(|element| element.get(key).is_none()).map_or(Ok(()), |element| Err(no_key(element, key)))
}

fn no_key(element: &Value, key: &str) -> PatchError {
    PatchError::internal(format!("map: {} does not contain declared merge key: {key}", go_format::value(element)))
}

fn no_list(found: Option<&Value>) -> PatchError {
    let found = match found {
        None | Some(Value::Null) => "%!s(<nil>)",
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(number)) if number.is_f64() => "float64",
        Some(Value::Number(_)) => "int64",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "[]interface {}",
        Some(Value::Object(_)) => "map[string]interface {}",
    };
    PatchError::internal(format!("expected a []interface {{}}, but received a {found}"))
}

fn unknown_directive(directive: &Value, object: &Object) -> PatchError {
    let directive = go_format::value(directive);
    let object = go_format::value(&Value::Object(object.clone()));
    PatchError::internal(format!("unknown patch type: {directive} in map: {object}"))
}

/// A field that holds a list.
struct List<'a> {
    field: &'a Field,
    merges: bool,
    elements: Level<'a>,
}

// === impl List ===

impl List<'_> {
    fn key(&self) -> Option<&str> {
        self.field.patching.merge_key.as_deref()
    }
}

// === impl Level ===

impl<'a> Level<'a> {
    fn of(shape: &'a Shape) -> Self {
        match shape {
            Shape::Struct(id) | Shape::StructOr(id) => Self::Struct(id.schema()),
            other => Self::Other(other),
        }
    }

    fn field(self, name: &str) -> Result<&'a Field, PatchError> {
        match self {
            Self::Struct(schema) => schema.field(name).ok_or_else(|| {
                let short = schema.short;
                PatchError::internal(format!("unable to find api field in struct {short} for the json field {name:?}"))
            }),
            Self::Other(shape) => Err(PatchError::internal(match shape {
                Shape::Any => format!("unable to find api field in struct RawExtension for the json field {name:?}"),
                _ => "merging an object in json but data type is not struct, instead is: map".to_owned(),
            })),
        }
    }

    fn list(self, name: &str) -> Result<List<'a>, PatchError> {
        let field = self.field(name)?;
        let elements = match &field.shape {
            Shape::List(element) => Level::of(element),
            other => Level::of(other),
        };
        Ok(List { field, merges: field.patching.merge, elements })
    }
}
