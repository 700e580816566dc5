//! Whether a value fits its type.

use serde_json::{Map, Value};

use super::items::Items;
use super::{Duplicates, ValidationErrors, check_scalar, invalid_atom};
use crate::path::PathElement;
use crate::schema::{ListType, MapType, Relation, Shape, TypeId, Types};
use crate::set::DEPTH_MAX;
use crate::value;

impl Types {
    pub(super) fn validate(&self, value: &Value, ty: TypeId, duplicates: Duplicates) -> Result<(), ValidationErrors> {
        let mut errors = ValidationErrors(Vec::new());
        self.check(value, ty, duplicates, 0, &mut errors);
        errors.into_result()
    }

    fn check(&self, value: &Value, ty: TypeId, duplicates: Duplicates, depth: usize, errors: &mut ValidationErrors) {
        if depth > DEPTH_MAX {
            errors.extend(ValidationErrors::too_deep());
            return;
        }
        let atom = self.atom(ty);
        match (atom.shape(atom.choose(Some(value))), value) {
            (Shape::Map(_) | Shape::List(_), Value::Null) => {}
            (Shape::Map(map), Value::Object(members)) => self.check_map(map, members, duplicates, depth, errors),
            (Shape::List(list), Value::Array(items)) => self.check_list(list, items, duplicates, depth, errors),
            (Shape::Map(_), _) => errors.extend(unexpected("map", value)),
            (Shape::List(_), _) => errors.extend(unexpected("list", value)),
            (Shape::Scalar(scalar), _) => {
                if let Some(wrong) = check_scalar(scalar, Some(value), "") {
                    errors.extend(wrong);
                }
            }
            (Shape::Nothing, _) => errors.extend(invalid_atom()),
        }
    }

    fn check_map(
        &self,
        map: &MapType,
        members: &Map<String, Value>,
        duplicates: Duplicates,
        depth: usize,
        errors: &mut ValidationErrors,
    ) {
        for (name, member) in value::in_order(members) {
            if errors.is_full() {
                return;
            }
            let ty = map.member(name);
            let mut found = ValidationErrors(Vec::new());
            if ty == TypeId::NONE {
                found = ValidationErrors::one("field not declared in schema");
            } else {
                self.check(member, ty, duplicates, depth + 1, &mut found);
            }
            if !found.0.is_empty() {
                errors.extend(found.under(&PathElement::field(name.as_str())));
            }
        }
    }

    fn check_list(
        &self,
        list: &ListType,
        items: &[Value],
        duplicates: Duplicates,
        depth: usize,
        errors: &mut ValidationErrors,
    ) {
        let mut elements = Vec::with_capacity(items.len());
        let mut nameless = None;
        for (index, item) in (0_i64..).zip(items) {
            let element = match list.relation {
                Relation::Atomic => Ok(PathElement::Index(index)),
                Relation::Set | Relation::Keyed(_) => self.element_of(list, item),
            };
            match element {
                Ok(element) => elements.push((element, item)),
                Err(why) => {
                    nameless = Some(ValidationErrors::one(format!("element {index}: {why}")));
                    break;
                }
            }
        }
        let items = Items::new(elements);
        for (index, (element, item)) in items.all.iter().enumerate() {
            if errors.is_full() {
                return;
            }
            if duplicates == Duplicates::Refused && items.places(element)[0] != index {
                errors.extend(ValidationErrors::one(format!("duplicate entries for key {element}")));
            }
            let mut found = ValidationErrors(Vec::new());
            self.check(item, list.element, duplicates, depth + 1, &mut found);
            if !found.0.is_empty() {
                errors.extend(found.under(element));
            }
        }
        // What has no name ends the list: there is no way to say where the rest is.
        if let Some(wrong) = nameless {
            errors.extend(wrong);
        }
    }
}

fn unexpected(wanted: &str, value: &Value) -> ValidationErrors {
    let mut shown = String::new();
    value::go_plain(value, &mut shown);
    ValidationErrors::one(format!("expected {wanted}, got &{{{shown}}}"))
}
