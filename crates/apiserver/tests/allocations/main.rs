//! What a request may cost: bytes allocated per byte sent. A test of its own, because it counts every allocation.
//!
//! Two budgets, neither of them a time. *At a time*: what is held while a request is worked on, read by a second thread again
//! and again. *In all*: everything that was ever allocated for it, which bounds the work, too: whatever is quadratic or
//! redone shows in it.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

mod schemas;

use std::alloc::System;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http_body_util::BodyExt;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steersman_apiserver::{ApiServer, Options};
use tower::ServiceExt;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Everybody's allocations are counted, so the tests go one after the other.
static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

/// Bytes held at a time for each byte sent. The smallest nodes of a tree take the most: `[0,0,…]` 16, `{"":0}` almost 100.
const HELD_PER_BYTE: usize = 64;
/// The same for an apply, which holds four trees: the configuration, what it is laid over, the result, and who owns what.
const HELD_BY_APPLY_PER_BYTE: usize = 2 * HELD_PER_BYTE;
/// The same for a definition, which stays: as it is stored and served, and its schema as it is read for validation, for rules and
/// for applies.
const HELD_BY_DEFINITION_PER_BYTE: usize = 4 * HELD_PER_BYTE;
/// Bytes allocated in all for each byte sent.
const ALLOCATED_PER_BYTE: usize = 512;
/// What every request may take, however small.
const EVERY_REQUEST: usize = 1 << 20;
/// What a strategic merge patch may allocate until it has taken all the steps that it has.
const STEPS_OF_A_PATCH: usize = 256 << 20;

/// What a piece of work held at most and allocated in all, besides what there was before.
struct Cost {
    held: usize,
    allocated: usize,
}

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Does something, and watches what it takes.
fn measured<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let before = held();
    let most = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let region = Region::new(ALLOCATOR);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(held(), Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    });
    let allocated = region.change().bytes_allocated;
    (done, Cost { held: most.into_inner().saturating_sub(before), allocated })
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const PODS: &str = "/api/v1/namespaces/default/pods";

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

async fn send(server: &ApiServer, method: &str, path: &str, kind: &str, body: String) -> u16 {
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame.unwrap();
    }
    code
}

/// How many bytes an object has.
async fn length(server: &ApiServer, path: &str) -> usize {
    let request = http::Request::get(path).body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    server.clone().oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes().len()
}

fn joined(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect::<Vec<_>>().join(",")
}

