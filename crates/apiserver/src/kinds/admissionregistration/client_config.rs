//! Webhooks of admission and conversion: their places and the versions of reviews they take. Follows
//! `apiserver/pkg/util/webhook/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1035_label, dns1123_subdomain};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::range;
use crate::kinds::shared::json::{is_set, number, text};
use crate::registry::query::strings;

const FORM: &str = "; desired format: https://host[/path]";
const PORT_MAX: i64 = 65535;

/// Checks the `clientConfig` of a webhook.
pub(crate) fn validate(config: &Value, path: &Path, errors: &mut Errors) {
    match (config["url"].as_str(), is_set(&config["service"])) {
        (Some(text), false) => url(text, &path.child("url"), errors),
        (None, true) => service(&config["service"], &path.child("service"), errors),
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
}

/// Checks the versions of reviews that a webhook takes: one of the `known` ones at least. `none` is the detail of the error if
/// there are no versions.
pub(crate) fn review_versions(versions: &Value, known: &[&str], none: &str, path: &Path, errors: &mut Errors) {
    let names = strings(versions);
    if names.is_empty() {
        return errors.push(FieldError::required(path, none));
    }
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            errors.push(FieldError::invalid(&path.index(at), *name, "duplicate version"));
            continue;
        }
        for problem in dns1035_label(name) {
            errors.push(FieldError::invalid(&path.index(at), *name, problem));
        }
    }
    if !names.iter().any(|name| known.contains(name)) {
        let detail = format!("must include at least one of {}", known.join(", "));
        errors.push(FieldError::invalid(path, versions.clone(), detail));
    }
}

/// Checks the URL of a webhook.
pub(crate) fn url(url: &str, path: &Path, errors: &mut Errors) {
    if let Some(problem) = unparsable(url) {
        let detail = format!("url must be a valid URL: parse {url:?}: {problem}{FORM}");
        return errors.push(FieldError::required(path, detail));
    }
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", rest),
    };
    let authority = rest.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or_default()).unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if !scheme.eq_ignore_ascii_case("https") {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, scheme.to_ascii_lowercase(), detail));
    }
    if host.is_empty() {
        errors.push(FieldError::invalid(path, host, format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        errors.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(FieldError::invalid(path, query, "query parameters are not permitted in the URL"));
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// Returns what Go's `url.Parse` finds wrong, for the mistakes that people make.
fn unparsable(url: &str) -> Option<String> {
    if url.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Some("net/url: invalid control character in URL".to_owned());
    }
    if url.starts_with(':') {
        return Some("missing protocol scheme".to_owned());
    }
    let authority = url.split_once("//").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default())?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let after_address = host.rfind(']').map_or(host, |end| &host[end..]);
    let port = after_address.rsplit_once(':').map(|(_, port)| port)?;
    let is_digits = port.bytes().all(|byte| byte.is_ascii_digit());
    (!is_digits).then(|| format!("invalid port {:?} after host", format!(":{port}")))
}

/// Checks the Service of a webhook.
pub(crate) fn service(service: &Value, path: &Path, errors: &mut Errors) {
    // Upstream passes both in the wrong order, and names the one for the other.
    for (field, held) in [("name", "namespace"), ("namespace", "name")] {
        if text(&service[held]).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let port = number(&service["port"]);
    if !(1..=PORT_MAX).contains(&port) {
        let detail = format!("port is not valid: {}", range(1, PORT_MAX));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    if let Some(held) = service["path"].as_str() {
        url_path(held, &path.child("path"), errors);
    }
}

fn url_path(held: &str, path: &Path, errors: &mut Errors) {
    if matches!(held, "" | "/") {
        return;
    }
    if held == "//" {
        return errors.push(FieldError::invalid(path, held, "segment[0] may not be empty"));
    }
    if !held.starts_with('/') {
        errors.push(FieldError::invalid(path, held, "must start with a '/'"));
    }
    // Upstream leaves the first byte out, whatever it is.
    let rest = held.get(1..).unwrap_or_default();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (at, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            errors.push(FieldError::invalid(path, held, format!("segment[{at}] may not be empty")));
            continue;
        }
        for problem in dns1123_subdomain(step) {
            errors.push(FieldError::invalid(path, held, format!("segment[{at}]: {problem}")));
        }
    }
}
