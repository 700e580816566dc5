//! Hashes and names.

use serde_json::json;
use steersman_model::View;

use super::super::history::first_annotations;
use super::super::sets::Sets;
use super::super::template::{hash, is_the_wanted_one, new_set};
use super::{deployment, pod_spec, set};

#[test]
fn the_hash_is_the_same_for_ever() {
    // A change of the hash would make every Deployment of every cluster use another name.
    assert_eq!(hash(&deployment(json!({})).spec.template, None), "4k22whwzx8");
    assert_eq!(hash(&deployment(json!({})).spec.template, Some(1)), "5pnq7wp8xs");
}

#[test]
fn the_hash_is_that_of_what_is_asked_for() {
    let of = |spec: serde_json::Value| {
        hash(&deployment(json!({ "spec": { "template": { "spec": spec } } })).spec.template, None)
    };
    let base = of(pod_spec("web:2"));
    assert_eq!(
        of(json!({ "volumes": [], "hostname": "", "containers": [{ "image": "web:2", "name": "main" }] })),
        base
    );
    assert_ne!(of(pod_spec("web:3")), base);
    let labelled =
        |more| hash(&deployment(json!({ "spec": { "template": { "metadata": more } } })).spec.template, None);
    assert_eq!(labelled(json!({ "labels": { "pod-template-hash": "x" } })), base, "its own hash does not count");
    assert_ne!(labelled(json!({ "labels": { "a": "b" } })), base);
    assert_ne!(labelled(json!({ "annotations": { "a": "b" } })), labelled(json!({ "labels": { "a": "b" } })));
    assert_ne!(labelled(json!({ "labels": { "x": "ab" } })), labelled(json!({ "labels": { "xa": "b" } })));
}

#[test]
fn a_new_one_is_made_of_the_template_and_its_hash() {
    let web = deployment(json!({ "spec": { "minReadySeconds": 5 } }));
    let made = new_set(&web, first_annotations(&web, &Sets::default()), 2);
    let hash = hash(&web.spec.template, None);
    assert_eq!(made.meta().name, *format!("web-{hash}"));
    let body = serde_json::to_value(&made).unwrap();
    let labels = json!({ "app": "web", "pod-template-hash": hash });
    assert_eq!(body["metadata"]["labels"], labels);
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "d");
    assert_eq!(body["spec"]["selector"], json!({ "matchLabels": labels }));
    assert_eq!(body["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(body["spec"]["template"]["spec"], pod_spec("web:2"));
    assert_eq!((&body["spec"]["replicas"], &body["spec"]["minReadySeconds"]), (&json!(2), &json!(5)));
    assert!(made.spec.template.equals_but_for_hash(&web.spec.template));
}

#[test]
fn a_long_name_is_cut_so_that_the_hash_fits() {
    let long = "n".repeat(250);
    let web = deployment(json!({ "metadata": { "name": long } }));
    let name = new_set(&web, first_annotations(&web, &Sets::default()), 2).metadata.name;
    assert_eq!(name.len(), 253);
    assert!(name.ends_with(&format!("-{}", hash(&web.spec.template, None))), "{name}");
}

#[test]
fn the_new_one_is_found_by_its_template_whatever_its_hash() {
    let template = deployment(json!({})).spec.template;
    let stranger = set("v1", "web:1", 1, json!({}));
    let ours = set("v2", "web:2", 1, json!({}));
    let twin = set("v3", "web:2", 1, json!({}));
    let sets = Sets::find(&template, vec![twin, ours, stranger]);
    assert_eq!(sets.new.unwrap().meta().name, "v2", "of two, the older counts");
    assert_eq!(sets.old.iter().map(|set| set.meta().name.to_string()).collect::<Vec<_>>(), ["v1", "v3"]);
}

#[test]
fn a_name_that_is_taken_is_ours_only_with_our_reference_and_template() {
    let web = deployment(json!({}));
    assert!(is_the_wanted_one(&web, &set("v1", "web:2", 1, json!({}))));
    assert!(!is_the_wanted_one(&web, &set("v1", "web:1", 1, json!({}))), "another template");
    let orphan = set("v1", "web:2", 1, json!({ "metadata": { "ownerReferences": [] } }));
    assert!(!is_the_wanted_one(&web, &orphan), "nobody's");
}
