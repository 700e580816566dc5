//! Admission plug-ins that read other objects, or ask what the user may do.

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::access::{ask_as, robot, strict};
use crate::support::{ask, authority, server};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
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

#[tokio::test(start_paused = true)]
async fn only_who_may_attest_for_a_signer_writes_its_trust_bundles() {
    let server = strict();
    let rule = |resource: &str, verbs: &[&str], names: &[&str]| {
        json!({
            "apiGroups": ["certificates.k8s.io"], "resources": [resource], "verbs": verbs, "resourceNames": names,
        })
    };
    let role = |names: &[&str]| {
        let bundles = rule("clustertrustbundles", &["get", "create", "update", "patch"], &[]);
        json!({"metadata": {"name": "robot"}, "rules": [bundles, rule("signers", &["attest"], names)]})
    };
    let token = robot(&server, role(&["example.com/other"])).await;
    let bundle = |name: &str, signer: &str| {
        Some(json!({"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": authority()}}))
    };
    let refused = ask_as(&server, &token, "POST", BUNDLES, bundle("example.com:mine:a", "example.com/mine")).await;
    let why = "clustertrustbundles.certificates.k8s.io \"example.com:mine:a\" is forbidden: user not permitted to attest for \
               signerName \"example.com/mine\"";
    assert_eq!(refused.expect(403)["message"], why);
    ask_as(&server, &token, "POST", BUNDLES, bundle("plain", "")).await.expect(201);
    ask_as(&server, &token, "POST", BUNDLES, bundle("example.com:other:a", "example.com/other")).await.expect(201);
    let made = ask(&server, "POST", BUNDLES, bundle("example.com:mine:a", "example.com/mine")).await.expect(201);
    let path = format!("{BUNDLES}/example.com:mine:a");
    let with = |field: &str, value: Value| {
        let mut bundle = made.clone();
        bundle["metadata"]["resourceVersion"] = Value::Null;
        bundle["metadata"][field] = value;
        Some(bundle)
    };
    // What a garbage collector writes needs nothing of it.
    ask_as(&server, &token, "PUT", &path, with("finalizers", json!(["example.com/f"]))).await.expect(200);
    ask_as(&server, &token, "PUT", &path, with("labels", json!({"a": "b"}))).await.expect(403);
    for names in [["example.com/mine"], ["example.com/*"]] {
        ask(&server, "PUT", &format!("{ROLES}/robot"), Some(role(&names))).await.expect(200);
        ask_as(&server, &token, "PUT", &path, with("labels", json!({"a": names[0].len().to_string()})))
            .await
            .expect(200);
    }
}
