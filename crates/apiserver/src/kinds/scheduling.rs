//! The group `scheduling.k8s.io`: PriorityClasses.

mod priority_class;

pub(crate) use priority_class::{SYSTEM_CLASSES, global_default};

use crate::kinds::Kinds;

/// The kinds of the group `scheduling.k8s.io`.
pub(super) const KINDS: Kinds = &[("PriorityClass", &priority_class::RULES)];
