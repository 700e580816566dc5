//! Annotations that script a pod: `nodes.steersman.dev/<what>` for all its main containers, and
//! `nodes.steersman.dev/<what>.<container>` for one container of any kind. Invalid values are ignored and reported by
//! an event.

use std::time::Duration;

use steersman_base::{Istr, Meta};

use super::life::Role;
use crate::duration;
pub(super) use crate::view::PREFIX;

/// Returns the value of an annotation for a container, or for the whole pod if none is named.
pub(super) fn text<'a>(pod: &'a Meta, what: &str, container: Option<(&str, Role)>) -> Option<&'a Istr> {
    let annotations = &pod.annotations;
    if annotations.is_empty() {
        return None;
    }
    let what = what.strip_prefix(PREFIX).unwrap_or(what);
    match container {
        None => annotations.get(&format!("{PREFIX}{what}")),
        Some((name, role)) => annotations
            .get(&format!("{PREFIX}{what}.{name}"))
            .or_else(|| annotations.get(&format!("{PREFIX}{what}")).filter(|_| role == Role::Main)),
    }
}

/// Returns an annotation as a duration.
pub(super) fn time(pod: &Meta, what: &str, container: Option<(&str, Role)>) -> Option<Duration> {
    duration::parse(text(pod, what, container)?)
}

/// Whether the annotation of a stage is the one of this name.
pub(super) fn is_called(said: &str, what: &str) -> bool {
    said.strip_prefix(PREFIX).unwrap_or(said) == what
}

/// Returns our annotations, each with its name without prefix and its value.
pub(super) fn all(pod: &Meta) -> impl Iterator<Item = (&str, &str)> {
    pod.annotations.iter().filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str())))
}

/// Returns an annotation as an exit code.
pub(super) fn code(pod: &Meta, what: &str, container: Option<(&str, Role)>) -> Option<i32> {
    read_code(text(pod, what, container)?)
}

/// Parses an exit code.
pub(super) fn read_code(text: &str) -> Option<i32> {
    text.parse().ok().filter(|code| (0..=255).contains(code))
}
