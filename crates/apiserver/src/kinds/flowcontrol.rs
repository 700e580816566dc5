//! The group `flowcontrol.apiserver.k8s.io`: FlowSchemas and priority levels.

mod flow_schema;
mod priority_level_configuration;

use crate::kinds::Kinds;

/// The kinds of the group `flowcontrol.apiserver.k8s.io`.
pub(super) const KINDS: Kinds =
    &[("FlowSchema", &flow_schema::RULES), ("PriorityLevelConfiguration", &priority_level_configuration::RULES)];
