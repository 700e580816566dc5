//! Pure: what is left of a resource in a namespace, and what that means.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::names::finalizers::{FOREGROUND_DELETION, ORPHAN};
use steersman_base::{Istr, Meta, Resource};

/// What came of emptying one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// How many objects are left.
    pub(super) count: usize,
    /// How many of them wait for which finalizer.
    pub(super) finalizers: BTreeMap<Istr, usize>,
    /// For how many seconds they may be left.
    pub(super) seconds: u64,
    /// What went wrong.
    pub(super) failure: Option<String>,
}

/// Upstream's guess of how long somebody takes to finish with an object.
const FINALIZER_SECONDS: u64 = 15;

/// Whether all that can be asked for was asked for: every object is going, and no finalizer of the garbage collector
/// keeps it, which another deletion would take off.
pub(super) fn is_asked_for(objects: &[Arc<Meta>]) -> bool {
    objects.iter().all(|object| {
        let kept = object.finalizers().iter().any(|name| name == ORPHAN || name == FOREGROUND_DELETION);
        object.is_terminating() && !kept
    })
}

// === impl Outcome ===

impl Outcome {
    /// What the objects that are left after a deletion mean. `seconds` is how long they were given.
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

    /// Emptying a resource failed: nobody knows what is left.
    pub(super) fn failed(failure: String, seconds: u64) -> Self {
        Self { failure: Some(failure), seconds, ..Self::default() }
    }
}
