//! What bad input gets: the status of kube-apiserver, never a panic, never a partial write.

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, ask, config_map, send, server};

#[tokio::test(start_paused = true)]
async fn bad_requests_get_a_status_and_change_nothing() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let before = server.revision();
    let one = &format!("{CONFIG_MAPS}/a");
    let json = "application/json";
    let deep = "[".repeat(200_000);
    type Row<'a> = (&'a str, &'a str, &'a str, &'a str, &'a [u8], u16);
    let rows: &[Row<'_>] = &[
        ("cut JSON", "POST", CONFIG_MAPS, json, b"{\"metadata\":", 400),
        ("no body", "POST", CONFIG_MAPS, json, b"", 400),
        ("no object", "POST", CONFIG_MAPS, json, b"[]", 400),
        ("a number", "POST", CONFIG_MAPS, json, b"7", 400),
        ("no UTF-8", "POST", CONFIG_MAPS, json, b"{\"metadata\":{\"name\":\"\xff\"}}", 422),
        ("deep nesting", "POST", CONFIG_MAPS, json, deep.as_bytes(), 400),
        ("bad YAML", "POST", CONFIG_MAPS, "application/yaml", b"a: [", 400),
        ("protobuf", "POST", CONFIG_MAPS, "application/vnd.kubernetes.protobuf", b"k8s\0", 400),
        ("CBOR", "POST", CONFIG_MAPS, "application/cbor", b"\xa0", 415),
        (
            "other kind",
            "POST",
            CONFIG_MAPS,
            json,
            b"{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"}}",
            400,
        ),
        ("other name", "PUT", one, json, b"{\"metadata\":{\"name\":\"x\"}}", 400),
        ("no name", "PUT", one, json, b"{}", 400),
        ("bad selector", "GET", "/api/v1/pods?labelSelector=a==,,", json, b"", 400),
        ("bad field selector", "GET", "/api/v1/pods?fieldSelector=a", json, b"", 400),
        ("bad continue", "GET", "/api/v1/pods?continue=x!", json, b"", 400),
        ("bad limit", "GET", "/api/v1/pods?limit=many", json, b"", 400),
        ("bad version", "GET", "/api/v1/pods?resourceVersion=x", json, b"", 400),
        ("bad match", "GET", "/api/v1/pods?resourceVersion=1&resourceVersionMatch=x", json, b"", 422),
        ("bad dry run", "DELETE", &format!("{one}?dryRun=x"), json, b"", 422),
        ("bad delete options", "DELETE", one, json, b"{\"propagationPolicy\":\"x\"}", 422),
        ("cut delete options", "DELETE", one, json, b"{", 400),
        ("post to a name", "POST", one, json, b"{}", 405),
        ("put to a collection", "PUT", CONFIG_MAPS, json, b"{}", 405),
        ("unknown resource", "GET", "/api/v1/unicorns", json, b"", 404),
        ("unknown subresource", "GET", &format!("{one}/horn"), json, b"", 404),
        ("unknown group", "GET", "/apis/nope/v1/x", json, b"", 404),
        ("no namespace", "GET", "/api/v1/configmaps/a", json, b"", 404),
        ("nonsense", "GET", "/%ff/%", json, b"", 404),
        ("bad merge patch", "PATCH", one, "application/merge-patch+json", b"{", 400),
        ("bad patch type", "PATCH", one, json, b"{}", 415),
    ];
    for (name, method, path, kind, body, want) in rows {
        let got = send(&server, method, path, &[("content-type", kind)], body.to_vec()).await;
        assert_eq!(got.code, *want, "{name}: {}", got.body);
        assert!(got.body["kind"] == "Status" || got.code == 404, "{name}: {}", got.body);
    }
    assert_eq!(server.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_refused() {
    let server = server();
    let body = json!({"metadata": {"name": "a"}, "data": {"a": "x".repeat(3 << 20)}}).to_string();
    let got = send(&server, "POST", CONFIG_MAPS, &[], body.into_bytes()).await;
    assert_eq!(got.expect(413)["reason"], "RequestEntityTooLarge");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_somebodys_or_it_is_refused() {
    let server = server();
    let token = server.admin_token().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let strangers = server.requiring_authentication();
    let get =
        async |headers: &[(&str, &str)], path: &str| send(&strangers, "GET", path, headers, Vec::new()).await.code;
    assert_eq!(get(&[], CONFIG_MAPS).await, 401);
    assert_eq!(get(&[("authorization", "Bearer nope")], CONFIG_MAPS).await, 401);
    assert_eq!(get(&[("authorization", "Basic eA==")], CONFIG_MAPS).await, 401);
    assert_eq!(get(&[("authorization", &bearer)], CONFIG_MAPS).await, 200);
    assert_eq!(get(&[], "/version").await, 401);
    assert_eq!(get(&[], "/healthz").await, 200);
    assert_eq!(get(&[], "/readyz?verbose").await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_service_account_token_is_good_until_it_expires_or_its_account_is_gone() {
    let server = server();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    ask(&server, "POST", accounts, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let path = format!("{accounts}/robot/token");
    let token = async |spec: Value| -> String {
        let made = ask(&server, "POST", &path, Some(json!({"spec": spec}))).await.expect(201);
        made["status"]["token"].as_str().unwrap().to_owned()
    };
    let good = token(json!({"expirationSeconds": 600})).await;
    let foreign = token(json!({"audiences": ["elsewhere"]})).await;
    let strangers = server.requiring_authentication();
    let get = async |token: &str| {
        send(&strangers, "GET", CONFIG_MAPS, &[("authorization", &format!("Bearer {token}"))], Vec::new()).await.code
    };
    assert_eq!(get(&good).await, 200);
    assert_eq!(get(&foreign).await, 401, "it is for somebody else");
    let (head, signature) = good.rsplit_once('.').unwrap();
    let forged: String = signature.chars().rev().collect();
    assert_eq!(get(&format!("{head}.{forged}")).await, 401);
    tokio::time::sleep(std::time::Duration::from_secs(601)).await;
    assert_eq!(get(&good).await, 401, "its time is over");
    let fresh = token(json!({})).await;
    assert_eq!(get(&fresh).await, 200);
    ask(&server, "DELETE", &format!("{accounts}/robot"), None).await.expect(200);
    ask(&server, "POST", accounts, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    assert_eq!(get(&fresh).await, 401, "another account of the same name");
    let keys = ask(&server, "GET", "/openid/v1/jwks", None).await.expect(200);
    assert_eq!(keys["keys"][0]["alg"], "ES256");
}

#[tokio::test(start_paused = true)]
async fn a_head_has_the_headers_of_a_get_and_no_body() {
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let server = server();
    for path in ["/healthz", "/version", "/api/v1/namespaces", "/openapi/v3", "/nothing"] {
        let is_read_by_get_only = matches!(path, "/version" | "/api/v1/namespaces");
        let request = http::Request::head(path).body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        let response = server.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status() == 405, is_read_by_get_only, "{path}");
        let headers = response.headers().clone();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 0, "{path}");
        assert!(headers.contains_key(http::header::CONTENT_TYPE), "{path}");
        if let Some(length) = headers.get(http::header::CONTENT_LENGTH) {
            assert_ne!(length, "0", "{path}: the length is that of the body of a GET");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_makes_another_kind_of_an_object_is_invalid() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    for (patch, problem) in [
        (json!({"kind": "Secret"}), "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        (
            json!({"apiVersion": "v2"}),
            "no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    ] {
        let refused = ask(&server, "PATCH", &path, Some(patch)).await.expect(422);
        assert_eq!(refused["details"]["causes"][0]["field"], "patch");
        let message = refused["message"].as_str().unwrap();
        assert!(message.ends_with(problem), "{message}");
    }
    let refused = ask(&server, "PATCH", &path, Some(Value::Null)).await.expect(400);
    assert_eq!(refused["message"], "Invalid JSON Patch");
}
