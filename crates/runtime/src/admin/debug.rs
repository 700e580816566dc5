//! Pages for troubleshooting.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use steersman_informer::RunningInformer;
use steersman_informer::SubscriberState;
use steersman_model::Projection;
use steersman_workqueue::{Histogram, QueueStats};

use super::{Call, page};
use crate::serving::Response;

/// Upstream's `/debug/flags`.
pub(super) fn flags_index() -> Response {
    let body = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n\
                <table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";
    page::bytes(StatusCode::OK, "text/html; charset=utf-8", body)
}

/// `PUT /debug/flags/v`, with upstream's answers.
pub(super) fn set_verbosity(call: &Call, set: &dyn Fn(u32) -> Result<(), String>) -> Response {
    let answer = |code, text: &str| page::bytes(code, "text/plain", format!("{text}\n"));
    if call.method != Method::PUT {
        return answer(StatusCode::NOT_ACCEPTABLE, "unsupported http method");
    }
    let body = String::from_utf8_lossy(&call.body);
    let digits = !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_digit());
    let level = match body.parse::<u32>() {
        Ok(level) if digits => level,
        Err(_) if digits => {
            return answer(
                StatusCode::BAD_REQUEST,
                &format!("strconv.ParseUint: parsing {body:?}: value out of range"),
            );
        }
        _ => return answer(StatusCode::BAD_REQUEST, &format!("strconv.ParseUint: parsing {body:?}: invalid syntax")),
    };
    match set(level) {
        Ok(()) => answer(StatusCode::OK, &format!("successfully set klog.logging.verbosity to {level}")),
        Err(error) => answer(StatusCode::BAD_REQUEST, &format!("failed set klog.logging.verbosity {level}: {error}")),
    }
}

/// Lists every informer: what it watches, with which view, its subscribers and problems.
pub(super) fn informers(running: &[RunningInformer]) -> Value {
    let informers: Vec<_> = running.iter().map(informer).collect();
    json!({"informers": informers})
}

fn informer(running: &RunningInformer) -> Value {
    let state = &running.informer;
    let subscriber = |subscriber: &SubscriberState| {
        let SubscriberState { name, pending, synced, panics, .. } = subscriber;
        json!({"name": name, "pending": pending, "synced": synced, "panics": panics})
    };
    let problem = running.reflector.as_ref().and_then(|reflector| reflector.problem.as_ref());
    json!({
        "resource": state.target.resource.to_string(),
        "scope": state.target.selection.to_string(),
        "kind": class(running),
        "view": running.view,
        "objects": state.objects,
        "resourceVersion": state.reached.as_ref().map(ToString::to_string),
        "synced": state.synced,
        "queued": state.queued,
        "phase": running.reflector.as_ref().map(|reflector| format!("{:?}", reflector.phase)),
        "problem": problem.map(|problem| json!({
            "kind": format!("{:?}", problem.kind), "message": &*problem.message, "failures": problem.failures,
        })),
        "subscribers": state.subscribers.iter().map(subscriber).collect::<Vec<_>>(),
    })
}

/// `metadata`, `dynamic` (any kind, chosen at run time), `typed` (a type of `k8s-openapi` or of the user's), or `view`.
fn class(running: &RunningInformer) -> &'static str {
    match (running.projection, running.view) {
        (Projection::Metadata, _) => "metadata",
        (Projection::Whole, view) if view.contains("DynamicObject") || view.contains("Value") => "dynamic",
        (Projection::Whole, view) if view.contains("Typed<") => "typed",
        (Projection::Whole, _) => "view",
    }
}

/// Lists every queue with its metrics.
pub(super) fn queues(queues: &[(String, QueueStats)]) -> Value {
    let queue = |(name, stats): &(String, QueueStats)| {
        json!({
            "name": name,
            "depth": stats.depth,
            "adds": stats.adds,
            "retries": stats.retries,
            "givenUp": stats.given_up,
            "waited": timing(&stats.waited),
            "worked": timing(&stats.worked),
            "unfinishedSeconds": stats.unfinished.as_secs_f64(),
            "longestRunningSeconds": stats.longest_running.as_secs_f64(),
        })
    };
    json!({"queues": queues.iter().map(queue).collect::<Vec<_>>()})
}

fn timing(histogram: &Histogram) -> Value {
    json!({"count": histogram.count(), "seconds": histogram.sum()})
}
