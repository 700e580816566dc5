//! Annotations that script a pod: `nodes.steersman.dev/<what>` for all its main containers, and
//! `nodes.steersman.dev/<what>.<container>` for one container of any kind. What cannot be read is as if it were not there,
//! and is told.

use std::time::Duration;

use steersman_base::{Istr, Meta};

use super::life::Role;
use crate::duration;
pub(super) use crate::view::PREFIX;

/// The text of an annotation for a container; for the pod as a whole if none is named.
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

/// A duration.
pub(super) fn time(pod: &Meta, what: &str, container: Option<(&str, Role)>) -> Option<Duration> {
    duration::parse(text(pod, what, container)?)
}

/// Whether a stage that says this means the annotation of this name.
pub(super) fn is_called(said: &str, what: &str) -> bool {
    said.strip_prefix(PREFIX).unwrap_or(said) == what
}

/// The annotations of ours, each as what it is called and what it says.
pub(super) fn all(pod: &Meta) -> impl Iterator<Item = (&str, &str)> {
    pod.annotations.iter().filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str())))
}

/// An exit code.
pub(super) fn code(pod: &Meta, what: &str, container: Option<(&str, Role)>) -> Option<i32> {
    read_code(text(pod, what, container)?)
}

/// What a text says as an exit code, if it is one.
pub(super) fn read_code(text: &str) -> Option<i32> {
    text.parse().ok().filter(|code| (0..=255).contains(code))
}
