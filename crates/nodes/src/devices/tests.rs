//! Tables of the decisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Istr;
use steersman_model::resource::ResourceClaimView;
use steersman_model::{Encoded, View};

use super::memory::Taken;
use super::plan::{Picked, Request, TaintRule, claims_of, lacking, pick, requests, results, taint_rules};
use crate::view::SimPodView;

#[test]
fn only_numbers_of_our_devices_are_allocated() {
    let check = |what: &str, request: Value, want: Option<usize>| {
        let spec = json!({ "devices": { "requests": [request] } });
        let want = want.map(|count| vec![Request { name: "r".into(), count, tolerations: Vec::new() }]);
        assert_eq!(requests(&spec), want, "{what}");
    };
    let class = super::CLASS;
    let exactly = |exactly: Value| json!({ "name": "r", "exactly": exactly });
    check("one", exactly(json!({ "deviceClassName": class })), Some(1));
    check("three", exactly(json!({ "deviceClassName": class, "count": 3, "allocationMode": "ExactCount" })), Some(3));
    check("another class", exactly(json!({ "deviceClassName": "gpu" })), None);
    check("all", exactly(json!({ "deviceClassName": class, "allocationMode": "All" })), None);
    check("a selector", exactly(json!({ "deviceClassName": class, "selectors": [{ "cel": {} }] })), None);
    check("administration", exactly(json!({ "deviceClassName": class, "adminAccess": true })), None);
    check("alternatives", json!({ "name": "r", "firstAvailable": [{ "deviceClassName": class }] }), None);
    check("less than none", exactly(json!({ "deviceClassName": class, "count": -1 })), None);
    assert_eq!(requests(&json!({})), None);
}

#[test]
fn a_claim_gets_the_first_free_devices_or_none() {
    let request = |name: &str, count| Request { name: name.into(), count, tolerations: Vec::new() };
    let used: BTreeSet<Istr> = ["device-0", "device-2"].iter().map(|it| Istr::from(*it)).collect();
    let both = [request("a", 1), request("b", 2)];
    let names = |picked: Vec<Picked>| {
        picked.into_iter().map(|(number, it)| format!("{} {it}", both[number].name)).collect::<Vec<_>>()
    };
    assert_eq!(pick(&both, 5, &used, &[]).map(names).unwrap(), ["a device-1", "b device-3", "b device-4"]);
    assert_eq!(pick(&both, 4, &used, &[]), None, "all or nothing");
}

#[test]
fn a_tainted_device_is_for_those_who_tolerate_it() {
    let asked = |tolerations: Value| {
        let exactly = json!({ "deviceClassName": super::CLASS, "tolerations": tolerations });
        requests(&json!({ "devices": { "requests": [{ "name": "r", "exactly": exactly }] } })).unwrap()
    };
    let rules = |selector: Value, effect: &str| {
        let taint = json!({ "key": "example.com/broken", "value": "yes", "effect": effect });
        taint_rules(&json!({ "items": [{ "spec": { "deviceSelector": selector, "taint": taint } }] }))
    };
    let given = |tolerations: Value, rules: &[TaintRule]| {
        let picked = pick(&asked(tolerations), 2, &BTreeSet::new(), rules)?;
        Some(picked[0].1.to_string())
    };
    let check = |what: &str, selector: Value, effect: &str, want: Option<&str>| {
        assert_eq!(given(json!([]), &rules(selector, effect)).as_deref(), want, "{what}");
    };
    let ours = json!({ "driver": super::DRIVER });
    check("all of the driver", ours.clone(), "NoExecute", None);
    check("all there are", json!({}), "NoSchedule", None);
    check(
        "one",
        json!({ "driver": super::DRIVER, "pool": "simulated", "device": "device-0" }),
        "NoSchedule",
        Some("device-1"),
    );
    check("those of another pool", json!({ "pool": "other" }), "NoSchedule", Some("device-0"));
    check("those of another driver", json!({ "driver": "gpu.example.com" }), "NoExecute", Some("device-0"));
    check("without an effect", ours.clone(), "None", Some("device-0"));
    check("none, without a selector", Value::Null, "NoExecute", Some("device-0"));
    let tolerates = json!([{ "key": "example.com/broken", "operator": "Exists", "effect": "NoExecute" }]);
    assert_eq!(given(tolerates.clone(), &rules(ours.clone(), "NoExecute")).as_deref(), Some("device-0"));
    assert_eq!(given(tolerates.clone(), &rules(ours, "NoSchedule")), None, "it tolerates another effect");
    let tolerant = asked(tolerates.clone());
    assert_eq!(results(&tolerant, &[(0, Istr::from("device-0"))])[0]["tolerations"], tolerates);
    let plain = asked(json!([]));
    assert!(results(&plain, &[(0, Istr::from("device-0"))])[0].get("tolerations").is_none());
}

