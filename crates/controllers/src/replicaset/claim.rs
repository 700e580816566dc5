//! Pure: which pods belong to a ReplicaSet, which should, and which should not.

use steersman_base::{Meta, Selector};

/// What is to be done about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is ours and stays ours.
    Keep,
    /// It is nobody's and matches: take it.
    Adopt,
    /// It is ours and does not match any more: let it go.
    Release,
    /// It is none of our business.
    Ignore,
}

/// Decides about one pod, as `ClaimObject` of upstream's `controller_ref_manager.go` does.
pub(super) fn claim(set: &Meta, selector: &Selector, pod: &Meta) -> Claim {
    let matches = selector.matches(&pod.labels);
    match pod.controller() {
        Some(owner) if owner.uid != set.uid => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        // Who is going away itself leaves its pods to the garbage collector.
        Some(_) if set.is_terminating() => Claim::Ignore,
        Some(_) => Claim::Release,
        None if !matches || set.is_terminating() || pod.is_terminating() => Claim::Ignore,
        None if pod.namespace != set.namespace => Claim::Ignore,
        None => Claim::Adopt,
    }
}
