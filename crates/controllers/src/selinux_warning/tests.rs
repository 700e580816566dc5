//! Tables of the decisions.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steersman_base::{Istr, ObjectKey};

use super::conflicts::{Changed, Property, Used, Volumes};
use super::labels::{Use, differ, of_mounts, used};
use crate::test_objects::pod;

fn texts(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn the_labels_of_a_volume_are_those_of_the_containers_that_mount_it() {
    let mount = |name: &str| json!([{ "name": name, "mountPath": "/x" }]);
    let level = |level: &str| json!({ "seLinuxOptions": { "level": level } });
    let claim = |name: &str| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
    let spec = json!({
        "securityContext": { "seLinuxOptions": { "user": "u", "role": "r", "type": "t", "level": "s0:c1,c2" } },
        "volumes": [claim("a"), claim("b"), claim("c")],
        "initContainers": [{ "name": "i", "volumeMounts": mount("b"), "securityContext": level("s0:c3") }],
        "containers": [
            { "name": "1", "volumeMounts": mount("a") },
            { "name": "2", "volumeMounts": mount("b") },
        ],
    });
    let found = of_mounts(&pod("web", json!({ "spec": spec })));
    let found: Vec<_> = found.iter().map(|(name, labels)| (name.as_str(), labels.clone())).collect();
    assert_eq!(found, [("a", texts(&["u:r:t:s0:c1,c2"])), ("b", texts(&[":::s0:c3", "u:r:t:s0:c1,c2"]))]);
    let plain = json!({ "volumes": [claim("a")], "containers": [{ "name": "1", "volumeMounts": mount("a") }] });
    assert_eq!(of_mounts(&pod("web", json!({ "spec": plain })))["a"], texts(&[]));
}

#[test]
fn a_volume_is_mounted_with_a_label_unless_something_speaks_against_it() {
    let check = |policy: Value, labels: &[&str], supports: bool, want: Option<(&str, &str)>| {
        let pod = pod("web", json!({ "spec": { "securityContext": { "seLinuxChangePolicy": policy } } }));
        let want = want.map(|(label, policy)| Use { label: label.into(), policy: policy.into() });
        assert_eq!(used(&pod, &texts(labels), supports), want, "{policy} {labels:?} {supports}");
    };
    check(Value::Null, &[":::s0"], true, Some((":::s0", "MountOption")));
    check(json!("MountOption"), &[":::s0"], true, Some((":::s0", "MountOption")));
    check(json!("Recursive"), &[":::s0"], true, Some(("", "Recursive")));
    check(Value::Null, &[":::s0"], false, Some(("", "Recursive")));
    check(Value::Null, &[], true, Some(("", "Recursive")));
    check(Value::Null, &[""], true, Some(("", "Recursive")));
    check(Value::Null, &[":::s0", ":::s1"], true, None);
}

#[test]
fn labels_differ_if_no_node_can_make_them_equal() {
    let check = |left: &str, right: &str, want: bool| {
        assert_eq!(differ(left, right), want, "{left} {right}");
        assert_eq!(differ(right, left), want, "{right} {left}");
    };
    let whole = "system_u:system_r:container_t:s0:c1,c2";
    check("", "", false);
    check(whole, whole, false);
    check(whole, ":::s0:c1,c2", false);
    check(whole, ":::s0:c98,c99", true);
    check(":::s0:c1,c2", "", true);
    check(whole, "system_u:system_r:other_t:s0:c1,c2", true);
    check("user_u:::s0", ":role_r::s0", false);
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, name)
}

fn using(volume: &str, label: &str, policy: &str) -> Used {
    let entry = Use { label: label.into(), policy: policy.into() };
    [(Istr::new(volume), (entry, Some("d.io".into())))].into_iter().collect()
}

#[test]
fn conflicts_are_reported_to_both_pods_once_and_end_with_one_of_them() {
    let mut volumes = Volumes::default();
    let web = key("shop", "web");
    let batch = key("shop", "batch");
    let foreign = key("other", "secret");
    assert_eq!(volumes.set(&web, using("v", ":::s0:c1", "MountOption")), Changed::default());
    assert_eq!(volumes.set(&foreign, using("w", ":::s0:c9", "MountOption")), Changed::default());
    let Changed { new, over } = volumes.set(&batch, using("v", ":::s0:c2", "MountOption"));
    assert_eq!((new.len(), over.len()), (2, 0));
    assert_eq!((&new[0].pod, &new[1].pod, new[0].property), (&batch, &web, Property::Label));
    assert_eq!(
        new[1].message(),
        "SELinuxLabel \":::s0:c1\" conflicts with pod batch that uses the same volume as this pod with SELinuxLabel \
         \":::s0:c2\". If both pods land on the same node, only one of them may access the volume."
    );
    // Once more, and nothing is new.
    assert_eq!(volumes.set(&batch, using("v", ":::s0:c2", "MountOption")), Changed::default());
    let both = volumes.set(&foreign, using("v", "", "Recursive"));
    let count = |property| both.new.iter().filter(|conflict| conflict.property == property).count();
    assert_eq!((count(Property::Label), count(Property::ChangePolicy)), (4, 4));
    let to_web =
        both.new.iter().find(|it| it.pod == web && it.property == Property::ChangePolicy).expect("there is one");
    assert_eq!(
        to_web.message(),
        "SELinuxChangePolicy\"MountOption\" conflicts with another pod that uses the same volume as this pod with a \
         different SELinuxChangePolicy. If both pods land on the same node, only one of them may access the volume."
    );
    assert_eq!(volumes.pods_of_driver(&"d.io".into()).len(), 3);
    let Changed { new, over } = volumes.set(&foreign, Used::new());
    assert_eq!((new.len(), over.len()), (0, 8));
    let Changed { new, over } = volumes.set(&batch, Used::new());
    assert_eq!((new.len(), over.len()), (0, 2));
    assert_eq!(volumes.pods_of_driver(&"d.io".into()), [web]);
}