#[test]
fn a_pod_waits_until_its_claims_are_made_and_allocated() {
    let pod = |statuses: Value, node: &str| -> SimPodView {
        let claims = json!([
            { "name": "a", "resourceClaimTemplateName": "t" }, { "name": "b", "resourceClaimName": "shared" },
        ]);
        let object = json!({
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "nodeName": node, "resourceClaims": claims },
            "status": { "resourceClaimStatuses": statuses },
        });
        SimPodView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
    };
    let keys = |pod: &SimPodView| claims_of(pod).iter().map(ToString::to_string).collect::<Vec<_>>();
    let new = pod(json!([]), "");
    assert_eq!(keys(&new), ["default/shared"]);
    assert_eq!(lacking(&new, |_| true).unwrap(), "pod \"default/web\": ResourceClaim not created yet");
    let made = pod(json!([{ "name": "a", "resourceClaimName": "web-a" }]), "");
    assert_eq!(keys(&made), ["default/shared", "default/web-a"]);
    assert_eq!(lacking(&made, |key| key.name == "shared").unwrap(), "cannot allocate all claims");
    assert_eq!(lacking(&made, |_| true), None);
    let not_needed = pod(json!([{ "name": "a" }]), "");
    assert_eq!(lacking(&not_needed, |_| true), None);
    assert!(claims_of(&pod(json!([{ "name": "a", "resourceClaimName": "web-a" }]), "node-0")).is_empty());
}

/// A claim that was given a device and lost it again looks as it did before, but for its version.
#[test]
fn a_device_is_free_when_the_cache_shows_its_claim_as_it_was_written_or_later() {
    let claim = |uid: &str, version: &str| {
        let metadata = json!({ "name": uid, "namespace": "ns", "uid": uid, "resourceVersion": version });
        let body = json!({ "metadata": metadata }).to_string();
        Arc::new(ResourceClaimView::decode(Encoded::Json(body.as_bytes())).unwrap())
    };
    let only = [Request { name: "r".into(), count: 1, tolerations: Vec::new() }];
    let gets = |taken: &Taken, uid: &str, version_of_a: &str, has_user: bool| {
        let all = [claim("a", version_of_a), claim("b", "4")];
        taken.take(&uid.into(), &all, |_| has_user, |used| pick(&only, 1, used, &[])).is_some()
    };
    let taken = Taken::default();
    assert!(gets(&taken, "a", "3", true));
    assert!(!gets(&taken, "b", "3", true), "it is being written");
    taken.written(&"a".into(), &"6".into());
    assert!(!gets(&taken, "b", "5", true), "the cache does not show it yet");
    assert!(gets(&taken, "b", "8", true), "the device was taken from it since");

    let taken = Taken::default();
    assert!(gets(&taken, "a", "3", true));
    assert!(!gets(&taken, "b", "3", true), "the outcome is unknown, and a pod waits for it");
    assert!(gets(&taken, "b", "3", false), "no pod does");
}
