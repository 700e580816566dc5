//! Tables of usage, scopes, charges and bounds.

#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

mod charges;
mod ranges;
mod scopes;
mod usage;

use serde_json::{Value, json};

use super::{Amounts, DeviceClasses, Facts, Subject, Tracker};
use crate::Time;

const NOW: &str = "2026-11-15T12:00:00Z";

fn now() -> Time {
    NOW.parse().unwrap()
}

fn amounts(json: Value) -> Amounts {
    serde_json::from_value(json).unwrap()
}

fn subject(group: &str, resource: &str, object: Value) -> (Tracker, Subject) {
    let tracker = Tracker::of(group, resource).unwrap();
    let subject = tracker.subject(&object);
    (tracker, subject)
}

fn classes() -> DeviceClasses {
    [("gpu".into(), Some("example.com/gpu".into())), ("tpu".into(), None)].into_iter().collect()
}

fn usage_of(group: &str, resource: &str, object: Value) -> Value {
    let (_, subject) = subject(group, resource, object);
    json!(subject.usage(Facts { now: now(), classes: &classes() }))
}

/// Returns a pod with containers of these requests and limits.
fn pod(containers: Value) -> Value {
    json!({ "spec": { "containers": containers } })
}

fn container(name: &str, requests: Value, limits: Value) -> Value {
    json!({ "name": name, "resources": { "requests": requests, "limits": limits } })
}
