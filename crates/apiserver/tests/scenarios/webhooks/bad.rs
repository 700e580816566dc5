//! Webhooks that hang, lie, loop, answer garbage or megabytes: the request ends with upstream's status, and the server lives.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use tokio::time::{Instant, timeout};

use super::{MUTATING, Reply, VALIDATING, configure, serve};
use crate::support::{CONFIG_MAPS, ask, config_map, server as api_server};

/// Longer than any of these requests may take, shorter than forever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the message of the refusal when a webhook answers so.
async fn refusal(kind: &str, reply: Reply, fields: Value) -> (u16, String) {
    let api = api_server();
    let hooks = serve(move |_, _| reply.clone()).await;
    configure(&api, kind, "one", &hooks, vec![fields]).await;
    let got = timeout(PATIENCE, ask(&api, "POST", CONFIG_MAPS, Some(config_map("a")))).await.unwrap();
    ask(&api, "GET", CONFIG_MAPS, None).await.expect(200);
    let message = got.body["message"].as_str().unwrap_or_default().to_owned();
    (got.code, message.replace(&hooks.address.to_string(), "ADDRESS"))
}

const PREFIX: &str = "Internal error occurred: failed calling webhook \"a.example.dev\": ";

#[tokio::test]
async fn answers_that_make_no_sense_fail_the_request_in_upstreams_words() {
    let patch = |patch: Value| Reply::patch(&patch);
    let rows: Vec<(&str, Reply, &str)> = vec![
        (
            MUTATING,
            Reply::text(200, "hello"),
            "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go \
             value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }",
        ),
        (
            MUTATING,
            Reply::text(200, ""),
            "failed to call webhook: 0-length response with status code: 200 and content type: text/plain",
        ),
        (
            MUTATING,
            Reply::text(500, "oh\n"),
            "failed to call webhook: an error on the server (\"oh\") has prevented the request from succeeding",
        ),
        (MUTATING, Reply::text(404, "x"), "failed to call webhook: the server could not find the requested resource"),
        (
            MUTATING,
            Reply::text(302, "x"),
            "failed to call webhook: the server responded with the status code 302 but did not return more information",
        ),
        (MUTATING, Reply::text(200, "{}"), "received invalid webhook response: webhook response was absent"),
        (
            VALIDATING,
            Reply::answer(json!({"allowed": true, "patch": "W10=", "patchType": "JSONPatch"})),
            "received invalid webhook response: validating webhook may not return response.patch",
        ),
        (
            MUTATING,
            Reply::answer(json!({"allowed": true, "patch": "e30=", "patchType": "JSONPatch"})),
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type \
             jsonpatch.Patch",
        ),
        (MUTATING, Reply::Close, "failed to call webhook: Post \"https://ADDRESS/?timeout=10s\": EOF"),
    ];
    for (kind, reply, want) in rows {
        let shown = format!("{reply:?}");
        assert_eq!(refusal(kind, reply, json!({})).await, (500, format!("{PREFIX}{want}")), "{shown}");
    }
    // A patch that does not fit the object is not the webhook's failure: no policy ignores it.
    let ignored = json!({"failurePolicy": "Ignore"});
    let missing = patch(json!([{"op": "add", "path": "/x/y", "value": 1}]));
    let want = "Internal error occurred: add operation does not apply: doc is missing path: \"/x/y\": missing value";
    assert_eq!(refusal(MUTATING, missing, ignored.clone()).await, (500, want.to_owned()));
    let broken = patch(json!([{"op": "replace", "path": "/metadata", "value": 1}]));
    let (code, message) = refusal(MUTATING, broken, ignored).await;
    assert_eq!(code, 500, "{message}");
}

#[tokio::test]
async fn a_webhook_that_lies_about_the_uid_fails_the_request() {
    let (code, message) = refusal(VALIDATING, Reply::answer(json!({"uid": "lie", "allowed": true})), json!({})).await;
    assert_eq!(code, 500);
    let start = format!("{PREFIX}received invalid webhook response: expected response.uid=");
    assert!(message.starts_with(&start) && message.ends_with("got \"lie\""), "{message}");
}

