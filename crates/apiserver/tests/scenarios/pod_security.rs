//! The Pod Security Standards: what the labels of a namespace do.

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use tower::ServiceExt;

use crate::support::{ask, pod, server};

const MERGE: &str = "application/merge-patch+json";
const WRONG: &str = "allowPrivilegeEscalation != false (container \"c\" must set \
                     securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set \
                     securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set \
                     securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set \
                     securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";

/// Asks something, and returns code, body and warnings.
async fn tell(server: &ApiServer, method: &str, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
    use http_body_util::BodyExt as _;
    let kind = match method {
        "PATCH" if path.contains("fieldManager") => "application/apply-patch+yaml",
        "PATCH" => MERGE,
        _ => "application/json",
    };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body.to_string()))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let unquoted = |text: &str| text.strip_prefix("299 - \"").unwrap().strip_suffix('"').unwrap().replace("\\\"", "\"");
    let warnings =
        response.headers().get_all("warning").iter().map(|warning| unquoted(warning.to_str().unwrap())).collect();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap(), warnings)
}

/// A namespace with these labels, without their prefix.
async fn namespace(server: &ApiServer, name: &str, labels: &[(&str, &str)]) {
    let labels: serde_json::Map<String, Value> =
        labels.iter().map(|(key, value)| (format!("pod-security.kubernetes.io/{key}"), (*value).into())).collect();
    let namespace = json!({"metadata": {"name": name, "labels": labels}});
    ask(server, "POST", "/api/v1/namespaces", Some(namespace)).await.expect(201);
}

