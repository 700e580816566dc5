//! The spec of slices: `validateResourceSliceSpec`.

use serde_json::Value;
use steersman_base::validation::dns1123_subdomain;

use super::capacity;
use super::device::{attribute_name, binding_conditions, bounded, label, pool_name, taint, unique};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::pod::affinity::node_selector;
use crate::kinds::shared::check::{immutable, immutable_text, problems, required};
use crate::kinds::shared::go;
use crate::kinds::shared::json::{entries, flag, is_set, items, number, same, text};
use crate::kinds::storage::driver_name;

const DEVICES_MAX: usize = 128;
/// Of devices with taints or counters.
const SPECIAL_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
const CONSUMED_SETS_MAX: usize = 2;
const ATTRIBUTES_MAX: usize = 32;
const ATTRIBUTE_BYTES_MAX: usize = 64;
const TAINTS_MAX: usize = 16;
/// Longer keys are cut in paths.
const KEY_BYTES_SHOWN: usize = 96;
const PLACES: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const DEVICE_PLACES: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                             `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// Checks the spec of a slice.
pub(super) fn validate(spec: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    driver_name(text(&spec["driver"]), &path.child("driver"), errors);
    pool(&spec["pool"], &path.child("pool"), errors);
    if let Some(old) = old {
        immutable_text(&spec["pool"]["name"], &old["pool"]["name"], &path.child("pool").child("name"), errors);
        immutable_text(&spec["driver"], &old["driver"], &path.child("driver"), errors);
        immutable(&spec["nodeName"], &old["nodeName"], &path.child("nodeName"), errors);
    }
    places(spec, path, errors);
    if is_set(&spec["sharedCounters"]) && is_set(&spec["devices"]) {
        errors.push(FieldError::invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let is_special =
        |device: &Value| !items(&device["taints"]).is_empty() || !items(&device["consumesCounters"]).is_empty();
    let has_special = items(&spec["devices"]).iter().any(is_special);
    let max = if has_special { SPECIAL_DEVICES_MAX } else { DEVICES_MAX };
    let at = path.child("devices");
    bounded(&spec["devices"], max, &at, errors, |device, path, errors| {
        let mut before = old.map_or(&[][..], |old| items(&old["devices"])).iter();
        let before = before.find(|before| before["name"] == device["name"]);
        validate_device(device, before, flag(&spec["perDeviceNodeSelection"]), path, errors);
    });
    if items(&spec["devices"]).len() <= max {
        unique(&spec["devices"], &at, errors, |device| text(&device["name"]));
    }
    let at = path.child("sharedCounters");
    bounded(&spec["sharedCounters"], COUNTER_SETS_MAX, &at, errors, |set, path, errors| {
        counters(set, "name", path, errors);
    });
    unique(&spec["sharedCounters"], &at, errors, |set| text(&set["name"]));
}

fn pool(pool: &Value, path: &Path, errors: &mut Errors) {
    pool_name(text(&pool["name"]), &path.child("name"), errors);
    let count = number(&pool["resourceSliceCount"]);
    if count <= 0 {
        errors.push(FieldError::invalid(&path.child("resourceSliceCount"), count, "must be greater than zero"));
    }
    let generation = number(&pool["generation"]);
    if generation < 0 {
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&path.child("generation"), generation, detail));
    }
}

/// Checks where the devices are: in one place, or each device names its own.
fn places(spec: &Value, path: &Path, errors: &mut Errors) {
    let mut set: Vec<&str> = Vec::new();
    if let Some(name) = spec["nodeName"].as_str() {
        if name.is_empty() {
            let detail = "must be either unset or set to a non-empty string";
            errors.push(FieldError::invalid(&path.child("nodeName"), name, detail));
        } else {
            set.push("`nodeName`");
            problems(name, dns1123_subdomain(name), &path.child("nodeName"), errors);
        }
    }
    if is_set(&spec["nodeSelector"]) {
        set.push("`nodeSelector`");
        let at = path.child("nodeSelector");
        node_selector(&spec["nodeSelector"], &at, errors);
        let terms = &spec["nodeSelector"]["nodeSelectorTerms"];
        if items(terms).len() != 1 {
            let shown = go::show("[NodeSelectorTerm", terms);
            let detail = "must have exactly one node selector term";
            errors.push(FieldError::invalid(&at.child("nodeSelectorTerms"), shown, detail));
        }
    }
    for (field, name) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")] {
        true_or_unset(&spec[field], &path.child(field), errors);
        if flag(&spec[field]) {
            set.push(name);
        }
    }
    match set.len() {
        0 => errors.push(FieldError::required(path, PLACES)),
        1 => {}
        _ => {
            let detail = format!("{PLACES}, but multiple fields are set");
            errors.push(FieldError::invalid(path, format!("{{{}}}", set.join(", ")), detail));
        }
    }
}

fn true_or_unset(value: &Value, path: &Path, errors: &mut Errors) {
    if *value == false {
        errors.push(FieldError::invalid(path, false, "must be either unset or set to true"));
    }
}

fn validate_device(device: &Value, old: Option<&Value>, says_place: bool, path: &Path, errors: &mut Errors) {
    label(text(&device["name"]), &path.child("name"), errors);
    let attributes = entries(&device["attributes"]);
    let capacities = entries(&device["capacity"]);
    let count = attributes.len() + capacities.len();
    if count > ATTRIBUTES_MAX {
        let detail = format!("the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}");
        errors.push(FieldError::invalid(path, count, detail));
    }
    let at = path.child("attributes");
    for (name, attribute) in attributes {
        attribute_name(name, &at, errors);
        validate_attribute(attribute, &at.key(&shortened(name, KEY_BYTES_SHOWN)), errors);
    }
    let is_same = |field: &str| old.is_some_and(|old| same(&old[field], &device[field]));
    if !is_same("capacity") {
        let at = path.child("capacity");
        for (name, value) in capacities {
            attribute_name(name, &at, errors);
            let is_shared = flag(&device["allowMultipleAllocations"]);
            capacity::validate(value, is_shared, &at.key(&shortened(name, KEY_BYTES_SHOWN)), errors);
        }
    }
    if !is_same("taints") {
        bounded(&device["taints"], TAINTS_MAX, &path.child("taints"), errors, |it, path, errors| {
            taint(it, None, path, errors);
        });
    }
    let at = path.child("consumesCounters");
    bounded(&device["consumesCounters"], CONSUMED_SETS_MAX, &at, errors, |set, path, errors| {
        counters(set, "counterSet", path, errors);
    });
    unique(&device["consumesCounters"], &at, errors, |set| text(&set["counterSet"]));
    device_place(device, says_place, path, errors);
    binding_conditions(device, path, errors);
}

fn device_place(device: &Value, says_place: bool, path: &Path, errors: &mut Errors) {
    let fields = ["nodeName", "nodeSelector", "allNodes"];
    if !says_place {
        if fields.iter().any(|field| is_set(&device[*field])) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                          true in the ResourceSlice spec";
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        return;
    }
    let mut set: Vec<&str> = Vec::new();
    if let Some(name) = device["nodeName"].as_str() {
        if name.is_empty() {
            errors.push(FieldError::invalid(&path.child("nodeName"), name, "must not be empty"));
        } else {
            set.push("`nodeName`");
            problems(name, dns1123_subdomain(name), &path.child("nodeName"), errors);
        }
    }
    if is_set(&device["nodeSelector"]) {
        set.push("`nodeSelector`");
        node_selector(&device["nodeSelector"], &path.child("nodeSelector"), errors);
    }
    true_or_unset(&device["allNodes"], &path.child("allNodes"), errors);
    if flag(&device["allNodes"]) {
        set.push("`allNodes`");
    }
    match set.len() {
        0 => errors.push(FieldError::required(path, DEVICE_PLACES)),
        1 => {}
        _ => errors.push(FieldError::invalid(path, format!("{{{}}}", set.join(", ")), DEVICE_PLACES)),
    }
}

fn validate_attribute(attribute: &Value, path: &Path, errors: &mut Errors) {
    const KINDS: [&str; 4] = ["int", "bool", "string", "version"];
    for (field, is_version) in [("string", false), ("version", true)] {
        let Some(value) = attribute[field].as_str() else { continue };
        let at = path.child(field);
        if is_version && !is_semver(value) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            errors.push(FieldError::invalid(&at, value, detail));
        }
        if value.len() > ATTRIBUTE_BYTES_MAX {
            errors.push(FieldError::too_long(&at, ATTRIBUTE_BYTES_MAX));
        }
    }
    let set: Vec<&str> = KINDS.into_iter().filter(|field| is_set(&attribute[*field])).collect();
    let all = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`";
    match set.len() {
        0 => errors.push(FieldError::invalid(path, "", format!("must specify one of: {all}"))),
        1 => {}
        _ => {
            let detail = format!("must specify exactly one of: {all}");
            errors.push(FieldError::invalid(path, format!("{{{}}}", set.join(", ")), detail));
        }
    }
}

