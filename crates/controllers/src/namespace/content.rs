//! Pure: the remaining objects of a resource in a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::names::finalizers::{FOREGROUND_DELETION, ORPHAN};
use steersman_base::{Istr, Meta, Resource};

/// The result of deleting the objects of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The number of remaining objects.
    pub(super) count: usize,
    /// The number of remaining objects per finalizer.
    pub(super) finalizers: BTreeMap<Istr, usize>,
    /// For how many seconds they may remain.
    pub(super) seconds: u64,
    /// The error, if there was one.
    pub(super) failure: Option<String>,
}

/// Upstream's estimate of how long a finalizer takes.
const FINALIZER_SECONDS: u64 = 15;

/// Whether nothing is left to request: every object is terminating, and waits for something that another deletion would
/// not change. A finalizer of the garbage collector would be removed; and an object without a finalizer and without a grace
/// period should not exist any more, so the server is asked again, as upstream does.
pub(super) fn is_asked_for(objects: &[Arc<Meta>]) -> bool {
    objects.iter().all(|object| {
        let kept = object.finalizers().iter().any(|name| name == ORPHAN || name == FOREGROUND_DELETION);
        let waits = !object.finalizers().is_empty() || object.deletion_grace_period_seconds().unwrap_or(0) > 0;
        object.is_terminating() && waits && !kept
    })
}

// === impl Outcome ===

impl Outcome {
    /// Evaluates the objects that remain after a deletion. `seconds` is their grace period.
    pub(super) fn of_left(objects: &[Arc<Meta>], resource: &Resource, namespace: &str, seconds: u64) -> Self {
        if objects.is_empty() {
            return Self::default();
        }
        let mut finalizers = BTreeMap::new();
        for name in objects.iter().flat_map(|object| object.finalizers()) {
            *finalizers.entry(name.clone()).or_default() += 1;
        }
        let count = objects.len();
        if seconds > 0 {
            return Self { count, finalizers, seconds, failure: None };
        }
        if !finalizers.is_empty() {
            return Self { count, finalizers, seconds: FINALIZER_SECONDS, failure: None };
        }
        let Resource { group, version, plural, .. } = resource;
        let failure = format!(
            "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
        );
        Self { count, failure: Some(failure), ..Self::default() }
    }

    /// Returns the result of a failed deletion: the remaining number is unknown.
    pub(super) fn failed(failure: String, seconds: u64) -> Self {
        Self { failure: Some(failure), seconds, ..Self::default() }
    }
}
