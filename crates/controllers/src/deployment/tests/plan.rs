//! The order of decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::apps::{DeploymentView, ReplicaSetView};
use steersman_model::core::PodView;
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _};

use super::super::map::recreated_by;
use super::super::plan::{Observed, Plan, plan};
use super::super::rollback::{Rollback, rolled_back};
use super::super::sets::Sets;
use super::{available, deployment, noted, set};
use crate::test_objects::{merged, terminating};

fn pod(set: &str, phase: &str) -> Arc<PodView> {
    let set = objects::replica_set(set).uid(set);
    Arc::new(objects::pod("p").in_namespace("default").owned_by(&set).phase(phase).view())
}

/// Describes a plan in words.
fn described(deployment: &DeploymentView, sets: Vec<Arc<ReplicaSetView>>, pods: &[Arc<PodView>]) -> Vec<String> {
    let sets = Sets::find(&deployment.spec.template, sets);
    match plan(&Observed { deployment, sets: &sets, old_pods: pods }) {
        Plan::Rollback(Rollback::NotFound(text)) => vec![format!("no rollback: {text}")],
        Plan::Rollback(Rollback::Unchanged) => vec!["no rollback: same template".into()],
        Plan::Rollback(Rollback::To { set, revision }) => vec![format!("back to {revision}, {}", set.meta().name)],
        Plan::Work(work) => {
            let revision = |map: &steersman_base::StringMap| map.get("deployment.kubernetes.io/revision").cloned();
            let created = work.create.iter().map(|set| {
                format!("create {} at {}", set.spec.replicas.unwrap(), revision(&set.meta().annotations).unwrap())
            });
            let changed = work.change.iter().map(|change| {
                let revision = revision(&change.annotations).unwrap_or_default();
                format!(
                    "{} {}->{} at {revision}",
                    change.set.meta().name,
                    change.set.spec.replicas.unwrap(),
                    change.replicas
                )
            });
            let deleted = work.delete.iter().map(|set| format!("delete {}", set.meta().name));
            created.chain(changed).chain(deleted).collect()
        }
    }
}

fn old(replicas: i32) -> Arc<ReplicaSetView> {
    set("v1", "web:1", replicas, merged(noted(1, 3, 4), available(replicas)))
}

fn new(replicas: i32) -> Arc<ReplicaSetView> {
    set("v2", "web:2", replicas, merged(noted(2, 3, 4), available(replicas)))
}

