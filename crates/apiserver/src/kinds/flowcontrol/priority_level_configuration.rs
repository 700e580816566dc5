//! PriorityLevelConfigurations: `pkg/apis/flowcontrol/{v1/defaults.go,validation/validation.go}`.

use serde_json::Value;

use super::{COMMON, conditions};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::Rules;
use crate::kinds::shared::json::{default_to, default_zero_to, is_set, number, object_mut, text};
use crate::table::{Cell, TableRow};

const EXEMPT: &str = "exempt";
const QUEUES_MAX: i64 = 10_000_000;
/// The bits of a hash that shuffle sharding has.
const HASH_BITS_MAX: f64 = 60.0;

/// The rules of PriorityLevelConfigurations.
pub(crate) static RULES: Rules = COMMON
    .defaulted(|object| {
        let Some(spec) = object_mut(object, "spec") else { return };
        for (kind, shares) in [("exempt", 0), ("limited", 30)] {
            if let Some(level) = object_mut(spec, kind) {
                default_to(level, "nominalConcurrencyShares", shares);
                default_to(level, "lendablePercent", 0);
                let response = object_mut(level, "limitResponse");
                if let Some(queuing) = response.and_then(|it| object_mut(it, "queuing")) {
                    default_zero_to(queuing, "handSize", 8);
                    default_zero_to(queuing, "queues", 64);
                    default_zero_to(queuing, "queueLengthLimit", 50);
                }
            }
        }
    })
    .validated(|new, _, errors| {
        spec(&new["spec"], text(&new["metadata"]["name"]), &Path::new("spec"), errors);
        conditions(&new["status"], errors);
    })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/type"),
        Cell::Value(|row| or_none(row, "/spec/limited/nominalConcurrencyShares")),
        Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/queues")),
        Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/handSize")),
        Cell::Value(|row| or_none(row, "/spec/limited/limitResponse/queuing/queueLengthLimit")),
        Cell::Age,
    ]);

fn or_none(row: &TableRow<'_>, path: &str) -> Value {
    row.at(path).cloned().unwrap_or_else(|| "<none>".into())
}

fn spec(spec: &Value, name: &str, path: &Path, errors: &mut Errors) {
    let kind = text(&spec["type"]);
    if (name == EXEMPT) != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    match kind {
        "Exempt" => {
            if is_set(&spec["limited"]) {
                errors.push(FieldError::forbidden(&path.child("limited"), ""));
            }
            shares(&spec["exempt"], &path.child("exempt"), errors);
            lendable(&spec["exempt"], &path.child("exempt"), errors);
        }
        "Limited" => {
            if is_set(&spec["exempt"]) {
                errors.push(FieldError::forbidden(&path.child("exempt"), ""));
            }
            match &spec["limited"] {
                Value::Null => errors.push(FieldError::required(&path.child("limited"), "")),
                level => limited(level, &path.child("limited"), errors),
            }
        }
        other => unknown_type(other, &["Exempt", "Limited"], spec, "limited", path, errors),
    }
}

/// Reports a type that is none, and what only another type may have: upstream's declarative unions.
fn unknown_type(kind: &str, known: &[&str], of: &Value, member: &str, path: &Path, errors: &mut Errors) {
    if !kind.is_empty() {
        errors.push(FieldError::not_supported(&path.child("type"), kind, known));
    }
    if is_set(&of[member]) {
        errors.push(FieldError::forbidden(&path.child(member), ""));
    }
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), ""));
    }
}

fn shares(level: &Value, path: &Path, errors: &mut Errors) {
    let shares = number(&level["nominalConcurrencyShares"]);
    if shares < 0 {
        let path = path.child("nominalConcurrencyShares");
        errors.push(FieldError::invalid(&path, shares, "must be a non-negative integer"));
    }
}

fn lendable(level: &Value, path: &Path, errors: &mut Errors) {
    let percent = number(&level["lendablePercent"]);
    if !(0..=100).contains(&percent) {
        let path = path.child("lendablePercent");
        errors.push(FieldError::invalid(&path, percent, "must be between 0 and 100, inclusive"));
    }
}

fn limited(level: &Value, path: &Path, errors: &mut Errors) {
    shares(level, path, errors);
    response(&level["limitResponse"], &path.child("limitResponse"), errors);
    lendable(level, path, errors);
    let borrowed = number(&level["borrowingLimitPercent"]);
    if borrowed < 0 {
        let path = path.child("borrowingLimitPercent");
        errors.push(FieldError::invalid(&path, borrowed, "if specified, must be a non-negative integer"));
    }
}

fn response(response: &Value, path: &Path, errors: &mut Errors) {
    let queuing = &response["queuing"];
    match text(&response["type"]) {
        "Reject" => {
            if is_set(queuing) {
                errors.push(FieldError::forbidden(&path.child("queuing"), ""));
            }
        }
        "Queue" => match queuing {
            Value::Null => errors.push(FieldError::required(&path.child("queuing"), "")),
            queuing => queues(queuing, &path.child("queuing"), errors),
        },
        other => unknown_type(other, &["Queue", "Reject"], response, "queuing", path, errors),
    }
}

fn queues(queuing: &Value, path: &Path, errors: &mut Errors) {
    let [length, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map(|field| number(&queuing[field]));
    if length <= 0 {
        errors.push(FieldError::invalid(&path.child("queueLengthLimit"), length, "must be positive"));
    }
    if queues <= 0 {
        errors.push(FieldError::invalid(&path.child("queues"), queues, "must be positive"));
    } else if queues > QUEUES_MAX {
        let detail = format!("must not be greater than {QUEUES_MAX}");
        errors.push(FieldError::invalid(&path.child("queues"), queues, detail));
    }
    let path = path.child("handSize");
    if hand <= 0 {
        errors.push(FieldError::invalid(&path, hand, "must be positive"));
    } else if hand > queues {
        errors.push(FieldError::invalid(&path, hand, format!("should not be greater than queues ({queues})")));
    } else if entropy_bits(queues, hand) > HASH_BITS_MAX {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS_MAX}"
        );
        errors.push(FieldError::invalid(&path, hand, detail));
    }
}

/// The bits that it takes to deal a hand: `RequiredEntropyBits` of `apiserver/pkg/util/shufflesharding`.
fn entropy_bits(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}
