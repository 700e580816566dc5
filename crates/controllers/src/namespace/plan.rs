//! Pure: the resources that a pass empties, and the finalizers that the namespace keeps.

use steersman_base::Istr;
use steersman_base::names::finalizers::KUBERNETES;
use steersman_model::core::NamespaceView;
use steersman_runtime::mapper::{ApiResource, Discovered, Failure};

/// The resources to empty.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Work<'a> {
    /// Emptied first.
    pub(super) pods: Option<&'a ApiResource>,
    /// Emptied when there are no pods left.
    pub(super) others: Vec<&'a ApiResource>,
}

/// Returns the namespaced resources that can be deleted. Groups whose discovery failed are left out, even if they were
/// known before: a server that does not answer discovery will not delete either.
pub(super) fn work(known: &Discovered) -> Work<'_> {
    let deletable = known.supporting(&["delete"]).into_iter();
    let all = deletable.filter(|found| found.is_namespaced() && !found.is_stale);
    let (pods, others): (Vec<_>, Vec<_>) =
        all.partition(|found| found.resource.group.is_empty() && found.resource.plural == "pods");
    Work { pods: pods.first().copied(), others }
}

/// Whether the failures hide the resource of pods, so that pods may exist that nothing is known of: the core group could
/// not be discovered. A server that answers, and has no pods, is another case.
pub(super) fn hides_pods(failures: &[Failure]) -> bool {
    // The root of the core group, or its version where the server has no aggregated discovery.
    failures.iter().any(|failure| matches!(&*failure.what, "/api" | "v1"))
}

/// Returns the failed discovery, in client-go's words; `None` if all succeeded.
pub(super) fn discovery_failure(failures: &[Failure]) -> Option<String> {
    if failures.is_empty() {
        return None;
    }
    let mut groups: Vec<_> = failures.iter().map(|Failure { what, why, .. }| format!("{what}: {why}")).collect();
    groups.sort();
    Some(format!(
        "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
        groups.len(),
        groups.join(", ")
    ))
}

/// Returns the namespace without our finalizer, others sorted; `None` if it does not have ours.
pub(super) fn finalized(namespace: &NamespaceView) -> Option<NamespaceView> {
    let held = &namespace.spec.finalizers;
    if !held.iter().any(|name| name == KUBERNETES) {
        return None;
    }
    let mut kept: Vec<Istr> = held.iter().filter(|name| *name != KUBERNETES).cloned().collect();
    kept.sort();
    kept.dedup();
    let mut finalized = namespace.clone();
    finalized.spec.finalizers = kept.into();
    Some(finalized)
}
