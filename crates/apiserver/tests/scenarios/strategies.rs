//! Parts of objects with a path of their own: who sets what, and what is asked first.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Got, ask, config_map, pod, send, server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

async fn patch(server: &steersman_apiserver::ApiServer, kind: &str, path: &str, body: Value) -> Got {
    let kind = format!("application/{kind}-patch+json");
    send(server, "PATCH", path, &[("content-type", &kind)], body.to_string().into_bytes()).await
}

/// A certificate request, as it is in the spec.
fn signing_request(organizations: &[&str]) -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "robot");
    for organization in organizations {
        params.distinguished_name.push(rcgen::DnType::OrganizationName, *organization);
    }
    let pem = params.serialize_request(&rcgen::KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    base64::engine::general_purpose::STANDARD.encode(pem)
}

fn certificate_request(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"request": signing_request(&[]), "signerName": "example.com/signer", "usages": ["client auth"]},
    })
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_is_no_int32_is_refused_in_upstreams_words_and_scales_nothing() {
    let server = server();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("p")["spec"]});
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    ask(&server, "POST", DEPLOYMENTS, Some(deployment)).await.expect(201);
    let scale = format!("{DEPLOYMENTS}/d/scale");
    let want = |found: &str| {
        format!("json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32")
    };
    for (value, found) in [(json!("5"), "string"), (json!(3_000_000_000_i64), "number 3000000000")] {
        let refused = patch(&server, "merge", &scale, json!({"spec": {"replicas": value}})).await.expect(422);
        assert_eq!(refused["details"]["causes"][0]["field"], "patch", "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.ends_with(&want(found)), "{message}");
        patch(&server, "strategic-merge", &scale, json!({"spec": {"replicas": value}})).await.expect(422);
        let replace = json!([{"op": "replace", "path": "/spec/replicas", "value": value}]);
        patch(&server, "json", &scale, replace).await.expect(422);
        let whole = json!({"metadata": {"name": "d"}, "spec": {"replicas": value}});
        let refused = ask(&server, "PUT", &scale, Some(whole)).await.expect(400);
        let message = refused["message"].as_str().unwrap();
        assert_eq!(message, format!("Scale in version \"v1\" cannot be handled as a Scale: {}", want(found)));
    }
    assert_eq!(ask(&server, "GET", &scale, None).await.expect(200)["spec"]["replicas"], 3);
    let scaled = patch(&server, "merge", &scale, json!({"spec": {"replicas": 4}})).await.expect(200);
    assert_eq!(scaled["spec"]["replicas"], 4);
    let deployment = ask(&server, "GET", &format!("{DEPLOYMENTS}/d"), None).await.expect(200);
    assert_eq!(deployment["spec"]["replicas"], 4);
    assert_eq!(deployment["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_binding_is_about_the_pod_it_names_in_the_version_it_names() {
    let server = server();
    let made = ask(&server, "POST", PODS, Some(pod("p"))).await.expect(201);
    let bind = async |metadata: Value| {
        let mut binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
        for (field, value) in metadata.as_object().unwrap() {
            binding["metadata"][field] = value.clone();
        }
        ask(&server, "POST", &format!("{PODS}/p/binding"), Some(binding)).await
    };
    let refused = bind(json!({"uid": "another"})).await.expect(409);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("Precondition failed: UID in precondition: another, UID in object meta: "), "{message}");
    let refused = bind(json!({"resourceVersion": "1"})).await.expect(409);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("Precondition failed: ResourceVersion in precondition: 1,"), "{message}");
    let refused = bind(json!({"labels": {"no label": "!"}})).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "metadata.labels", "{refused}");
    assert_eq!(ask(&server, "GET", &format!("{PODS}/p"), None).await.expect(200), made, "nothing has happened");
    let meta = &made["metadata"];
    bind(json!({"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "labels": {"zone": "a"}}))
        .await
        .expect(201);
    let bound = ask(&server, "GET", &format!("{PODS}/p"), None).await.expect(200);
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(bound["metadata"]["labels"], json!({"app": "web", "zone": "a"}));
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_scheduling_gates_is_not_bound() {
    let server = server();
    let mut gated = pod("p");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    ask(&server, "POST", PODS, Some(gated)).await.expect(201);
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n"}});
    let refused = ask(&server, "POST", &format!("{PODS}/p/binding"), Some(binding)).await.expect(409);
    let message = "Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty .spec.schedulingGates";
    assert_eq!(refused["message"], message);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_keeps_its_preconditions() {
    let server = server();
    let made = ask(&server, "POST", PODS, Some(pod("p"))).await.expect(201);
    let evict = async |preconditions: Value| {
        let eviction = json!({"metadata": {"name": "p"}, "deleteOptions": {"preconditions": preconditions}});
        ask(&server, "POST", &format!("{PODS}/p/eviction"), Some(eviction)).await
    };
    for preconditions in [json!({"resourceVersion": "1"}), json!({"uid": "another"})] {
        let refused = evict(preconditions).await.expect(409);
        let message = refused["message"].as_str().unwrap();
        assert!(message.starts_with("Operation cannot be fulfilled on Pod \"p\": the "), "{message}");
        assert_eq!(ask(&server, "GET", &format!("{PODS}/p"), None).await.expect(200), made, "it is not even marked");
    }
    let meta = &made["metadata"];
    evict(json!({"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]})).await.expect(201);
    ask(&server, "GET", &format!("{PODS}/p"), None).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_a_certificate_is_who_sent_the_request() {
    let server = server();
    let mut request = certificate_request("r");
    let lie = json!({
        "username": "system:node:evil", "uid": "1", "groups": ["system:nodes"], "extra": {"example.com/a": ["b"]},
    });
    for (field, value) in lie.as_object().unwrap() {
        request["spec"][field] = value.clone();
    }
    request["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}], "certificate": "AAAA"});
    let headers = [
        ("content-type", "application/json"),
        ("impersonate-user", "jane"),
        ("impersonate-group", "dev"),
        ("impersonate-extra-example.com%2fteam", "red"),
    ];
    let made = send(&server, "POST", REQUESTS, &headers, request.to_string().into_bytes()).await.expect(201);
    assert_eq!(made["spec"]["username"], "jane");
    assert_eq!(made["spec"]["groups"], json!(["dev", "system:authenticated"]));
    assert_eq!(made["spec"]["extra"], json!({"example.com/team": ["red"]}));
    assert_eq!(made["spec"].get("uid"), None);
    assert_eq!(made["status"], json!({}));

    let path = format!("{REQUESTS}/r");
    let changed = patch(&server, "merge", &path, json!({"spec": lie, "metadata": {"labels": {"a": "b"}}})).await;
    let changed = changed.expect(200);
    assert_eq!(changed["spec"], made["spec"], "what was asked for does not change");
    assert_eq!(changed["metadata"]["labels"], json!({"a": "b"}));
}

#[tokio::test(start_paused = true)]
async fn approving_signing_and_asking_have_paths_of_their_own() {
    let server = server();
    ask(&server, "POST", REQUESTS, Some(certificate_request("r"))).await.expect(201);
    let path = |part: &str| format!("{REQUESTS}/r{part}");
    let approved = json!({"type": "Approved", "status": "True", "reason": "Test"});
    let status = |conditions: Value| json!({"status": {"conditions": conditions}});
    let issued = encoded_certificate();
    let certificate = json!({"status": {"certificate": issued}});

    let refused = patch(&server, "merge", &path("/status"), status(json!([approved]))).await.expect(422);
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["field"], "status.conditions", "{refused}");
    assert_eq!(cause["message"], "Forbidden: updates may not add a condition of type \"Approved\"");
    let both = json!([approved, {"type": "Denied", "status": "True"}]);
    patch(&server, "merge", &path("/approval"), status(both)).await.expect(422);
    patch(&server, "merge", &path("/approval"), status(json!([{"type": "Approved", "status": "False"}])))
        .await
        .expect(422);
    for part in ["", "/approval"] {
        let kept = patch(&server, "merge", &path(part), certificate.clone()).await.expect(200);
        assert_eq!(kept["status"].get("certificate"), None, "{part}: only a signer sets it");
    }
    let answer = patch(&server, "merge", &path("/approval"), status(json!([approved]))).await.expect(200);
    let condition = &answer["status"]["conditions"][0];
    assert_eq!(condition["type"], "Approved");
    assert_eq!(condition["lastTransitionTime"], "2026-11-15T12:00:00Z");
    assert_eq!(condition["lastUpdateTime"], "2026-11-15T12:00:00Z");

    let refused = patch(&server, "merge", &path("/approval"), status(json!([]))).await.expect(422);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("updates may not remove a condition of type \"Approved\""), "{message}");
    for (wrong, want) in [
        ("AAAA", "must contain at least one CERTIFICATE PEM block"),
        (
            "LS0tLS1CRUdJTiBYLS0tLS0KTUE9PQotLS0tLUVORCBYLS0tLS0K",
            r#"only CERTIFICATE PEM blocks are allowed, found "X""#,
        ),
    ] {
        let wrong = json!({"status": {"certificate": wrong}});
        let refused = patch(&server, "merge", &path("/status"), wrong).await.expect(422);
        let cause = &refused["details"]["causes"][0];
        assert_eq!(cause["field"], "status.certificate", "{refused}");
        assert_eq!(cause["message"], format!("Invalid value: \"<certificate data>\": {want}"));
    }
    let signed = patch(&server, "merge", &path("/status"), certificate).await.expect(200);
    assert_eq!(signed["status"]["certificate"], issued);
    assert_eq!(signed["status"]["conditions"], answer["status"]["conditions"]);
    let other = json!({"status": {"certificate": encoded_certificate()}});
    let refused = patch(&server, "merge", &path("/status"), other).await.expect(422);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("updates may not modify existing certificate content"), "{message}");
}

/// A certificate, as it is in a status.
fn encoded_certificate() -> String {
    let certificate = rcgen::generate_simple_self_signed(Vec::new()).unwrap().cert.pem();
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, certificate)
}

#[tokio::test(start_paused = true)]
async fn a_request_must_be_signed_with_the_key_that_it_is_for() {
    let server = server();
    let mut request = certificate_request("r");
    let pem = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        request["spec"]["request"].as_str().unwrap(),
    );
    let pem = String::from_utf8(pem.unwrap()).unwrap();
    let lines: Vec<&str> = pem.lines().collect();
    let [begin, body @ .., end] = lines.as_slice() else { panic!("{pem}") };
    let engine = base64::engine::general_purpose::STANDARD;
    let mut der = base64::Engine::decode(&engine, body.concat()).unwrap();
    // The last byte is part of the signature.
    *der.last_mut().unwrap() ^= 1;
    let forged = format!("{begin}\n{}\n{end}\n", base64::Engine::encode(&engine, &der));
    request["spec"]["request"] = base64::Engine::encode(&engine, forged).into();
    let refused = ask(&server, "POST", REQUESTS, Some(request)).await.expect(422);
    let cause = &refused["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.request", "{refused}");
    assert!(cause["message"].as_str().unwrap().ends_with("x509: verification failure"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_for_the_group_of_administrators() {
    let server = server();
    let mut request = certificate_request("r");
    request["spec"]["signerName"] = "kubernetes.io/kube-apiserver-client".into();
    request["spec"]["request"] = signing_request(&["system:masters"]).into();
    let refused = ask(&server, "POST", REQUESTS, Some(request.clone())).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with("signer with system:masters group is not allowed"), "{message}");
    request["spec"]["request"] = signing_request(&["dev"]).into();
    ask(&server, "POST", REQUESTS, Some(request)).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_put_of_ephemeral_containers_needs_no_uid() {
    let server = server();
    ask(&server, "POST", PODS, Some(pod("p"))).await.expect(201);
    let mut changed = pod("p");
    changed["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox"}]);
    let path = format!("{PODS}/p/ephemeralcontainers");
    let answer = ask(&server, "PUT", &path, Some(changed.clone())).await.expect(200);
    assert_eq!(answer["spec"]["ephemeralContainers"][0]["name"], "debug");
    changed["metadata"]["uid"] = "another".into();
    ask(&server, "PUT", &path, Some(changed)).await.expect(409);
}

#[tokio::test(start_paused = true)]
async fn a_resize_changes_cpu_and_memory_and_nothing_else() {
    let server = server();
    let amounts = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}});
    let with = |resources: Value| {
        let mut pod = pod("p");
        pod["spec"]["containers"][0]["resources"] = resources;
        pod
    };
    ask(&server, "POST", PODS, Some(with(amounts("1", "1Gi")))).await.expect(201);
    let path = format!("{PODS}/p/resize");
    let resized = ask(&server, "PUT", &path, Some(with(amounts("2", "2Gi")))).await.expect(200);
    assert_eq!(resized["spec"]["containers"][0]["resources"], amounts("2", "2Gi"));
    assert_eq!(resized["metadata"]["generation"], 2);
    let mut renamed = with(amounts("2", "2Gi"));
    renamed["spec"]["containers"][0]["name"] = "other".into();
    let mut more = with(amounts("2", "2Gi"));
    more["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "1Gi".into();
    for (what, wrong) in [
        ("a negative amount", with(amounts("-2", "2Gi"))),
        ("an amount removed", with(json!({"requests": {"cpu": "2"}}))),
        (
            "another quality of service",
            with(json!({"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}})),
        ),
        ("another resource", more),
        ("another container", renamed),
    ] {
        let refused = ask(&server, "PUT", &path, Some(wrong)).await;
        assert_eq!(refused.code, 422, "{what}: {}", refused.body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_default_that_go_writes_is_no_change_of_a_pod() {
    let server = server();
    let mut made = pod("p");
    made["spec"]["activeDeadlineSeconds"] = 100.into();
    made["spec"]["containers"][0]["env"] = json!([
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]);
    made["spec"]["volumes"] = json!([{
        "name": "info",
        "downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}}]},
    }]);
    let stored = ask(&server, "POST", PODS, Some(made)).await.expect(201);
    let divisor = &stored["spec"]["containers"][0]["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"];
    assert_eq!(divisor, "0", "as upstream shows it");
    let path = format!("{PODS}/p");
    let toleration = json!({"key": "example.com/a", "operator": "Exists"});
    let mut tolerations = stored["spec"]["tolerations"].as_array().unwrap().clone();
    tolerations.push(toleration);
    for change in [
        json!({"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}),
        json!({"spec": {"activeDeadlineSeconds": 50}}),
        json!({"spec": {"tolerations": tolerations}}),
    ] {
        patch(&server, "strategic-merge", &path, change).await.expect(200);
    }
    let mut whole = ask(&server, "GET", &path, None).await.expect(200);
    whole["spec"]["containers"][0]["image"] = "nginx:3".into();
    let whole = ask(&server, "PUT", &path, Some(whole)).await.expect(200);
    assert_eq!(whole["spec"]["containers"][0]["image"], "nginx:3");
    let dns = json!({"spec": {"dnsPolicy": "Default"}});
    patch(&server, "merge", &path, dns).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn the_eighth_generated_name_that_is_taken_is_a_conflict() {
    let server = server();
    let map = json!({"metadata": {"generateName": "a-"}});
    // The same numbers each time: every round meets the names of all rounds before it.
    for round in 0..8 {
        fastrand::seed(7);
        let made = ask(&server, "POST", CONFIG_MAPS, Some(map.clone())).await;
        assert_eq!(made.code, 201, "{round}: {}", made.body);
    }
    fastrand::seed(7);
    let refused = ask(&server, "POST", CONFIG_MAPS, Some(map)).await.expect(409);
    assert_eq!(refused["reason"], "AlreadyExists");
}

#[tokio::test(start_paused = true)]
async fn options_of_a_deletion_have_their_types() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    for (options, found) in [
        (
            json!({"gracePeriodSeconds": "5"}),
            "string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (
            json!({"preconditions": {"uid": 5}}),
            "number into Go struct field Preconditions.preconditions.uid of type types.UID",
        ),
        (json!({"dryRun": "All"}), "string into Go struct field DeleteOptions.dryRun of type []string"),
    ] {
        let refused = ask(&server, "DELETE", &path, Some(options)).await.expect(400);
        assert_eq!(refused["message"], format!("json: cannot unmarshal {found}"));
    }
    ask(&server, "DELETE", &path, Some(json!({"gracePeriodSeconds": 5, "unknown": true}))).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn whoever_writes_a_pod_or_a_template_is_warned_of_what_does_nothing() {
    let server = server();
    let container = json!({
        "name": "c", "image": "i", "resources": {"requests": {"memory": "100m"}},
        "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}],
        "ports": [{"containerPort": 80}, {"containerPort": 80}],
    });
    let spec = json!({
        "containers": [container], "nodeSelector": {"beta.kubernetes.io/os": "linux"},
        "volumes": [{"name": "v", "gitRepo": {"repository": "r"}}],
        "hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}],
    });
    let of_spec = |at: &str| {
        [
            "nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \\\"kubernetes.io/os\\\" instead",
            "volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
            "hostAliases[1].ip: duplicate ip \\\"1.2.3.4\\\"",
            "containers[0].resources.requests[memory]: fractional byte value \\\"100m\\\" is invalid, must be an integer",
            "containers[0].env[2]: hides previous definition of \\\"A\\\", which may be dropped when using apply",
        ]
        .into_iter()
        .map(|warning| format!("299 - \"{at}{warning}\""))
        .chain([format!("299 - \"{at}containers[0].ports[1]: duplicate port definition with {at}containers[0].ports[0]\"")])
        .collect::<Vec<_>>()
    };
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "a.b"}, "spec": spec});
    let of_name = "299 - \"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS \
                   label is recommended: [must not contain dots]\"";
    assert_eq!(warnings(&server, "POST", pods, pod).await, [vec![of_name.to_owned()], of_spec("spec.")].concat());

    let labels = json!({"a": "b"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let deployment =
        json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let of_template = of_spec("spec.template.spec.");
    assert_eq!(warnings(&server, "POST", deployments, deployment).await, of_template);
    let path = format!("{deployments}/d");
    let labelled = warnings(&server, "PATCH", &path, json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert!(labelled.is_empty(), "the specification is the same: {labelled:?}");
    assert_eq!(warnings(&server, "PATCH", &path, json!({"spec": {"replicas": 2}})).await, of_template);

    let jobs = json!({"template": {"spec": {"restartPolicy": "Never", "containers": spec["containers"]}}});
    let cron = json!({"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": jobs}}});
    let warned = warnings(&server, "POST", "/apis/batch/v1/namespaces/default/cronjobs", cron).await;
    assert_eq!(warned, of_spec("spec.jobTemplate.spec.template.spec.")[3..]);
}

/// The warnings of an answer that must be a success.
async fn warnings(server: &steersman_apiserver::ApiServer, method: &str, path: &str, body: Value) -> Vec<String> {
    use tower::ServiceExt;
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body.to_string()))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{method} {path}: {}", response.status());
    response.headers().get_all("warning").iter().map(|warning| warning.to_str().unwrap().to_owned()).collect()
}
