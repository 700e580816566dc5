//! The group `coordination.k8s.io`: Leases.

mod lease;

use crate::kinds::Kinds;

/// The kinds of the group `coordination.k8s.io`.
pub(super) const KINDS: Kinds = &[("Lease", &lease::RULES)];
