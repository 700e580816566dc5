//! Table tests of the pure functions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{ObjectKey, Uid};
use steersman_informer::{Change, End};
use steersman_model::View;
use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;
use steersman_runtime::WriteError;
use steersman_runtime::writer::Rejection;
use steersman_testing::objects::{self, ObjectBuilder as _, controller_ref};

use super::map::{self, SelectorKey};
use super::sync::concerns_one_object;
use super::{Claim, Selecting, claim, usable};
use crate::test_objects::{NOW, decode, merged, pod, ready_since, replica_set, terminating};

fn owned_by(uid: &str) -> Value {
    let owner = controller_ref(&objects::replica_set("web").uid(uid));
    json!({ "metadata": { "ownerReferences": [owner] } })
}

#[test]
fn a_pod_is_claimed_as_upstream_claims_it() {
    let check = |name: &str, set_more: Value, pod_more: Value, want: Claim| {
        let set = replica_set(set_more);
        let pod = pod("a", pod_more);
        let selector = set.selector().unwrap();
        assert_eq!(claim(set.meta(), selector.matches(&pod.meta().labels), pod.meta()), want, "{name}");
    };
    let stranger = || json!({ "metadata": { "labels": { "app": "other" } } });
    check("ours", json!({}), owned_by("set"), Claim::Keep);
    check("somebody else's", json!({}), owned_by("other"), Claim::Ignore);
    check("ours, but it does not match", json!({}), merged(owned_by("set"), stranger()), Claim::Release);
    check("ours, does not match, we go", terminating(), merged(owned_by("set"), stranger()), Claim::Ignore);
    check("an orphan that matches", json!({}), json!({}), Claim::Adopt);
    check("an orphan that does not match", json!({}), stranger(), Claim::Ignore);
    check("an orphan that goes", json!({}), terminating(), Claim::Ignore);
    check("an orphan, but we go", terminating(), json!({}), Claim::Ignore);
    check("an orphan elsewhere", json!({}), json!({ "metadata": { "namespace": "other" } }), Claim::Ignore);
}

#[test]
fn a_refusal_concerns_one_object_and_any_other_failure_concerns_all() {
    for (error, want) in [
        (WriteError::Rejected(Rejection::default()), true),
        (WriteError::Conflict, true),
        (WriteError::NotLeader, false),
        (WriteError::NamespaceTerminating, false),
        (WriteError::Unreachable("nobody there".into()), false),
        (WriteError::Throttled(Duration::from_secs(1)), false),
        (WriteError::Unknown(Box::default()), false),
    ] {
        assert_eq!(concerns_one_object(&error), want, "{error}");
    }
}

#[test]
fn a_pods_event_concerns_its_owner_or_those_who_may_want_it() {
    let web = Arc::new(replica_set(json!({})));
    let check = |name: &str, change: Change<PodView>, want: &[&str]| {
        let uid_of = |key: &ObjectKey| (*key == ObjectKey::new("default", "web")).then(|| Uid::new("set"));
        let index = map::selector_key(&*web);
        let sets_under = |key: &SelectorKey| if Some(key) == index.as_ref() { vec![Arc::clone(&web)] } else { vec![] };
        let got: Vec<_> = map::owners_of(&change, uid_of, sets_under).iter().map(ToString::to_string).collect();
        assert_eq!(got, want, "{name}");
    };
    let at = |version: &str, more: Value| pod("a", merged(json!({ "metadata": { "resourceVersion": version } }), more));
    let added = |more: Value| Change::Added { new: at("1", more), initial: false };
    let updated = |old: Value, new: Value| Change::Updated { old: at("1", old), new: at("2", new) };
    let stranger = || json!({ "metadata": { "labels": { "app": "other" } } });
    check("ours is added", added(owned_by("set")), &["default/web"]);
    check("one of an older web is added", added(owned_by("other")), &[]);
    check("an orphan is added", added(json!({})), &["default/web"]);
    check("an orphan that nobody wants", added(stranger()), &[]);
    check("an orphan on its way out", added(terminating()), &[]);
    check("ours changes", updated(owned_by("set"), owned_by("set")), &["default/web"]);
    check("ours is let go", updated(owned_by("set"), merged(owned_by("other"), stranger())), &["default/web"]);
    check("an orphan changes, but nothing that matters", updated(json!({}), ready_since(NOW)), &[]);
    check("an orphan gets a label", updated(stranger(), json!({})), &["default/web"]);
    check("a resync", Change::Updated { old: at("1", json!({})), new: at("1", json!({})) }, &[]);
    check("ours is gone", Change::Deleted { last: at("1", owned_by("set")), end: End::Observed }, &["default/web"]);
    check("an orphan is gone", Change::Deleted { last: at("1", json!({})), end: End::Missed }, &[]);
}

#[test]
fn an_owner_that_would_let_go_what_it_makes_makes_nothing() {
    let check = |name: &str, selector: Value, labels: Value, want: Option<&str>| {
        let template = json!({ "metadata": { "labels": labels } });
        let set = json!({ "metadata": { "name": "web" }, "spec": { "selector": selector, "template": template } });
        let set: ReplicaSetView = decode(set);
        let got = usable(set.selector(), set.spec.template.labels()).err();
        let as_wanted = got.is_some_and(|got| want.is_some_and(|part| got.contains(part)));
        assert_eq!((got.is_some(), as_wanted), (want.is_some(), want.is_some()), "{name}: {got:?}");
    };
    let app = || json!({ "matchLabels": { "app": "web" } });
    check("as it should be", app(), json!({ "app": "web", "tier": "x" }), None);
    check("it matches another template", app(), json!({ "app": "other" }), Some("does not match"));
    check("it matches nothing", json!(null), json!({ "app": "web" }), Some("does not match"));
    check("it matches everything", json!({}), json!({ "app": "web" }), Some("everything"));
    let nonsense = json!({ "matchExpressions": [{ "key": "app", "operator": "Like" }] });
    check("it is none", nonsense, json!({ "app": "web" }), Some("invalid"));
}
