//! Pure: what a namespace needs.

use serde_json::{Value, json};
use steersman_model::View;
use steersman_model::core::{NamespaceView, ServiceAccountView};

use super::DEFAULT;

/// What is to be done for a namespace.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// The account is there, or the namespace is not active.
    Nothing,
    /// This account is to be created.
    Create(Value),
}

/// Decides. `account` is the namespace's account `default`, if it has one.
pub(super) fn plan(namespace: &NamespaceView, account: Option<&ServiceAccountView>) -> Plan {
    if namespace.status.phase != "Active" || account.is_some() {
        return Plan::Nothing;
    }
    Plan::Create(json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": DEFAULT, "namespace": namespace.meta().name },
    }))
}
