//! Table tests of the pure functions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::core::{NamespaceView, ServiceAccountView};

use super::map::namespace_of;
use super::plan::{Plan, plan};
use crate::test_objects::decode;

fn account(name: &str) -> Arc<ServiceAccountView> {
    Arc::new(decode(json!({ "metadata": { "name": name, "namespace": "shop", "uid": name } })))
}

#[test]
fn an_active_namespace_without_the_account_gets_it_and_no_other_does() {
    let held = account("default");
    let check = |name: &str, phase: Value, account: Option<&ServiceAccountView>, creates: bool| {
        let namespace: NamespaceView = decode(json!({ "metadata": { "name": "shop" }, "status": { "phase": phase } }));
        match plan(&namespace, account) {
            Plan::Nothing => assert!(!creates, "{name}"),
            Plan::Create(body) => {
                let want = json!({
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": { "name": "default", "namespace": "shop" },
                });
                assert_eq!((creates, body), (true, want), "{name}");
            }
        }
    };
    check("active, without", json!("Active"), None, true);
    check("active, with", json!("Active"), Some(&held), false);
    check("terminating, without", json!("Terminating"), None, false);
    check("without a phase", json!(""), None, false);
}

#[test]
fn only_the_end_of_the_account_concerns_its_namespace() {
    let namespaces =
        |change: &Change<ServiceAccountView>| namespace_of(change).iter().map(ToString::to_string).collect::<Vec<_>>();
    let deleted = |name: &str| Change::Deleted { last: account(name), end: End::Observed };
    assert_eq!(namespaces(&deleted("default")), ["shop"]);
    assert_eq!(namespaces(&deleted("builder")), [""; 0]);
    assert_eq!(namespaces(&Change::Added { new: account("default"), initial: false }), [""; 0]);
    let updated = Change::Updated { old: account("default"), new: account("default") };
    assert_eq!(namespaces(&updated), [""; 0]);
}