#[tokio::test]
async fn a_webhook_that_hangs_is_waited_for_no_longer_than_it_may_take() {
    let begun = Instant::now();
    let (code, message) = refusal(VALIDATING, Reply::Hang, json!({"timeoutSeconds": 1})).await;
    assert_eq!(code, 500);
    let want = "failed to call webhook: Post \"https://ADDRESS/?timeout=1s\": context deadline exceeded";
    assert_eq!(message, format!("{PREFIX}{want}"));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_cannot_hold_a_paused_clock() {
    let (code, _) = refusal(VALIDATING, Reply::Hang, json!({"timeoutSeconds": 1})).await;
    assert_eq!(code, 500);
}

#[tokio::test]
async fn a_webhook_that_fails_is_passed_over_if_its_policy_says_so() {
    let ignored = |seconds: u32| json!({"failurePolicy": "Ignore", "timeoutSeconds": seconds});
    assert_eq!(refusal(MUTATING, Reply::text(500, "oh"), ignored(10)).await.0, 201);
    assert_eq!(refusal(VALIDATING, Reply::Hang, ignored(1)).await.0, 201);
    assert_eq!(refusal(VALIDATING, Reply::deny("no"), ignored(10)).await.0, 400, "a denial is no failure");
}

#[tokio::test]
async fn an_answer_of_many_megabytes_is_not_read() {
    let huge = Reply::Bytes(200, "application/json", vec![b' '; 32 << 20]);
    let (code, message) = refusal(MUTATING, huge, json!({})).await;
    assert_eq!(code, 500);
    assert!(message.ends_with("the answer is larger than 8388608 bytes"), "{message}");
}

#[tokio::test]
async fn a_patch_that_explodes_is_refused() {
    let mut operations = vec![json!({"op": "add", "path": "/data/x", "value": "y".repeat(1000)})];
    operations.extend((0..40).map(|_| json!({"op": "copy", "from": "/data", "path": "/data/z"})));
    let (code, message) = refusal(MUTATING, Reply::patch(&Value::Array(operations)), json!({})).await;
    assert_eq!(code, 500, "{message}");
}

#[tokio::test]
async fn a_webhook_with_another_certificate_is_not_believed() {
    let other = serve(|_, _| Reply::allow()).await;
    let mut fields = json!({});
    fields["clientConfig"] = other.webhook(json!({}))["clientConfig"].clone();
    let api = api_server();
    let hooks = serve(|_, _| Reply::allow()).await;
    fields["clientConfig"]["url"] = format!("https://{}", hooks.address).into();
    configure(&api, MUTATING, "one", &hooks, vec![fields]).await;
    let got = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(500);
    let want = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(got["message"].as_str().unwrap().ends_with(want), "{got}");
}

#[tokio::test]
async fn a_webhook_that_nobody_runs_fails_the_request() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::allow()).await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    configure(&api, MUTATING, "one", &hooks, vec![json!({"clientConfig": {"url": format!("https://{free}/x")}})]).await;
    let got = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(500);
    let want = format!(
        "{PREFIX}failed to call webhook: Post \"https://{free}/x?timeout=10s\": dial tcp {free}: connect: connection refused"
    );
    assert_eq!(got["message"], want);
}

/// Every write makes another one, until the deadlines end them.
#[tokio::test]
async fn a_webhook_that_writes_to_the_server_loops_until_its_deadline() {
    let api = api_server();
    let back: Arc<OnceLock<ApiServer>> = Arc::default();
    let held = Arc::clone(&back);
    let hooks = serve(move |_, review| {
        let depth = review["request"]["name"].as_str().unwrap().len();
        if let Some(api) = held.get().cloned() {
            tokio::spawn(async move {
                let name = "a".repeat(depth + 1);
                ask(&api, "POST", CONFIG_MAPS, Some(config_map(&name))).await;
            });
        }
        Reply::Hang
    })
    .await;
    configure(&api, MUTATING, "one", &hooks, vec![json!({"timeoutSeconds": 1})]).await;
    back.set(api.clone()).ok().unwrap();
    let got = timeout(PATIENCE, ask(&api, "POST", CONFIG_MAPS, Some(config_map("a")))).await.unwrap();
    assert_eq!(got.code, 500, "{}", got.body);
    ask(&api, "GET", CONFIG_MAPS, None).await.expect(200);
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/one";
    timeout(PATIENCE, ask(&api, "DELETE", path, None)).await.unwrap().expect(200);
    timeout(PATIENCE, ask(&api, "POST", CONFIG_MAPS, Some(config_map("z")))).await.unwrap().expect(201);
}
