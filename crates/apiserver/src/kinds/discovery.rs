//! The group `discovery.k8s.io`: EndpointSlices.

mod endpoint_slice;

use crate::kinds::Kinds;

/// The kinds of the group `discovery.k8s.io`.
pub(super) const KINDS: Kinds = &[("EndpointSlice", &endpoint_slice::RULES)];
