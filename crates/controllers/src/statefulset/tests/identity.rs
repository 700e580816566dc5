//! Names, ordinals, bodies.

use serde_json::{Value, json};
use steersman_informer::{Change, End};
use steersman_model::View;

use super::{claim, pod, revision, set};
use crate::statefulset::identity::{self, ClaimTemplates, Ordinals};
use crate::statefulset::map;

fn with_claims() -> Value {
    let data = json!({ "metadata": { "name": "data", "labels": { "x": "1" } }, "spec": { "volumeName": "v" } });
    json!({ "spec": { "volumeClaimTemplates": [data] } })
}

#[test]
fn the_name_of_a_pod_says_whose_it_is_and_its_ordinal() {
    for (name, of, ordinal) in [
        ("web-0", Some("web"), Some(0)),
        ("web-12", Some("web"), Some(12)),
        ("web-01", Some("web"), Some(1)),
        ("a-1-2", Some("a-1"), Some(2)),
        ("web-99999999999", Some("web"), None),
        ("web", None, None),
        ("web-", None, None),
        ("web-x1", None, None),
        ("-1", Some(""), Some(1)),
    ] {
        assert_eq!(identity::set_name(name), of, "{name}");
        assert_eq!(identity::ordinal(&pod(name, "new", json!({}))), ordinal, "{name}");
    }
}

#[test]
fn ordinals_are_counted_from_the_start() {
    let of = |more: Value| {
        let ordinals = Ordinals::of(&set(more));
        (ordinals.start, ordinals.end(), ordinals.contains(5))
    };
    assert_eq!(of(json!({})), (0, 3, false));
    assert_eq!(of(json!({ "spec": { "ordinals": { "start": 4 } } })), (4, 7, true));
    assert_eq!(of(json!({ "spec": { "replicas": null } })), (0, 1, false));
    let far = json!({ "spec": { "replicas": i32::MAX, "ordinals": { "start": i32::MAX } } });
    assert_eq!(of(far), (2_147_483_647, 4_294_967_294, false));
}

#[test]
fn a_new_pod_has_all_that_makes_it_itself() {
    let web = set(with_claims());
    let templates = ClaimTemplates::of(&web).unwrap();
    let mut old = revision("old");
    let volumes = json!([{ "name": "tmp", "emptyDir": {} }, { "name": "data", "emptyDir": {} }]);
    let spec = json!({ "containers": [], "hostname": "other", "volumes": volumes, "newer": 1 });
    old.template = steersman_model::Template::new(
        old.template.labels().clone(),
        old.template.annotations().clone(),
        &spec.to_string(),
    )
    .unwrap();
    let body: Value = serde_json::from_slice(&identity::pod_body(&web, &templates, &old, 7).unwrap()).unwrap();
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set",
        "controller": true, "blockOwnerDeletion": true,
    });
    let labels = json!({
        "app": "web", "statefulset.kubernetes.io/pod-name": "web-7", "apps.kubernetes.io/pod-index": "7",
        "controller-revision-hash": "old",
    });
    let metadata = json!({
        "name": "web-7", "generateName": "web-", "namespace": "default", "labels": labels, "ownerReferences": [owner],
    });
    let volumes = json!([
        { "name": "data", "persistentVolumeClaim": { "claimName": "data-web-7" } },
        { "name": "tmp", "emptyDir": {} },
    ]);
    let spec = json!({ "containers": [], "hostname": "web-7", "subdomain": "web", "volumes": volumes, "newer": 1 });
    assert_eq!(body, json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec }));

    let data = templates.iter().next().unwrap();
    let body: Value = serde_json::from_slice(&data.body(&web, 7).unwrap()).unwrap();
    let metadata = json!({ "name": "data-web-7", "namespace": "default", "labels": { "x": "1", "app": "web" } });
    let spec = json!({ "volumeName": "v" });
    let want = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec });
    assert_eq!(body, want);
}

#[test]
fn an_adopted_pod_is_amended() {
    let web = set(with_claims());
    let templates = ClaimTemplates::of(&web).unwrap();
    let mut object = json!({ "metadata": { "name": "web-1" }, "spec": { "x": 1 } });
    identity::amend(&mut object, &web, &templates, 1);
    let labels = json!({ "statefulset.kubernetes.io/pod-name": "web-1", "apps.kubernetes.io/pod-index": "1" });
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data-web-1" } }]);
    let want = json!({
        "metadata": { "name": "web-1", "labels": labels }, "spec": { "x": 1, "volumes": volumes },
    });
    assert_eq!(object, want);

    let right = pod("web-1", "new", json!({ "spec": { "volumes": volumes } }));
    assert!(identity::has_storage(&web, &templates, &right) && identity::has_identity(&web, &right));
    let wrong = pod("web-2", "new", json!({ "spec": { "volumes": volumes } }));
    assert!(!identity::has_storage(&web, &templates, &wrong));
    let unlabelled = json!({ "metadata": { "labels": { "statefulset.kubernetes.io/pod-name": "x" } } });
    assert!(!identity::has_identity(&web, &pod("web-1", "new", unlabelled)));
    assert!(!identity::has_identity(&web, &pod("web-01", "new", json!({}))));
}

#[test]
fn the_deletion_of_an_earlier_pods_claim_concerns_the_set() {
    let of_pod = |name: &str| json!([{ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": "x" }]);
    let deleted = |owners: Value| Change::Deleted { last: claim("data-web-1", owners), end: End::Observed };
    let concerned = |change: &Change<_>| map::set_of_claim(change, |key| key.name == "web").map(|key| key.to_string());
    assert_eq!(concerned(&deleted(of_pod("web-1"))), Some("default/web".to_owned()));
    assert_eq!(concerned(&deleted(of_pod("other-1"))), None);
    assert_eq!(concerned(&deleted(json!([]))), None);
    let added = Change::Added { new: claim("data-web-1", of_pod("web-1")), initial: false };
    assert_eq!(concerned(&added), None);
    assert_eq!(claim("a", json!([])).meta().name, "a");
}
