//! Conversion webhooks: objects of a definition, stored in one version and served in two.

#![allow(clippy::needless_pass_by_value, reason = "tests write values in place")]

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use super::{HookServer, Reply, serve};
use crate::support::{ask, server as api_server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.dev/v1/namespaces/default/crates";
/// How many requests may wait for webhooks at a time.
const CALLS_MAX: usize = 128;
const V2: &str = "/apis/example.dev/v2/namespaces/default/crates";

/// A definition whose first version says `size: 3`, and whose second says `height: 3`.
fn definition(hooks: &HookServer) -> Value {
    let version = |name: &str, field: &str, is_stored: bool| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": schema}})
    };
    let config = hooks.webhook(json!({"path": "/convert"}))["clientConfig"].clone();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crates.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": {"kind": "Crate", "plural": "crates", "singular": "crate", "listKind": "CrateList"},
            "versions": [version("v1", "size", true), version("v2", "height", false)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
            },
        },
    })
}

/// Converts as the definition says.
fn converted(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    let held = object["spec"].as_object().and_then(|spec| spec.values().next()).cloned();
    let field = if to == "example.dev/v1" { "size" } else { "height" };
    object["apiVersion"] = to.into();
    if let Some(held) = held {
        object["spec"] = json!({field: held});
    }
    object
}

fn answer(review: &Value, objects: Vec<Value>) -> Reply {
    let response =
        json!({"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
    let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
    Reply::Bytes(200, "application/json", body.to_string().into_bytes())
}

/// What a good webhook answers.
fn convert(review: &Value) -> Vec<Value> {
    let to = review["request"]["desiredAPIVersion"].as_str().unwrap();
    review["request"]["objects"].as_array().unwrap().iter().map(|object| converted(object, to)).collect()
}

async fn defined(hooks: &HookServer) -> ApiServer {
    let api = api_server();
    ask(&api, "POST", DEFINITIONS, Some(definition(hooks))).await.expect(201);
    api
}

fn crate_of(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.dev/{version}"), "kind": "Crate", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn objects_are_read_written_and_listed_in_every_version() {
    let hooks = serve(|_, review| answer(review, convert(review))).await;
    let api = defined(&hooks).await;
    ask(&api, "POST", V1, Some(crate_of("v1", "a", json!({"size": 3})))).await.expect(201);
    assert!(hooks.asked().is_empty(), "nobody converts what is written in the stored version");
    let read = ask(&api, "GET", &format!("{V2}/a"), None).await.expect(200);
    assert_eq!(read["spec"], json!({"height": 3}));
    assert_eq!(read["apiVersion"], "example.dev/v2");

    let made = ask(&api, "POST", V2, Some(crate_of("v2", "b", json!({"height": 5})))).await.expect(201);
    assert_eq!(made["spec"], json!({"height": 5}));
    assert_eq!(made["metadata"]["generation"], 1);
    let stored = ask(&api, "GET", &format!("{V1}/b"), None).await.expect(200);
    assert_eq!(stored["spec"], json!({"size": 5}));

    let patch = json!({"spec": {"height": 7}});
    let patched = ask(&api, "PATCH", &format!("{V2}/a"), Some(patch)).await.expect(200);
    assert_eq!(patched["spec"], json!({"height": 7}));
    assert_eq!(patched["metadata"]["generation"], 2);
    let labelled = json!({"metadata": {"labels": {"x": "y"}}});
    let patched = ask(&api, "PATCH", &format!("{V2}/a"), Some(labelled)).await.expect(200);
    assert_eq!(patched["metadata"]["generation"], 2, "only the content counts");

    let asked = hooks.asked().len();
    let list = ask(&api, "GET", V2, None).await.expect(200);
    let heights: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["height"]).collect();
    assert_eq!(heights, [&json!(7), &json!(5)]);
    assert_eq!(hooks.asked().len(), asked + 1, "a list is converted at once");
    let list = ask(&api, "GET", V1, None).await.expect(200);
    assert_eq!(list["items"][0]["spec"], json!({"size": 7}));
    ask(&api, "DELETE", &format!("{V2}/a"), None).await.expect(200);
    ask(&api, "GET", &format!("{V1}/a"), None).await.expect(404);
}

#[tokio::test]
async fn a_watch_converts_its_events() {
    let hooks = serve(|_, review| answer(review, convert(review))).await;
    let api = defined(&hooks).await;
    ask(&api, "POST", V1, Some(crate_of("v1", "a", json!({"size": 3})))).await.expect(201);
    let events = ask(&api, "GET", &format!("{V2}?watch=true&timeoutSeconds=1"), None).await.expect(200);
    let line = events.as_str().map_or_else(|| events.to_string(), |text| text.lines().next().unwrap().to_owned());
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["spec"], json!({"height": 3}));
}

