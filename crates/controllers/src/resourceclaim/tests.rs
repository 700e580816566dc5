//! Tables of the decisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Istr;
use steersman_informer::{Change, End};
use steersman_model::core::PodView;
use steersman_model::resource::{ResourceClaimTemplateView, ResourceClaimView};
use steersman_model::scheduling::PodGroupView;
use steersman_model::{PodName, View};

use super::map;
use super::plan::{Group, Holder, bound_to, is_for_administration, made_for, name_prefix, needs_work};
use super::release::{self, Plan, Verdict, owning_pod, pod_verdict, without_finalizer};
use crate::resource_claims::{GroupClaims, is_for_pod, is_group, is_reserved_for};
use crate::test_objects::{NOW, decode, merged, pod};

const ANNOTATION: &str = "resource.kubernetes.io/pod-claim-name";
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// A pod with a claim from a template.
fn user(more: Value) -> Arc<PodView> {
    let claims = json!([{ "name": "gpu", "resourceClaimTemplateName": "gpus" }]);
    pod("web", merged(json!({ "spec": { "resourceClaims": claims } }), more))
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn with_status(claim: Value) -> Value {
    json!({ "status": { "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": claim }] } })
}

fn claim(name: &str, more: Value) -> Arc<ResourceClaimView> {
    let meta = json!({ "name": name, "namespace": "default", "uid": name, "resourceVersion": "7" });
    Arc::new(decode(merged(json!({ "metadata": meta }), more)))
}

fn owned(uid: &str) -> Value {
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true });
    json!({ "metadata": { "annotations": { ANNOTATION: "gpu" }, "ownerReferences": [owner] } })
}

fn allocated() -> Value {
    let result = json!({ "request": "gpu", "driver": "d", "pool": "p", "device": "0" });
    json!({ "status": { "allocation": { "devices": { "results": [result] } } } })
}

fn reserved_for(uids: &[&str]) -> Value {
    let consumers: Vec<_> = uids.iter().map(|uid| json!({ "resource": "pods", "name": "web", "uid": uid })).collect();
    json!({ "status": { "reservedFor": consumers } })
}

fn group(more: Value) -> Arc<PodGroupView> {
    let claims = json!([{ "name": "gpu", "resourceClaimTemplateName": "gpus" }]);
    let meta = json!({ "name": "gang", "namespace": "default", "uid": "gang" });
    Arc::new(decode(merged(json!({ "metadata": meta, "spec": { "resourceClaims": claims } }), more)))
}

fn leaving() -> Value {
    json!({ "metadata": { "deletionTimestamp": NOW } })
}

#[test]
fn a_pod_needs_work_while_a_claim_is_to_be_made_or_reserved() {
    let check = |what: &str, pod: &PodView, claims: &[Arc<ResourceClaimView>], want: bool| {
        let claim_of = |name: &Istr| claims.iter().find(|claim| claim.meta().name == *name).cloned();
        assert_eq!(needs_work(pod, claim_of, || Group::None, GroupClaims::Off), want, "{what}");
    };
    let mine = claim("web-gpu-1", owned("web"));
    let ready = claim("web-gpu-1", merged(owned("web"), allocated()));
    let reserved = claim("web-gpu-1", merged(merged(owned("web"), allocated()), reserved_for(&["web"])));
    let reported = || with_status(json!("web-gpu-1"));
    check("nothing is made", &user(json!({})), &[], true);
    check("it is gone", &user(reported()), &[], true);
    check("it is there", &user(reported()), &[mine], false);
    check("it is another's", &user(reported()), &[claim("web-gpu-1", owned("older"))], true);
    check("it is allocated", &user(reported()), std::slice::from_ref(&ready), true);
    let unscheduled = user(merged(reported(), json!({ "spec": { "nodeName": "" } })));
    check("it is allocated, and the pod not scheduled", &unscheduled, &[ready], false);
    check("it is reserved", &user(reported()), &[reserved], false);
    check("none is needed", &user(with_status(Value::Null)), &[], false);
    let ended = json!({ "status": { "phase": "Succeeded" } });
    check("the pod has ended", &user(merged(reported(), ended)), &[], false);
    check("the pod is terminating", &user(leaving()), &[], false);
    let given = pod("web", json!({ "spec": { "resourceClaims": [{ "name": "gpu", "resourceClaimName": "shared" }] } }));
    check("a user creates it", &given, &[], false);
    check("a user's is allocated", &given, &[claim("shared", allocated())], true);
    let unknown = pod("web", json!({ "spec": { "resourceClaims": [{ "name": "gpu", "somethingNew": "x" }] } }));
    check("a field that is not known", &unknown, &[], true);
    check("no claims", &pod("web", json!({})), &[], false);
}

