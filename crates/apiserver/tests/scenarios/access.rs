//! Who is who, and who may what: tokens, reviews, roles.

use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authorization, Options};
use steersman_base::Clock;

use crate::support::{Got, ask, config_map, send, server};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A server on which roles count.
fn strict() -> ApiServer {
    let clock = Clock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
    ApiServer::new(Options { clock, authorization: Authorization::Rbac, ..Options::default() })
}

/// A service account's token, for this server or for somebody else.
async fn token(server: &ApiServer, account: &str, spec: Value) -> String {
    let path = format!("{ACCOUNTS}/{account}/token");
    let answer = ask(server, "POST", &path, Some(json!({"spec": spec}))).await.expect(201);
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Asks something as the owner of a token.
async fn ask_as(server: &ApiServer, token: &str, method: &str, path: &str, body: Option<Value>) -> Got {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    send(&server.for_strangers(), method, path, &headers, body.into_bytes()).await
}

async fn review(server: &ApiServer, spec: Value) -> Value {
    ask(server, "POST", REVIEWS, Some(json!({"spec": spec}))).await.expect(201)["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_token_is_its_service_account_until_it_ends_or_the_account_goes() {
    let server = server();
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let token = token(&server, "robot", json!({"expirationSeconds": 600})).await;
    let own = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = ask_as(&server, &token, "POST", own, Some(json!({}))).await.expect(201);
    assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
    assert_eq!(who["status"]["userInfo"]["groups"], json!(groups));

    tokio::time::sleep(std::time::Duration::from_secs(601)).await;
    ask_as(&server, &token, "POST", own, Some(json!({}))).await.expect(401);
    let token = self::token(&server, "robot", json!({})).await;
    ask(&server, "DELETE", &format!("{ACCOUNTS}/robot"), None).await.expect(200);
    ask_as(&server, &token, "POST", own, Some(json!({}))).await.expect(401);
    assert_eq!(review(&server, json!({"token": token})).await["error"], "invalid bearer token");
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    ask_as(&server, &token, "POST", own, Some(json!({}))).await.expect(401);
}

#[tokio::test(start_paused = true)]
async fn a_token_in_a_secret_counts_while_it_is_there() {
    let server = server();
    let account = ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let signed = |uid: &Value, issuer: &str| {
        let claims = json!({
            "iss": issuer,
            "sub": "system:serviceaccount:default:robot",
            "kubernetes.io/serviceaccount/namespace": "default",
            "kubernetes.io/serviceaccount/secret.name": "robot-token",
            "kubernetes.io/serviceaccount/service-account.name": "robot",
            "kubernetes.io/serviceaccount/service-account.uid": uid,
        });
        let pem = server.token_key_pem().unwrap();
        let der = rustls_pki_types::PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let key = jsonwebtoken::EncodingKey::from_ec_der(der.secret_der());
        jsonwebtoken::encode(&jsonwebtoken::Header::new(jsonwebtoken::Algorithm::ES256), &claims, &key).unwrap()
    };
    let keep = async |token: &str| {
        let secret = json!({
            "metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
            "type": "kubernetes.io/service-account-token",
            "stringData": {"token": token},
        });
        ask(&server, "POST", SECRETS, Some(secret)).await.expect(201);
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    let token = signed(&account["metadata"]["uid"], "kubernetes/serviceaccount");
    ask_as(&server, &token, "GET", maps, None).await.expect(401);
    keep(&token).await;
    ask_as(&server, &token, "GET", maps, None).await.expect(200);
    let who = review(&server, json!({"token": token})).await;
    assert_eq!(who["user"]["username"], "system:serviceaccount:default:robot");
    let elsewhere = review(&server, json!({"token": token, "audiences": ["vault"]})).await;
    assert_eq!(elsewhere["authenticated"], Value::Null, "it is for this server only");
    ask(&server, "DELETE", &format!("{SECRETS}/robot-token"), None).await.expect(200);
    ask_as(&server, &token, "GET", maps, None).await.expect(401);

    for wrong in [signed(&json!("another"), "kubernetes/serviceaccount"), signed(&account["metadata"]["uid"], "nobody")]
    {
        keep(&wrong).await;
        ask_as(&server, &wrong, "GET", maps, None).await.expect(401);
        ask(&server, "DELETE", &format!("{SECRETS}/robot-token"), None).await.expect(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_counts_only_for_its_audience() {
    let server = server();
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let token = token(&server, "robot", json!({"audiences": ["vault"]})).await;
    ask_as(&server, &token, "GET", "/api/v1/pods", None).await.expect(401);
    assert_eq!(review(&server, json!({"token": token})).await["authenticated"], Value::Null);
    let status = review(&server, json!({"token": token, "audiences": ["other", "vault"]})).await;
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!(["vault"]));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:robot");
}

#[tokio::test(start_paused = true)]
async fn with_rbac_a_service_account_may_what_its_roles_say() {
    let server = strict();
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let token = token(&server, "robot", json!({})).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let refused = ask_as(&server, &token, "GET", maps, None).await.expect(403);
    assert_eq!(
        refused["message"],
        "configmaps is forbidden: User \"system:serviceaccount:default:robot\" cannot list resource \"configmaps\" in API \
         group \"\" in the namespace \"default\""
    );
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
    });
    ask(&server, "POST", &format!("{rbac}/roles"), Some(role)).await.expect(201);
    let binding = json!({
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    });
    ask(&server, "POST", &format!("{rbac}/rolebindings"), Some(binding)).await.expect(201);
    ask_as(&server, &token, "GET", maps, None).await.expect(200);
    ask_as(&server, &token, "POST", maps, Some(config_map("a"))).await.expect(403);
    ask_as(&server, &token, "GET", "/api/v1/namespaces/kube-system/configmaps", None).await.expect(403);
    ask_as(&server, &token, "GET", "/metrics", None).await.expect(403);
    ask_as(&server, &token, "GET", "/api/v1", None).await.expect(200);
    ask(&server, "DELETE", &format!("{rbac}/rolebindings/robot"), None).await.expect(200);
    ask_as(&server, &token, "GET", maps, None).await.expect(403);
}

#[tokio::test(start_paused = true)]
async fn without_rbac_everybody_may_everything_and_reviews_say_so() {
    let server = server();
    let spec = json!({"user": "jane", "resourceAttributes": {"verb": "delete", "resource": "nodes"}});
    let answer = ask(&server, "POST", ACCESS, Some(json!({"spec": spec}))).await.expect(201);
    assert_eq!(answer["status"], json!({"allowed": true}));
    let headers = [("impersonate-user", "jane")];
    send(&server, "GET", "/api/v1/nodes", &headers, Vec::new()).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn only_who_may_impersonate_does() {
    let server = strict();
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let bearer = format!("Bearer {}", token(&server, "robot", json!({})).await);
    let headers = [("authorization", bearer.as_str()), ("impersonate-user", "admin")];
    let refused = send(&server.for_strangers(), "GET", "/api/v1/nodes", &headers, Vec::new()).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("cannot impersonate resource \"users\""), "{message}");
}
