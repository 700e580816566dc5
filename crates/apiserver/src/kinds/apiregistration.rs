//! The group `apiregistration.k8s.io`: APIServices.

mod api_service;

use crate::kinds::Kinds;

/// The kinds of the group `apiregistration.k8s.io`.
pub(super) const KINDS: Kinds = &[("APIService", &api_service::RULES)];
