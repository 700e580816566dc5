//! Checks that several kinds share.
//!
//! Each takes a value and its path and adds to the errors what is wrong, as upstream's helper of about the same name does
//! (`apimachinery/pkg/util/validation`, `pkg/apis/core/validation/validation.go`).

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};
use steersman_base::selector::{LabelSelector, Selector};
use steersman_base::validation::{self, Problems};
use steersman_base::{Quantity, StringMap};

use super::json::{entries, flag, is_set, number, same, text};
pub(crate) use crate::field::Errors;
use crate::field::{FieldError, Path, Shown};

const NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const IMMUTABLE: &str = "field is immutable";
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Reports a value by each sentence about it.
pub(crate) fn problems(value: &str, problems: Problems, path: &Path, errors: &mut Errors) {
    errors.extend(problems.into_iter().map(|problem| FieldError::invalid(path, value, problem)));
}

/// Reports a value by all sentences about it at once.
pub(crate) fn problems_joined(value: &str, problems: &[String], path: &Path, errors: &mut Errors) {
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, value, problems.join(",")));
    }
}

/// A number that is there must not be negative.
pub(crate) fn non_negative(value: &Value, path: &Path, errors: &mut Errors) {
    if number(value) < 0 {
        errors.push(FieldError::invalid(path, value.clone(), NEGATIVE));
    }
}

/// A number must be greater than 0.
pub(crate) fn positive(value: &Value, path: &Path, errors: &mut Errors) {
    if number(value) <= 0 {
        errors.push(FieldError::invalid(path, number(value), "must be greater than zero"));
    }
}

/// A number must be within bounds.
pub(crate) fn in_range(value: i64, min: i64, max: i64, path: &Path, errors: &mut Errors) {
    if value < min || value > max {
        errors.push(FieldError::invalid(path, value, range(min, max)));
    }
}

/// `must be between 1 and 65535, inclusive`
pub(crate) fn range(min: i64, max: i64) -> String {
    format!("must be between {min} and {max}, inclusive")
}

/// A port's number.
pub(crate) fn port(value: i64, path: &Path, errors: &mut Errors) {
    in_range(value, 1, 65535, path, errors);
}

/// A port's number or name.
pub(crate) fn port_or_name(value: &Value, path: &Path, errors: &mut Errors) {
    match value {
        Value::String(name) => problems(name, port_name(name), path, errors),
        number_or_none => port(number(number_or_none), path, errors),
    }
}

