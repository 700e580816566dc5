//! The capacity of a device that may be allocated several times: `validateRequestPolicy`.

use serde_json::Value;
use steersman_base::Quantity;

use super::device::bounded;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::quantity;
use crate::kinds::shared::json::{each, is_set, items};

const OPTIONS_MAX: usize = 10;

/// Checks a capacity.
pub(super) fn validate(capacity: &Value, is_shared: bool, path: &Path, errors: &mut Errors) {
    let policy = &capacity["requestPolicy"];
    if !is_set(policy) {
        return;
    }
    let path = path.child("requestPolicy");
    if !is_shared {
        return errors.push(FieldError::forbidden(&path, "allowMultipleAllocations must be true"));
    }
    let has_values = !items(&policy["validValues"]).is_empty();
    let has_range = is_set(&policy["validRange"]);
    if has_values && has_range {
        let detail =
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
        return errors.push(FieldError::forbidden(&path, detail));
    }
    let field = match (has_values, has_range) {
        (true, _) => "validValues",
        (_, true) => "validRange",
        _ => return,
    };
    let most = quantity(&capacity["value"]).unwrap_or_default();
    let Some(default) = quantity(&policy["default"]) else {
        let detail = format!("required when {field} is defined");
        return errors.push(FieldError::required(&path.child("default"), detail));
    };
    let path = path.child(field);
    match has_values {
        true => values(&policy[field], default, most, &path, errors),
        false => range(&policy[field], default, most, &path, errors),
    }
}

fn values(values: &Value, default: Quantity, most: Quantity, path: &Path, errors: &mut Errors) {
    let read: Vec<Quantity> = items(values).iter().filter_map(quantity).collect();
    for (at, pair) in read.windows(2).enumerate().filter(|(_, pair)| pair[0] > pair[1]) {
        let detail = "values must be sorted in ascending order";
        errors.push(FieldError::invalid(&path.index(at + 1), pair[1].to_string(), detail));
    }
    let is_bounded = read.len() <= OPTIONS_MAX;
    bounded(values, OPTIONS_MAX, path, errors, |value, path, errors| {
        if let Some(value) = quantity(value).filter(|value| *value > most) {
            let detail = format!("option is larger than capacity value: {most}");
            errors.push(FieldError::invalid(path, value.to_string(), detail));
        }
    });
    if is_bounded {
        let mut seen: Vec<Quantity> = Vec::new();
        each(values, path, |value, path| {
            let Some(value) = quantity(value) else { return };
            if seen.contains(&value) {
                errors.push(FieldError::duplicate(path, value.to_string()));
            }
            seen.push(value);
        });
    }
    if !is_bounded || !read.contains(&default) {
        let detail = "default value is not valid according to the requestPolicy";
        errors.push(FieldError::invalid(path, default.to_string(), detail));
    }
}

fn range(range: &Value, default: Quantity, most: Quantity, path: &Path, errors: &mut Errors) {
    let mut wrong = |field: &str, value: Quantity, detail: String| {
        errors.push(FieldError::invalid(&path.child(field), value.to_string(), detail));
    };
    let Some(min) = quantity(&range["min"]) else {
        return errors.push(FieldError::required(&path.child("min"), "required when validRange is defined"));
    };
    if min > most {
        wrong("min", min, format!("min is larger than capacity value: {most}"));
    }
    if default < min {
        wrong("default", default, format!("default is less than min: {min}"));
    }
    let max = quantity(&range["max"]);
    if let Some(max) = max {
        if min > max {
            wrong("max", min, format!("min is larger than max: {max}"));
        }
        if max > most {
            wrong("max", max, format!("max is larger than capacity value: {most}"));
        }
        if default > max {
            wrong("default", default, format!("default is more than max: {max}"));
        }
    }
    let Some(step) = quantity(&range["step"]) else { return };
    let milli = step.milli_value();
    if milli <= 0 {
        return wrong("step", step, "must be greater than zero".to_owned());
    }
    let first = min + step;
    if first > most {
        wrong("step", step, format!("one step {first} is larger than capacity value: {most}"));
    }
    for value in [Some(default), max].into_iter().flatten() {
        if value.milli_value().saturating_sub(min.milli_value()) % milli != 0 {
            wrong("step", value, format!("value is not a multiple of a given step ({step}) from ({min})"));
        }
    }
}
