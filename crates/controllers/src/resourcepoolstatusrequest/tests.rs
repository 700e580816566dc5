//! Tables: the status of pools, and which requests are old.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_model::resource::{
    DeviceTaintRuleView, PooledSliceView, ResourceClaimView, ResourcePoolStatusRequestView,
};

use super::plan::{answer, is_answerable, is_old, is_pending};
use super::pools::{Known, Pool, pools};
use crate::test_objects::{decode, merged, now};

#[derive(Default)]
struct World {
    slices: Vec<Arc<PooledSliceView>>,
    claims: Vec<Arc<ResourceClaimView>>,
    rules: Vec<Arc<DeviceTaintRuleView>>,
}

fn request(more: Value) -> ResourcePoolStatusRequestView {
    let plain = json!({ "metadata": { "name": "r", "uid": "u", "resourceVersion": "7" }, "spec": { "driver": "d" } });
    decode(merged(plain, more))
}

/// A slice of a pool of one slice, with these devices.
fn slice(name: &str, devices: &Value, more: Value) -> Arc<PooledSliceView> {
    let pool = json!({ "name": "p", "generation": 1, "resourceSliceCount": 1 });
    let plain = json!({ "metadata": { "name": name }, "spec": { "driver": "d", "pool": pool, "devices": devices } });
    Arc::new(decode(merged(plain, more)))
}

fn claim(device: &str, more: Value) -> Arc<ResourceClaimView> {
    let result = merged(json!({ "request": "r", "driver": "d", "pool": "p", "device": device }), more);
    Arc::new(decode(
        json!({ "metadata": { "name": "c" }, "status": { "allocation": { "devices": { "results": [result] } } } }),
    ))
}

impl World {
    fn statuses(&self, request: &ResourcePoolStatusRequestView) -> Vec<Value> {
        let known = Known { slices: &self.slices, claims: &self.claims, rules: &self.rules };
        pools(request, &known).iter().map(Pool::status).collect()
    }

    fn status(&self) -> Value {
        self.statuses(&request(json!({})))[0].clone()
    }
}

#[test]
fn devices_are_in_use_unavailable_or_available() {
    let no_schedule = json!([{ "key": "a", "effect": "NoSchedule" }]);
    let devices = json!([
        { "name": "0", "taints": no_schedule }, { "name": "1", "taints": no_schedule }, { "name": "2" }, { "name": "3" },
        { "name": "4", "taints": [{ "key": "a", "effect": "None" }] },
    ]);
    let rule = json!({ "deviceSelector": { "device": "2" }, "taint": { "key": "b", "effect": "NoExecute" } });
    let world = World {
        slices: vec![slice("s", &devices, json!({ "spec": { "nodeName": "n" } }))],
        claims: vec![
            claim("0", json!({})),
            claim("0", json!({})),
            claim("3", json!({ "adminAccess": true })),
            claim("gone", json!({})),
        ],
        rules: vec![Arc::new(decode(json!({ "metadata": { "name": "r" }, "spec": rule })))],
    };
    // Device 0 is tainted, and in use: it counts once. One that is not published any more is in use, too.
    let want = json!({
        "driver": "d", "poolName": "p", "generation": 1, "nodeName": "n", "resourceSliceCount": 1, "totalDevices": 5,
        "allocatedDevices": 2, "unavailableDevices": 2, "availableDevices": 2,
    });
    assert_eq!(world.status(), want);
}

#[test]
fn a_pool_is_its_newest_generation_and_reported_when_it_is_complete() {
    let device = json!([{ "name": "0" }]);
    let of = |name: &str, generation: i64, count: i64, node: &str| {
        let pool = json!({ "generation": generation, "resourceSliceCount": count });
        slice(name, &device, json!({ "spec": { "pool": pool, "nodeName": node } }))
    };
    let old = of("old", 1, 1, "n");
    let world = World { slices: vec![Arc::clone(&old), of("a", 2, 2, "n")], ..World::default() };
    let problem = "PoolIncomplete: pool d/p is incomplete: observed 1/2 slices at generation 2";
    let want = json!({ "driver": "d", "poolName": "p", "generation": 2, "nodeName": "n", "validationError": problem });
    assert_eq!(world.status(), want);
    let world = World { slices: vec![old, of("a", 2, 2, "n"), of("b", 2, 2, "m")], ..World::default() };
    let status = world.status();
    assert_eq!((&status["totalDevices"], &status["validationError"]), (&json!(2), &Value::Null));
    assert_eq!(status["nodeName"], Value::Null, "the slices are of two nodes");
}

