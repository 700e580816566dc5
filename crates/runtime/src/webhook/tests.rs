use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use prometheus::Registry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Admission, Denial, Mutated, Operation, Verdict, Versions, WebhookMetrics, WebhookServer};
use crate::serving::{Request, ServeOptions, Service};

#[derive(Serialize, Deserialize)]
struct Site {
    #[serde(default)]
    spec: SiteSpec,
}

#[derive(Default, Serialize, Deserialize)]
struct SiteSpec {
    #[serde(default)]
    hosts: Vec<String>,
    replicas: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct SiteV1 {
    spec: SiteV1Spec,
}

#[derive(Serialize, Deserialize)]
struct SiteV1Spec {
    host: String,
    replicas: Option<u32>,
}

impl From<SiteV1> for Site {
    fn from(SiteV1 { spec: SiteV1Spec { host, replicas } }: SiteV1) -> Self {
        Self { spec: SiteSpec { hosts: vec![host], replicas } }
    }
}

impl TryFrom<Site> for SiteV1 {
    type Error = String;
    fn try_from(site: Site) -> Result<Self, String> {
        let mut hosts = site.spec.hosts.into_iter();
        match (hosts.next(), hosts.next()) {
            (Some(host), None) => Ok(Self { spec: SiteV1Spec { host, replicas: site.spec.replicas } }),
            _ => Err("v1 has one host".to_owned()),
        }
    }
}

async fn check(admission: Admission<Site>) -> Result<Verdict, Denial> {
    if admission.operation == Operation::Delete {
        let user = &admission.user.username;
        return Ok(if user == "root" { Verdict::allow() } else { Verdict::deny(format!("{user} may not delete")) });
    }
    let replicas = admission.object()?.spec.replicas;
    assert_ne!(replicas, Some(99), "a bug");
    match replicas {
        Some(0) => Ok(Verdict::allow().warn("nobody is served").annotate("dry-run", admission.dry_run.to_string())),
        Some(7..) => Err(Denial::invalid("at most 6").cause("spec.replicas", "FieldValueInvalid", "7 is too many")),
        _ => Ok(Verdict::allow()),
    }
}

async fn default_replicas(mut admission: Admission<Site>) -> Result<Mutated<Site>, Denial> {
    let mut site = admission.take_object()?;
    match site.spec.replicas {
        Some(0) => Err(Denial::forbidden("none is too few")),
        Some(1) => Ok(Mutated::unchanged().warn("one is few")),
        Some(_) => Ok(site.into()),
        None => {
            site.spec.replicas = Some(2);
            Ok(Mutated::from(site).annotate("defaulted", "replicas"))
        }
    }
}

fn server() -> WebhookServer {
    let versions = Versions::<Site>::hub("example.com/v2").version::<SiteV1>("example.com/v1");
    WebhookServer::new(ServeOptions::default())
        .validate("/check", check)
        .mutate("/default", default_replicas)
        .convert("/convert", versions)
        .convert("/broken", |object: Value, _: &str| match object["spec"].as_str() {
            Some("panic") => panic!("a bug"),
            other => Ok(json!(other)),
        })
}

fn post(path: &str, body: impl Into<Bytes>) -> Request {
    http::Request::post(path).header("content-type", "application/json").body(body.into()).unwrap()
}

fn review(operation: &str, object: &Value, old_object: &Value) -> String {
    let kind = json!({"group": "example.com", "version": "v2", "kind": "Site"});
    let resource = json!({"group": "example.com", "version": "v2", "resource": "sites"});
    let request = json!({
        "uid": "u-1", "kind": kind, "resource": resource, "name": "a", "namespace": "default", "operation": operation,
        "userInfo": {"username": "jane", "groups": ["g"]}, "object": object, "oldObject": old_object, "dryRun": true,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    });
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).to_string()
}

async fn ask(path: &str, body: String) -> Value {
    let response = server().respond(post(path, body)).await;
    assert_eq!(response.status(), StatusCode::OK, "{:?}", response.body());
    let review: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(review["response"]["uid"], "u-1");
    review
}

