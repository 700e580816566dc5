//! Namespaces.

use steersman_base::{Condition, Istr, Meta};

use crate::conditions::NamespaceCondition;
use crate::view;

view! {
    /// A namespace, whole: its finalizers and its status are PUT.
    pub struct NamespaceView: Serialize for cluster("", "v1", "namespaces", "Namespace") {
        /// The metadata.
        metadata: Meta = 1,
        /// The spec.
        spec: NamespaceSpec = 2,
        /// The status.
        status: NamespaceStatus = 3,
    }
}

view! {
    /// The spec of a namespace.
    pub struct NamespaceSpec: Serialize {
        /// The finalizers of the namespace.
        finalizers: Box<[Istr]> = 1,
    }
}

view! {
    /// The status of a namespace.
    pub struct NamespaceStatus: Serialize {
        /// `Active` or `Terminating`.
        phase: Istr = 1,
        /// The conditions.
        conditions: Box<[Condition]> as Vec<NamespaceCondition> = 2,
    }
}
