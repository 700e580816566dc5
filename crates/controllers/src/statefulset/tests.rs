//! Table tests of the pure functions, and their objects.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Istr;
use steersman_model::apps::StatefulSetView;
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _, WorkloadBuilder as _, controller_ref};

use super::Options;
use super::identity::{ClaimTemplates, Revision};
use super::plan::{Observed, Plan, Pods, plan};
use crate::test_objects::{decode, merged, now, view};

mod identity;
mod ladder;
mod retention;
mod status;

/// A StatefulSet of three `web:2`, rolling.
fn set(more: Value) -> StatefulSetView {
    let web = objects::stateful_set("web").in_namespace("default").uid("set").replicas(3).image("web:2");
    let defaults = json!({
        "metadata": { "generation": 2 },
        "spec": { "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } } },
    });
    view(&web, merged(defaults, more))
}

/// A ready pod of a revision.
fn pod(name: &str, revision: &str, more: Value) -> Arc<PodView> {
    let owner = controller_ref(&objects::stateful_set("web").uid("set"));
    let pod = objects::pod(name).app("web").in_namespace("default").uid(name).on_node("node-1").owner(owner);
    let labels = json!({ "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": name });
    let pod = pod.ready_since("2026-11-15T11:00:00Z").with(json!({ "metadata": { "labels": labels } }));
    Arc::new(view(&pod, more))
}

fn unready() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn claim(name: &str, owners: Value) -> Arc<PersistentVolumeClaimView> {
    let metadata = json!({ "name": name, "namespace": "default", "uid": name, "ownerReferences": owners });
    Arc::new(decode(json!({ "metadata": metadata })))
}

fn revision(name: &str) -> Revision {
    let labels = json!({ "app": "web" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": name }] } });
    let set: StatefulSetView = decode(json!({ "spec": { "template": template } }));
    Revision { name: Istr::new(name), template: set.spec.template }
}

/// What is seen of a StatefulSet at the revisions `old` and `new`.
fn with_seen<T>(
    set: &StatefulSetView,
    pods: &[Arc<PodView>],
    claims: &[Arc<PersistentVolumeClaimView>],
    options: Options,
    look: impl FnOnce(&Observed<'_>) -> T,
) -> T {
    let pods = Pods::of(set, pods.to_vec());
    look(&Observed {
        set,
        templates: &ClaimTemplates::of(set).unwrap(),
        current: &revision("old"),
        update: &revision("new"),
        pods: &pods,
        claim: &|name| claims.iter().find(|claim| claim.metadata.name == *name).cloned(),
        options,
        now: now(),
    })
}

fn planned(set: &StatefulSetView, pods: &[Arc<PodView>], claims: &[Arc<PersistentVolumeClaimView>]) -> Plan {
    with_seen(set, pods, claims, Options::default(), plan)
}
