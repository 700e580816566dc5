//! Admission webhooks on the embedded server beside kube-apiserver: the same webhooks, the same requests, the same words.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authorization, Options};

use crate::frame::kube_apiserver;

#[path = "../scenarios/webhooks/server.rs"]
mod server;

use server::{HookServer, Reply, serve};

const NAMESPACE: &str = "compare-webhooks";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// Webhooks of one configuration, how they answer, and what is asked of the server.
struct Row {
    name: &'static str,
    kind: &'static str,
    /// The fields of each webhook, and its answer.
    webhooks: Vec<(Value, Reply)>,
    method: &'static str,
}

const MUTATING: &str = "mutatingwebhookconfigurations";
const VALIDATING: &str = "validatingwebhookconfigurations";

fn row(name: &'static str, reply: Reply) -> Row {
    Row { name, kind: MUTATING, webhooks: vec![(json!({}), reply)], method: "POST" }
}

fn validating(name: &'static str, reply: Reply) -> Row {
    Row { kind: VALIDATING, ..row(name, reply) }
}

fn rows() -> Vec<Row> {
    let answer = |response: Value| Reply::answer(response);
    let patch = |operations: Value| Reply::patch(&operations);
    let review = |body: Value| Reply::Bytes(200, "application/json", body.to_string().into_bytes());
    let mut rows = vec![
        row("garbage", Reply::text(200, "hello")),
        row("half", Reply::text(200, "{\"kind\":")),
        row("a-list", Reply::text(200, "[]")),
        row("nothing", Reply::text(200, "")),
        row("error-500", Reply::text(500, "oh \"no\"\n")),
        row("error-404", Reply::text(404, "x")),
        row("error-400", Reply::text(400, "x")),
        row("error-503", Reply::text(503, "x")),
        row("error-418", Reply::text(418, "x")),
        row("an-empty-object", Reply::text(200, "{}")),
        row("no-response", review(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}))),
        row(
            "another-version",
            review(json!({
                "apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {"allowed": true},
            })),
        ),
        row("another-kind", review(json!({"apiVersion": "v1", "kind": "Pod"}))),
        row("uid-lies", answer(json!({"uid": "lie", "allowed": true}))),
        row("allowed-text", answer(json!({"allowed": "yes"}))),
        row("patch-without-type", answer(json!({"allowed": true, "patch": "W10="}))),
        row("type-without-patch", answer(json!({"allowed": true, "patchType": "JSONPatch"}))),
        row(
            "type-unknown",
            answer(json!({
                "allowed": true, "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d", "patchType": "Merge",
            })),
        ),
        row("patch-no-base64", answer(json!({"allowed": true, "patch": "?", "patchType": "JSONPatch"}))),
        row("patch-no-list", answer(json!({"allowed": true, "patch": "e30=", "patchType": "JSONPatch"}))),
        row("patch-no-json", answer(json!({"allowed": true, "patch": "eA==", "patchType": "JSONPatch"}))),
        row("patch-missing-path", patch(json!([{"op": "add", "path": "/x/y", "value": 1}]))),
        row("patch-missing-key", patch(json!([{"op": "remove", "path": "/data/none"}]))),
        row("patch-replaces-nothing", patch(json!([{"op": "replace", "path": "/data/none", "value": "x"}]))),
        row("patch-fails-test", patch(json!([{"op": "test", "path": "/data/a", "value": "x"}]))),
        row("patch-unknown-operation", patch(json!([{"op": "mend", "path": "/data/a"}]))),
        row("patch-breaks-types", patch(json!([{"op": "replace", "path": "/data", "value": "x"}]))),
        row("patch-applies", patch(json!([{"op": "add", "path": "/data/b", "value": "x"}]))),
        row("patch-breaks-rules", patch(json!([{"op": "add", "path": "/data/a b", "value": "x"}]))),
        row("denied", answer(json!({"allowed": false}))),
        row("denied-message", answer(json!({"allowed": false, "status": {"message": "no", "code": 403}}))),
        row("denied-reason", answer(json!({"allowed": false, "status": {"reason": "Because"}}))),
        row("denied-success", answer(json!({"allowed": false, "status": {"status": "Success", "code": 200}}))),
        validating(
            "validating-denied",
            answer(json!({"allowed": false, "status": {"message": "no", "code": 409, "reason": "Conflict"}})),
        ),
        validating("validating-patch", patch(json!([{"op": "add", "path": "/data/b", "value": "x"}]))),
        validating("validating-allows", answer(json!({"allowed": true}))),
        row("closed", Reply::Close),
    ];
    rows.extend(with_fields());
    rows.extend(of_several());
    rows.extend(with_conditions());
    rows
}