#[test]
fn the_claim_of_a_group_is_the_groups() {
    let gang = group(json!({}));
    let in_group = json!({ "spec": { "schedulingGroup": { "podGroupName": "gang" } } });
    let member = user(merged(with_status(json!("gang-gpu-1")), in_group));
    let check = |found: Group, want: bool| {
        assert_eq!(needs_work(&member, |_| None, || found.clone(), GroupClaims::On), want, "{found:?}");
    };
    check(Group::Found(Arc::clone(&gang)), false);
    check(Group::Found(group(json!({ "spec": { "resourceClaims": [] } }))), true);
    check(Group::Missing("gang".into()), true);
    check(Group::Disabled("gang".into()), true);

    let entry = &member.spec.resource_claims[0];
    assert!(is_group(&bound_to(&member, Some(&gang), entry)));
    assert_eq!(bound_to(&member, None, entry).uid, member.meta().uid);

    // The version of the API does not count.
    let owner = json!({
        "apiVersion": "scheduling.k8s.io/v1beta2", "kind": "PodGroup", "name": "gang", "uid": "gang", "controller": true,
    });
    let consumer = json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "gang" });
    let more = json!({ "metadata": { "ownerReferences": [owner] }, "status": { "reservedFor": [consumer] } });
    let theirs = claim("gang-gpu-1", more);
    for (groups, want) in [(GroupClaims::On, true), (GroupClaims::Off, false)] {
        assert_eq!(is_for_pod(theirs.meta(), &member, groups), want);
        assert_eq!(is_reserved_for(&theirs, &member, groups), want);
        assert!(!is_for_pod(theirs.meta(), &user(json!({})), groups));
    }
}

#[test]
fn a_claim_has_what_the_template_says_and_the_pod_owns_it() {
    let spec =
        json!({ "devices": { "requests": [{ "name": "gpu", "exactly": { "deviceClassName": "gpu", "newer": 1 } }] } });
    let template: ResourceClaimTemplateView = decode(json!({
        "metadata": { "name": "gpus", "namespace": "default" },
        "spec": {
            "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d", ANNOTATION: "wrong" } },
            "spec": spec,
        },
    }));
    let pod = user(json!({}));
    let name = PodName::Chosen { name: "web-gpu-1", prefix: "web-gpu-" };
    let body = Holder::pod(&pod).body(&"gpu".into(), &template.spec, name);
    let want = json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "web-gpu-1", "generateName": "web-gpu-", "namespace": "default",
            "labels": { "a": "b" }, "annotations": { "c": "d", ANNOTATION: "gpu" },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "web", "controller": true }],
        },
        "spec": spec,
    });
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), want);
    let gang = group(json!({}));
    let body = Holder::group(&gang).body(&"gpu".into(), &template.spec, PodName::Exactly("x"));
    let owner = &serde_json::from_slice::<Value>(&body).unwrap()["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "scheduling.k8s.io/v1beta1");
    assert_eq!(owner["kind"], "PodGroup");
}

#[test]
fn names_have_room_for_what_the_server_adds() {
    assert_eq!(name_prefix("web", "gpu"), "web-gpu-");
    let long = name_prefix(&"p".repeat(253), &"c".repeat(63));
    assert!(long.len() <= 58 && long.starts_with("ppp") && long.contains("-cc"), "{long}");
    assert_eq!(name_prefix(&"p".repeat(53), "ab"), format!("{}-ab-", "p".repeat(53)), "57 characters");
    // The parts are shortened in proportion, as upstream does.
    assert_eq!(name_prefix(&"p".repeat(53), "abc"), format!("{}-ab", "p".repeat(52)));
}

#[test]
fn the_status_names_all_claims_in_order_and_means_one_pod() {
    let pod = user(json!({ "status": { "resourceClaimStatuses": [
        { "name": "z", "resourceClaimName": "web-z" },
        { "name": "gpu", "resourceClaimName": "web-old" },
        { "name": "none" },
    ] } }));
    let made: BTreeMap<Istr, Istr> = [("gpu".into(), "web-new".into())].into_iter().collect();
    let status = Holder::pod(&pod).statuses(&made);
    let want =
        json!([{ "name": "gpu", "resourceClaimName": "web-new" }, { "name": "z", "resourceClaimName": "web-z" }]);
    assert_eq!(status["status"]["resourceClaimStatuses"], want);
    assert_eq!(status["metadata"], json!({ "name": "web", "namespace": "default", "uid": "web" }));
}

#[test]
fn a_claim_is_found_by_its_annotation() {
    let user = user(json!({}));
    let entry = &user.spec.resource_claims[0];
    let other = claim("a", json!({ "metadata": { "annotations": { ANNOTATION: "nic" } } }));
    let all = [other, claim("c", owned("web")), claim("b", owned("web"))];
    assert_eq!(made_for(entry, &all).unwrap().meta().name, "b");
    assert!(made_for(entry, &all[..1]).is_none());
}

#[test]
fn administration_is_asked_for_by_one_request() {
    let spec = |admin: bool| json!({ "devices": { "requests": [{ "exactly": {} }, { "exactly": { "adminAccess": admin } }] } });
    assert!(is_for_administration(&spec(true).to_string()));
    assert!(!is_for_administration(&spec(false).to_string()));
    assert!(!is_for_administration(""));
}

