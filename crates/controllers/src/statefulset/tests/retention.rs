//! The owners of claims.

use serde_json::{Value, json};
use steersman_model::View;

use super::{claim, pod, set, with_seen};
use crate::statefulset::Options;
use crate::statefulset::retention::{Owners, Policy, is_of_earlier_pod};
use crate::test_objects::merged;

fn policy(when_scaled: &str, when_deleted: &str) -> Value {
    let policy = json!({ "whenScaled": when_scaled, "whenDeleted": when_deleted });
    json!({ "spec": { "persistentVolumeClaimRetentionPolicy": policy } })
}

fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    let flags = json!({ "controller": true, "blockOwnerDeletion": true });
    let mut owner = json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid });
    owner.as_object_mut().unwrap().extend(flags.as_object().unwrap().clone());
    owner
}

fn of_set() -> Value {
    owner("apps/v1", "StatefulSet", "web", "set")
}

fn of_pod(name: &str) -> Value {
    owner("v1", "Pod", name, name)
}

#[test]
fn owners_follow_from_the_policy() {
    for (when_scaled, when_deleted, of_wanted, of_surplus) in [
        ("Retain", "Retain", json!([]), json!([])),
        ("Retain", "Delete", json!([of_set()]), json!([of_set()])),
        ("Delete", "Retain", json!([]), json!([of_pod("web-9")])),
        ("Delete", "Delete", json!([of_set()]), json!([of_pod("web-9")])),
        ("Unknown", "Delete", json!([]), json!([])),
    ] {
        let web = set(policy(when_scaled, when_deleted));
        for (name, want) in [("web-1", &of_wanted), ("web-9", &of_surplus)] {
            let pod = pod(name, "new", json!({}));
            let owners = Owners { set: &web, pod: &pod };
            for held in [json!([]), json!([of_set()]), json!([of_pod(name)]), json!([of_set(), of_pod(name)])] {
                let claim = claim("data", held.clone());
                let got = serde_json::to_value(owners.right(claim.meta())).unwrap();
                assert_eq!(&got, want, "{when_scaled} {when_deleted} {name} {held}");
                let is_right = owners.are_right(claim.meta());
                assert_eq!(is_right, held == *want, "{when_scaled} {when_deleted} {name} {held}");
            }
        }
    }
}

#[test]
fn a_claim_of_another_is_left_alone() {
    let web = set(policy("Delete", "Delete"));
    let pod = pod("web-1", "new", json!({}));
    let owners = Owners { set: &web, pod: &pod };
    let other = || owner("example.com/v1", "Keeper", "k", "k");
    let are_right = |held: Value| owners.are_right(claim("data", held).meta());
    assert!(are_right(json!([other()])), "another controller");
    assert!(!are_right(json!([other(), of_set()])), "another controller beside us");
    assert_eq!(
        serde_json::to_value(owners.right(claim("data", json!([other(), of_set()])).meta())).unwrap(),
        json!([other()])
    );
    assert!(are_right(json!([owner("apps/v1", "StatefulSet", "web", "earlier")])), "an earlier StatefulSet");
    assert!(are_right(json!([owner("v1", "Pod", "web-1", "earlier")])), "an earlier pod");
    let mut weak = of_set();
    weak["controller"] = json!(false);
    assert!(!are_right(json!([weak])), "we own it, and do not control it");
    let retained = set(json!({}));
    assert_eq!(Policy::of(&retained), Policy::default());
    assert!(Owners { set: &retained, pod: &pod }.are_right(claim("data", json!([other()])).meta()));
}

#[test]
fn a_claim_of_another_is_named() {
    let templates = json!({ "spec": { "volumeClaimTemplates": [{ "metadata": { "name": "data" } }] } });
    let named = |policy: Value, held: Value| {
        let web = set(merged(policy, templates.clone()));
        let pod = pod("web-1", "new", json!({}));
        let claims = [claim("data-web-1", held), claim("data-web-2", json!([owner("v1", "Other", "o", "o")]))];
        with_seen(&web, &[], &claims, Options::default(), |seen| seen.claims_of_others(&pod))
    };
    let other = || json!([owner("example.com/v1", "Keeper", "k", "k")]);
    assert_eq!(named(policy("Retain", "Delete"), other()), ["data-web-1"]);
    assert_eq!(named(policy("Retain", "Delete"), json!([of_set()])), [""; 0], "it is ours");
    assert_eq!(named(policy("Retain", "Retain"), other()), [""; 0], "the policy has no say");
}

#[test]
fn the_claim_of_an_earlier_pod_is_known() {
    assert!(is_of_earlier_pod(claim("data", json!([of_pod("web-1")])).meta(), "web-1"));
    assert!(!is_of_earlier_pod(claim("data", json!([of_pod("web-1")])).meta(), "web-2"));
    assert!(!is_of_earlier_pod(claim("data", json!([of_set()])).meta(), "web-1"));
}
