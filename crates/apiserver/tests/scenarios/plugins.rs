//! Admission plug-ins that read other objects, or ask what the user may do.

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::support::{ask, server};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const PRIORITIES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

/// Creates a claim of a class, and marks it as bound if it is to be.
async fn claim(server: &ApiServer, name: &str, class: Option<&str>, is_bound: bool) {
    let claim = json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeName": "v",
        "resources": {"requests": {"storage": "1Gi"}},
    }});
    ask(server, "POST", CLAIMS, Some(claim)).await.expect(201);
    if is_bound {
        let status = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        ask(server, "PATCH", &format!("{CLAIMS}/{name}/status"), Some(status)).await.expect(200);
    }
}

fn size(size: &str) -> Option<Value> {
    Some(json!({"spec": {"resources": {"requests": {"storage": size}}}}))
}

#[tokio::test(start_paused = true)]
async fn only_bound_claims_of_a_class_that_allows_it_grow() {
    const CLASS: &str = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc \
                         must support resize";
    let server = server();
    for (name, grows) in [("rigid", json!(false)), ("silent", Value::Null), ("elastic", json!(true))] {
        let class = json!({"metadata": {"name": name}, "provisioner": "example.com/p", "allowVolumeExpansion": grows});
        ask(&server, "POST", CLASSES, Some(class)).await.expect(201);
    }
    let refused = [("rigid", Some("rigid")), ("silent", Some("silent")), ("lost", Some("none")), ("plain", Some(""))];
    for (name, class) in refused.into_iter().chain([("classless", None)]) {
        claim(&server, name, class, true).await;
        let got = ask(&server, "PATCH", &format!("{CLAIMS}/{name}"), size("2Gi")).await.expect(403);
        assert_eq!(got["message"], format!("persistentvolumeclaims {name:?} is forbidden: {CLASS}"));
        ask(&server, "PATCH", &format!("{CLAIMS}/{name}"), size("1024Mi")).await.expect(200);
    }
    claim(&server, "good", Some("elastic"), true).await;
    let grown = ask(&server, "PATCH", &format!("{CLAIMS}/good"), size("2Gi")).await.expect(200);
    assert_eq!(grown["spec"]["resources"]["requests"]["storage"], "2Gi");
}

#[tokio::test(start_paused = true)]
async fn there_is_one_default_priority_class_at_most() {
    let server = server();
    let class = |name: &str, default: bool| json!({"metadata": {"name": name}, "value": 5, "globalDefault": default});
    ask(&server, "POST", PRIORITIES, Some(class("usual", true))).await.expect(201);
    ask(&server, "POST", PRIORITIES, Some(class("rare", false))).await.expect(201);
    let why = |name: &str| {
        format!(
            "priorityclasses.scheduling.k8s.io {name:?} is forbidden: PriorityClass usual is already marked as default. \
             Only one default can exist"
        )
    };
    let got = ask(&server, "POST", PRIORITIES, Some(class("second", true))).await.expect(403);
    assert_eq!(got["message"], why("second"));
    let mark = |default: bool| Some(json!({"globalDefault": default, "description": "of all"}));
    let got = ask(&server, "PATCH", &format!("{PRIORITIES}/rare"), mark(true)).await.expect(403);
    assert_eq!(got["message"], why("rare"));
    ask(&server, "PATCH", &format!("{PRIORITIES}/usual"), mark(true)).await.expect(200);
    ask(&server, "PATCH", &format!("{PRIORITIES}/usual"), mark(false)).await.expect(200);
    ask(&server, "PATCH", &format!("{PRIORITIES}/rare"), mark(true)).await.expect(200);
}