/// Webhooks with other fields than all have.
fn with_fields() -> Vec<Row> {
    let with =
        |name, kind, fields: Value, reply| Row { kind, webhooks: vec![(fields, reply)], ..row(name, Reply::allow()) };
    let other = json!({"clientConfig": {"caBundle": server::authority_of_nobody()}});
    let breaks = Reply::patch(&json!([{"op": "add", "path": "/x/y", "value": 1}]));
    let adds = || Reply::patch(&json!([{"op": "add", "path": "/data/b", "value": "x"}]));
    let ignored = || json!({"failurePolicy": "Ignore"});
    vec![
        with("hangs", MUTATING, json!({"timeoutSeconds": 1}), Reply::Hang),
        with("hangs-ignored", MUTATING, json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"}), Reply::Hang),
        with("validating-hangs", VALIDATING, json!({"timeoutSeconds": 1}), Reply::Hang),
        with("not-believed", MUTATING, other, Reply::allow()),
        with("garbage-ignored", MUTATING, ignored(), Reply::text(200, "hello")),
        with("denied-not-ignored", MUTATING, ignored(), Reply::deny("no")),
        with("patch-fails-not-ignored", MUTATING, ignored(), breaks),
        with("old-review", MUTATING, json!({"admissionReviewVersions": ["v1beta1"]}), adds()),
        with("unknown-review", MUTATING, json!({"admissionReviewVersions": ["v9", "v1"]}), adds()),
        with("no-side-effects-in-dry-runs", MUTATING, json!({"sideEffects": "NoneOnDryRun"}), adds()),
        Row { method: "PUT", ..row("put", adds()) },
        Row { method: "DELETE", ..row("delete", Reply::allow()) },
        Row { method: "DELETE", ..row("delete-denied", Reply::deny("keep it")) },
        Row { method: "DELETE", ..row("delete-patched", adds()) },
        Row { method: "DELETE", ..validating("validating-delete-denied", Reply::deny("keep it")) },
    ]
}

/// Several webhooks of one configuration: order, reinvocation, who is heard.
fn of_several() -> Vec<Row> {
    let adds = |key: &str| Reply::patch(&json!([{"op": "add", "path": format!("/data/{key}"), "value": "x"}]));
    let again = || json!({"reinvocationPolicy": "IfNeeded"});
    let several = |name, kind, webhooks| Row { kind, webhooks, ..row(name, Reply::allow()) };
    vec![
        several("reinvoked", MUTATING, vec![(again(), adds("first")), (json!({}), adds("second"))]),
        several("reinvoked-both", MUTATING, vec![(again(), adds("first")), (again(), adds("second"))]),
        several("not-reinvoked", MUTATING, vec![(json!({}), adds("first")), (json!({}), adds("second"))]),
        several("reinvoked-for-nothing", MUTATING, vec![(again(), adds("first")), (json!({}), Reply::allow())]),
        several("first-denies", MUTATING, vec![(json!({}), Reply::deny("one")), (json!({}), Reply::deny("two"))]),
        several("only-second-denies", VALIDATING, vec![(json!({}), Reply::allow()), (json!({}), Reply::deny("two"))]),
        several(
            "patched-then-denied",
            MUTATING,
            vec![(json!({}), adds("first")), (json!({}), Reply::text(500, "broken"))],
        ),
    ]
}

/// Webhooks that are asked only if conditions hold.
fn with_conditions() -> Vec<Row> {
    const MISSING: &str = "object.data.none == 'x'";
    const DEAR: &str = "[1, 2, 3].all(i, authorizer.path('/a').check('get').allowed())";
    let rows: &[(&str, &str, &str, &[&str])] = &[
        ("condition-true", MUTATING, "Fail", &["object.data.a == 'b'"]),
        ("condition-false", MUTATING, "Fail", &["object.data.a == 'c'"]),
        ("condition-fails", MUTATING, "Fail", &[MISSING]),
        ("condition-fails-validating", VALIDATING, "Fail", &[MISSING]),
        ("condition-fails-ignored", MUTATING, "Ignore", &[MISSING]),
        ("condition-fails-and-false", MUTATING, "Fail", &[MISSING, "false"]),
        ("condition-fails-and-true", MUTATING, "Fail", &["true", MISSING]),
        ("condition-fails-twice", MUTATING, "Fail", &[MISSING, "object.spec.x == 1"]),
        ("condition-null", MUTATING, "Fail", &["oldObject == null && namespaceObject == null"]),
        ("condition-of-null", MUTATING, "Fail", &["oldObject.data.a == 'b'"]),
        ("condition-of-namespace", MUTATING, "Fail", &["namespaceObject.metadata.name == 'x'"]),
        ("condition-kind", MUTATING, "Fail", &["object.kind == 'ConfigMap' && object.apiVersion == 'v1'"]),
        ("condition-request", MUTATING, "Fail", &["request.operation == 'CREATE' && request.dryRun"]),
        ("condition-names", MUTATING, "Fail", &["request.name == 'a' && request.namespace == 'compare-webhooks'"]),
        (
            "condition-kinds",
            MUTATING,
            "Fail",
            &["request.kind.kind == 'ConfigMap' && request.requestKind.version == 'v1'"],
        ),
        (
            "condition-resource",
            MUTATING,
            "Fail",
            &["request.resource.resource == 'configmaps' && request.resource.group == ''"],
        ),
        ("condition-no-part", MUTATING, "Fail", &["has(request.subResource)"]),
        ("condition-of-no-part", MUTATING, "Fail", &["request.subResource == ''"]),
        ("condition-masters", MUTATING, "Fail", &["'system:masters' in request.userInfo.groups"]),
        ("condition-options", MUTATING, "Fail", &["request.options.kind == 'CreateOptions'"]),
        ("condition-dry-options", MUTATING, "Fail", &["request.options.dryRun == ['All']"]),
        ("condition-no-labels", MUTATING, "Fail", &["has(object.metadata.labels)"]),
        ("condition-created", MUTATING, "Fail", &["has(object.metadata.creationTimestamp)"]),
        (
            "condition-of-created",
            VALIDATING,
            "Fail",
            &["timestamp(object.metadata.creationTimestamp) > timestamp('2020-01-01T00:00:00Z')"],
        ),
        ("condition-size", MUTATING, "Fail", &["size(object.data) == 1 && object.data == {'a': 'b'}"]),
        ("condition-key-type", MUTATING, "Fail", &["object.data[1] == 'b'"]),
        ("condition-in", MUTATING, "Fail", &["'a' in object.data"]),
        ("condition-key-type-in", MUTATING, "Fail", &["1 in object.data"]),
        ("condition-overload", MUTATING, "Fail", &["object.data.a > 1"]),
        ("condition-index", MUTATING, "Fail", &["object.data.a[0] == 'b'"]),
        ("condition-optional", MUTATING, "Fail", &["object.?spec.?replicas.orValue(3) == 3"]),
        ("condition-allowed", MUTATING, "Fail", &["authorizer.requestResource.check('create').allowed()"]),
        (
            "condition-not-allowed",
            MUTATING,
            "Fail",
            &["authorizer.serviceAccount('default', 'nobody').group('').resource('pods').check('get').allowed()"],
        ),
        ("condition-reason", MUTATING, "Fail", &["authorizer.path('/x').check('get').reason() == ''"]),
        ("condition-no-path", MUTATING, "Fail", &["authorizer.path('').check('get').allowed()"]),
        (
            "condition-bad-account",
            MUTATING,
            "Fail",
            &["authorizer.serviceAccount('N', 'a').path('/').check('get').allowed()"],
        ),
        ("condition-dear", MUTATING, "Fail", &[DEAR]),
        ("condition-over-budget", MUTATING, "Fail", &["false", DEAR, DEAR, DEAR]),
        ("condition-over-budget-ignored", MUTATING, "Ignore", &[DEAR, DEAR, DEAR]),
    ];
    let row_of = |(name, kind, policy, expressions): &(&'static str, &'static str, &str, &[&str])| {
        let fields = json!({"failurePolicy": policy, "matchConditions": conditions(expressions)});
        Row { kind, webhooks: vec![(fields, Reply::allow())], ..row(name, Reply::allow()) }
    };
    rows.iter().map(row_of).collect()
}

fn conditions(expressions: &[&str]) -> Value {
    let named = |(at, expression): (usize, &&str)| json!({"name": format!("c{at}"), "expression": expression});
    expressions.iter().enumerate().map(named).collect()
}

/// Fields with which a webhook cannot be configured.
fn refused() -> Vec<(&'static str, Value)> {
    let rules = |fields: Value| {
        let mut rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
        for (field, value) in fields.as_object().into_iter().flatten() {
            rule[field] = value.clone();
        }
        json!({"rules": [rule]})
    };
    let condition = |expression: &str| json!({"matchConditions": [{"name": "a", "expression": expression}]});
    let service = |fields: Value| json!({"clientConfig": {"url": null, "caBundle": "", "service": fields}});
    let url = |url: &str| json!({"clientConfig": {"url": url, "caBundle": ""}});
    let many: Value = (0..65).map(|at| json!({"name": format!("c{at}"), "expression": "true"})).collect();
    vec![
        ("no name", json!({"name": ""})),
        ("a short name", json!({"name": "a.b"})),
        ("a name with capitals", json!({"name": "A.example.dev"})),
        ("side effects", json!({"sideEffects": "Some"})),
        ("unknown side effects", json!({"sideEffects": "Unknown"})),
        ("no side effects", json!({"sideEffects": null})),
        ("no time", json!({"timeoutSeconds": 0})),
        ("too much time", json!({"timeoutSeconds": 31})),
        ("a failure policy", json!({"failurePolicy": "Retry"})),
        ("a match policy", json!({"matchPolicy": "Close"})),
        ("a reinvocation policy", json!({"reinvocationPolicy": "Always"})),
        ("no versions", json!({"admissionReviewVersions": []})),
        ("unknown versions", json!({"admissionReviewVersions": ["v2"]})),
        ("a version twice", json!({"admissionReviewVersions": ["v1", "v1"]})),
        ("a version that is none", json!({"admissionReviewVersions": ["V1", "v1"]})),
        ("a selector", json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}})),
        ("a label", json!({"namespaceSelector": {"matchLabels": {"a b": "c d"}}})),
        ("no operation", rules(json!({"operations": []}))),
        ("an operation", rules(json!({"operations": ["WATCH"]}))),
        ("all operations and one", rules(json!({"operations": ["*", "CREATE"]}))),
        ("no group", rules(json!({"apiGroups": []}))),
        ("all groups and one", rules(json!({"apiGroups": ["*", "apps"]}))),
        ("no version", rules(json!({"apiVersions": []}))),
        ("an empty version", rules(json!({"apiVersions": [""]}))),
        ("no resource", rules(json!({"resources": []}))),
        ("an empty resource", rules(json!({"resources": [""]}))),
        ("all resources and one", rules(json!({"resources": ["*", "pods"]}))),
        ("all of all and one", rules(json!({"resources": ["*/*", "pods"]}))),
        ("all parts and one", rules(json!({"resources": ["pods/*", "pods/status"]}))),
        ("a part of all and one", rules(json!({"resources": ["*/status", "pods/status"]}))),
        ("a scope", rules(json!({"scope": "Everywhere"}))),
        ("nowhere", json!({"clientConfig": {"url": null, "caBundle": ""}})),
        ("a plain url", url("http://example.dev")),
        ("no host", url("https:///x")),
        ("a user", url("https://me@example.dev")),
        ("a fragment", url("https://example.dev/#x")),
        ("a query", url("https://example.dev/?x=y")),
        ("no url", url("a b")),
        ("an empty url", url("")),
        ("a port that is none", url("https://example.dev:x")),
        ("a service without a name", service(json!({"namespace": "a"}))),
        ("a service without a namespace", service(json!({"name": "a"}))),
        ("a service with a port", service(json!({"name": "a", "namespace": "a", "port": 70000}))),
        ("a service with a path", service(json!({"name": "a", "namespace": "a", "path": "x//y"}))),
        ("an empty condition", condition("  ")),
        ("a condition without a name", json!({"matchConditions": [{"expression": "true"}]})),
        ("a condition with a name", json!({"matchConditions": [{"name": "a b", "expression": "true"}]})),
        ("a condition with a long name", json!({"matchConditions": [{"name": "a".repeat(70), "expression": "true"}]})),
        (
            "a condition twice",
            json!({"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "false"}]}),
        ),
        ("many conditions", json!({"matchConditions": many})),
        ("a condition that does not parse", condition("object.a ==")),
        ("a condition of a text", condition("'text'")),
        ("a condition of anything", condition("object.spec.a")),
        ("a condition of a list", condition("[1, 2]")),
        ("a condition of null", condition("null")),
        ("a condition of a time", condition("timestamp('2020-01-01T00:00:00Z')")),
        ("a condition of a duration", condition("duration('1s')")),
        ("a condition of the authorizer", condition("authorizer")),
        ("a condition with parameters", condition("params.a == 1")),
        ("a condition with variables", condition("variables.a == 1")),
        ("a condition about itself", condition("self.a == 1")),
        ("a field that no request has", condition("request.object == null")),
        ("a field of a kind", condition("request.kind.name == ''")),
        ("types that do not compare", condition("request.name == 1")),
        ("a function", condition("frob(object)")),
        ("a check of no check", condition("authorizer.check('get').allowed()")),
        ("a decision as a condition", condition("authorizer.path('/').check('get')")),
        ("a pattern", condition("object.a.matches('[')")),
        ("a constant time", condition("timestamp('x') == timestamp('y')")),
        ("a type as a value", condition("kubernetes.AdmissionRequest == null")),
    ]
}

