//! Every request is bounded: findings, warnings, numbers, time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, HeavyWork, Options, RequestLimits};
use steersman_base::Clock;
use tower::ServiceExt;

use crate::support::{CONFIG_MAPS, Got, ask, config_map, send, server};

/// The headers of an answer, of one kind.
async fn headers(server: &ApiServer, method: &str, path: &str, body: String, name: &str) -> (u16, Vec<String>) {
    let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = server.clone().oneshot(request.body(http_body_util::Full::new(Bytes::from(body))).unwrap()).await;
    let response = response.unwrap();
    let values = response.headers().get_all(name).iter();
    (response.status().as_u16(), values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect())
}

/// A body with many keys that are written twice, and many that nobody knows, under a key of this length.
fn findings(count: usize, key: usize) -> String {
    let twice: Vec<String> = (0..count).map(|at| format!("\"d{at}\":0,\"d{at}\":0,\"u{at}\":0")).collect();
    let key = "z".repeat(key);
    format!(
        "{{\"metadata\":{{\"name\":\"a\"}},\"data\":{{\"{key}\":\"\"}},\"{key}\":{{{}}},{}}}",
        twice.join(","),
        twice.join(",")
    )
}

#[tokio::test(start_paused = true)]
async fn warnings_are_bounded_in_number_and_length() {
    let server = server();
    let path = &format!("{CONFIG_MAPS}?dryRun=All");
    for (count, key) in [(5, 10), (1000, 10), (1000, 5000), (20, 1000)] {
        let (code, warnings) = headers(&server, "POST", path, findings(count, key), "warning").await;
        assert_eq!(code, if key > 253 { 422 } else { 201 });
        let bytes: usize = warnings.iter().map(String::len).sum();
        assert!(warnings.len() <= 64 && bytes <= 64 * 300, "{} warnings of {bytes} bytes", warnings.len());
        assert!(warnings.iter().all(|warning| warning.starts_with("299 - \"")), "{warnings:?}");
    }
    let (_, few) = headers(&server, "POST", path, findings(2, 10), "warning").await;
    assert_eq!(few.len(), 7, "two that are there twice, five that are unknown: {few:?}");
}

#[tokio::test(start_paused = true)]
async fn strict_refusals_name_a_hundred_findings_and_cut_paths() {
    let server = server();
    let path = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let got = send(&server, "POST", &path, &[], findings(2000, 100_000).into_bytes()).await.expect(400);
    let message = got["message"].as_str().unwrap();
    assert_eq!(message.matches(" field \"").count(), 100, "{message}");
    assert!(message.len() < 100 * 400, "{} bytes", message.len());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_a_hundred_errors_at_most() {
    let server = server();
    let labels: serde_json::Map<String, Value> = (0..5000).map(|at| (format!("-{at}"), json!("-"))).collect();
    let body = json!({"metadata": {"name": "a", "labels": labels}});
    let got = ask(&server, "POST", CONFIG_MAPS, Some(body)).await.expect(422);
    let causes = got["details"]["causes"].as_array().map(Vec::len);
    assert!(causes.is_some_and(|count| (50..=100).contains(&count)), "{causes:?}");
    // Every second controller is an error that shows the whole list.
    let owners: Vec<Value> = (0..5000)
        .map(|at| {
            json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{at}"), "uid": format!("u{at}"), "controller": true})
        })
        .collect();
    let body = json!({"metadata": {"name": "a", "ownerReferences": owners}});
    let got = ask(&server, "POST", CONFIG_MAPS, Some(body)).await.expect(422);
    assert!(got.to_string().len() < 16 << 20, "{} bytes", got.to_string().len());
}

#[tokio::test(start_paused = true)]
async fn a_list_of_a_built_in_kind_has_a_bound() {
    let server = server();
    let finalizers: Vec<String> = (0..20_000).map(|at| format!("a.b/f{at}")).collect();
    let body = json!({"metadata": {"name": "a", "finalizers": finalizers}});
    let got = ask(&server, "POST", CONFIG_MAPS, Some(body)).await.expect(400);
    assert!(got["message"].as_str().unwrap().contains("metadata.finalizers: a list may not have more than"), "{got}");
}

#[tokio::test(start_paused = true)]
async fn the_defaults_of_a_definition_do_not_make_a_large_object_of_a_small_one() {
    let server = server();
    let item = json!({"type": "object", "properties": {"text": {"type": "string", "default": "x".repeat(10_000)}}});
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}});
    define(&server, schema, true).await;
    let items = vec![json!({}); 1000];
    let got = ask(&server, "POST", THINGS, Some(thing("a", &json!(items)))).await.expect(400);
    assert!(got["message"].as_str().unwrap().contains("defaults"), "{got}");
    ask(&server, "POST", THINGS, Some(thing("a", &json!([{}, {}])))).await.expect(201);
}

pub(crate) const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn thing(name: &str, items: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "items": items})
}

