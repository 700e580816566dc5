//! Tables of the mapping.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

use super::map::{classes_left, classes_of_claim, classes_of_volume};
use crate::test_objects::decode;

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn claim(spec: Value, status: Value) -> Arc<PersistentVolumeClaimView> {
    Arc::new(decode(json!({ "metadata": { "name": "data", "namespace": "a" }, "spec": spec, "status": status })))
}

#[test]
fn a_claim_names_classes_in_three_places() {
    let check = |spec: Value, status: Value, want: &[&str]| {
        let got = classes_of_claim(&claim(spec, status));
        assert_eq!(got.iter().map(|name| &**name).collect::<Vec<_>>(), want);
    };
    check(json!({}), json!({}), &[]);
    check(json!({ "volumeAttributesClassName": "" }), json!({ "currentVolumeAttributesClassName": null }), &[]);
    check(
        json!({ "volumeAttributesClassName": "gold" }),
        json!({ "currentVolumeAttributesClassName": "gold" }),
        &["gold"],
    );
    check(
        json!({ "volumeAttributesClassName": "gold" }),
        json!({
            "currentVolumeAttributesClassName": "silver",
            "modifyVolumeStatus": { "targetVolumeAttributesClassName": "bronze", "status": "InProgress" },
        }),
        &["bronze", "gold", "silver"],
    );
}

#[test]
fn a_class_is_enqueued_when_an_object_stops_naming_it() {
    let gold = claim(json!({ "volumeAttributesClassName": "gold" }), json!({}));
    let both =
        claim(json!({ "volumeAttributesClassName": "silver" }), json!({ "currentVolumeAttributesClassName": "gold" }));
    let silver = claim(json!({ "volumeAttributesClassName": "silver" }), json!({}));
    let check = |change: Change<PersistentVolumeClaimView>, want: &[&str]| {
        let got = classes_left(&change, classes_of_claim);
        assert_eq!(got.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
    };
    check(Change::Added { new: gold.clone(), initial: false }, &[]);
    check(Change::Updated { old: gold.clone(), new: both.clone() }, &[]);
    check(Change::Updated { old: both.clone(), new: silver }, &["gold"]);
    check(Change::Deleted { last: both, end: End::Observed }, &["gold", "silver"]);
    let volume: PersistentVolumeView = decode(json!({ "spec": { "volumeAttributesClassName": "gold" } }));
    assert_eq!(classes_of_volume(&volume), ["gold"]);
    assert!(classes_of_volume(&PersistentVolumeView::default()).is_empty());
}
