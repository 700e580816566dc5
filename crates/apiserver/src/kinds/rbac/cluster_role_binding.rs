//! ClusterRoleBindings.

use super::role_binding::{CELLS, binding, binding_defaults};
use super::{STRATEGY, Scope, grants};
use crate::kinds::{NameRule, Rules};

/// The rules of ClusterRoleBindings.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .defaulted(binding_defaults)
    .validated(|new, old, errors| binding(new, old, Scope::Cluster, errors))
    .confirmed(grants::of_binding)
    .with_strategy(STRATEGY)
    .printed(CELLS);
