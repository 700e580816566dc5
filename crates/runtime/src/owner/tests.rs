use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::core::DynamicObject;
use steersman_base::Resource as Api;
use steersman_model::{Encoded, NodeView, View};

use super::*;

fn meta(namespace: &str, name: &str) -> ObjectMeta {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ObjectMeta {
        namespace: text(namespace),
        name: text(name),
        uid: Some(format!("{name}-uid")),
        ..ObjectMeta::default()
    }
}

fn deployment(namespace: &str, name: &str) -> Deployment {
    Deployment { metadata: meta(namespace, name), ..Deployment::default() }
}

fn config() -> ConfigMap {
    ConfigMap { metadata: meta("default", "c"), ..ConfigMap::default() }
}

#[test]
fn refusals_are_those_of_controller_runtime() {
    let check = |outcome: Result<ConfigMap, OwnerError>, want: &str| {
        assert_eq!(outcome.unwrap_err().to_string(), want);
    };
    let owned = config().controlled_by(&deployment("default", "a")).unwrap();
    check(
        owned.controlled_by(&deployment("default", "b")),
        "Object default/c is already owned by another Deployment controller a",
    );
    check(
        config().controlled_by(&deployment("other", "a")),
        "cross-namespace owner references are disallowed, owner's namespace other, obj's namespace default",
    );
    let node = Node { metadata: meta("", "n"), ..Node::default() };
    assert_eq!(
        node.owned_by(&deployment("other", "a")).unwrap_err().to_string(),
        "cluster-scoped resource must not have a namespace-scoped owner, owner's namespace other",
    );
    let mut unborn = deployment("default", "a");
    unborn.metadata.uid = None;
    check(
        config().controlled_by(&unborn),
        r#"Deployment "a" has no uid and cannot own anything: create it, and use what the server answers"#,
    );
}

#[test]
fn a_controller_is_set_once_and_renewed() {
    let mut owner = deployment("default", "a");
    let object = config().controlled_by(&owner).unwrap();
    let want = OwnerReference {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        name: "a".into(),
        uid: "a-uid".into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    assert_eq!(object.metadata.owner_references, Some(vec![want.clone()]));
    owner.metadata.uid = Some("a-again".into());
    let object = object.controlled_by(&owner).unwrap();
    let renewed = OwnerReference { uid: "a-again".into(), ..want };
    assert_eq!(object.metadata.owner_references, Some(vec![renewed]), "an owner that was made again");
    assert!(has_controller(&object) && has_owner(&object, &owner));
}

#[test]
fn the_version_of_an_owner_does_not_count_and_its_group_does() {
    let reference = |api_version: &str| OwnerReference {
        api_version: api_version.into(),
        kind: "D".into(),
        name: "a".into(),
        ..OwnerReference::default()
    };
    let old = reference("apps/v1beta1");
    let new = reference("apps/v1");
    let other = reference("v1");
    assert!(is_same(&old, &new));
    assert!(!is_same(&new, &other));
}

#[test]
fn owners_come_and_go() {
    let a = deployment("default", "a");
    let b = ReplicaSet { metadata: meta("default", "b"), ..ReplicaSet::default() };
    let mut object = config().owned_by(&a).unwrap().controlled_by(&b).unwrap();
    assert_eq!(object.metadata.owner_references.as_ref().map(Vec::len), Some(2));
    assert!(remove_controller_reference(&a, &mut object).is_err(), "a is no controller");
    remove_owner_reference(&a, &mut object).unwrap();
    assert!(!has_owner(&object, &a) && has_owner(&object, &b));
    remove_controller_reference(&b, &mut object).unwrap();
    assert_eq!(object.metadata.owner_references, None);
    let error = remove_owner_reference(&b, &mut object).unwrap_err();
    assert_eq!(error.to_string(), r#""c" does not have an owner reference for ReplicaSet "b""#);
}

#[test]
fn anything_with_a_resource_can_own() {
    let view = NodeView::decode(Encoded::Json(br#"{"metadata":{"name":"n","uid":"u"}}"#)).unwrap();
    let object = config().controlled_by(&view).unwrap();
    assert_eq!(controller_of(&object.metadata).unwrap().kind, "Node");

    let namespace = Namespace { metadata: meta("", "ns"), ..Namespace::default() };
    let typed = Typed::new(steersman_base::Meta::default(), namespace);
    assert_eq!(controller_of(&config().controlled_by(&typed).unwrap().metadata).unwrap().kind, "Namespace");

    let cakes = Api::namespaced("example.com", "v1", "cakes", "Cake");
    let cake = DynamicObject { types: None, metadata: meta("default", "cake"), data: serde_json::Value::Null };
    let object = config().controlled_by(&(&cakes, &cake)).unwrap();
    assert_eq!(controller_of(&object.metadata).unwrap().api_version, "example.com/v1");
}