/// A request: method, path, type and body.
type Row = (&'static str, &'static str, String, &'static str, String);

/// Bodies that ask for much, each of about `bytes`, with `count` of what it has many of under a key of `key` bytes.
fn rows(bytes: usize, random: &mut fastrand::Rng) -> Vec<Row> {
    let key = "z".repeat(random.usize(1..bytes / 2));
    let pointer = format!("/data/{}", "a".repeat(random.usize(1..500)));
    let mut rows = creates(bytes, &key);
    rows.extend(patches(bytes, &key, &pointer));
    rows
}

fn creates(bytes: usize, key: &str) -> Vec<Row> {
    let count = (bytes - key.len()) / 16;
    let twice = joined(count, |at| format!("\"{at}\":0,\"{at}\":0"));
    let unknown = joined(count, |at| format!("\"u{at}\":0"));
    let few = count.min(10_000);
    let one = |name: &str| format!("\"metadata\":{{\"name\":\"{name}\"}}");
    vec![
        (
            "POST",
            "duplicate keys under a long key",
            CONFIG_MAPS.into(),
            JSON,
            format!("{{{},\"{key}\":{{{twice}}}}}", one("a")),
        ),
        ("POST", "the same in a review", REVIEWS.into(), JSON, format!("{{\"spec\":{{\"{key}\":{{{twice}}}}}}}")),
        ("POST", "duplicate keys as YAML", CONFIG_MAPS.into(), YAML, format!("{{{},\"data\":{{{twice}}}}}", one("a"))),
        (
            "POST",
            "one key again and again",
            CONFIG_MAPS.into(),
            JSON,
            format!("{{{},\"data\":{{{}}}}}", one("a"), joined(count, |_| "\"a\":\"\"".into())),
        ),
        (
            "POST",
            "unknown fields under a long key of a definition",
            DEFINITIONS.into(),
            JSON,
            format!(
                "{{{},\"spec\":{{\"versions\":[{{\"schema\":{{\"openAPIV3Schema\":{{\"properties\":{{\"{key}\":{{{unknown}}}}}}}}}}}]}}}}",
                one("a")
            ),
        ),
        (
            "POST",
            "unknown fields under a long key of a custom resource",
            THINGS.into(),
            JSON,
            format!(
                "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",{},\"maps\":{{\"{key}\":{{{unknown}}}}}}}",
                one("a")
            ),
        ),
        (
            "POST",
            "a long path",
            CONFIG_MAPS.into(),
            JSON,
            format!(
                "{{{},{}\"u\":0,\"u\":0{}}}",
                one("a"),
                format!("\"{}\":{{\"k\":{{", "z".repeat(bytes / 50)).repeat(50),
                "}".repeat(100)
            ),
        ),
        (
            "POST",
            "deep lists",
            CONFIG_MAPS.into(),
            JSON,
            format!("{{{},\"x\":[{}]}}", one("a"), joined(bytes / 240, |_| "[".repeat(119) + &"]".repeat(119))),
        ),
        ("POST", "deeper than anybody reads", CONFIG_MAPS.into(), JSON, "[".repeat(bytes)),
        (
            "POST",
            "many labels that are wrong",
            CONFIG_MAPS.into(),
            JSON,
            format!(
                "{{\"metadata\":{{\"name\":\"a\",\"labels\":{{{}}}}}}}",
                joined(count, |at| format!("\"-{at}\":\"-\""))
            ),
        ),
        (
            "POST",
            "many finalizers that are wrong",
            CONFIG_MAPS.into(),
            JSON,
            format!("{{\"metadata\":{{\"name\":\"a\",\"finalizers\":[{}]}}}}", joined(few, |at| format!("\"-{at}\""))),
        ),
    ]
}

fn patches(bytes: usize, key: &str, pointer: &str) -> Vec<Row> {
    let count = (bytes - key.len()) / 16;
    let twice = joined(count, |at| format!("\"{at}\":0,\"{at}\":0"));
    let unknown = joined(count, |at| format!("\"u{at}\":0"));
    let few = count.min(10_000);
    let pair = |name: &str, at: usize| format!("{{\"name\":\"{name}{at}\",\"value\":\"\"}}");
    vec![
        (
            "PATCH",
            "operations with unknown fields",
            format!("{CONFIG_MAPS}/there"),
            JSON_PATCH,
            format!("[{}]", joined(few, |at| format!("{{\"op\":\"test\",\"{at}\":0}}"))),
        ),
        (
            "PATCH",
            "operations with long paths",
            format!("{CONFIG_MAPS}/there"),
            JSON_PATCH,
            format!(
                "[{}]",
                joined((bytes / (pointer.len() + 40)).min(10_000), |_| format!(
                    "{{\"op\":\"add\",\"path\":\"{pointer}\",\"value\":\"\"}}"
                ))
            ),
        ),
        (
            "PATCH",
            "moves of all there is",
            format!("{THINGS}/there"),
            JSON_PATCH,
            format!(
                "[{}]",
                joined((bytes / 60).min(10_000) & !1, |at| if at % 2 == 0 {
                    "{\"op\":\"move\",\"from\":\"/maps\",\"path\":\"/other\"}".to_owned()
                } else {
                    "{\"op\":\"move\",\"from\":\"/other\",\"path\":\"/maps\"}".to_owned()
                })
            ),
        ),
        (
            "PATCH",
            "a merge with duplicate keys",
            format!("{CONFIG_MAPS}/there"),
            MERGE_PATCH,
            format!("{{\"{key}\":{{{twice}}}}}"),
        ),
        (
            "PATCH",
            "a merge of unknown fields",
            format!("{CONFIG_MAPS}/there"),
            MERGE_PATCH,
            format!("{{\"{key}\":{{{unknown}}}}}"),
        ),
        (
            "PATCH",
            "elements to delete",
            format!("{PODS}/there"),
            STRATEGIC_PATCH,
            format!(
                "{{\"spec\":{{\"containers\":[{}]}}}}",
                joined(few, |at| format!("{{\"name\":\"c{at}\",\"$patch\":\"delete\"}}"))
            ),
        ),
        (
            "PATCH",
            "keys to retain",
            format!("{PODS}/there"),
            STRATEGIC_PATCH,
            format!("{{\"spec\":{{\"$retainKeys\":[{}]}}}}", joined(count, |at| format!("\"k{at}\""))),
        ),
        (
            "PATCH",
            "an order of many",
            format!("{PODS}/there"),
            STRATEGIC_PATCH,
            format!(
                "{{\"spec\":{{\"$setElementOrder/containers\":[{}],\"containers\":[{{\"name\":\"{key}\"}}]}}}}",
                format!("{{\"name\":\"{key}\"}},") + &joined(few, |at| format!("{{\"name\":\"c{at}\"}}"))
            ),
        ),
        (
            "PATCH",
            "one element again and again",
            format!("{PODS}/there"),
            STRATEGIC_PATCH,
            format!(
                "{{\"spec\":{{\"containers\":[{}]}}}}",
                joined(few.min(2000), |at| format!("{{\"name\":\"c\",\"env\":[{}]}}", pair("e", at)))
            ),
        ),
    ]
}

/// Configurations that ask for much, and what is said of managers in a body.
fn applies(bytes: usize, random: &mut fastrand::Rng) -> Vec<Row> {
    let key = "z".repeat(random.usize(1..bytes / 2));
    let count = (bytes - key.len()) / 16;
    let thing = "\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"there\"}";
    let pod = "\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"there\"}";
    let apply = |path: &str| format!("{path}/there?fieldManager=recorder");
    let managers = |count: usize, fields: &str| {
        joined(count, |at| {
            format!(
                "{{\"manager\":\"m{at}\",\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{fields}}}"
            )
        })
    };
    let owned = joined(count, |at| format!("\"f:{at}\":{{}}"));
    vec![
        (
            "PATCH",
            "an apply of many fields",
            apply(CONFIG_MAPS),
            APPLY,
            format!(
                "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"there\"}},\"data\":{{{}}}}}",
                joined(count, |at| format!("\"{at}\":\"\""))
            ),
        ),
        (
            "PATCH",
            "an apply of unknown fields under a long key",
            apply(THINGS),
            APPLY,
            format!("{{{thing},\"maps\":{{\"{key}\":{{{}}}}}}}", joined(count, |at| format!("\"u{at}\":0"))),
        ),
        (
            "PATCH",
            "an apply that conflicts in many fields",
            format!("{THINGS}/there?fieldManager=another"),
            APPLY,
            format!(
                "{{{thing},\"maps\":{{{}}}}}",
                joined((bytes / 24).min(2000), |at| format!("\"m{at}\":{{\"known\":\"y\"}}"))
            ),
        ),
        (
            "PATCH",
            "an apply of one element again and again",
            apply(PODS),
            APPLY,
            format!("{{{pod},\"spec\":{{\"containers\":[{}]}}}}", joined(count, |_| "{\"name\":\"c\"}".to_owned())),
        ),
        (
            "PATCH",
            "an apply of many elements with long keys",
            apply(PODS),
            APPLY,
            format!(
                "{{{pod},\"spec\":{{\"containers\":[{{\"name\":\"c\",\"ports\":[{}]}}]}}}}",
                joined(bytes / 40, |at| format!("{{\"containerPort\":{at},\"protocol\":\"TCP\"}}"))
            ),
        ),
        (
            "PATCH",
            "a merge of many managers",
            format!("{CONFIG_MAPS}/there"),
            MERGE_PATCH,
            format!("{{\"metadata\":{{\"managedFields\":[{}]}}}}", managers(bytes / 110, "{}")),
        ),
        (
            "POST",
            "a manager of many fields",
            CONFIG_MAPS.into(),
            JSON,
            format!(
                "{{\"metadata\":{{\"name\":\"a\",\"managedFields\":[{}]}}}}",
                managers(1, &format!("{{\"f:{key}\":{{{owned}}}}}"))
            ),
        ),
        (
            "POST",
            "a manager of fields far down",
            CONFIG_MAPS.into(),
            JSON,
            format!(
                "{{\"metadata\":{{\"name\":\"a\",\"managedFields\":[{}]}}}}",
                managers(1, &format!("{}{{}}{}", "{\"f:a\":".repeat(110), "}".repeat(110)))
            ),
        ),
    ]
}

async fn world() -> ApiServer {
    let server = ApiServer::new(Options::default());
    let schema = json!({"type": "object", "properties": {"maps": {
        "type": "object", "additionalProperties": {"type": "object", "properties": {"known": {"type": "string"}}},
    }}});
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    assert_eq!(send(&server, "POST", DEFINITIONS, JSON, definition.to_string()).await, 201);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let maps: serde_json::Map<String, Value> = (0..2000).map(|at| (format!("m{at}"), json!({"known": "x"}))).collect();
    for (path, object) in [
        (CONFIG_MAPS, json!({"metadata": {"name": "there"}, "data": {"a": "b"}})),
        (PODS, json!({"metadata": {"name": "there"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})),
        (THINGS, json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "there"}, "maps": maps})),
    ] {
        assert_eq!(send(&server, "POST", path, JSON, object.to_string()).await, 201);
    }
    server
}