fn good(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["securityContext"] = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    pod["spec"]["containers"][0]["securityContext"] = context;
    pod
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_worse_than_its_namespace_wants_is_refused_whatever_the_request() {
    let server = server();
    namespace(&server, "strict", &[("enforce", "restricted")]).await;
    let pods = "/api/v1/namespaces/strict/pods";
    let want = format!("pods \"bad\" is forbidden: violates PodSecurity \"restricted:latest\": {WRONG}");
    for (method, path) in [
        ("POST", pods.to_owned()),
        ("POST", format!("{pods}?dryRun=All")),
        ("PATCH", format!("{pods}/bad?fieldManager=m")),
    ] {
        let mut bad = pod("bad");
        bad["metadata"]["namespace"] = "strict".into();
        let (code, refused, warnings) = tell(&server, method, &path, &bad).await;
        assert_eq!((code, refused["message"].as_str()), (403, Some(&*want)), "{method} {path}");
        assert_eq!(refused["details"], json!({"name": "bad", "kind": "pods"}));
        assert_eq!(warnings, [""; 0]);
    }
    let (code, _, warnings) = tell(&server, "POST", pods, &good("good")).await;
    assert_eq!((code, warnings.len()), (201, 0));
    let mut unnamed = pod("x");
    unnamed["metadata"] = json!({"generateName": "web-"});
    let (_, refused, _) = tell(&server, "POST", pods, &unnamed).await;
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("pods \"web-") && !message.starts_with("pods \"web-\""), "{message}");

    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}});
    let (code, refused, _) = tell(&server, "PATCH", &format!("{pods}/good/ephemeralcontainers"), &debugger).await;
    assert_eq!(code, 403);
    assert!(refused["message"].as_str().unwrap().contains("container \"d\" must set"), "{refused}");
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let mut careful = debugger;
    careful["spec"]["ephemeralContainers"][0]["securityContext"] = context;
    let (code, ..) = tell(&server, "PATCH", &format!("{pods}/good/ephemeralcontainers"), &careful).await;
    assert_eq!(code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_before_is_looked_at_again_when_its_image_changes() {
    let server = server();
    namespace(&server, "n", &[]).await;
    let pods = "/api/v1/namespaces/n/pods";
    ask(&server, "POST", pods, Some(pod("old"))).await.expect(201);
    let stricter = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let (code, _, warnings) = tell(&server, "PATCH", "/api/v1/namespaces/n", &stricter).await;
    let reasons = "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile";
    let existing = "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"restricted:latest\"";
    assert_eq!((code, warnings), (200, vec![existing.to_owned(), format!("old: {reasons}")]));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(tell(&server, "PATCH", &format!("{pods}/old"), &labels).await.0, 200);
    let running = json!({"status": {"phase": "Running"}});
    assert_eq!(tell(&server, "PATCH", &format!("{pods}/old/status"), &running).await.0, 200);
    let image = json!({"spec": {"containers": [{"name": "c", "image": "other"}]}});
    let (code, ..) = tell(&server, "PATCH", &format!("{pods}/old"), &image).await;
    // A merge patch drops the rest of the container, so validation would refuse it as well.
    assert!(matches!(code, 403 | 422), "{code}");
    let mut changed = ask(&server, "GET", &format!("{pods}/old"), None).await.expect(200);
    changed["spec"]["containers"][0]["image"] = "other".into();
    assert_eq!(tell(&server, "PUT", &format!("{pods}/old"), &changed).await.0, 403);
    // Nothing is said about a level that is not stricter.
    let relaxed = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    assert_eq!(tell(&server, "PATCH", "/api/v1/namespaces/n", &relaxed).await.2, [""; 0]);
    assert_eq!(tell(&server, "PUT", &format!("{pods}/old"), &changed).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn who_writes_what_will_be_refused_is_warned() {
    let server = server();
    namespace(&server, "n", &[("enforce", "restricted"), ("enforce-version", "v1.20")]).await;
    namespace(&server, "w", &[("warn", "restricted")]).await;
    namespace(&server, "q", &[("enforce", "restricted"), ("warn", "privileged"), ("audit", "restricted")]).await;
    let labels = json!({"a": "b"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut once = template.clone();
    once["spec"]["restartPolicy"] = "Never".into();
    let spec = json!({"selector": {"matchLabels": labels}, "serviceName": "s", "template": template});
    let strict = json!({"selector": {"matchLabels": labels}, "template": template});
    let of = |spec: &Value| json!({"metadata": {"name": "x"}, "spec": spec});
    let kinds = [
        ("/apis/apps/v1", "deployments", of(&strict)),
        ("/apis/apps/v1", "replicasets", of(&strict)),
        ("/apis/apps/v1", "daemonsets", of(&strict)),
        ("/apis/apps/v1", "statefulsets", of(&spec)),
        ("/apis/batch/v1", "jobs", of(&json!({"template": once}))),
        (
            "/apis/batch/v1",
            "cronjobs",
            of(&json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once}}})),
        ),
        ("/api/v1", "replicationcontrollers", of(&json!({"selector": labels, "template": template}))),
        ("/api/v1", "podtemplates", json!({"metadata": {"name": "x"}, "template": template})),
    ];
    let of_1_20 = WRONG.replace(
        "unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), ",
        "",
    );
    for (root, plural, object) in kinds {
        let at = |namespace: &str| format!("{root}/namespaces/{namespace}/{plural}");
        let (code, _, warnings) = tell(&server, "POST", &at("n"), &object).await;
        let want = format!("would violate PodSecurity \"restricted:v1.20\": {of_1_20}");
        assert_eq!((code, warnings), (201, vec![want]), "{plural}");
        let (_, _, warnings) = tell(&server, "POST", &at("w"), &object).await;
        assert_eq!(warnings, [format!("would violate PodSecurity \"restricted:latest\": {WRONG}")], "{plural}");
        assert_eq!(tell(&server, "POST", &at("q"), &object).await.2, [""; 0], "{plural}");
        let relabelled = json!({"metadata": {"labels": {"c": "d"}}});
        assert_eq!(tell(&server, "PATCH", &format!("{}/x", at("n")), &relabelled).await.2.len(), 1, "{plural}");
    }
    let status = json!({"status": {"replicas": 1}});
    let scale = json!({"spec": {"replicas": 2}});
    for (part, body) in [("status", status), ("scale", scale)] {
        let path = format!("/apis/apps/v1/namespaces/n/deployments/x/{part}");
        assert_eq!(tell(&server, "PATCH", &path, &body).await.2, [""; 0], "{part}");
    }
    let (code, _, warnings) = tell(&server, "POST", "/api/v1/namespaces/w/pods", &pod("p")).await;
    assert_eq!((code, warnings), (201, vec![format!("would violate PodSecurity \"restricted:latest\": {WRONG}")]));
}

#[tokio::test(start_paused = true)]
async fn wrong_labels_of_a_namespace_are_refused_unless_they_are_old() {
    let server = server();
    let labels = |level: &str| json!({"pod-security.kubernetes.io/enforce": level});
    let wrong = json!({"metadata": {"name": "n", "labels": labels("high")}});
    let (code, refused, _) = tell(&server, "POST", "/api/v1/namespaces", &wrong).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "Namespace \"n\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"high\": must be \
         one of privileged, baseline, restricted"
    );
    namespace(&server, "n", &[("enforce", "baseline")]).await;
    let patch = json!({"metadata": {"labels": labels("high")}});
    assert_eq!(tell(&server, "PATCH", "/api/v1/namespaces/n", &patch).await.0, 422);
    let patch = json!({"metadata": {"labels": {"pod-security.kubernetes.io/warn-version": "1.2"}}});
    assert_eq!(tell(&server, "PATCH", "/api/v1/namespaces/n", &patch).await.0, 422);
    // The status is written by others, who cannot help it.
    let status = json!({"metadata": {"labels": labels("high")}, "status": {"phase": "Active"}});
    assert_eq!(tell(&server, "PATCH", "/api/v1/namespaces/n/status", &status).await.0, 200);
    let patch = json!({"metadata": {"annotations": {"a": "b"}}});
    assert_eq!(tell(&server, "PATCH", "/api/v1/namespaces/n", &patch).await.0, 200);
}