#[test]
fn the_ladder_is_climbed_from_the_top() {
    let check = |name: &str, more: Value, sets: Vec<Arc<ReplicaSetView>>, want: &[&str]| {
        assert_eq!(described(&deployment(more), sets, &[]), want, "{name}");
    };
    let none = || json!({});
    let paused = || json!({ "spec": { "paused": true } });
    let back = |to: &str| json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": to } } });
    let replicas = |replicas: i32| json!({ "spec": { "replicas": replicas } });
    check("the first", none(), vec![], &["create 3 at 1"]);
    check("a new template, within the surge", none(), vec![old(3)], &["create 1 at 2"]);
    check("up before down", none(), vec![old(2), new(1)], &["v2 1->2 at 2"]);
    check("down", none(), vec![old(3), new(1)], &["v1 3->2 at 1"]);
    check("nothing to do", none(), vec![old(0), new(3)], &[]);
    check("a paused one is not rolled out", paused(), vec![old(3)], &[]);
    check("a paused one is scaled", merged(paused(), replicas(5)), vec![old(3)], &["v1 3->5 at 1"]);
    let many = || vec![set("v0", "web:0", 0, noted(1, 3, 4)), new(3)];
    let forgetful = || json!({ "spec": { "revisionHistoryLimit": 0 } });
    check("a paused one forgets", merged(paused(), forgetful()), many(), &["delete v0"]);
    check("a paused one with a wish does not", merged(merged(paused(), forgetful()), back("1")), many(), &[]);
    check("a roll-out that is not through does not", forgetful(), many(), &[]);
    let through =
        json!({ "status": { "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "observedGeneration": 1 } });
    check("one that is through forgets", merged(forgetful(), through), many(), &["delete v0"]);
    check("back to the last", back("0"), vec![old(0), new(3)], &["back to 1, v1"]);
    check("back to one by number", back("1"), vec![old(0), new(3)], &["back to 1, v1"]);
    check("back to itself", back("2"), vec![old(0), new(3)], &["no rollback: same template"]);
    check(
        "back to none",
        back("7"),
        vec![old(0), new(3)],
        &["no rollback: Unable to find the revision to rollback to."],
    );
    check("back, but there is one", back("0"), vec![new(3)], &["no rollback: Unable to find last revision."]);
    check("back, before the present has a revision", back("1"), vec![old(3)], &["create 1 at 2"]);
    check("back to nonsense", back("x"), vec![old(0), new(3)], &[]);
    check("scaled in the middle", replicas(6), vec![old(2), new(2)], &["v2 2->4 at 2", "v1 2->4 at 1"]);
    check("scaled, and nothing new is begun", replicas(6), vec![old(3)], &["v1 3->6 at 1"]);
    check("to nothing", replicas(0), vec![old(0), new(3)], &["v2 3->0 at 2"]);
    check("on its way out", terminating(), vec![old(3)], &[]);
    let ready = json!({ "spec": { "minReadySeconds": 5 } });
    check("the time to be ready is passed on", ready, vec![old(0), new(3)], &["v2 3->3 at 2"]);
    let back_again = vec![set("v1", "web:1", 3, merged(noted(3, 3, 4), available(3))), new(0)];
    check("the revision goes up in the write that scales", none(), back_again, &["v2 0->1 at 4"]);
}

/// Upstream would wait forever: the size is right, and the annotation is wrong.
#[test]
fn a_replica_set_that_was_sized_by_hand_does_not_stop_the_next_roll_out() {
    let by_hand = set("v1", "web:1", 3, merged(noted(1, 2, 3), available(3)));
    assert_eq!(described(&deployment(json!({})), vec![by_hand], &[]), ["v1 3->3 at 1"], "the annotation is put right");
}

#[test]
fn nothing_new_begins_before_all_of_the_old_has_ended() {
    let web = || deployment(json!({ "spec": { "strategy": { "type": "Recreate", "rollingUpdate": null } } }));
    let check = |name: &str, sets: Vec<Arc<ReplicaSetView>>, pods: &[Arc<PodView>], want: &[&str]| {
        assert_eq!(described(&web(), sets, pods), want, "{name}");
    };
    check("the first", vec![], &[], &["create 3 at 1"]);
    check("the old goes", vec![old(3)], &[], &["v1 3->0 at 1"]);
    let halfway = vec![set("v1", "web:1", 2, noted(1, 9, 9)), set("v2", "web:2", 1, noted(2, 9, 9))];
    check("changed from rolling to this, and scaled, halfway", halfway, &[], &["v1 2->0 at 1"]);
    let scaled = vec![set("v2", "web:2", 9, noted(2, 9, 9))];
    check("scaled", scaled, &[], &["v2 9->3 at 2"]);
    let draining = || set("v1", "web:1", 0, merged(noted(1, 3, 3), available(2)));
    check("it still has pods", vec![draining()], &[], &[]);
    let described = |status: Value| set("v1", "web:1", 0, merged(noted(1, 3, 3), json!({ "status": status })));
    check("it may be about to make pods", vec![described(json!({ "observedGeneration": 0 }))], &[], &[]);
    check(
        "pods terminate that the cache does not show",
        vec![described(json!({ "terminatingReplicas": 1 }))],
        &[],
        &[],
    );
    check("nobody counts those that terminate", vec![described(json!({ "replicas": 0 }))], &[], &["create 3 at 2"]);
    let drained = || set("v1", "web:1", 0, noted(1, 3, 3));
    check("a pod still runs", vec![drained()], &[pod("v1", "Running")], &[]);
    check("nobody knows whether a pod runs", vec![drained()], &[pod("v1", "Unknown")], &[]);
    check("the pod has ended", vec![drained()], &[pod("v1", "Failed"), pod("v1", "Succeeded")], &["create 3 at 2"]);
    let idle = set("v2", "web:2", 0, noted(2, 3, 3));
    check("back to one that was there", vec![drained(), idle], &[], &["v2 0->3 at 2"]);
}

#[test]
fn a_deployment_that_goes_back_is_written_with_the_old_template_and_without_the_wish() {
    let web =
        deployment(json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": "1", "a": "b" } } }));
    let back = rolled_back(&web, &Rollback::To { set: old(0), revision: 1 });
    assert!(back.spec.template.equals_but_for_hash(&old(0).spec.template));
    assert!(!back.spec.template.labels().contains_key("pod-template-hash"));
    assert!(back.metadata.annotations.is_empty(), "{:?}", back.metadata.annotations);
    let same = rolled_back(&web, &Rollback::Unchanged);
    assert_eq!(same.spec, web.spec);
    assert_eq!(same.metadata.annotations.len(), 1);
}

#[test]
fn the_end_of_a_pod_concerns_a_deployment_that_is_recreated() {
    let check = |name: &str, strategy: &str, change: Change<PodView>, want: Option<&str>| {
        let web = Arc::new(deployment(json!({ "spec": { "strategy": { "type": strategy } } })));
        let set_at = |key: &steersman_base::ObjectKey| (key.name == "v1").then(|| old(3));
        let got = recreated_by(&change, set_at, |key| (key.name == "web").then(|| Arc::clone(&web)));
        assert_eq!(got.map(|key| key.to_string()).as_deref(), want, "{name}");
    };
    let gone = |set: &str| Change::Deleted { last: pod(set, "Running"), end: End::Observed };
    check("recreated", "Recreate", gone("v1"), Some("default/web"));
    check("rolled", "RollingUpdate", gone("v1"), None);
    check("of a set that is gone", "Recreate", gone("v7"), None);
    check("a pod that comes", "Recreate", Change::Added { new: pod("v1", "Running"), initial: false }, None);
}
