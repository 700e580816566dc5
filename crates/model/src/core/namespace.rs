//! Namespaces.

use steersman_base::{Condition, Istr, Meta};

use crate::conditions::NamespaceCondition;
use crate::view;

view! {
    /// A namespace, whole: its finalizers and its status are PUT.
    pub struct NamespaceView: Serialize for cluster("", "v1", "namespaces", "Namespace") {
        /// Its metadata.
        metadata: Meta = 1,
        /// What it should be.
        spec: NamespaceSpec = 2,
        /// What it is.
        status: NamespaceStatus = 3,
    }
}

view! {
    /// What a namespace should be.
    pub struct NamespaceSpec: Serialize {
        /// Who must act before it can go.
        finalizers: Box<[Istr]> = 1,
    }
}

view! {
    /// What a namespace is.
    pub struct NamespaceStatus: Serialize {
        /// `Active` or `Terminating`.
        phase: Istr = 1,
        /// What is true of it.
        conditions: Box<[Condition]> as Vec<NamespaceCondition> = 2,
    }
}