#[tokio::test]
async fn a_webhook_changes_labels_and_annotations_and_nothing_else_of_metadata() {
    let hooks = serve(|_, review| {
        let mut objects = convert(review);
        objects[0]["metadata"]["labels"] = json!({"from": "webhook"});
        objects[0]["metadata"]["finalizers"] = json!(["example.dev/mine"]);
        answer(review, objects)
    })
    .await;
    let api = defined(&hooks).await;
    ask(&api, "POST", V1, Some(crate_of("v1", "a", json!({"size": 3})))).await.expect(201);
    let read = ask(&api, "GET", &format!("{V2}/a"), None).await.expect(200);
    assert_eq!(read["metadata"]["labels"], json!({"from": "webhook"}));
    assert!(read["metadata"]["finalizers"].is_null());
}

#[tokio::test]
async fn answers_that_make_no_sense_fail_the_request_in_upstreams_words() {
    type Answer = fn(&Value) -> Reply;
    let rows: Vec<(Answer, &str)> = vec![
        (
            |_| Reply::text(200, "{}"),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
        ),
        (
            |_| Reply::text(500, "oh"),
            "failed: an error on the server (\"oh\") has prevented the request from succeeding",
        ),
        (|review| answer(review, Vec::new()), "returned 0 objects, expected 1"),
        (
            |review| {
                let mut review = review.clone();
                review["request"]["uid"] = "lie".into();
                answer(&review, convert(&review))
            },
            "failed: expected response.uid=",
        ),
        (
            |review| answer(review, vec![review["request"]["objects"][0].clone()]),
            "returned invalid object at index 0: invalid groupVersion (expected example.dev/v2, received example.dev/v1)",
        ),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["metadata"]["uid"] = "other".into();
                answer(review, objects)
            },
            "returned invalid object: must have the same UID: ",
        ),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["kind"] = "Box".into();
                answer(review, objects)
            },
            "returned invalid object at index 0: invalid kind (expected Crate, received Box)",
        ),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["metadata"]["name"] = "other".into();
                answer(review, objects)
            },
            "returned invalid object: must have the same name: a != other",
        ),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["metadata"]["namespace"] = "other".into();
                answer(review, objects)
            },
            "returned invalid object: must have the same namespace: default != other",
        ),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["metadata"] = json!([]);
                answer(review, objects)
            },
            "returned invalid object: must have the same name: a != ",
        ),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["metadata"]["labels"] = json!([]);
                answer(review, objects)
            },
            "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["metadata"]["annotations"] = json!({"a": 1});
                answer(review, objects)
            },
            "returned invalid metadata: metadata.annotations[a] must be a string, but is int64 in converted object",
        ),
        (
            |review| {
                let objects = convert(review);
                answer(review, [objects.clone(), objects].concat())
            },
            "returned 2 objects, expected 1",
        ),
        (|_| Reply::Bytes(200, "application/json", vec![b' '; 32 << 20]), "failed: Post "),
        (|_| Reply::Close, "failed: Post "),
        (|_| Reply::text(200, "garbage"), "failed: couldn't get version/kind; json parse error: "),
        (
            |review| {
                let mut objects = convert(review);
                objects[0]["metadata"]["labels"] = json!({"a b": "c"});
                answer(review, objects)
            },
            "returned invalid metadata: metadata.labels: Invalid value: \"a b\"",
        ),
        (
            |review| {
                let result = json!({"status": "Failure", "message": "too odd"});
                let response = json!({"uid": review["request"]["uid"], "result": result});
                let body =
                    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response});
                Reply::Bytes(200, "application/json", body.to_string().into_bytes())
            },
            "failed: too odd",
        ),
    ];
    for (reply, want) in rows {
        let hooks = serve(move |_, review| reply(review)).await;
        let api = defined(&hooks).await;
        ask(&api, "POST", V1, Some(crate_of("v1", "a", json!({"size": 3})))).await.expect(201);
        let refused = ask(&api, "GET", &format!("{V2}/a"), None).await.expect(500);
        let message = refused["message"].as_str().unwrap();
        let start = format!("conversion webhook for example.dev/v1, Kind=Crate {want}");
        assert!(message.starts_with(&start), "{message}");
        // The others are served as before.
        ask(&api, "GET", &format!("{V1}/a"), None).await.expect(200);
        ask(&api, "POST", V2, Some(crate_of("v2", "b", json!({"height": 3})))).await.expect(500);
        ask(&api, "GET", &format!("{V1}/b"), None).await.expect(404);
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_only_the_requests_that_need_it() {
    let hooks = serve(|_, _| Reply::Hang).await;
    let api = defined(&hooks).await;
    ask(&api, "POST", V1, Some(crate_of("v1", "a", json!({"size": 3})))).await.expect(201);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { ask(&api, "GET", &format!("{V2}/a"), None).await.code })
        })
        .collect();
    while hooks.paths().len() < waiting.len() {
        tokio::task::yield_now().await;
    }
    ask(&api, "GET", &format!("{V1}/a"), None).await.expect(200);
    ask(&api, "DELETE", &format!("{V1}/a"), None).await.expect(200);
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    // Who goes away takes the call along.
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Every conversion asks for another one, until the callers go away.
#[tokio::test]
async fn a_webhook_that_reads_what_it_converts_does_not_hold_the_server() {
    let back: Arc<OnceLock<ApiServer>> = Arc::default();
    let held = Arc::clone(&back);
    let hooks = serve(move |_, _| {
        if let Some(api) = held.get().cloned() {
            tokio::spawn(async move { ask(&api, "GET", &format!("{V2}/a"), None).await });
        }
        Reply::Hang
    })
    .await;
    let api = defined(&hooks).await;
    ask(&api, "POST", V1, Some(crate_of("v1", "a", json!({"size": 3})))).await.expect(201);
    back.set(api.clone()).ok().unwrap();
    let reading = tokio::spawn({
        let api = api.clone();
        async move { ask(&api, "GET", &format!("{V2}/a"), None).await.code }
    });
    // As many as may wait for webhooks at a time do so; all other requests are answered.
    while hooks.paths().len() < 64 {
        tokio::task::yield_now().await;
    }
    ask(&api, "GET", &format!("{V1}/a"), None).await.expect(200);
    ask(&api, "GET", "/readyz", None).await.expect(200);
    assert!(hooks.paths().len() <= CALLS_MAX, "{} at a time", hooks.paths().len());
    assert!(!reading.is_finished());
    reading.abort();
}

#[tokio::test]
async fn a_definition_whose_conversion_makes_no_sense_is_refused() {
    let hooks = serve(|_, _| Reply::allow()).await;
    let api = api_server();
    let mut wrong = definition(&hooks);
    wrong["spec"]["conversion"]["webhook"] =
        json!({"clientConfig": {"url": "http://x"}, "conversionReviewVersions": ["v3", "v3"]});
    let status = ask(&api, "POST", DEFINITIONS, Some(wrong)).await.expect(422);
    let causes = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    let at = "spec.conversion";
    let want = [
        format!("{at}.webhookClientConfig.url"),
        format!("{at}.conversionReviewVersions[1]"),
        format!("{at}.conversionReviewVersions"),
    ];
    assert_eq!(fields, want, "{status}");
}
