//! Answers of admission webhooks: AdmissionReviews of both versions, with JSON patches, which are applied to a pod.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use steersman_apiserver::fuzzing::admission_answer;

static POD: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "e", "value": "v"}]}]},
    })
});

// The first byte chooses version and kind of the webhook.
fuzz_target!(|data: &[u8]| {
    let Some((first, body)) = data.split_first() else { return };
    let version = if first & 1 == 0 { "v1" } else { "v1beta1" };
    admission_answer(version, first & 2 == 0, body, &POD);
});
