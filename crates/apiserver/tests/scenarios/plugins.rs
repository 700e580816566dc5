//! Admission plug-ins that read other objects, or ask what the user may do.

use base64::Engine as _;
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::access::{ask_as, robot, strict};
use crate::support::{ask, authority, send, server};

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
async fn a_bound_pod_has_the_zone_and_the_region_of_its_node() {
    const ZONE: &str = "topology.kubernetes.io/zone";
    const REGION: &str = "topology.kubernetes.io/region";
    let server = server();
    let labels = json!({ZONE: "z", REGION: "r", "kubernetes.io/os": "linux"});
    ask(&server, "POST", "/api/v1/nodes", Some(json!({"metadata": {"name": "n", "labels": labels}}))).await.expect(201);
    let pods = "/api/v1/namespaces/default/pods";
    let mut there = crate::support::pod("there");
    there["spec"]["nodeName"] = "n".into();
    there["metadata"]["labels"][ZONE] = "mine".into();
    let created = ask(&server, "POST", pods, Some(there)).await.expect(201);
    let want = json!({"app": "web", ZONE: "z", REGION: "r"});
    assert_eq!(created["metadata"]["labels"], want);
    for (name, kind, want) in [("bound", json!("Node"), want), ("odd", Value::Null, json!({"app": "web"}))] {
        ask(&server, "POST", pods, Some(crate::support::pod(name))).await.expect(201);
        let binding = json!({"metadata": {"name": name}, "target": {"kind": kind, "name": "n"}});
        ask(&server, "POST", &format!("{pods}/{name}/binding"), Some(binding)).await.expect(201);
        let bound = ask(&server, "GET", &format!("{pods}/{name}"), None).await.expect(200);
        assert_eq!((&bound["spec"]["nodeName"], &bound["metadata"]["labels"]), (&json!("n"), &want), "{name}");
    }
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

#[tokio::test(start_paused = true)]
async fn only_who_may_sign_for_a_signer_writes_the_status_of_a_pods_request() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests";
    let server = strict();
    let role = |signers: &[&str]| {
        json!({"metadata": {"name": "robot"}, "rules": [
            {
                "apiGroups": ["certificates.k8s.io"], "verbs": ["patch"],
                "resources": ["podcertificaterequests", "podcertificaterequests/status"],
            },
            {
                "apiGroups": ["certificates.k8s.io"], "verbs": ["sign"], "resources": ["signers"],
                "resourceNames": signers,
            },
        ]})
    };
    let token = robot(&server, role(&["example.com/other"])).await;
    let stub = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let stub = base64::engine::general_purpose::STANDARD.encode(stub.serialize_request(&key).unwrap().der());
    let request = json!({"metadata": {"name": "r"}, "spec": {
        "signerName": "example.com/a", "podName": "p", "podUID": "1", "serviceAccountName": "s",
        "serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": stub,
    }});
    ask(&server, "POST", REQUESTS, Some(request)).await.expect(201);
    let condition = |kind: &str| {
        let time = "2026-11-15T12:00:00Z";
        Some(
            json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "R", "lastTransitionTime": time}]}}),
        )
    };
    let headers = [("authorization", format!("Bearer {token}"))];
    let patch = async |body: Option<Value>| {
        let headers = [("authorization", headers[0].1.as_str()), ("content-type", "application/merge-patch+json")];
        let path = format!("{REQUESTS}/r/status");
        let body = body.unwrap_or_default().to_string().into_bytes();
        send(&server.requiring_authentication(), "PATCH", &path, &headers, body).await
    };
    let refused = patch(condition("Denied")).await.expect(422);
    let why = "PodCertificateRequest.certificates.k8s.io \"r\" is invalid: spec.signerName: Forbidden: User \
               \"system:serviceaccount:default:robot\" is not permitted to \"sign\" for signer \"example.com/a\"";
    assert_eq!(refused["message"], why);
    patch(Some(json!({"status": {}}))).await.expect(200);
    // A certificate begins when it is issued.
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.not_before = rcgen::date_time_ymd(2026, 11, 15);
    params.not_after = rcgen::date_time_ymd(2026, 11, 16);
    let mut issued = condition("Issued").unwrap();
    for (field, value) in [
        ("certificateChain", params.self_signed(&key).unwrap().pem()),
        ("notBefore", "2026-11-15T00:00:00Z".to_owned()),
        ("notAfter", "2026-11-16T00:00:00Z".to_owned()),
        ("beginRefreshAt", "2026-11-15T01:00:00Z".to_owned()),
    ] {
        issued["status"][field] = value.into();
    }
    ask(&server, "PUT", &format!("{ROLES}/robot"), Some(role(&["example.com/*"]))).await.expect(200);
    let late = patch(Some(issued)).await.expect(422);
    let why =
        "Invalid value: \"2026-11-15T00:00:00Z\": must be set to within 5 minutes of kube-apiserver's current time";
    assert_eq!(late["details"]["causes"][0]["message"], why);
    patch(condition("Denied")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_not_resized_beyond_its_node() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let server = server();
    for (name, system) in [("small", "linux"), ("glass", "windows")] {
        let status = json!({"allocatable": {"cpu": "2", "memory": "4Gi"}});
        let node = json!({"metadata": {"name": name, "labels": {"kubernetes.io/os": system}}, "status": status});
        ask(&server, "POST", "/api/v1/nodes", Some(node)).await.expect(201);
    }
    let with = |name: &str, node: Option<&str>, cpu: &str, memory: &str| {
        let resources = json!({"requests": {"cpu": cpu, "memory": memory}});
        Some(json!({"metadata": {"name": name}, "spec": {
            "nodeName": node, "containers": [{"name": "c", "image": "i", "resources": resources}],
        }}))
    };
    let cpu = "cpu, requested: 2001, allocatable: 2000";
    let memory = "memory, requested: 5368709120, allocatable: 4294967296";
    let lacking = |what: &str| format!("node didn't have enough allocatable resources: {what}");
    let system = "pod resize is only supported on linux nodes, node \"glass\" is \"windows\"".to_owned();
    for (pod, node, asked, want, cause) in [
        ("a", Some("small"), ("2001m", "5Gi"), lacking(&format!("{cpu}; {memory}")), Some("NodeCapacity")),
        ("b", Some("small"), ("1", "5Gi"), lacking(memory), Some("NodeCapacity")),
        ("c", Some("glass"), ("2", "1Gi"), system, Some("UnsupportedPlatform")),
        ("d", Some("gone"), ("2", "1Gi"), "node \"gone\" not found".to_owned(), None),
        ("e", Some("small"), ("2", "4Gi"), String::new(), None),
        ("f", None, ("200", "4Ti"), String::new(), None),
    ] {
        ask(&server, "POST", PODS, with(pod, node, "1", "1Gi")).await.expect(201);
        let path = format!("{PODS}/{pod}/resize");
        ask(&server, "PUT", &path, with(pod, node, "1", "1Gi")).await.expect(200);
        let got = ask(&server, "PUT", &path, with(pod, node, asked.0, asked.1)).await;
        if want.is_empty() {
            got.expect(200);
            continue;
        }
        let got = got.expect(403);
        assert_eq!(got["message"], format!("pods {pod:?} is forbidden: {want}"));
        assert_eq!(got["details"]["causes"], cause.map_or(Value::Null, |cause| json!([{"reason": cause}])));
    }
}