#[tokio::test]
async fn a_verdict_is_a_review_with_the_uid_of_the_question() {
    let site = |replicas: u32| json!({"spec": {"replicas": replicas}});
    let invalid = json!({
        "status": "Failure", "code": 422, "reason": "Invalid", "message": "at most 6",
        "details": {"causes": [{"reason": "FieldValueInvalid", "message": "7 is too many", "field": "spec.replicas"}]},
    });
    let unknown = "the object is not as this webhook knows Site: invalid type: string \"x\", expected u32";
    let unknown = json!({"status": "Failure", "code": 400, "reason": "BadRequest", "message": unknown});
    let forbidden = json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": "jane may not delete"});
    let few = json!({"uid": "u-1", "allowed": true, "warnings": ["nobody is served"], "auditAnnotations": {"dry-run": "true"}});
    let denied = |status: Value| json!({"uid": "u-1", "allowed": false, "status": status});
    let rows = [
        ("allowed", review("CREATE", &site(1), &Value::Null), json!({"uid": "u-1", "allowed": true})),
        ("with a warning", review("UPDATE", &site(0), &site(1)), few),
        ("denied", review("UPDATE", &site(7), &site(1)), denied(invalid)),
        ("deleted by another", review("DELETE", &Value::Null, &site(1)), denied(forbidden)),
        ("of another shape", review("CREATE", &json!({"spec": {"replicas": "x"}}), &Value::Null), denied(unknown)),
    ];
    for (name, question, want) in rows {
        let answer = ask("/check", question).await;
        assert_eq!(answer["response"], want, "{name}");
        assert_eq!(
            (&answer["kind"], &answer["apiVersion"]),
            (&json!("AdmissionReview"), &json!("admission.k8s.io/v1"))
        );
    }
}

#[tokio::test]
async fn a_mutation_is_a_patch_that_leaves_unknown_fields_alone() {
    let patch_of = |answer: &Value| -> Option<Value> {
        let patch = STANDARD.decode(answer["response"]["patch"].as_str()?).unwrap();
        assert_eq!(answer["response"]["patchType"], "JSONPatch");
        Some(serde_json::from_slice(&patch).unwrap())
    };
    let add = json!([{"op": "add", "path": "/spec/replicas", "value": 2}]);
    // name, object, whether it is allowed, the patch
    let rows = [
        ("changed", json!({"spec": {"unknown": [1]}, "status": {}}), true, Some(add)),
        (
            "no spec",
            json!({}),
            true,
            Some(json!([{"op": "add", "path": "/spec", "value": {"hosts": [], "replicas": 2}}])),
        ),
        ("as it was", json!({"spec": {"replicas": 3, "unknown": 1}}), true, None),
        ("unchanged", json!({"spec": {"replicas": 1}}), true, None),
        ("denied", json!({"spec": {"replicas": 0}}), false, None),
    ];
    for (name, object, allowed, want) in rows {
        let answer = ask("/default", review("CREATE", &object, &Value::Null)).await;
        assert_eq!(answer["response"]["allowed"], allowed, "{name}");
        assert_eq!(patch_of(&answer), want, "{name}");
    }
    let deleted = ask("/default", review("DELETE", &Value::Null, &json!({"spec": {}}))).await;
    assert_eq!(deleted["response"], json!({"uid": "u-1", "allowed": true}));
}

