//! Tables of the decisions.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_base::Istr;
use steersman_model::{Encoded, View};

use super::plan::{Request, claims_of, lacking, pick, requests};
use crate::view::SimPodView;

#[test]
fn only_numbers_of_our_devices_are_allocated() {
    let check = |what: &str, request: Value, want: Option<usize>| {
        let spec = json!({ "devices": { "requests": [request] } });
        let want = want.map(|count| vec![Request { name: "r".into(), count }]);
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
    let request = |name: &str, count| Request { name: name.into(), count };
    let used: BTreeSet<Istr> = ["device-0", "device-2"].iter().map(|it| Istr::from(*it)).collect();
    let names =
        |picked: Vec<(String, Istr)>| picked.into_iter().map(|(name, it)| format!("{name} {it}")).collect::<Vec<_>>();
    let both = [request("a", 1), request("b", 2)];
    assert_eq!(pick(&both, 5, &used).map(names).unwrap(), ["a device-1", "b device-3", "b device-4"]);
    assert_eq!(pick(&both, 4, &used), None, "all or nothing");
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