#[test]
fn a_request_is_about_a_driver_and_maybe_a_pool() {
    let other = |driver: &str, pool: &str| {
        slice("s", &json!([]), json!({ "spec": { "driver": driver, "pool": { "name": pool } } }))
    };
    let world = World { slices: vec![other("d", "b"), other("d", "a"), other("x", "c")], ..World::default() };
    let names = |more: Value| -> Vec<Value> {
        world.statuses(&request(json!({ "spec": more }))).into_iter().map(|pool| pool["poolName"].clone()).collect()
    };
    assert_eq!(names(json!({})), ["a", "b"]);
    assert_eq!(names(json!({ "poolName": "b" })), ["b"]);
    assert!(names(json!({ "poolName": "none" })).is_empty());
}

#[test]
fn an_answer_has_as_many_pools_as_were_asked_for_and_counts_all() {
    let of = |pool: &str, count: i64| {
        slice("s", &json!([]), json!({ "spec": { "pool": { "name": pool, "resourceSliceCount": count } } }))
    };
    let world = World { slices: vec![of("a", 2), of("b", 1), of("c", 1)], ..World::default() };
    let known = Known { slices: &world.slices, claims: &[], rules: &[] };
    let asked = request(json!({ "spec": { "limit": 2 } }));
    let patch = answer(&asked, &pools(&asked, &known), now());
    assert_eq!(patch["metadata"], json!({ "uid": "u", "resourceVersion": "7" }));
    assert_eq!(patch["status"]["poolCount"], 3);
    assert_eq!(patch["status"]["pools"].as_array().unwrap().len(), 2);
    let condition = &patch["status"]["conditions"][0];
    assert_eq!(condition["message"], "Calculated status for 2 pools (1 incomplete)");
    assert_eq!(condition["lastTransitionTime"], json!(now()));
}

#[test]
fn a_request_waits_only_for_pools_that_its_answer_shows() {
    let of = |pool: &str, count: i64| {
        slice("s", &json!([]), json!({ "spec": { "pool": { "name": pool, "resourceSliceCount": count } } }))
    };
    let world = World { slices: vec![of("a", 1), of("b", 2)], ..World::default() };
    let known = Known { slices: &world.slices, claims: &[], rules: &[] };
    let check = |spec: Value, want: bool| {
        let asked = request(json!({ "spec": spec.clone() }));
        assert_eq!(is_answerable(&asked, &pools(&asked, &known)), want, "{spec}");
    };
    check(json!({}), false);
    check(json!({ "limit": 2 }), false);
    // One node that never publishes all its slices must not keep thousands of others from being reported.
    check(json!({ "limit": 1 }), true);
    check(json!({ "poolName": "a" }), true);
}

#[test]
fn a_problem_has_at_most_as_many_bytes_as_the_api_takes() {
    let type_ = "\u{fc}".repeat(64);
    let partition = |name: &str, memory: &str| {
        json!({
            "name": name,
            "attributes": { "size": { "string": type_ } },
            "consumesCounters": [{ "counterSet": "card", "counters": { "memory": { "value": memory } } }],
        })
    };
    let devices = json!([partition("a", "1Gi"), partition("b", "2Gi")]);
    let pool = json!({ "name": "p".repeat(200) });
    let spec = card(json!({ "partitionTypeAttribute": "d/size", "pool": pool }));
    let world = World { slices: vec![slice("s", &devices, json!({ "spec": spec }))], ..World::default() };
    let status = world.status();
    let problem = status["validationError"].as_str().expect("the costs differ");
    assert!(problem.starts_with("PartitionCostMismatch:"), "{problem}");
    assert!((253..=256).contains(&problem.len()), "{}", problem.len());
}

/// A device that can be cut into partitions: one of the whole, or up to four small ones.
fn partitions() -> Value {
    let partition = |name: &str, type_: &str, memory: &str| {
        json!({
            "name": name,
            "attributes": { "size": { "string": type_ } },
            "consumesCounters": [{ "counterSet": "card", "counters": { "memory": { "value": memory } } }],
        })
    };
    json!([
        partition("whole", "large", "40Gi"),
        partition("a", "small", "10Gi"),
        partition("b", "small", "10240Mi"),
        partition("c", "small", "10Gi"),
        { "name": "plain" },
    ])
}

fn card(more: Value) -> Value {
    merged(json!({ "sharedCounters": [{ "name": "card", "counters": { "memory": { "value": "40Gi" } } }] }), more)
}

