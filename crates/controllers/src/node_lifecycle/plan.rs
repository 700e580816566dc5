//! Pure: what becomes of a node after a look at it.

use std::time::Duration;

use serde_json::{Map, Value, json};
use steersman_base::{ConditionStatus, Istr, Meta, Time};
use steersman_model::core::NodeView;

use super::taints::{self, Cause};

/// The action on the `NoExecute` taints of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    /// Nothing: the taints are right, or nothing is known.
    None,
    /// The taints are corrected now: the node is ready again, or has one of the two and needs the other.
    Now,
    /// The node waits for its turn in its zone.
    InTurn,
}

/// Labels that repeat others: the label, and the older one that follows it.
const FOLLOWED: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

/// Longer than a manager starts.
const RECENT: Duration = Duration::from_secs(60);

/// Decides about the `NoExecute` taints of a node in this state.
pub(super) fn eviction(node: &NodeView, ready: Option<ConditionStatus>) -> Eviction {
    let Some(ready) = ready else { return Eviction::None };
    let Some(cause) = Cause::of(ready) else {
        let is_tainted = Cause::ALL.iter().any(|cause| cause.is_on(node));
        return if is_tainted { Eviction::Now } else { Eviction::None };
    };
    if cause.other().is_on(node) {
        Eviction::Now
    } else if cause.is_on(node) {
        Eviction::None
    } else {
        Eviction::InTurn
    }
}

/// Whether a node still needs a `NoExecute` taint, when it is its turn.
pub(super) fn needs_taint(node: Option<&NodeView>) -> bool {
    let status = |node: &NodeView| super::health::ready(node).map(|ready| ready.status);
    let cause = node.and_then(|node| Some((node, Cause::of(status(node)?)?)));
    cause.is_some_and(|(node, cause)| taints::executing(node, cause.status(), None).is_some())
}

/// Whether a node was created so recently that the first pass is the first to see it.
pub(super) fn is_recent(node: &Meta, now: Time) -> bool {
    node.creation_timestamp.is_some_and(|created| now.since(created) <= RECENT)
}

/// Returns the labels that do not follow theirs, with the right values.
pub(super) fn labels(node: &Meta) -> Vec<(&'static str, Istr)> {
    let wrong = FOLLOWED.iter().filter_map(|(leader, follower)| {
        let value = node.labels.get(leader)?;
        (node.labels.get(follower) != Some(value)).then(|| (*follower, value.clone()))
    });
    wrong.collect()
}

/// Returns the patch that sets labels.
pub(super) fn label_patch(node: &Meta, labels: &[(&str, Istr)]) -> Value {
    let labels: Map<String, Value> = labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    json!({ "metadata": { "uid": node.uid, "labels": labels } })
}
