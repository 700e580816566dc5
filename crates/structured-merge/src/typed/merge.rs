//! A configuration laid over a live object.

use serde_json::{Map, Value};

use super::items::Items;
use super::{ValidationErrors, check_scalar, invalid_atom};
use crate::path::PathElement;
use crate::schema::{Atom, Choice, ListType, MapType, Relation, Shape, TypeId, Types};
use crate::set::DEPTH_MAX;

impl Types {
    pub(super) fn merge_root(&self, live: &Value, config: &Value, ty: TypeId) -> Result<Value, ValidationErrors> {
        self.merge(live, config, ty, 0).map(Option::unwrap_or_default)
    }

    /// The merged value; `None` where nothing is left to write.
    fn merge(&self, live: &Value, config: &Value, ty: TypeId, depth: usize) -> Result<Option<Value>, ValidationErrors> {
        if depth > DEPTH_MAX {
            return Err(ValidationErrors::too_deep());
        }
        let atom = self.atom(ty);
        let as_live = atom.choose(Some(live));
        let as_config = atom.choose(Some(config));
        // A value that becomes another kind of value must make sense as both; the configuration's kind decides.
        if as_live != as_config {
            self.merge_as(live, config, (atom, as_live), depth)?;
        }
        self.merge_as(live, config, (atom, as_config), depth)
    }

    fn merge_as(
        &self,
        live: &Value,
        config: &Value,
        (atom, choice): (&Atom, Choice),
        depth: usize,
    ) -> Result<Option<Value>, ValidationErrors> {
        match atom.shape(choice) {
            Shape::Nothing => Err(invalid_atom()),
            Shape::Scalar(scalar) => {
                let wrong = check_scalar(scalar, Some(live), "lhs: ");
                if let (Some(mut errors), Some(more)) = (wrong, check_scalar(scalar, Some(config), "rhs: ")) {
                    errors.extend(more);
                    return Err(errors);
                }
                Ok(Some(config.clone()))
            }
            Shape::Map(map) => {
                let old = live.as_object().filter(|old| !old.is_empty());
                let new = config.as_object().filter(|new| !new.is_empty());
                if map.atomic || (old.is_none() && new.is_none()) {
                    return Ok(Some(config.clone()));
                }
                let merged = self.merge_maps(map, old, new, depth)?;
                Ok((!merged.is_empty()).then_some(Value::Object(merged)))
            }
            Shape::List(list) => {
                let old = live.as_array().map_or(&[][..], Vec::as_slice);
                let new = config.as_array().map_or(&[][..], Vec::as_slice);
                if matches!(list.relation, Relation::Atomic) || (old.is_empty() && new.is_empty()) {
                    return Ok(Some(config.clone()));
                }
                let merged = self.merge_lists(list, old, new, depth)?;
                Ok((!merged.is_empty()).then_some(Value::Array(merged)))
            }
        }
    }

    fn merge_maps(
        &self,
        map: &MapType,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        depth: usize,
    ) -> Result<Map<String, Value>, ValidationErrors> {
        let mut out = Map::new();
        for (name, live) in old.into_iter().flatten() {
            let Some(config) = new.and_then(|new| new.get(name)) else {
                out.insert(name.clone(), live.clone());
                continue;
            };
            match self.merge(live, config, map.member(name), depth + 1) {
                Ok(Some(merged)) => drop(out.insert(name.clone(), merged)),
                Ok(None) => {}
                Err(errors) => return Err(errors.under(&PathElement::field(name.as_str()))),
            }
        }
        for (name, config) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                out.insert(name.clone(), config.clone());
            }
        }
        Ok(out)
    }

    fn merge_lists(
        &self,
        list: &ListType,
        old: &[Value],
        new: &[Value],
        depth: usize,
    ) -> Result<Vec<Value>, ValidationErrors> {
        let new = self.items(list, new)?;
        let mut errors = ValidationErrors(Vec::new());
        for (element, places) in new.groups().filter(|(_, places)| places.len() > 1) {
            for _ in 1..places.len() {
                errors.extend(ValidationErrors::one(format!("duplicate entries for key {element}")));
            }
        }
        errors.into_result()?;
        let old = self.items(list, old)?;
        // The configuration has no element twice, so the live list has none twice, either.
        if old.is_aligned_with(&new) {
            let mut out = Vec::with_capacity(new.all.len());
            for (place, (_, config)) in new.all.iter().enumerate() {
                out.extend(self.merge(old.value(place), config, list.element, depth + 1)?);
            }
            return Ok(out);
        }
        let mut order = Vec::with_capacity(old.all.len().max(new.all.len()));
        plan_order(&old, &new, &mut order);
        let mut out = Vec::with_capacity(order.len());
        for step in order {
            match step {
                Step::Keep(place) => out.push(old.value(place).clone()),
                Step::Take(place) => {
                    let (element, config) = &new.all[place];
                    match old.places(element) {
                        [] => out.push((*config).clone()),
                        [live] => out.extend(self.merge(old.value(*live), config, list.element, depth + 1)?),
                        // Items that stand there twice are replaced, not merged.
                        _ => out.extend(self.merge(&Value::Null, config, list.element, depth + 1)?),
                    }
                }
            }
        }
        Ok(out)
    }
}

/// One item of a merged list.
enum Step {
    /// The live item at this place, as it is.
    Keep(usize),
    /// The configured item at this place, merged with the live one if there is one.
    Take(usize),
}

/// The order of a merged list. Items of the configuration keep their order; items that only the live list has are put
/// before the next item that both have.
fn plan_order(old: &Items<'_>, new: &Items<'_>, order: &mut Vec<Step>) {
    // For each live item, the place of the configured item with the same element.
    let twin: Vec<Option<usize>> = old.all.iter().map(|(element, _)| new.places(element).first().copied()).collect();
    let mut is_shared = vec![false; new.all.len()];
    for place in twin.iter().flatten() {
        is_shared[*place] = true;
    }
    let mut shared = (0..new.all.len()).filter(|place| is_shared[*place]);
    let mut next_shared = shared.next();
    let mut taken = vec![false; new.all.len()];
    let mut left = 0;
    let mut right = 0;
    while left < old.all.len() || right < new.all.len() {
        if left < old.all.len() && right < new.all.len() {
            if twin[left] == Some(right) {
                taken[right] = true;
                order.push(Step::Take(right));
                left += 1;
                right += 1;
                next_shared = shared.next();
                continue;
            }
            if twin[left].is_some() && next_shared.is_some() && next_shared != twin[left] {
                // Its turn comes with another configured item.
                left += 1;
                continue;
            }
        }
        if left < old.all.len() {
            match twin[left] {
                None => {
                    order.push(Step::Keep(left));
                    left += 1;
                    continue;
                }
                Some(place) if taken[place] => left += 1,
                Some(_) => {}
            }
        }
        if right < new.all.len() {
            taken[right] = true;
            order.push(Step::Take(right));
            if next_shared == Some(right) {
                next_shared = shared.next();
            }
            right += 1;
        }
    }
}