async fn clients() -> (Client, Client) {
    let ours = Client::new(ApiServer::new(Options::default().authorization(Authorization::Rbac)), "default");
    (ours, kube_apiserver().await)
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.header("accept", "application/json").body(Body::from(body.to_string().into_bytes()));
    let response = client.send(request.unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// Returns code, reason, message and data of the answer, and which webhooks were asked for it.
async fn outcome(client: &Client, hooks: &HookServer, row: &Row) -> Value {
    let collection = format!("{CONFIGURATIONS}/{}", row.kind);
    // Shows that the server knows the configuration: it is asked first, and allows everything.
    let marker = json!({"name": "marker.example.dev", "path": "/marker", "failurePolicy": "Ignore"});
    let fields = row.webhooks.iter().enumerate().map(|(at, (fields, _))| {
        let mut fields = fields.clone();
        fields["name"] = format!("{}-{at}.example.dev", row.name).into();
        fields["path"] = format!("/{}-{at}", row.name).into();
        fields
    });
    let webhooks = std::iter::once(marker).chain(fields).map(|mut fields| {
        fields["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}});
        hooks.webhook(fields)
    });
    let body = json!({"metadata": {"name": "compare"}, "webhooks": webhooks.collect::<Vec<_>>()});
    let (code, made) = send(client, "POST", &collection, &body).await;
    assert_eq!(code, 201, "{}: {made}", row.name);
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let (path, config_map, good) = match row.method {
        "POST" => (format!("{maps}?dryRun=All"), json!({"metadata": {"name": "a"}, "data": {"a": "b"}}), 201),
        "PUT" => (format!("{maps}/held?dryRun=All"), json!({"metadata": {"name": "held"}, "data": {"a": "c"}}), 200),
        _ => (format!("{maps}/held?dryRun=All"), json!({}), 200),
    };
    let mut got = (0, Value::Null);
    let mut asked = Vec::new();
    // kube-apiserver notices configurations after a while.
    for _ in 0..100 {
        let before = hooks.paths().len();
        got = send(client, row.method, &path, &config_map).await;
        asked = hooks.paths().split_off(before);
        if got.0 != good || !asked.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    send(client, "DELETE", &format!("{collection}/compare"), &json!({})).await;
    // Nor does it forget them at once.
    for _ in 0..100 {
        let before = hooks.paths().len();
        let (code, _) = send(client, row.method, &path, &config_map).await;
        if code == good && hooks.paths().len() == before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (code, body) = got;
    let message = body["message"].as_str().unwrap_or_default().replace(&hooks.address.to_string(), "ADDRESS");
    // Go guesses why it does not know an authority.
    let message = message.split(" (possibly because of ").next().unwrap_or_default().to_owned();
    asked.sort();
    json!({
        "code": code, "reason": body["reason"], "message": without_uid(&message), "data": body["data"], "asked": asked,
    })
}

/// Returns a message without the uid of the question.
fn without_uid(message: &str) -> String {
    match message.split_once("response.uid=\"") {
        Some((before, after)) => {
            format!("{before}response.uid=\"{}", after.split_once('"').map_or("", |(_, rest)| rest))
        }
        None => message.to_owned(),
    }
}

/// Prints what differs, and fails if anything does.
fn judge(different: &[String], count: usize) {
    println!("{} of {count} differ", different.len());
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
}

#[tokio::test]
async fn webhooks_are_answered_as_kube_apiserver_answers_them() {
    let (ours, theirs) = clients().await;
    let rows = rows();
    let replies: Vec<(String, Reply)> = rows
        .iter()
        .flat_map(|row| {
            let replies = row.webhooks.iter().enumerate();
            replies.map(|(at, (_, reply))| (format!("/{}-{at}", row.name), reply.clone()))
        })
        .collect();
    let hooks = serve(move |path, _| {
        replies.iter().find(|(held, _)| held == path).map_or_else(Reply::allow, |(_, reply)| reply.clone())
    })
    .await;
    for client in [&ours, &theirs] {
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        send(client, "POST", "/api/v1/namespaces", &namespace).await;
        let held = json!({"metadata": {"name": "held"}, "data": {"a": "b"}});
        send(client, "POST", &format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), &held).await;
    }
    let mut different = Vec::new();
    for row in &rows {
        let here = outcome(&ours, &hooks, row).await;
        let there = outcome(&theirs, &hooks, row).await;
        if here != there {
            different.push(format!("{}:\n  here  {here}\n  there {there}", row.name));
        }
    }
    judge(&different, rows.len());
}

#[tokio::test]
async fn webhooks_that_cannot_be_configured_are_refused_as_kube_apiserver_refuses_them() {
    let (ours, theirs) = clients().await;
    let hooks = serve(|_, _| Reply::allow()).await;
    let rows = refused();
    let mut different = Vec::new();
    for kind in [MUTATING, VALIDATING] {
        let collection = format!("{CONFIGURATIONS}/{kind}?dryRun=All");
        for (name, fields) in &rows {
            let webhook = hooks.webhook(fields.clone());
            let body = json!({"metadata": {"name": "refused"}, "webhooks": [webhook]});
            let answer = async |client: &Client| {
                let (code, body) = send(client, "POST", &collection, &body).await;
                json!({"code": code, "reason": body["reason"], "message": body["message"], "details": body["details"]})
            };
            let here = answer(&ours).await;
            let there = answer(&theirs).await;
            if here != there {
                different.push(format!("{kind}, {name}:\n  here  {here}\n  there {there}"));
            }
        }
    }
    judge(&different, rows.len() * 2);
}
