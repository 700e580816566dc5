//! What watchers hear.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use steersman_apiserver::Body;
use tower::ServiceExt;

use crate::bounds::{THINGS, define, thing};
use crate::support::{CONFIG_MAPS, ask, config_map, server};

/// A watch, line by line.
struct Watching {
    body: Body,
    text: Vec<u8>,
}

async fn watch(server: &ApiServer, path: &str) -> Watching {
    let request = http::Request::get(path).body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    Watching { body: response.into_body(), text: Vec::new() }
}

impl Watching {
    /// The next event; none at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.text.extend_from_slice(frame.data_ref().unwrap());
        }
    }

    async fn expect(&mut self, kind: &str, name: &str) -> Value {
        let event = self.next().await.expect("the watch goes on");
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!(kind), &json!(name)), "{event}");
        event
    }

    /// Nothing comes for a while.
    async fn expect_quiet(&mut self, seconds: u64) {
        let quiet = tokio::time::timeout(Duration::from_secs(seconds), self.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
    }
}

fn labelled(name: &str, label: &str) -> Value {
    let mut map = config_map(name);
    map["metadata"]["labels"] = json!({"kind": label});
    map
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_sends_everything_behind_it_once() {
    let server = server();
    let made = ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    ask(&server, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(json!({"data": {"a": "2"}}))).await.expect(200);
    let mut watching = watch(&server, &format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    watching.expect("MODIFIED", "a").await;
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("b"))).await.expect(201);
    watching.expect("ADDED", "b").await;
    ask(&server, "DELETE", &format!("{CONFIG_MAPS}/a"), None).await.expect(200);
    let gone = watching.expect("DELETED", "a").await;
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], server.revision().to_string());
    assert_eq!(gone["object"]["data"]["a"], "2", "a deletion shows the last state");
    watching.expect_quiet(30).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_sends_what_there_is_first() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    ask(&server, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(json!({"data": {"a": "2"}}))).await.expect(200);
    for query in ["watch=true", "watch=1&resourceVersion=0"] {
        let mut watching = watch(&server, &format!("{CONFIG_MAPS}?{query}")).await;
        let event = watching.expect("ADDED", "a").await;
        assert_eq!((&event["object"]["kind"], &event["object"]["data"]["a"]), (&json!("ConfigMap"), &json!("2")));
        watching.expect_quiet(30).await;
    }
    let mut legacy = watch(&server, "/api/v1/watch/namespaces/default/configmaps/a").await;
    legacy.expect("ADDED", "a").await;
}

