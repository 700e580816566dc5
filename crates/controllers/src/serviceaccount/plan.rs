//! Pure: whether a namespace needs its account.

use serde_json::{Value, json};
use steersman_model::View;
use steersman_model::core::{NamespaceView, ServiceAccountView};

use super::DEFAULT;

/// The action for a namespace.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// Nothing: the account exists, or the namespace is not active.
    Nothing,
    /// Create this account.
    Create(Value),
}

/// Decides. `account` is the namespace's account `default`, if it exists.
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
