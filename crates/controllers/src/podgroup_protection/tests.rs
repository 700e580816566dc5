//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::core::PodView;
use steersman_model::scheduling::PodGroupView;

use super::map::{FINALIZER, group, group_of_pod};
use crate::test_objects::{NOW, decode, merged, pod};

fn member(more: Value) -> Arc<PodView> {
    pod("web", merged(json!({ "spec": { "schedulingGroup": { "podGroupName": "gang" } } }), more))
}

#[test]
fn a_group_is_looked_at_when_it_is_terminating_and_protected() {
    let check = |metadata: Value, want: bool| {
        let object: Arc<PodGroupView> =
            Arc::new(decode(json!({ "metadata": merged(json!({ "name": "gang" }), metadata) })));
        assert_eq!(group(&Change::Added { new: Arc::clone(&object), initial: true }).is_some(), want, "{object:?}");
        assert!(group(&Change::Deleted { last: object, end: End::Observed }).is_none());
    };
    check(json!({}), false);
    check(json!({ "finalizers": [FINALIZER] }), false);
    check(json!({ "deletionTimestamp": NOW }), false);
    check(json!({ "deletionTimestamp": NOW, "finalizers": ["other"] }), false);
    check(json!({ "deletionTimestamp": NOW, "finalizers": ["other", FINALIZER] }), true);
}

#[test]
fn a_group_is_looked_at_when_a_pod_of_it_ends_or_goes() {
    let running = member(json!({}));
    let ended = member(json!({ "status": { "phase": "Failed" } }));
    let leaving = member(json!({ "metadata": { "deletionTimestamp": NOW } }));
    let check = |what: &str, change: Change<PodView>, want: bool| {
        assert_eq!(group_of_pod(&change).map(|key| key.to_string()), want.then(|| "default/gang".to_owned()), "{what}");
    };
    let updated =
        |old: &Arc<PodView>, new: &Arc<PodView>| Change::Updated { old: Arc::clone(old), new: Arc::clone(new) };
    check("it runs", Change::Added { new: Arc::clone(&running), initial: false }, false);
    check("it had ended", Change::Added { new: Arc::clone(&ended), initial: true }, true);
    check("it ends", updated(&running, &ended), true);
    check("it leaves, and may still run", updated(&running, &leaving), false);
    check("it is gone", Change::Deleted { last: leaving, end: End::Observed }, true);
    check("another pod", Change::Deleted { last: pod("web", json!({})), end: End::Observed }, false);
}