#[tokio::test(start_paused = true)]
async fn entering_a_selection_is_added_and_leaving_it_is_deleted() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(labelled("a", "x"))).await.expect(201);
    let mut watching = watch(&server, &format!("{CONFIG_MAPS}?watch=true&labelSelector=kind%3Dy")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let relabel = |label: &str| Some(json!({"metadata": {"labels": {"kind": label}}}));
    ask(&server, "PATCH", &path, relabel("y")).await.expect(200);
    watching.expect("ADDED", "a").await;
    ask(&server, "PATCH", &path, Some(json!({"data": {"a": "2"}}))).await.expect(200);
    watching.expect("MODIFIED", "a").await;
    let last = ask(&server, "PATCH", &path, relabel("x")).await.expect(200);
    let gone = watching.expect("DELETED", "a").await;
    assert_eq!(gone["object"]["metadata"]["labels"]["kind"], "y", "the last state within the selection");
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], last["metadata"]["resourceVersion"]);
    ask(&server, "DELETE", &path, None).await.expect(200);
    watching.expect_quiet(30).await;
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_bookmark_that_says_so() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut watching = watch(&server, &format!("{CONFIG_MAPS}?{query}")).await;
    watching.expect("ADDED", "a").await;
    let bookmark = watching.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], server.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_once_a_minute_and_follow_the_whole_store() {
    let server = server();
    let mut watching = watch(&server, "/api/v1/namespaces/default/secrets?watch=true&allowWatchBookmarks=true").await;
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    watching.expect_quiet(59).await;
    let bookmark = tokio::time::timeout(Duration::from_secs(2), watching.next()).await.unwrap().unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"], json!({"resourceVersion": server.revision().to_string()}));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_over() {
    let server = server();
    let mut watching = watch(&server, &format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=5")).await;
    watching.expect_quiet(4).await;
    assert!(watching.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_behind_the_history_hears_410_and_is_dropped() {
    let server = server();
    let version = server.revision();
    let mut watching = watch(&server, &format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    server.compact(server.revision());
    let error = watching.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert!(watching.next().await.is_none());
    let mut late = watch(&server, &format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}")).await;
    assert_eq!(late.next().await.unwrap()["object"]["reason"], "Expired");
}

#[tokio::test(start_paused = true)]
async fn watchers_share_the_bytes_of_an_event() {
    let server = server();
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", server.revision());
    let mut watchers = Vec::new();
    for _ in 0..1000 {
        watchers.push(watch(&server, &path).await);
    }
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let mut addresses = std::collections::BTreeSet::new();
    for watching in &mut watchers {
        let frame = watching.body.frame().await.unwrap().unwrap();
        addresses.insert(frame.data_ref().unwrap().as_ptr() as usize);
    }
    assert_eq!(addresses.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_pod_at_once_is_seen_as_its_end_and_then_its_going() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    ask(&server, "POST", pods, Some(crate::support::pod("a"))).await.expect(201);
    let mut watching = watch(&server, &format!("{pods}?watch=true&resourceVersion={}", server.revision())).await;
    ask(&server, "DELETE", &format!("{pods}/a"), None).await.expect(200);
    let marked = watching.expect("MODIFIED", "a").await;
    assert_eq!(marked["object"]["metadata"]["deletionGracePeriodSeconds"], 0);
    watching.expect("DELETED", "a").await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_and_has_its_bookmarks_although_events_never_pause() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion={}", server.revision());
    let mut watching = watch(&server, &format!("{CONFIG_MAPS}?{query}")).await;
    let mut bookmarks = 0;
    let mut events = 0;
    loop {
        // There is always one more event when the client has read the last one.
        let body = json!({"data": {"a": events.to_string()}});
        ask(&server, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(body)).await.expect(200);
        tokio::time::sleep(Duration::from_secs(1)).await;
        match watching.next().await {
            Some(event) if event["type"] == "BOOKMARK" => bookmarks += 1,
            Some(_) => events += 1,
            None => break,
        }
        assert!(events < 1000, "it never ends");
    }
    assert_eq!(bookmarks, 2, "one a minute");
    assert!((140..=150).contains(&events), "{events}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_custom_resource_ends_with_its_definition() {
    let server = server();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    define(&server, open, true).await;
    ask(&server, "POST", THINGS, Some(thing("a", &json!([])))).await.expect(201);
    let mut watching = watch(&server, &format!("{THINGS}?watch=true")).await;
    watching.expect("ADDED", "a").await;
    watching.expect_quiet(600).await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    let note = json!({"metadata": {"annotations": {"a": "b"}}});
    ask(&server, "PATCH", definition, Some(note)).await.expect(200);
    watching.expect_quiet(600).await;
    ask(&server, "DELETE", definition, None).await.expect(200);
    watching.expect("DELETED", "a").await;
    let end = tokio::time::timeout(Duration::from_secs(1), watching.next()).await;
    assert_eq!(end.unwrap(), None, "it is over when the definition is gone");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_custom_resource_ends_when_it_is_served_differently() {
    let server = server();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    define(&server, open, true).await;
    let mut watching = watch(&server, &format!("{THINGS}?watch=true")).await;
    watching.expect_quiet(60).await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    let mut changed = ask(&server, "GET", definition, None).await.expect(200);
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({"items": {"type": "array", "items": {"type": "object"}}});
    ask(&server, "PUT", definition, Some(changed)).await.expect(200);
    let end = tokio::time::timeout(Duration::from_secs(1), watching.next()).await;
    assert_eq!(end.unwrap(), None, "the schema is another one");
}
