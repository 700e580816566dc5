//! The group `rbac.authorization.k8s.io`: roles and bindings.

mod cluster_role;
mod cluster_role_binding;
mod grants;
mod role;
mod role_binding;

use crate::kinds::Kinds;
use crate::registry::strategy::Strategy;

/// The name of the group.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether a role or a binding belongs to a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespace,
    Cluster,
}

/// The strategy of all kinds of the group.
const STRATEGY: Strategy = Strategy { create_on_update: true, ..Strategy::DEFAULT };

/// The kinds of the group `rbac.authorization.k8s.io`.
pub(super) const KINDS: Kinds = &[
    ("ClusterRole", &cluster_role::RULES),
    ("ClusterRoleBinding", &cluster_role_binding::RULES),
    ("Role", &role::RULES),
    ("RoleBinding", &role_binding::RULES),
];
