//! Tables of the decisions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Meta;
use steersman_informer::{Change, End};

use super::map::{deleted_lease, version_to_check};
use super::plan::{Plan, is_identity, lease, plan, servers};
use crate::test_objects::{NOW, decode, now};

const EARLIER: &str = "2026-11-15T11:00:00Z";

/// A storage version of servers and what they encode with.
fn version(reported: &[(&str, &str)], common: Option<&str>) -> Value {
    let entries: Vec<_> = reported
        .iter()
        .map(|(server, encoding)| {
            json!({ "apiServerID": server, "encodingVersion": encoding, "decodableVersions": ["v1"], "newer": 1 })
        })
        .collect();
    let reports = match common {
        Some(_) => json!({ "status": "True", "reason": "CommonEncodingVersionSet" }),
        None => json!({ "status": "False", "reason": "CommonEncodingVersionUnset" }),
    };
    let mut condition = reports;
    condition["type"] = "AllEncodingVersionsEqual".into();
    condition["lastTransitionTime"] = EARLIER.into();
    let mut object = json!({
        "metadata": { "name": "apps.deployments", "generation": 2 },
        "status": { "storageVersions": entries, "conditions": [{ "type": "Other" }, condition] },
    });
    if let Some(common) = common {
        object["status"]["commonEncodingVersion"] = common.into();
    }
    object
}

fn without(gone: &str, version: &Value) -> Plan {
    plan(version, |server| server == gone, now())
}

#[test]
fn servers_that_are_gone_are_taken_out_and_the_last_one_takes_the_object_along() {
    let two = version(&[("a", "v1"), ("b", "v1")], Some("v1"));
    assert_eq!(without("c", &two), Plan::Keep);
    let Plan::Write(left) = without("a", &two) else { panic!("something is left") };
    assert_eq!(servers(&left), ["b"]);
    assert_eq!(left["status"]["storageVersions"][0]["newer"], 1, "unknown fields stay");
    assert_eq!(without("b", &version(&[("b", "v1")], Some("v1"))), Plan::Delete);
    // Nobody reports: there is nothing to take out.
    assert_eq!(without("a", &json!({ "metadata": { "name": "apps.deployments" } })), Plan::Keep);
}

#[test]
fn the_condition_follows_what_is_left() {
    let check = |reported: &[(&str, &str)], before: Option<&str>, common: Option<&str>, is_moved: bool| {
        let Plan::Write(left) = without("gone", &version(reported, before)) else { panic!("something is left") };
        assert_eq!(left["status"].get("commonEncodingVersion"), common.map(|it| json!(it)).as_ref(), "{reported:?}");
        let condition = &left["status"]["conditions"][1];
        let want = match common {
            Some(_) => ["True", "CommonEncodingVersionSet", "Common encoding version set"],
            None => ["False", "CommonEncodingVersionUnset", "Common encoding version unset"],
        };
        let got = ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default());
        assert_eq!(got, want, "{reported:?}");
        assert_eq!(condition["observedGeneration"], 2);
        assert_eq!(condition["lastTransitionTime"], if is_moved { NOW } else { EARLIER }, "{reported:?}");
        assert_eq!(left["status"]["conditions"][0], json!({ "type": "Other" }));
    };
    check(&[("gone", "v1"), ("b", "v1")], Some("v1"), Some("v1"), false);
    check(&[("gone", "v1"), ("b", "v2")], None, Some("v2"), true);
    check(&[("gone", "v1"), ("b", "v2"), ("c", "v3")], None, None, false);
    // The version is another one, although there was one before.
    check(&[("gone", "v1"), ("b", "v2")], Some("v1"), Some("v2"), true);
    check(&[("gone", "v1"), ("b", "v1"), ("c", "v2")], Some("v1"), None, true);
}

#[test]
fn a_storage_version_without_a_condition_gets_one() {
    let mut bare = version(&[("gone", "v1"), ("b", "v1")], None);
    bare["status"]["conditions"] = Value::Null;
    let Plan::Write(left) = without("gone", &bare) else { panic!("something is left") };
    assert_eq!(left["status"]["conditions"][0]["lastTransitionTime"], NOW);
    assert_eq!(left["status"]["commonEncodingVersion"], "v1");
}

#[test]
fn only_leases_of_api_servers_count() {
    let check = |labels: Value, want: bool| {
        let object: Meta = decode(json!({ "metadata": { "name": "a", "labels": labels } }));
        assert_eq!(is_identity(&object), want);
    };
    check(json!({ "apiserver.kubernetes.io/identity": "kube-apiserver" }), true);
    check(json!({ "apiserver.kubernetes.io/identity": "other" }), false);
    check(json!(null), false);
    assert_eq!(lease("apiserver-1").to_string(), "kube-system/apiserver-1");
}

#[test]
fn changes_enqueue_dead_servers_and_who_names_them() {
    let server: Meta = decode(json!({ "metadata": { "name": "a", "namespace": "kube-system" } }));
    let server = Arc::new(server);
    let gone = Change::Deleted { last: Arc::clone(&server), end: End::Missed };
    assert_eq!(deleted_lease(&gone).map(|key| key.to_string()), Some("kube-system/a".to_owned()));
    assert_eq!(deleted_lease(&Change::Added { new: server, initial: true }), None);
    let check = |reported: &[(&str, &str)], want: bool| {
        let new = Arc::new(decode(version(reported, None)));
        let change = Change::Added { new, initial: true };
        assert_eq!(version_to_check(&change, |server| server == "a").is_some(), want, "{reported:?}");
    };
    check(&[], false);
    check(&[("a", "v1")], false);
    check(&[("a", "v1"), ("b", "v1")], true);
}
