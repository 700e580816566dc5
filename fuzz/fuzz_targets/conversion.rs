//! Answers of conversion webhooks: ConversionReviews of both versions, with a custom resource of another version.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use steersman_apiserver::fuzzing::conversion_answer;

static THING: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "one", "namespace": "default", "uid": "1", "labels": {"app": "web"}},
        "spec": {"size": 1},
    })
});

// The first byte chooses the version of the review.
fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    let version = if first & 1 == 0 { "v1" } else { "v1beta1" };
    conversion_answer(version, body, &THING, "example.com/v2");
});