#[test]
fn partitions_are_counted_by_type_and_by_what_the_counters_still_allow() {
    let check = |what: &str, devices: &Value, spec: Value, used: &[&str], asked: Value, want: Result<Value, &str>| {
        let claims = used.iter().map(|device| claim(device, json!({}))).collect();
        let world = World { slices: vec![slice("s", devices, json!({ "spec": spec }))], claims, ..World::default() };
        let status = world.statuses(&request(json!({ "spec": asked })))[0].clone();
        match want {
            Ok(want) => {
                assert_eq!(status["partitionSummary"], want, "{what}");
                assert_eq!(status["validationError"], Value::Null, "{what}");
            }
            Err(want) => assert_eq!(status["validationError"], want, "{what}"),
        }
    };
    let entry = |type_: &str, total: u32, allocatable: u32| json!({ "attribute": "d/size", "type": type_, "total": total, "allocatable": allocatable });
    let declared = || card(json!({ "partitionTypeAttribute": "d/size" }));
    let all = Ok(json!([entry("large", 1, 1), entry("small", 3, 3)]));
    check("all free", &partitions(), declared(), &[], json!({}), all.clone());
    let one = Ok(json!([entry("large", 1, 0), entry("small", 3, 2)]));
    check("a small one is in use", &partitions(), declared(), &["a"], json!({}), one);
    let none = Ok(json!([entry("large", 1, 0), entry("small", 3, 0)]));
    check("the whole is in use", &partitions(), declared(), &["whole"], json!({}), none);
    check("nobody says by what", &partitions(), card(json!({})), &[], json!({}), Ok(Value::Null));
    let by_request = json!({ "defaultPartitionTypeAttribute": "d/size" });
    check("the request does", &partitions(), card(json!({})), &[], by_request.clone(), all);
    let missing = "PartitionTypeMissing: pool d/p declares partitionTypeAttribute but publishes no sharedCounters";
    check("no counters", &partitions(), json!({ "partitionTypeAttribute": "d/size" }), &[], json!({}), Err(missing));
    let other = card(json!({ "partitionTypeAttribute": "d/shape" }));
    let missing =
        "PartitionTypeMissing: device \"whole\" in pool d/p does not carry partition type attribute \"d/shape\"";
    check("another attribute, whatever the request says", &partitions(), other, &[], by_request, Err(missing));
    let mut different = partitions();
    different[1]["consumesCounters"][0]["counters"]["memory"]["value"] = json!("5Gi");
    let mismatch = "PartitionCostMismatch: devices of partition type \"small\" in pool d/p consume different counters";
    check("different costs", &different, declared(), &[], json!({}), Err(mismatch));
}

#[test]
fn shareable_devices_report_what_is_left_of_their_capacity() {
    let shared = |name: &str| json!({ "name": name, "allowMultipleAllocations": true, "capacity": { "memory": { "value": "10Gi" } } });
    let world = |claims: Vec<Arc<ResourceClaimView>>| World {
        slices: vec![slice("s", &json!([shared("0"), shared("1"), { "name": "2" }]), json!({}))],
        claims,
        ..World::default()
    };
    let consumed = |amount: &str| claim("0", json!({ "consumedCapacity": { "memory": amount } }));
    let summary = |full: u32, partial: u32, consumed: &str, available: &str| {
        let capacity = json!([{ "name": "memory", "total": "20Gi", "consumed": consumed, "available": available }]);
        json!({ "fullyAvailableDevices": full, "partiallyAvailableDevices": partial, "capacity": capacity })
    };
    assert_eq!(world(Vec::new()).status()["shareableSummary"], summary(2, 0, "0", "20Gi"));
    let used = world(vec![consumed("1Gi"), consumed("2Gi")]).status();
    assert_eq!(used["shareableSummary"], summary(1, 1, "3Gi", "17Gi"));
    let too_much = world(vec![consumed("25Gi")]).status();
    assert_eq!(too_much["shareableSummary"]["capacity"][0]["available"], "0");
    let plain = World { slices: vec![slice("s", &json!([{ "name": "2" }]), json!({}))], ..World::default() };
    assert_eq!(plain.status()["shareableSummary"], Value::Null);
}

#[test]
fn requests_are_kept_for_an_hour_after_the_answer_or_for_a_day() {
    let check = |what: &str, created: i64, status: Value, want: bool| {
        let created = now().plus_seconds(-created);
        let request = request(json!({ "metadata": { "creationTimestamp": created }, "status": status }));
        assert_eq!(is_old(&request, now()), want, "{what}");
        assert_eq!(is_pending(&request), request.status.is_none(), "{what}");
    };
    let ended = |type_: &str, ago: i64| {
        let condition = json!({ "type": type_, "status": "True", "lastTransitionTime": now().plus_seconds(-ago) });
        json!({ "conditions": [condition] })
    };
    let hour = 3600;
    check("pending", 23 * hour, Value::Null, false);
    check("pending for long", 25 * hour, Value::Null, true);
    check("answered", 30 * hour, ended("Complete", hour - 1), false);
    check("answered long ago", 30 * hour, ended("Complete", hour + 1), true);
    check("failed long ago", 30 * hour, ended("Failed", hour + 1), true);
    check("an answer without an end", 2 * hour, ended("Other", 5), true);
}
