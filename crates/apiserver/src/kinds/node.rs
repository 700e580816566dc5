//! The group `node.k8s.io`: RuntimeClasses.

mod runtime_class;

use crate::kinds::Kinds;

/// The kinds of the group `node.k8s.io`.
pub(super) const KINDS: Kinds = &[("RuntimeClass", &runtime_class::RULES)];