#[tokio::test]
async fn what_is_no_review_is_refused_with_the_reason() {
    let old = review("CREATE", &json!({}), &Value::Null).replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let no_uid = review("CREATE", &json!({}), &Value::Null).replace("\"uid\":\"u-1\",", "");
    let no_request = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}).to_string();
    let rows = [
        ("/check", String::new(), "the body is empty"),
        ("/check", "{".to_owned(), "the body is no AdmissionReview: EOF"),
        ("/check", "[]".to_owned(), "the body is no AdmissionReview"),
        ("/check", "{}".to_owned(), "only AdmissionReview of admission.k8s.io/v1 is understood"),
        ("/check", old, "\"admission.k8s.io/v1beta1\""),
        ("/default", no_request, "the AdmissionReview has no request"),
        ("/default", no_uid, "missing field `uid`"),
        ("/convert", review("CREATE", &json!({}), &Value::Null), "only ConversionReview of apiextensions.k8s.io/v1"),
    ];
    for (path, body, want) in rows {
        let response = server().respond(post(path, body.clone())).await;
        let text = String::from_utf8_lossy(response.body()).into_owned();
        assert_eq!((response.status(), text.contains(want)), (StatusCode::BAD_REQUEST, true), "{body}: {text}");
    }
    let get = http::Request::get("/check").body(Bytes::new()).unwrap();
    assert_eq!(server().respond(get).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    let yaml = http::Request::post("/check").header("content-type", "application/yaml").body(Bytes::new()).unwrap();
    assert_eq!(server().respond(yaml).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(server().respond(post("/other", "{}")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn objects_become_another_version_and_keep_their_metadata() {
    let meta = json!({"name": "a", "uid": "1", "labels": {"l": "1"}});
    let v1 =
        json!({"apiVersion": "example.com/v1", "kind": "Site", "metadata": meta, "spec": {"host": "h", "replicas": 1}});
    let v2 = json!({"apiVersion": "example.com/v2", "kind": "Site", "metadata": meta, "spec": {"hosts": ["h"], "replicas": 1}});
    let two = json!({"apiVersion": "example.com/v2", "kind": "Site", "metadata": meta, "spec": {"hosts": ["h", "i"]}});
    let failure = |message: &str| json!({"uid": "u-1", "result": {"status": "Failure", "message": message}});
    let success = |objects: Value| json!({"uid": "u-1", "convertedObjects": objects, "result": {"status": "Success"}});
    let no_v3 = "Site a of example.com/v1 cannot be converted to example.com/v3: \"example.com/v3\" is none of the \
                 versions example.com/v1, example.com/v2";
    let one_host = "Site a of example.com/v2 cannot be converted to example.com/v1: v1 has one host";
    let rows = [
        ("up", "/convert", "v2", json!([v1, v2]), success(json!([v2, v2]))),
        ("down", "/convert", "v1", json!([v2, v1]), success(json!([v1, v1]))),
        ("none", "/convert", "v1", json!([]), success(json!([]))),
        ("what does not fit", "/convert", "v1", json!([v1, two]), failure(one_host)),
        ("to an unknown version", "/convert", "v3", json!([v1]), failure(no_v3)),
    ];
    for (name, path, version, objects, want) in rows {
        let desired = format!("example.com/{version}");
        let request = json!({"uid": "u-1", "desiredAPIVersion": desired, "objects": objects});
        let review = json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request});
        assert_eq!(ask(path, review.to_string()).await["response"], want, "{name}");
    }
}

#[tokio::test]
async fn a_panic_is_answered_with_500_and_counted() {
    let registry = Registry::new();
    let server = server().metrics(WebhookMetrics::register(&registry).unwrap());
    let conversion = |spec: &str| {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Site", "metadata": {}, "spec": spec});
        let request = json!({"uid": "u-1", "desiredAPIVersion": "example.com/v2", "objects": [object]});
        json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}).to_string()
    };
    let admission = |replicas: u32| review("CREATE", &json!({"spec": {"replicas": replicas}}), &Value::Null);
    let rows = [
        ("/check", admission(99), 500),
        ("/check", admission(1), 200),
        ("/broken", conversion("panic"), 500),
        ("/broken", conversion("no object"), 200),
    ];
    for (path, body, want) in rows {
        assert_eq!(server.respond(post(path, body)).await.status(), want, "{path}");
    }
    let families = registry.gather();
    let value = |name: &str, labels: &[(&str, &str)]| -> f64 {
        let family = families.iter().find(|family| family.name() == name).unwrap();
        let has = |metric: &prometheus::proto::Metric, (name, value): &(&str, &str)| {
            metric.get_label().iter().any(|label| label.name() == *name && label.value() == *value)
        };
        let metric = family.get_metric().iter().find(|metric| labels.iter().all(|label| has(metric, label))).unwrap();
        let histogram = metric.get_histogram().get_sample_count() as f64;
        metric.get_counter().get_value() + metric.get_gauge().get_value() + histogram
    };
    assert_eq!(value("controller_runtime_webhook_panics_total", &[]), 1.0);
    assert_eq!(value("controller_runtime_conversion_webhook_panics_total", &[]), 1.0);
    for (path, code) in [("/check", "200"), ("/check", "500"), ("/broken", "200"), ("/broken", "500")] {
        assert_eq!(value("controller_runtime_webhook_requests_total", &[("webhook", path), ("code", code)]), 1.0);
    }
    assert_eq!(value("controller_runtime_webhook_latency_seconds", &[("webhook", "/check")]), 2.0);
    assert_eq!(value("controller_runtime_webhook_requests_in_flight", &[("webhook", "/check")]), 0.0);
}

#[test]
#[should_panic(expected = "there are two webhooks at /check")]
fn two_webhooks_need_two_paths() {
    let _ = server().validate("/check", check);
}
