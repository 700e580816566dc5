//! Table tests of the pure functions.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steersman_base::Time;
use steersman_model::core::{BootstrapTokenView, ConfigMapView};
use steersman_model::{Encoded, View};

use super::plan::{detached, is_signed, next_expiry, sign, wanted};

fn now() -> Time {
    "2026-11-17T12:00:00Z".parse().unwrap()
}

fn token(name: &str, data: &[(&str, &str)]) -> Arc<BootstrapTokenView> {
    let data: serde_json::Map<String, Value> =
        data.iter().map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into())).collect();
    let object = json!({
        "metadata": { "name": name, "namespace": "kube-system" },
        "type": "bootstrap.kubernetes.io/token",
        "data": data,
    });
    Arc::new(BootstrapTokenView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap())
}

fn map(data: &Value) -> ConfigMapView {
    let object = json!({ "metadata": { "name": "cluster-info" }, "data": data });
    ConfigMapView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
}

/// The values of upstream's `TestComputeDetachedSig`.
#[test]
fn signatures_are_those_of_upstream() {
    const CONTENT: &str = "Hello from the other side. I must have called a thousand times.";
    const SECRET: &str = "my voice is my passcode";
    let check = |content: &str, secret: &str, want: &str| {
        let want = format!("eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..{want}");
        assert_eq!(detached(content, "joshua", secret).unwrap(), want);
    };
    check(CONTENT, SECRET, "VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8");
    check("", SECRET, "7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk");
    check(CONTENT, "", "UfkqvDGiIFxrMnFseDj9LYJOLNrvjW8aHhF71mvvAs8");
}

/// Upstream's `TestValidateSecretForSigning`.
#[test]
fn a_token_signs_if_it_is_whole_and_valid_and_meant_for_it() {
    const LATER: &str = "2026-11-17T13:00:00Z";
    let check = |name: &str, id: &str, secret: &str, expiration: &str, signing: &str, want: bool| {
        let mut data = vec![("token-id", id), ("token-secret", secret), ("usage-bootstrap-signing", signing)];
        if !expiration.is_empty() {
            data.push(("expiration", expiration));
        }
        let signed = wanted(&map(&json!({ "kubeconfig": "a" })), &[token(name, &data)], now()).unwrap().unwrap();
        assert_eq!(signed.len() == 1, want, "{name} {id} {secret} {expiration} {signing}");
    };
    check("bootstrap-token-abcdef", "abcdef", "secret", "", "true", true);
    check("bootstrap-token-abcdef", "abcdef", "secret", LATER, "true", true);
    check("bootstrap-token-abcdef", "abcdef", "secret", "2026-11-17T14:00:00.5+01:00", "true", true);
    check("bootstrap-token-abcdef", "abcdef", "secret", "2026-11-17T12:00:00Z", "true", false);
    check("bootstrap-token-abcdef", "abcdef", "secret", "tomorrow", "true", false);
    check("bootstrap-token-abcdef", "abcdef", "secret", "", "false", false);
    check("bootstrap-token-abcdef", "abcdef", "secret", "", "yes", false);
    check("bootstrap-token-abcdef", "abcdef", "", "", "true", false);
    check("bootstrap-token-abcdef", "", "secret", "", "true", false);
    check("bootstrap-token-abcdef", "ghijkl", "secret", "", "true", false);
    check("bootstrap-token-ABCDEF", "ABCDEF", "secret", "", "true", false);
    check("bootstrap-token-abcde", "abcde", "secret", "", "true", false);
    check("abcdef", "abcdef", "secret", "", "true", false);
}

#[test]
fn a_map_gets_the_signatures_of_all_tokens_and_keeps_the_rest() {
    let data = |id| [("token-id", id), ("token-secret", "secret"), ("usage-bootstrap-signing", "true")];
    let soon = [&data("bbbbbb")[..], &[("expiration", "2026-11-17T12:30:00Z")]].concat();
    let tokens = [token("bootstrap-token-aaaaaa", &data("aaaaaa")), token("bootstrap-token-bbbbbb", &soon)];
    assert_eq!(next_expiry(&tokens, now()), Some("2026-11-17T12:30:00Z".parse().unwrap()));
    assert_eq!(next_expiry(&tokens[..1], now()), None);
    let unsigned = map(&json!({ "other": "a" }));
    assert_eq!(wanted(&unsigned, &tokens, now()).unwrap(), None, "there is nothing to sign");
    let seen = map(&json!({ "kubeconfig": "content", "jws-kubeconfig-gone00": "old", "other": "a" }));
    let want = wanted(&seen, &tokens, now()).unwrap().unwrap();
    assert!(!is_signed(&seen, &want));
    let mut live =
        json!({ "data": { "kubeconfig": "content", "jws-kubeconfig-gone00": "old", "other": "a" }, "binaryData": {} });
    assert!(sign(&mut live, &seen, &want));
    assert!(!sign(&mut live, &seen, &want), "it is signed");
    let keys: Vec<_> = live["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb", "kubeconfig", "other"]);
    assert!(is_signed(&map(&live["data"]), &want));
    let mut changed = json!({ "data": { "kubeconfig": "another content" } });
    assert!(!sign(&mut changed, &seen, &want), "what was not seen is not signed");
    let none = wanted(&seen, &[], now()).unwrap().unwrap();
    assert!(none.is_empty() && !is_signed(&seen, &none) && sign(&mut live, &seen, &none));
}