#[test]
fn a_reservation_ends_with_its_pod_and_the_server_decides_whether_it_is_gone() {
    let held = claim("c", reserved_for(&["web"]));
    let check = |what: &str, pod: Option<Arc<PodView>>, want: Verdict| {
        assert_eq!(pod_verdict(&held.status.reserved_for[0], pod.as_deref()), want, "{what}");
    };
    check("it runs", Some(user(json!({}))), Verdict::Keep);
    check("it has ended", Some(user(json!({ "status": { "phase": "Failed" } }))), Verdict::Remove);
    check("it is terminating on its node", Some(user(leaving())), Verdict::Keep);
    let unbound = merged(leaving(), json!({ "spec": { "nodeName": "" } }));
    check("it was never bound", Some(user(unbound)), Verdict::Remove);
    let older = json!({ "metadata": { "uid": "older" }, "status": { "phase": "Failed" } });
    check("the cache has another", Some(user(older)), Verdict::Ask);
    check("the cache has none", None, Verdict::Ask);
}

#[test]
fn a_claim_without_users_is_deallocated_if_it_is_ours_to_do() {
    let check = |what: &str, given: Value, kept: usize, want: Plan| {
        let claim = claim("c", given);
        let remaining = claim.status.reserved_for[..kept].to_vec();
        assert_eq!(release::plan(&claim, remaining), want, "{what}");
    };
    let protected = || json!({ "metadata": { "finalizers": ["other", FINALIZER] } });
    let in_use = |uids: &[&str]| merged(merged(protected(), allocated()), reserved_for(uids));
    let nothing = Plan::default();
    check("one stays", in_use(&["a"]), 1, nothing.clone());
    let left = claim("c", in_use(&["a"])).status.reserved_for.to_vec();
    check("one of two goes", in_use(&["a", "b"]), 1, Plan { reserved_for: Some(left), ..Plan::default() });
    let all = Plan { reserved_for: Some(Vec::new()), deallocate: true, unprotect: true };
    check("the last one goes", in_use(&["a"]), 0, all);
    let only = Plan { reserved_for: Some(Vec::new()), ..Plan::default() };
    check("no finalizer: a driver deallocates", merged(allocated(), reserved_for(&["a"])), 0, only);
    check("nothing uses it", merged(protected(), allocated()), 0, nothing.clone());
    let deleted = Plan { reserved_for: None, deallocate: true, unprotect: true };
    check("it is deleted", merged(merged(protected(), allocated()), leaving()), 0, deleted);
    let bare = Plan { reserved_for: None, deallocate: false, unprotect: true };
    check("it is deleted after a crash between two writes", merged(protected(), leaving()), 0, bare);
    check("a scheduler is about to allocate it", protected(), 0, nothing);
}

#[test]
fn patches_have_preconditions_and_leave_the_rest() {
    let held = claim("c", merged(json!({ "metadata": { "finalizers": ["other", FINALIZER] } }), reserved_for(&["a"])));
    let all = Plan { reserved_for: Some(Vec::new()), deallocate: true, unprotect: true };
    let want = json!({
        "metadata": { "uid": "c", "resourceVersion": "7" },
        "status": { "reservedFor": null, "allocation": null },
    });
    assert_eq!(all.status(held.meta()), Some(want));
    assert_eq!(Plan::default().status(held.meta()), None);
    let want = json!({ "metadata": { "uid": "c", "resourceVersion": "7", "finalizers": ["other"] } });
    assert_eq!(without_finalizer(held.meta()), want);
    let only = claim("c", json!({ "metadata": { "finalizers": [FINALIZER] } }));
    assert_eq!(without_finalizer(only.meta())["metadata"]["finalizers"], Value::Null);
    assert_eq!(owning_pod(claim("c", owned("web")).meta()).unwrap().0.to_string(), "default/web");
    assert!(owning_pod(held.meta()).is_none());
}

#[test]
fn the_claims_of_a_pod_that_is_over_are_looked_at() {
    let reported = with_status(json!("web-gpu-1"));
    let extended = json!({ "status": { "extendedResourceClaimStatus": { "resourceClaimName": "web-extended-1" } } });
    let names = |change: &Change<PodView>| -> Vec<String> {
        map::claims_of_pod(change).iter().map(|key| key.name.to_string()).collect()
    };
    let added = |pod: Arc<PodView>| Change::Added { new: pod, initial: false };
    let running = user(merged(reported.clone(), extended.clone()));
    assert!(names(&added(Arc::clone(&running))).is_empty());
    let deleted = Change::Deleted { last: running, end: End::Observed };
    assert_eq!(names(&deleted), ["web-gpu-1", "web-extended-1"]);
    assert!(map::is_deleted_user(&deleted));
    let ended = json!({ "status": { "phase": "Succeeded" } });
    assert_eq!(names(&added(user(merged(reported, ended.clone())))), ["web-gpu-1"]);
    assert_eq!(names(&added(pod("web", merged(extended, ended)))), ["web-extended-1"]);
    assert!(!map::is_deleted_user(&Change::Deleted { last: pod("web", json!({})), end: End::Observed }));
}
