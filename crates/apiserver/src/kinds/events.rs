//! The group `events.k8s.io`: Events in their newer form.

mod event;

use crate::kinds::Kinds;

/// The kinds of the group `events.k8s.io`.
pub(super) const KINDS: Kinds = &[("Event", &event::RULES)];