/// A port's name: `IsValidPortName`.
pub(crate) fn port_name(name: &str) -> Problems {
    let mut problems = Problems::new();
    let mut unless = |good: bool, problem: &str| {
        if !good {
            problems.push(problem.to_owned());
        }
    };
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    unless(name.len() <= 15, "must be no more than 15 characters");
    unless(
        !name.is_empty() && name.bytes().all(known),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    unless(name.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    unless(!name.contains("--"), "must not contain consecutive hyphens");
    unless(!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with a hyphen");
    problems
}

/// A DNS-1123 subdomain whose labels may have underscores: `IsDNS1123SubdomainWithUnderscore`.
pub(crate) fn subdomain_with_underscore(name: &str) -> Problems {
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let good = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        edge(label.first()) && edge(label.last()) && label.iter().all(|byte| inner(*byte))
    };
    let mut problems = Problems::new();
    if name.len() > validation::DNS_SUBDOMAIN_LENGTH_MAX {
        problems.push("must be no more than 253 characters".to_owned());
    }
    if !name.split('.').all(good) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

/// A path that starts with a domain: `IsDomainPrefixedPath`.
pub(crate) fn domain_prefixed_path(value: &str, path: &Path, errors: &mut Errors) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((host, rest)) = value.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty()) else {
        errors.push(FieldError::invalid(path, value, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
        return;
    };
    problems(host, validation::dns1123_subdomain(host), path, errors);
    let known = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !rest.chars().all(known) {
        let problem = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(path, rest, problem));
    }
}

/// The key of a config map or secret: `IsConfigMapKey`.
pub(crate) fn config_key(key: &str) -> Problems {
    let mut problems = Problems::new();
    if key.len() > validation::DNS_SUBDOMAIN_LENGTH_MAX {
        problems.push("must be no more than 253 characters".to_owned());
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if key.is_empty() || !key.bytes().all(known) {
        problems.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." | ".." => problems.push(format!("must not be '{key}'")),
        key if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The name of an environment variable: `IsRelaxedEnvVarName`.
pub(crate) fn env_name(name: &str) -> Problems {
    if name.chars().all(|c| (c == ' ' || c.is_ascii_graphic()) && c != '=') {
        return Problems::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()]
}

/// A field of a string that must be one of a few; required unless `""` is among them.
pub(crate) fn one_of(value: &Value, supported: &[&str], path: &Path, errors: &mut Errors) {
    match text(value) {
        "" if !supported.contains(&"") => errors.push(FieldError::required(path, "")),
        other if !supported.contains(&other) => errors.push(FieldError::not_supported(path, other, supported)),
        _ => {}
    }
}

/// An optional string that must be one of a few if it is there.
pub(crate) fn one_of_if_set(value: &Value, supported: &[&str], path: &Path, errors: &mut Errors) {
    if is_set(value) && !supported.contains(&text(value)) {
        errors.push(FieldError::not_supported(path, text(value), supported));
    }
}

/// Labels: `ValidateLabels`.
pub(crate) fn labels(value: &Value, path: &Path, errors: &mut Errors) {
    for (key, value) in entries(value) {
        problems(key, validation::qualified_name(key), path, errors);
        problems(text(value), validation::label_value(text(value)), path, errors);
    }
}

/// Annotations: `ValidateAnnotations`.
pub(crate) fn annotations(value: &Value, path: &Path, errors: &mut Errors) {
    const TOTAL_BYTES_MAX: usize = 256 * 1024;
    let mut bytes = 0;
    for (key, value) in entries(value) {
        problems(key, validation::qualified_name(&key.to_lowercase()), path, errors);
        bytes += key.len() + text(value).len();
    }
    if bytes > TOTAL_BYTES_MAX {
        errors.push(FieldError::too_long(path, TOTAL_BYTES_MAX));
    }
}

/// A declared selector, if it can be read.
pub(crate) fn selector_of(value: &Value) -> LabelSelector {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

/// A declared selector: `ValidateLabelSelector`.
pub(crate) fn label_selector(value: &Value, path: &Path, errors: &mut Errors) {
    if is_set(value) {
        errors.extend(selector_of(value).validate(path.as_str()).into_iter().map(FieldError::from));
    }
}

/// Whether a declared selector restricts nothing.
pub(crate) fn selects_everything(value: &Value) -> bool {
    selector_of(value).is_empty()
}

/// Whether a selector matches a map of labels.
pub(crate) fn matches(selector: &Selector, labels: &Value) -> bool {
    selector.matches(&string_map(labels))
}

/// A map of strings, without what is none.
pub(crate) fn string_map(value: &Value) -> StringMap {
    let pairs = entries(value).into_iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
    StringMap::new(pairs.map(|(key, value)| (key.into(), value.into())).collect())
}

/// A field that must not change.
pub(crate) fn immutable(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    if !same(new, old) {
        errors.push(FieldError::invalid(path, new.clone(), IMMUTABLE));
    }
}

/// A field that must not change, shown as the Go struct of this name.
pub(crate) fn immutable_struct(name: &str, new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    if !same(new, old) {
        errors.push(FieldError::invalid(path, super::go::show(name, new), IMMUTABLE));
    }
}

/// A plain string that must not change: not a pointer in Go, so that none is shown as `""`.
pub(crate) fn immutable_text(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    if text(new) != text(old) {
        errors.push(FieldError::invalid(path, text(new), IMMUTABLE));
    }
}

/// A field that must not change, where upstream checks that declaratively and shows no value.
pub(crate) fn immutable_unshown(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    if !same(new, old) {
        errors.push(FieldError::invalid(path, Value::Null, IMMUTABLE));
    }
}

/// Shows a value as Go prints a struct: these keys first, in this order.
pub(crate) fn ordered(value: &Value, keys: &[&str]) -> Shown {
    Shown::Text(ordered_text(value, keys))
}

/// [`ordered`] of a list's items.
pub(crate) fn ordered_list(value: &Value, keys: &[&str]) -> Shown {
    let items: Vec<_> = super::json::items(value).iter().map(|item| ordered_text(item, keys)).collect();
    Shown::Text(format!("[{}]", items.join(",")))
}

fn ordered_text(value: &Value, keys: &[&str]) -> String {
    let Some(map) = value.as_object() else { return value.to_string() };
    let first = keys.iter().filter_map(|key| map.get_key_value(*key));
    let rest = map.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
    let fields: Vec<_> = first.chain(rest).map(|(key, value)| format!("{}:{value}", json!(key))).collect();
    format!("{{{}}}", fields.join(","))
}

/// A number or a percentage, neither negative: `ValidatePositiveIntOrPercent`.
pub(crate) fn number_or_percent(value: &Value, path: &Path, errors: &mut Errors) {
    match value {
        Value::String(percent) => problems(percent, validation::percent(percent), path, errors),
        other => non_negative(&json!(number(other)), path, errors),
    }
}

/// A percentage must not be over 100: `IsNotMoreThan100Percent`.
pub(crate) fn percent_at_most_100(value: &Value, path: &Path, errors: &mut Errors) {
    if percent(value).is_some_and(|percent| percent > 100) {
        errors.push(FieldError::invalid(path, value.clone(), "must not be greater than 100%"));
    }
}

/// The number before `%`.
pub(crate) fn percent(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

/// The number of an int-or-percent, whichever it is.
pub(crate) fn number_of(value: &Value) -> i64 {
    match value {
        Value::String(text) => text.strip_suffix('%').unwrap_or(text).parse().unwrap_or_default(),
        other => number(other),
    }
}

/// A quantity, if it is one.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// A quantity must not be negative: `ValidateNonnegativeQuantity`.
pub(crate) fn non_negative_quantity(value: &Value, path: &Path, errors: &mut Errors) {
    if let Some(quantity) = quantity(value).filter(|quantity| quantity.value() < 0 || quantity.milli_value() < 0) {
        errors.push(FieldError::invalid(path, quantity.to_string(), NEGATIVE));
    }
}

/// An IP address, as Go's sloppy parser takes it; none if it has leading zeros.
pub(crate) fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// An IP address in a field that is older than strict parsing: `IsValidIPForLegacyField`.
pub(crate) fn legacy_ip(value: &str, old: &[&str], path: &Path, errors: &mut Errors) {
    if old.contains(&value) {
        return;
    }
    match ip(value) {
        Some(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
            errors.push(FieldError::invalid(path, value, "must not be an IPv4-mapped IPv6 address"));
        }
        Some(_) => {}
        None if has_leading_zeros(value) => {
            errors.push(FieldError::invalid(path, value, "must not have leading 0s"));
        }
        None => errors.push(FieldError::invalid(path, value, BAD_IP)),
    }
}

/// An IP address in its canonical form: `IsValidIP`.
pub(crate) fn strict_ip(value: &str, path: &Path, errors: &mut Errors) {
    let count = errors.len();
    legacy_ip(value, &[], path, errors);
    if let Some(ip) = ip(value).filter(|ip| errors.len() == count && ip.to_string() != value) {
        errors.push(FieldError::invalid(path, value, format!("must be in canonical form ({:?})", ip.to_string())));
    }
}

const BAD_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

fn has_leading_zeros(value: &str) -> bool {
    let octets: Option<Vec<u8>> = value.split('.').map(|octet| octet.parse().ok()).collect();
    octets.is_some_and(|octets| <[u8; 4]>::try_from(octets).map(Ipv4Addr::from).is_ok())
}

/// A network: `IsValidCIDRForLegacyField`.
pub(crate) fn cidr(value: &str, path: &Path, errors: &mut Errors) {
    match value.parse::<ipnet::IpNet>() {
        Err(_) => errors.push(FieldError::invalid(
            path,
            value,
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        )),
        Ok(net) if net.addr() != net.network() => {
            errors.push(FieldError::invalid(path, value, "must not have bits set beyond the prefix length"));
        }
        Ok(_) => {}
    }
}

/// A network in its canonical form: `IsValidCIDR`.
pub(crate) fn strict_cidr(value: &str, path: &Path, errors: &mut Errors) {
    let count = errors.len();
    cidr(value, path, errors);
    let Ok(net) = value.parse::<ipnet::IpNet>() else { return };
    if errors.len() == count && net.to_string() != value {
        errors.push(FieldError::invalid(path, value, format!("must be in canonical form ({:?})", net.to_string())));
    }
}

/// A path below another: not absolute, no `..` in it (`validateLocalDescendingPath`).
pub(crate) fn descending_path(value: &str, path: &Path, errors: &mut Errors) {
    if value.starts_with('/') {
        errors.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    no_backsteps(value, path, errors);
}

/// A path without `..` in it (`validatePathNoBacksteps`).
pub(crate) fn no_backsteps(value: &str, path: &Path, errors: &mut Errors) {
    if value.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, value, "must not contain '..'"));
    }
}

/// A field that must be true or absent.
pub(crate) fn forbid_if(condition: bool, detail: &str, path: &Path, errors: &mut Errors) {
    if condition {
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// A string that must not be empty.
pub(crate) fn required(value: &Value, path: &Path, errors: &mut Errors) -> bool {
    let there = !text(value).is_empty();
    if !there {
        errors.push(FieldError::required(path, ""));
    }
    there
}

/// Whether an immutable object (`immutable: true` of config maps and secrets) lets its data be.
pub(crate) fn frozen(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !flag(&old["immutable"]) {
        return;
    }
    if !flag(&new["immutable"]) {
        errors.push(FieldError::forbidden(&Path::new("immutable"), "field is immutable when `immutable` is set"));
    }
    for field in fields {
        if !same(&new[*field], &old[*field]) {
            errors.push(FieldError::forbidden(&Path::new(field), "field is immutable when `immutable` is set"));
        }
    }
}

/// A selector as Go prints it.
pub(crate) fn shown_selector(selector: &Value) -> Shown {
    ordered(selector, &["matchLabels", "matchExpressions"])
}

/// A selector that must not change.
pub(crate) fn immutable_selector(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    if !same(new, old) {
        errors.push(FieldError::invalid(path, shown_selector(new), IMMUTABLE));
    }
}

/// A number of a status must not be more than another.
pub(crate) fn at_most(status: &Value, field: &str, bound: &str, detail: &str, path: &Path, errors: &mut Errors) {
    if number(&status[field]) > number(&status[bound]) {
        errors.push(FieldError::invalid(&path.child(field), number(&status[field]), detail));
    }
}
