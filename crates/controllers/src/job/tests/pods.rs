//! New pods.

use super::*;
use crate::job::plan::Replacement;
use crate::job::pods::{index, new_indexed_pods, new_pods, valid_index};

#[test]
fn a_pod_is_the_template_with_the_finalizer() {
    let job = job(json!({ "spec": { "template": { "metadata": { "finalizers": ["example.dev/own"] } } } }));
    let new = new_pods(&job, 2, None);
    assert_eq!(new.len(), 2);
    assert_eq!(new[0].prefix, "sums-");
    let body: Value = serde_json::from_slice(&new[0].body("sums-abcde")).unwrap();
    assert_eq!(body["metadata"]["name"], "sums-abcde");
    assert_eq!(body["metadata"]["generateName"], "sums-");
    assert_eq!(body["metadata"]["finalizers"], json!(["example.dev/own", "batch.kubernetes.io/job-tracking"]));
    assert_eq!(body["metadata"]["ownerReferences"][0]["kind"], "Job");
    assert_eq!(body["spec"], json!({ "restartPolicy": "Never", "containers": [{ "name": "main" }] }));
}

#[test]
fn a_pod_of_an_index_carries_it_in_five_places() {
    let containers = json!([
        { "name": "a" },
        { "name": "b", "env": [{ "name": "X", "value": "1" }] },
        { "name": "c", "env": [{ "name": "JOB_COMPLETION_INDEX", "value": "own" }] },
    ]);
    let template =
        json!({ "spec": { "containers": containers, "initContainers": [{ "name": "i" }], "hostname": "old" } });
    let job = indexed(json!({ "spec": { "template": template } }));
    let new = new_indexed_pods(&job, &[Replacement { index: 3, failures: 0, ignored: 0 }], None);
    assert_eq!(new[0].prefix, "sums-3-");
    let body: Value = serde_json::from_slice(&new[0].body("sums-3-abcde")).unwrap();
    let key = "batch.kubernetes.io/job-completion-index";
    assert_eq!(body["metadata"]["annotations"], json!({ key: "3" }));
    assert_eq!(body["metadata"]["labels"], json!({ "job": "sums", key: "3" }));
    assert_eq!(body["spec"]["hostname"], "sums-3");
    let field = json!({ "fieldRef": { "fieldPath": format!("metadata.labels['{key}']") } });
    let variable = json!({ "name": "JOB_COMPLETION_INDEX", "valueFrom": field });
    assert_eq!(body["spec"]["containers"][0]["env"], json!([variable]));
    assert_eq!(body["spec"]["containers"][1]["env"], json!([{ "name": "X", "value": "1" }, variable]));
    assert_eq!(body["spec"]["containers"][2]["env"], json!([{ "name": "JOB_COMPLETION_INDEX", "value": "own" }]));
    assert_eq!(body["spec"]["initContainers"][0]["env"], json!([variable]));
    assert_eq!(body["spec"]["restartPolicy"], "Never");
}

#[test]
fn failures_of_an_index_are_noted_where_indexes_fail_by_themselves() {
    let check = |more: Value, failures: i32, ignored: i32, want: Value| {
        let job = indexed(more);
        let new = new_indexed_pods(&job, &[Replacement { index: 0, failures, ignored }], None);
        let body: Value = serde_json::from_slice(&new[0].body("x")).unwrap();
        let mut notes = body["metadata"]["annotations"].clone();
        notes.as_object_mut().unwrap().remove("batch.kubernetes.io/job-completion-index");
        assert_eq!(notes, want);
    };
    let per_index = json!({ "spec": { "backoffLimitPerIndex": 2 } });
    check(json!({}), 0, 0, json!({}));
    check(per_index.clone(), 0, 0, json!({ "batch.kubernetes.io/job-index-failure-count": "0" }));
    let both = json!({
        "batch.kubernetes.io/job-index-failure-count": "2",
        "batch.kubernetes.io/job-index-ignored-failure-count": "1",
    });
    check(per_index, 2, 1, both);
}

#[test]
fn long_names_are_cut_before_the_index() {
    let name = "x".repeat(60);
    let job = indexed(json!({ "metadata": { "name": name } }));
    let new = new_indexed_pods(&job, &[Replacement { index: 12345, ..Replacement::default() }], None);
    assert_eq!(new[0].prefix, format!("{}-12345-", "x".repeat(51)));
}

#[test]
fn an_index_is_a_number_in_range() {
    let job = indexed(json!({}));
    let check = |text: &str, any: Option<i32>, valid: Option<i32>| {
        let key = "batch.kubernetes.io/job-completion-index";
        let pod = pod("a", json!({ "metadata": { "annotations": { key: text } } }));
        assert_eq!((index(&pod), valid_index(&job, &pod)), (any, valid), "{text:?}");
    };
    check("3", Some(3), Some(3));
    check("5", Some(5), None);
    check("-1", None, None);
    check("x", None, None);
    check("", None, None);
    check("99999999999", Some(i32::MAX), None);
}
