//! Secrets. Follows `pkg/apis/core/v1/defaults.go` and `ValidateSecret` of `pkg/apis/core/validation/validation.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::config_map::{BYTES_MAX, decoded_length};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, problems};
use crate::kinds::shared::json::{copy, default_zero_to, entries, is_empty, set, text, unset, with};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{SelectableField, Strategy};
use crate::table::Cell;

/// The rules of Secrets.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(|secret| {
        string_data(secret);
        default_zero_to(secret, "type", "Opaque");
    })
    .prepared(|new, old| {
        if let Some(old) = old.filter(|_| is_empty(&new["type"])) {
            copy(new, old, "type");
        }
    })
    .validated(|new, old, errors| {
        if let Some(old) = old {
            check::frozen(new, old, &["data"], errors);
        }
        secret(new, errors);
        if let Some(old) = old {
            // Checked declaratively upstream, after what is checked by hand.
            check::immutable(&new["type"], &old["type"], &Path::new("type"), errors);
        }
    })
    .warned(|new, _, warnings| {
        if text(&new["type"]) == "kubernetes.io/tls" {
            warnings.extend(key_pair_problem(&new["data"]));
        }
    })
    .with_strategy(Strategy { selectable_fields: &[SelectableField::at("type")], ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::Text("/type"), Cell::Count("/data"), Cell::Age]);

/// Returns the error of Go's `tls.X509KeyPair` for a pair without PEM in it. Whether key and certificate match is not
/// looked at.
fn key_pair_problem(data: &Value) -> Option<String> {
    let lacks_pem = |field: &str| {
        let decoded = BASE64.decode(text(&data[field])).unwrap_or_default();
        !String::from_utf8_lossy(&decoded).contains("-----BEGIN ")
    };
    let what = match (lacks_pem("tls.crt"), lacks_pem("tls.key")) {
        (true, _) => "certificate",
        (false, true) => "key",
        (false, false) => return None,
    };
    Some(format!("tls: failed to find any PEM data in {what} input"))
}

/// `stringData` is a way to write `data`, and is not kept.
fn string_data(secret: &mut Value) {
    let Some(strings) = unset(secret, "stringData") else { return };
    if strings.as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    with(secret, "data", |data| {
        for (key, value) in entries(&strings) {
            set(data, key, BASE64.encode(text(value)));
        }
    });
}

fn secret(secret: &Value, errors: &mut Errors) {
    let data = &secret["data"];
    let path = Path::new("data");
    let mut bytes = 0;
    for (key, value) in entries(data) {
        problems(key, check::config_key(key), &path.key(key), errors);
        bytes += decoded_length(value);
    }
    if bytes > BYTES_MAX {
        errors.push(FieldError::too_long(&path, BYTES_MAX));
    }
    let has = |key: &str| data.get(key).is_some();
    let mut required = |key: &str| errors.push(FieldError::required(&path.key(key), ""));
    match text(&secret["type"]) {
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            if is_empty(&secret["metadata"]["annotations"][NAME]) {
                let path = Path::new("metadata").child("annotations").key(NAME);
                errors.push(FieldError::required(&path, ""));
            }
        }
        "kubernetes.io/dockercfg" => docker_config(data, ".dockercfg", &path, errors),
        "kubernetes.io/dockerconfigjson" => docker_config(data, ".dockerconfigjson", &path, errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            required("username");
            required("password");
        }
        "kubernetes.io/ssh-auth" if is_empty(&data["ssh-privatekey"]) => required("ssh-privatekey"),
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has(key) {
                    required(key);
                }
            }
        }
        _ => {}
    }
}

fn docker_config(data: &Value, key: &str, path: &Path, errors: &mut Errors) {
    let Some(value) = data.get(key) else {
        errors.push(FieldError::required(&path.key(key), ""));
        return;
    };
    let json = BASE64.decode(text(value)).unwrap_or_default();
    let read: Result<serde_json::Map<String, Value>, _> = serde_json::from_slice(&json);
    if let Err(error) = read {
        let why = if json.is_empty() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
        errors.push(FieldError::invalid(&path.key(key), "<secret contents redacted>", why));
    }
}
