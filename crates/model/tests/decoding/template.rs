//! Templates: kept as received, spliced into new pods, equal if they describe the same pods.

use serde_json::{Value, json};
use steersman_base::{OwnerRef, StringMap};
use steersman_model::corpus::Corpus;
use steersman_model::{DeploymentView, Encoded, PodName, ReplicaSetView, Template, View, status_body};

fn replica_set(template: &str) -> ReplicaSetView {
    let body = format!(r#"{{"metadata":{{"name":"web","uid":"u"}},"spec":{{"replicas":2,"template":{template}}}}}"#);
    ReplicaSetView::decode(Encoded::Json(body.as_bytes())).unwrap()
}

#[test]
fn a_pod_is_our_metadata_and_the_untouched_bytes_of_the_spec() {
    let spec = r#"{ "containers": [ {"name":"a","newerThanUs":{"deep":[1.50]}} ],"zeroth":0 }"#;
    let set = replica_set(&format!(
        r#"{{"metadata":{{"labels":{{"app":"web"}},"annotations":{{"a":"b"}},"finalizers":["f"],"creationTimestamp":null}},"spec":{spec}}}"#
    ));
    let owner = OwnerRef::controller_of("apps/v1", "ReplicaSet", &set.metadata);
    let mut metadata = set.spec.template.new_pod(PodName::Prefix("web-"), "default", &owner);
    let body = String::from_utf8(set.spec.template.pod_body(&metadata)).unwrap();
    assert!(body.ends_with(&format!(r#","spec":{spec}}}"#)), "{body}");
    let want = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": "web-", "namespace": "default", "labels": {"app": "web"}, "annotations": {"a": "b"},
            "finalizers": ["f"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": serde_json::from_str::<Value>(spec).unwrap(),
    });
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), want);

    metadata.name = PodName::Exactly("web-0");
    metadata.labels = StringMap::from([("index", "0")]);
    metadata.annotations = StringMap::default();
    let body: Value = serde_json::from_slice(&set.spec.template.pod_body(&metadata)).unwrap();
    assert_eq!(body["metadata"]["name"], "web-0");
    assert_eq!(body["metadata"].get("generateName"), None);
    assert_eq!(body["metadata"]["labels"], json!({"index": "0"}));
    assert_eq!(body["metadata"].get("annotations"), None);
}

#[test]
fn a_template_without_spec_makes_a_pod_with_an_empty_one() {
    let metadata = Template::default().new_pod(PodName::Exactly("a"), "default", &OwnerRef::default());
    let body: Value = serde_json::from_slice(&Template::default().pod_body(&metadata)).unwrap();
    assert_eq!(body["spec"], json!({}));
}

#[test]
fn equal_specs_are_one_allocation_over_kinds_and_labels() {
    let spec = r#"{"containers":[{"name":"a"}]}"#;
    let set =
        replica_set(&format!(r#"{{"metadata":{{"labels":{{"app":"web","pod-template-hash":"abc"}}}},"spec":{spec}}}"#));
    let body = format!(r#"{{"spec":{{"template":{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{spec}}}}}}}"#);
    let deployment = DeploymentView::decode(Encoded::Json(body.as_bytes())).unwrap();
    let of_set = &set.spec.template;
    let of_deployment = &deployment.spec.template;
    assert!(of_set.spec().same_allocation(of_deployment.spec()));
    assert_ne!(of_set, of_deployment);
    assert!(of_set.equals_but_for_hash(of_deployment));
    assert_eq!(&of_deployment.with_labels(of_set.labels().clone()), of_set);
    assert!(!of_set.equals_but_for_hash(&of_deployment.with_labels(StringMap::from([("app", "other")]))));
}

#[test]
fn templates_are_equal_if_they_ask_for_the_same() {
    let template = |spec: &str| replica_set(&format!(r#"{{"spec":{spec}}}"#)).spec.template;
    let container = |resources: &str| format!(r#"{{"containers":[{{"name":"a","resources":{resources}}}]}}"#);
    let one = template(&container(r#"{"limits":{"cpu":"1"}}"#));
    assert_eq!(one, template(&container(r#"{"limits":{"cpu":"1000m"},"requests":{}}"#)));
    assert_ne!(one, template(&container(r#"{"limits":{"cpu":"1001m"}}"#)));
    let annotated = replica_set(r#"{"metadata":{"annotations":{"a":"b"}}}"#).spec.template;
    assert!(!annotated.equals_but_for_hash(&Template::default()));
}

#[test]
fn a_template_can_be_made_and_is_refused_if_it_is_no_json() {
    let labels = StringMap::from([("app", "web")]);
    let template = Template::new(labels.clone(), StringMap::default(), r#"{"containers":[]}"#).unwrap();
    assert_eq!((template.labels(), template.spec().as_str()), (&labels, r#"{"containers":[]}"#));
    assert!(Template::new(labels, StringMap::default(), "{").is_err());
}

#[test]
fn a_whole_replica_set_is_written_back_as_it_came() {
    let body = Corpus::new(3).replica_set(4);
    let set = ReplicaSetView::decode(Encoded::Json(body.as_bytes())).unwrap();
    let mut want: Value = serde_json::from_str(&body).unwrap();
    want["metadata"].as_object_mut().unwrap().remove("managedFields").unwrap();
    want["apiVersion"] = json!("apps/v1");
    want["kind"] = json!("ReplicaSet");
    if want["status"]["replicas"] == 0 {
        // Zero is as good as absent.
        want["status"].as_object_mut().unwrap().retain(|_, value| *value != json!(0));
    }
    assert_eq!(serde_json::to_value(&set).unwrap(), want);
}

#[test]
fn a_status_is_put_with_whole_metadata() {
    let body = r#"{"metadata":{"name":"web","namespace":"default","labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["f"],"generation":3,"resourceVersion":"7","uid":"u"},"spec":{"replicas":2}}"#;
    let mut set = ReplicaSetView::decode(Encoded::Json(body.as_bytes())).unwrap();
    set.status.replicas = 2;
    set.status.observed_generation = set.metadata.generation;
    let got: Value = serde_json::from_slice(&status_body::<ReplicaSetView>(&set.metadata, &set.status)).unwrap();
    let mut want: Value = serde_json::from_str(body).unwrap();
    want.as_object_mut().unwrap().remove("spec");
    want["apiVersion"] = json!("apps/v1");
    want["kind"] = json!("ReplicaSet");
    want["status"] = json!({"replicas": 2, "observedGeneration": 3});
    assert_eq!(got, want);
}
