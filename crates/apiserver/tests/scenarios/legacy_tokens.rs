//! Tokens of service accounts that are kept in secrets.

use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use steersman_apiserver::ApiServer;
use tower::ServiceExt;

use crate::access::{ACCOUNTS, ask_as, review};
use crate::support::{CONFIG_MAPS, ask, server};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ISSUER: &str = "kubernetes/serviceaccount";

/// A token in a secret of this name, as its controller signs it.
fn legacy_token(server: &ApiServer, secret: &str, uid: &Value, issuer: &str) -> String {
    let claims = json!({
        "iss": issuer,
        "sub": "system:serviceaccount:default:robot",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": secret,
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": uid,
    });
    let pem = server.token_key_pem().unwrap();
    let der = rustls_pki_types::PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    let key = jsonwebtoken::EncodingKey::from_ec_der(der.secret_der());
    jsonwebtoken::encode(&jsonwebtoken::Header::new(jsonwebtoken::Algorithm::ES256), &claims, &key).unwrap()
}

/// A secret with a token.
fn token_secret(name: &str, token: &str) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
        "stringData": {"token": token},
    })
}

#[tokio::test(start_paused = true)]
async fn a_token_in_a_secret_counts_while_it_is_there() {
    let server = server();
    let account = ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let keep = async |token: &str| {
        ask(&server, "POST", SECRETS, Some(token_secret("robot-token", token))).await.expect(201);
    };
    let token = legacy_token(&server, "robot-token", &account["metadata"]["uid"], ISSUER);
    ask_as(&server, &token, "GET", CONFIG_MAPS, None).await.expect(401);
    keep(&token).await;
    ask_as(&server, &token, "GET", CONFIG_MAPS, None).await.expect(200);
    let who = review(&server, json!({"token": token})).await;
    assert_eq!(who["user"]["username"], "system:serviceaccount:default:robot");
    let elsewhere = review(&server, json!({"token": token, "audiences": ["vault"]})).await;
    assert_eq!(elsewhere["authenticated"], Value::Null, "it is for this server only");
    ask(&server, "DELETE", &format!("{SECRETS}/robot-token"), None).await.expect(200);
    ask_as(&server, &token, "GET", CONFIG_MAPS, None).await.expect(401);

    for wrong in [
        legacy_token(&server, "robot-token", &json!("another"), ISSUER),
        legacy_token(&server, "robot-token", &account["metadata"]["uid"], "nobody"),
    ] {
        keep(&wrong).await;
        ask_as(&server, &wrong, "GET", CONFIG_MAPS, None).await.expect(401);
        ask(&server, "DELETE", &format!("{SECRETS}/robot-token"), None).await.expect(200);
    }
}

#[tokio::test(start_paused = true)]
async fn the_use_of_a_token_in_a_secret_is_noted_once_a_day() {
    const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
    let server = server();
    let account = ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let token = legacy_token(&server, "robot-token", &account["metadata"]["uid"], ISSUER);
    ask(&server, "POST", SECRETS, Some(token_secret("robot-token", &token))).await.expect(201);
    let path = format!("{SECRETS}/robot-token");
    let metadata = async || ask(&server, "GET", &path, None).await.expect(200)["metadata"].clone();
    let uses = async || ask_as(&server, &token, "GET", CONFIG_MAPS, None).await;
    for day in ["2026-11-15", "2026-11-16"] {
        uses().await.expect(200);
        let noted = metadata().await;
        assert_eq!(noted["labels"][LAST_USED], day);
        uses().await.expect(200);
        assert_eq!(metadata().await["resourceVersion"], noted["resourceVersion"], "it is written once");
        tokio::time::sleep(std::time::Duration::from_secs(24 * 60 * 60)).await;
    }
    let mark =
        |since: Value| Some(json!({"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": since}}}));
    ask(&server, "PATCH", &path, mark("2026-11-01".into())).await.expect(200);
    uses().await.expect(401);
    assert_eq!(metadata().await["labels"][LAST_USED], "2026-11-17", "whoever has marked it learns of its use");
    ask(&server, "PATCH", &path, mark(Value::Null)).await.expect(200);
    uses().await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn the_user_of_a_token_that_nobody_asked_for_is_warned() {
    let server = server();
    let account = ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let token = legacy_token(&server, "robot-token", &account["metadata"]["uid"], ISSUER);
    ask(&server, "POST", SECRETS, Some(token_secret("robot-token", &token))).await.expect(201);
    let warnings = async || {
        let request = http::Request::get(CONFIG_MAPS).header("authorization", format!("Bearer {token}"));
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        let response = server.requiring_authentication().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let all = response.headers().get_all("warning").iter();
        all.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(warnings().await, Vec::<String>::new());
    let secrets = json!({"secrets": [{"name": "robot-token"}]});
    ask(&server, "PATCH", &format!("{ACCOUNTS}/robot"), Some(secrets)).await.expect(200);
    let want = "299 - \"Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated \
                secret-based tokens.\"";
    assert_eq!(warnings().await, [want]);
}