/// Defines things.
pub(crate) async fn define(server: &ApiServer, schema: Value, is_served: bool) {
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [
                {"name": "v1", "served": is_served, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    });
    ask(server, "POST", DEFINITIONS, Some(definition)).await.expect(201);
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_without_a_served_version_can_be_deleted() {
    let server = server();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    define(&server, open, true).await;
    ask(&server, "POST", THINGS, Some(thing("a", &json!([])))).await.expect(201);
    let path = format!("{DEFINITIONS}/things.example.com");
    let mut definition = ask(&server, "GET", &path, None).await.expect(200);
    definition["spec"]["versions"][0]["served"] = false.into();
    ask(&server, "PUT", &path, Some(definition)).await.expect(200);
    ask(&server, "GET", THINGS, None).await.expect(404);
    ask(&server, "DELETE", &path, None).await.expect(200);
    // Writes while it goes do not start others that clean up.
    for round in 0..20 {
        ask(&server, "PATCH", &path, Some(json!({"metadata": {"annotations": {"round": round.to_string()}}}))).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    ask(&server, "GET", &path, None).await.expect(404);
    define(&server, json!({"type": "object"}), true).await;
    let list = ask(&server, "GET", THINGS, None).await.expect(200);
    assert_eq!(list["items"], json!([]), "the objects went with it");
}

/// A body that begins and never ends.
fn endless() -> impl http_body::Body<Data = Bytes, Error = std::convert::Infallible> + Send + 'static {
    use futures::StreamExt;
    let first = futures::stream::iter([Ok(http_body::Frame::data(Bytes::from_static(b"{")))]);
    http_body_util::StreamBody::new(first.chain(futures::stream::pending()))
}

fn limited(limits: RequestLimits, heavy_work: HeavyWork) -> ApiServer {
    let clock = Clock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
    ApiServer::new(Options::default().clock(clock).limits(limits).heavy_work(heavy_work))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_given_up() {
    let server = server();
    let request = http::Request::post(CONFIG_MAPS).body(endless()).unwrap();
    let began = tokio::time::Instant::now();
    let response = server.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 504);
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["reason"], "Timeout");
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_request_without_a_time_limit_is_not_read() {
    let server = server();
    let bearer = format!("Bearer {}", server.admin_token().unwrap());
    let strangers = server.requiring_authentication();
    let began = tokio::time::Instant::now();
    let logs = "/api/v1/namespaces/default/pods/none/log?follow=true";
    let watch = format!("{CONFIG_MAPS}?watch=true");
    let named = format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Da");
    let old = "/api/v1/watch/namespaces/default/configmaps".to_owned();
    for (path, code) in [(watch, 200), (named, 200), (old, 200), (logs.to_owned(), 404)] {
        let request = http::Request::get(&path).header("authorization", &bearer).body(endless()).unwrap();
        assert_eq!(strangers.clone().oneshot(request).await.unwrap().status(), code, "{path}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    // What ends has a time limit, and a place among the reads.
    let request = http::Request::get(CONFIG_MAPS).header("authorization", &bearer).body(endless()).unwrap();
    assert_eq!(strangers.oneshot(request).await.unwrap().status(), 504);
    assert_eq!(began.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn one_request_too_many_hears_429_and_others_do_not_count() {
    let server = limited(RequestLimits::default().reads_max(2).writes_max(1), HeavyWork::Inline);
    let bearer = format!("Bearer {}", server.admin_token().unwrap());
    let strangers = server.requiring_authentication();
    let get =
        async |path: &str| -> Got { send(&strangers, "GET", path, &[("authorization", &bearer)], Vec::new()).await };
    let slow = |method: &str| {
        let request = http::Request::builder().method(method).uri(CONFIG_MAPS).header("authorization", &bearer);
        tokio::spawn(strangers.clone().oneshot(request.body(endless()).unwrap()))
    };
    let writing = slow("POST");
    tokio::task::yield_now().await;
    let headers = [("authorization", bearer.as_str())];
    let refused = send(&strangers, "POST", CONFIG_MAPS, &headers, config_map("a").to_string().into_bytes()).await;
    assert_eq!(refused.expect(429)["details"]["retryAfterSeconds"], 1);
    get(CONFIG_MAPS).await.expect(200);
    let reading = [slow("GET"), slow("GET")];
    tokio::task::yield_now().await;
    get(CONFIG_MAPS).await.expect(429);
    get("/healthz").await.expect(200);
    let request = http::Request::get(format!("{CONFIG_MAPS}?watch=true")).header("authorization", &bearer);
    let watch = strangers.clone().oneshot(request.body(http_body_util::Empty::<Bytes>::new()).unwrap()).await.unwrap();
    assert_eq!(watch.status(), 200, "watches do not count");
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("own"))).await.expect(201);
    writing.abort();
    reading.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::time::sleep(Duration::from_millis(1)).await;
    get(CONFIG_MAPS).await.expect(200);
    send(&strangers, "POST", CONFIG_MAPS, &headers, config_map("a").to_string().into_bytes()).await.expect(201);
}

/// On the normal clock: paused time does not wait for other threads.
#[tokio::test]
async fn heavy_requests_are_worked_on_elsewhere_and_answered_alike() {
    let large = |name: &str| {
        let mut map = config_map(name);
        map["data"]["a"] = "x".repeat(100_000).into();
        map.to_string().into_bytes()
    };
    let mut answers = Vec::new();
    for heavy_work in [HeavyWork::Inline, HeavyWork::BlockingPool] {
        let server = limited(RequestLimits::default(), heavy_work);
        let json = [("content-type", "application/json"), ("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
        let mut codes = Vec::new();
        codes.push(send(&server, "POST", CONFIG_MAPS, &json[..1], large("a")).await.code);
        codes.push(send(&server, "POST", CONFIG_MAPS, &json[..1], large("a")).await.code);
        codes.push(send(&server, "POST", CONFIG_MAPS, &json[..1], vec![b'['; 100_000]).await.code);
        let table = send(&server, "GET", CONFIG_MAPS, &json[1..], Vec::new()).await;
        codes.push(table.code);
        codes.push(send(&server, "DELETE", CONFIG_MAPS, &[], Vec::new()).await.code);
        answers.push((codes, table.body["rows"].as_array().map(Vec::len)));
    }
    assert_eq!(answers[0], (vec![201, 409, 400, 200, 200], Some(1)));
    assert_eq!(answers[0], answers[1]);
}
