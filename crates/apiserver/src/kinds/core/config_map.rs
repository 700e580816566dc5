//! ConfigMaps: `ValidateConfigMap` of `pkg/apis/core/validation/validation.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::json::{entries, text};
use crate::kinds::{NameRule, Rules};
use crate::table::Cell;

/// The rules of ConfigMaps.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .validated(|new, old, errors| {
        if let Some(old) = old {
            check::frozen(new, old, &["data", "binaryData"], errors);
        }
        data(new, errors);
    })
    .printed(&[Cell::Name, Cell::Value(|row| (row.count("/data") + row.count("/binaryData")).into()), Cell::Age]);

/// The most bytes that all values of a ConfigMap or a Secret may have together, so that an object fits into etcd.
pub(crate) const BYTES_MAX: usize = 1024 * 1024;

fn data(object: &Value, errors: &mut Errors) {
    let data = Path::new("data");
    let binary = Path::new("binaryData");
    let mut bytes = 0;
    for (key, value) in entries(&object["data"]) {
        problems(key, check::config_key(key), &data.key(key), errors);
        if object["binaryData"].get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&data.key(key), key, detail));
        }
        bytes += text(value).len();
    }
    for (key, value) in entries(&object["binaryData"]) {
        problems(key, check::config_key(key), &binary.key(key), errors);
        bytes += decoded_length(value);
    }
    if bytes > BYTES_MAX {
        errors.push(FieldError::too_long(&Path::root(), BYTES_MAX));
    }
}

/// Returns the length of a value that is encoded in base64.
pub(crate) fn decoded_length(value: &Value) -> usize {
    BASE64.decode(text(value)).map_or(0, |bytes| bytes.len())
}