#[test]
fn a_request_costs_memory_and_work_in_proportion_to_its_bytes() {
    let _alone = ALONE.lock();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let server = runtime.block_on(world());
    let mut random = fastrand::Rng::with_seed(7);
    let mut dear = Vec::new();
    for bytes in [15_000, 60_000] {
        let requests =
            rows(bytes, &mut random).into_iter().chain(applies(bytes, &mut random)).chain(schemas::rows(bytes));
        for (method, name, path, kind, body) in requests {
            // A patch costs what it is applied to, too.
            let stored = runtime.block_on(length(&server, &path));
            let sent = body.len() + if method == "PATCH" { stored } else { 0 };
            // What is read once and kept, such as schemas, is nobody's cost.
            let first = body.clone();
            runtime.block_on(send(&server, method, &path, kind, first));
            let made = format!("{path}/{}", if path == DEFINITIONS { "bulks.example.org" } else { "a" });
            let delete = || async {
                if method == "POST" {
                    send(&server, "DELETE", &made, JSON, String::new()).await;
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            };
            runtime.block_on(delete());
            let (code, cost) = measured(|| runtime.block_on(send(&server, method, &path, kind, body)));
            let held = cost.held / sent;
            let all = cost.allocated / sent;
            println!("{name}: {code}, {sent} bytes, {held} and {all} for each");
            // A configuration that does not fit the types is upstream's 500.
            assert!(code < 500 || kind == APPLY && code == 500, "{name}: {code}");
            let steps = if kind == STRATEGIC_PATCH { STEPS_OF_A_PATCH } else { 4 * EVERY_REQUEST };
            let held_per_byte = match (kind, &*path) {
                (APPLY, _) => HELD_BY_APPLY_PER_BYTE,
                (_, DEFINITIONS) => HELD_BY_DEFINITION_PER_BYTE,
                _ => HELD_PER_BYTE,
            };
            if cost.held > held_per_byte * sent + EVERY_REQUEST || cost.allocated > ALLOCATED_PER_BYTE * sent + steps {
                dear.push(format!("{name}: {sent} bytes, {held} held and {all} allocated for each"));
            }
            runtime.block_on(delete());
        }
    }
    assert!(dear.is_empty(), "{dear:#?}");
}

#[test]
fn watches_that_nobody_reads_share_their_initial_state() {
    let _alone = ALONE.lock();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let server = runtime.block_on(world());
    let objects = 20;
    let object = |at: usize| {
        json!({"metadata": {"name": format!("large{at:03}")}, "data": {"a": "x".repeat(1_000_000)}}).to_string()
    };
    for at in 0..objects {
        assert_eq!(runtime.block_on(send(&server, "POST", CONFIG_MAPS, JSON, object(at))), 201);
        let path = format!("{CONFIG_MAPS}/large{at:03}");
        let change = json!({"data": {"b": "c"}}).to_string();
        assert_eq!(
            runtime.block_on(send(&server, "PATCH", &path, MERGE_PATCH, change)),
            200,
            "the line is one of a change"
        );
    }
    for accept in ["application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"] {
        let before = held();
        let mut watches = Vec::new();
        for _ in 0..20 {
            let request = http::Request::get(format!("{CONFIG_MAPS}?watch=true")).header("accept", accept);
            let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
            let mut body = runtime.block_on(server.clone().oneshot(request)).unwrap().into_body();
            assert!(runtime.block_on(body.frame()).is_some(), "it has begun");
            watches.push(body);
        }
        let taken = held().saturating_sub(before);
        println!("20 watches of {objects} MB as {accept}: {taken} bytes");
        assert!(taken < 1 << 20, "20 watches of {objects} MB as {accept} that nobody reads hold {taken} bytes");
    }
}