/// Checks a set of counters, or what a device takes of one.
fn counters(set: &Value, name: &str, path: &Path, errors: &mut Errors) {
    if required(&set[name], &path.child(name), errors) {
        label(text(&set[name]), &path.child(name), errors);
    }
    let at = path.child("counters");
    let counters = entries(&set["counters"]);
    if counters.is_empty() {
        return errors.push(FieldError::required(&at, ""));
    }
    if counters.len() > COUNTERS_MAX {
        return errors.push(FieldError::too_many(&at, counters.len(), COUNTERS_MAX));
    }
    counters.iter().for_each(|(key, _)| label(key, &at, errors));
}

/// A key as paths show it: cut in the middle.
fn shortened(key: &str, max: usize) -> String {
    const ELLIPSIS: &str = "...";
    if key.len() <= max {
        return key.to_owned();
    }
    let rest = max - ELLIPSIS.len();
    let start: String = key.chars().take(rest.div_ceil(2)).collect();
    let end: Vec<char> = key.chars().rev().take(rest / 2).collect();
    format!("{start}{ELLIPSIS}{}", end.into_iter().rev().collect::<String>())
}

/// Whether a text is a version as semver.org defines it.
fn is_semver(text: &str) -> bool {
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |word: &str| is_digits(word) && (word == "0" || !word.starts_with('0'));
    let is_pre = |word: &str| is_word(word) && (!is_digits(word) || is_number(word));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_word))
}
