//! ClusterRoleBindings.

use super::role_binding::{CELLS, binding, binding_defaults};
use super::{STRATEGY, Scope};
use crate::kinds::{NameRule, Rules};

/// The rules of ClusterRoleBindings.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .defaulted(binding_defaults)
    .validated(|new, old, errors| binding(new, old, Scope::Cluster, errors))
    .with_strategy(STRATEGY)
    .printed(CELLS);
