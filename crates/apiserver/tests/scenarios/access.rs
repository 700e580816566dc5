//! Who is who, and who may what: tokens, reviews, roles.

use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authorization, Options};
use steersman_base::Clock;

use crate::support::{Got, ask, config_map, send, server};

pub(crate) const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A server on which roles count.
pub(crate) fn strict() -> ApiServer {
    let clock = Clock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
    ApiServer::new(Options::default().clock(clock).authorization(Authorization::Rbac))
}

/// A service account's token, for this server or for somebody else.
async fn token(server: &ApiServer, account: &str, spec: Value) -> String {
    let path = format!("{ACCOUNTS}/{account}/token");
    let answer = ask(server, "POST", &path, Some(json!({"spec": spec}))).await.expect(201);
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Asks something as the owner of a token.
pub(crate) async fn ask_as(server: &ApiServer, token: &str, method: &str, path: &str, body: Option<Value>) -> Got {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    send(&server.requiring_authentication(), method, path, &headers, body.into_bytes()).await
}

/// Creates an account with this role, and returns its token.
pub(crate) async fn robot(server: &ApiServer, role: Value) -> String {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    ask(server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let binding = json!({
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    });
    ask(server, "POST", &format!("{RBAC}/clusterroles"), Some(role)).await.expect(201);
    ask(server, "POST", &format!("{RBAC}/clusterrolebindings"), Some(binding)).await.expect(201);
    token(server, "robot", json!({})).await
}

pub(crate) async fn review(server: &ApiServer, spec: Value) -> Value {
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
async fn with_rbac_a_role_that_is_put_together_from_others_grants_what_they_do() {
    let server = strict();
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let token = token(&server, "robot", json!({})).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let binding = |role: &str| {
        json!({
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        })
    };
    let bindings = format!("{rbac}/namespaces/default/rolebindings");
    let secrets = "/api/v1/namespaces/default/secrets";
    let roles = format!("{rbac}/namespaces/default/roles");
    // Those who view see no secrets, those who edit do, and administrators see roles, too.
    for (role, sees_secrets, sees_roles) in [("view", 403, 403), ("edit", 200, 403), ("admin", 200, 200)] {
        ask(&server, "POST", &bindings, Some(binding(role))).await.expect(201);
        ask_as(&server, &token, "GET", "/api/v1/namespaces/default/pods", None).await.expect(200);
        ask_as(&server, &token, "GET", secrets, None).await.expect(sees_secrets);
        ask_as(&server, &token, "GET", &roles, None).await.expect(sees_roles);
        ask_as(&server, &token, "GET", "/api/v1/namespaces/kube-system/pods", None).await.expect(403);
        ask(&server, "DELETE", &format!("{bindings}/{role}"), None).await.expect(200);
    }
    // What a chart adds to those who view is there at once. Roles that choose each other end nothing.
    let label = |name: &str| json!({"name": name, "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}});
    let choosing =
        json!({"clusterRoleSelectors": [label("x")["labels"].as_object().map(|it| json!({"matchLabels": it}))]});
    let circle = json!({"metadata": label("circle"), "aggregationRule": choosing, "rules": []});
    let rule = json!({"apiGroups": ["example.dev"], "resources": ["sites"], "verbs": ["list"]});
    let sites = json!({"metadata": label("sites"), "rules": [rule]});
    for role in [circle, sites] {
        ask(&server, "POST", &format!("{rbac}/clusterroles"), Some(role)).await.expect(201);
    }
    let may = |group: &str| {
        let asked = json!({"verb": "list", "group": group, "resource": "sites", "namespace": "default"});
        json!({"spec": {"user": "system:serviceaccount:default:robot", "resourceAttributes": asked}})
    };
    for role in ["view", "circle"] {
        ask(&server, "POST", &bindings, Some(binding(role))).await.expect(201);
        for (group, want) in [("example.dev", true), ("example.org", false)] {
            let answer = ask(&server, "POST", ACCESS, Some(may(group))).await.expect(201);
            assert_eq!(answer["status"]["allowed"], want, "{role}: {answer}");
        }
        ask(&server, "DELETE", &format!("{bindings}/{role}"), None).await.expect(200);
    }
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
    let refused =
        send(&server.requiring_authentication(), "GET", "/api/v1/nodes", &headers, Vec::new()).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    // Upstream's refusal is that of the first mode that was tried.
    assert_eq!(
        message,
        "nodes is forbidden: User \"system:serviceaccount:default:robot\" cannot impersonate-on:user-info:list resource \"nodes\" \
         in API group \"\" at the cluster scope"
    );
}

#[tokio::test(start_paused = true)]
async fn who_impersonates_with_constraints_does_only_what_they_may_as_that_user() {
    let server = strict();
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let mut jane = rule("authentication.k8s.io", &["users"], &["impersonate:user-info"]);
    jane["resourceNames"] = json!(["jane"]);
    let rules = [
        jane,
        rule("authentication.k8s.io", &["groups"], &["impersonate:user-info"]),
        rule("", &["configmaps"], &["impersonate-on:user-info:list"]),
        rule("authentication.k8s.io", &["selfsubjectreviews"], &["impersonate-on:user-info:create"]),
    ];
    let bearer = format!("Bearer {}", robot(&server, json!({"metadata": {"name": "robot"}, "rules": rules})).await);
    let reader =
        json!({"metadata": {"name": "reader"}, "rules": [rule("", &["configmaps", "secrets"], &["list", "get"])]});
    let binding = json!({
        "metadata": {"name": "reader"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    ask(&server, "POST", &format!("{rbac}/clusterroles"), Some(reader)).await.expect(201);
    ask(&server, "POST", &format!("{rbac}/clusterrolebindings"), Some(binding)).await.expect(201);
    let own = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let maps = "/api/v1/namespaces/default/configmaps";
    for (method, path, user, group, code) in [
        ("GET", maps, "jane", "devs", 200),
        ("POST", own, "jane", "devs", 201),
        ("GET", maps, "bob", "devs", 403),
        ("GET", maps, "jane", "system:masters", 403),
        ("GET", "/api/v1/namespaces/default/secrets", "jane", "devs", 403),
        ("GET", "/api/v1/namespaces/default/configmaps/a", "jane", "devs", 403),
        ("GET", "/version", "jane", "devs", 403),
    ] {
        let headers = [
            ("authorization", bearer.as_str()),
            ("impersonate-user", user),
            ("impersonate-group", group),
            ("content-type", "application/json"),
        ];
        let body = if method == "POST" { b"{}".to_vec() } else { Vec::new() };
        let got = send(&server.requiring_authentication(), method, path, &headers, body).await;
        assert_eq!(got.code, code, "{method} {path} as {user} of {group}: {}", got.body);
        if method == "POST" {
            assert_eq!(got.body["status"]["userInfo"]["groups"], json!(["devs", "system:authenticated"]));
        }
    }
}

/// Asks something with headers of any bytes, and answers who it was.
async fn who(server: &ApiServer, headers: &[(&str, &[u8])]) -> Got {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;
    let mut request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    for (name, value) in headers {
        request = request.header(*name, http::HeaderValue::from_bytes(value).unwrap());
    }
    let body = http_body_util::Full::new(bytes::Bytes::from_static(b"{}"));
    let response = server.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Got { code, body: serde_json::from_slice(&body).unwrap() }
}

#[tokio::test(start_paused = true)]
async fn a_request_on_behalf_of_somebody_is_never_the_senders_own() {
    let server = server();
    let name = |got: Got| got.expect(201)["status"]["userInfo"]["username"].clone();
    assert_eq!(name(who(&server, &[]).await), "admin");
    assert_eq!(name(who(&server, &[("impersonate-user", "jürgen".as_bytes())]).await), "jürgen");
    assert_eq!(
        name(who(&server, &[("impersonate-user", b"j\xfcrgen")]).await),
        "j\u{fffd}rgen",
        "Latin-1, as Go shows it"
    );
    let headers: [(&str, &[u8]); 3] = [
        ("impersonate-user", b"jane"),
        ("impersonate-group", "Bäcker".as_bytes()),
        ("impersonate-extra-team", "grün".as_bytes()),
    ];
    let info = who(&server, &headers).await.expect(201)["status"]["userInfo"].clone();
    assert_eq!(info["groups"], json!(["Bäcker", "system:authenticated"]));
    assert_eq!(info["extra"], json!({"team": ["grün"]}));
    for nobody in [
        ("impersonate-user", b"".as_slice()),
        ("impersonate-group", "Bäcker".as_bytes()),
        ("impersonate-uid", b"\xff"),
        ("impersonate-extra-team", b"red"),
        ("impersonate-usr", b"jane"),
    ] {
        let refused = who(&server, &[nobody]).await.expect(400);
        let message = refused["message"].as_str().unwrap();
        assert!(message.ends_with("without impersonating a user name"), "{nobody:?}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_what_it_is_bound_to() {
    use std::time::Duration;
    let server = server();
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let kept = json!(["example.com/wait"]);
    let mut pod = crate::support::pod("p");
    pod["metadata"]["finalizers"] = kept.clone();
    pod["spec"]["serviceAccountName"] = "robot".into();
    pod["spec"]["nodeName"] = "n".into();
    let secret = json!({"metadata": {"name": "s", "finalizers": kept}});
    let node = json!({"metadata": {"name": "n", "finalizers": kept}});
    let objects = [
        ("Node", "/api/v1/nodes", "n", node, 0),
        ("Pod", "/api/v1/namespaces/default/pods", "p", pod, 30),
        ("Secret", SECRETS, "s", secret, 0),
    ];
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut held = Vec::new();
    for (kind, path, name, object, grace) in objects {
        ask(&server, "POST", path, Some(object)).await.expect(201);
        let spec = json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}});
        held.push((kind, format!("{path}/{name}"), grace, token(&server, "robot", spec).await));
    }
    for (kind, path, grace, token) in held {
        ask_as(&server, &token, "GET", maps, None).await.expect(200);
        let deleted = ask(&server, "DELETE", &path, None).await.expect(200);
        assert!(!deleted["metadata"]["deletionTimestamp"].is_null(), "{kind} is held by its finalizer");
        tokio::time::sleep(Duration::from_secs(grace + 55)).await;
        ask_as(&server, &token, "GET", maps, None).await.expect(200);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(ask_as(&server, &token, "GET", maps, None).await.code, 401, "{kind} is past its time");
    }
}

#[tokio::test(start_paused = true)]
async fn with_rbac_one_name_is_listed_by_who_may_list_that_name() {
    let server = strict();
    let bearer = robot_who_may(
        &server,
        json!([
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["list", "watch"]},
        ]),
    )
    .await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for (query, code) in [
        ("?fieldSelector=metadata.name%3Da", 200),
        ("?fieldSelector=metadata.name%3Da&watch=true&timeoutSeconds=1", 200),
        ("?fieldSelector=metadata.name%3Db", 403),
        ("?fieldSelector=metadata.name!%3Da", 403),
        ("?fieldSelector=metadata.name%3Da%2F..", 403),
        ("", 403),
    ] {
        let got = ask_as(&server, &bearer, "GET", &format!("{maps}{query}"), None).await;
        assert_eq!(got.code, code, "{query}: {}", got.body);
    }
}

#[tokio::test(start_paused = true)]
async fn with_rbac_who_may_update_does_not_therefore_create() {
    let server = strict();
    let rules =
        |verbs: &[&str]| json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "robot"}});
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let bearer = robot_who_may(&server, rules(&["get", "update"])).await;
    let refused = ask_as(&server, &bearer, "PUT", path, Some(lease.clone())).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("cannot create resource \"leases\" in API group \"coordination.k8s.io\""), "{message}");
    ask(&server, "GET", path, None).await.expect(404);
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/robot";
    ask(&server, "PATCH", role, Some(json!({"rules": rules(&["create", "update"])}))).await.expect(200);
    ask_as(&server, &bearer, "PUT", path, Some(lease)).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn with_rbac_certificates_are_approved_by_who_may_for_their_signer() {
    let server = strict();
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let part = json!({"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests/approval"], "verbs": ["update", "patch"]});
    let signer = |name: &str| json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": [name], "verbs": ["approve"]});
    let pem = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let pem = pem.serialize_request(&rcgen::KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    let request = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pem);
    let request = json!({
        "metadata": {"name": "r"},
        "spec": {"request": request, "signerName": "example.com/signer", "usages": ["client auth"]},
    });
    ask(&server, "POST", requests, Some(request)).await.expect(201);
    let approval =
        json!([{"op": "add", "path": "/status/conditions", "value": [{"type": "Approved", "status": "True"}]}]);
    for (name, code) in [("example.com/other", 403), ("example.com/signer", 200)] {
        let bearer = format!("Bearer {}", robot_who_may_anywhere(&server, name, json!([part, signer(name)])).await);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json-patch+json")];
        let path = format!("{requests}/r/approval");
        let got =
            send(&server.requiring_authentication(), "PATCH", &path, &headers, approval.to_string().into_bytes()).await;
        assert_eq!(got.code, code, "{name}: {}", got.body);
        let want = "user not permitted to approve requests with signerName \"example.com/signer\"";
        assert_eq!(got.body["message"].as_str().is_some_and(|message| message.ends_with(want)), code == 403);
    }
}

/// The token of a service account that these rules hold for.
async fn robot_who_may(server: &ApiServer, rules: Value) -> String {
    ask(server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"metadata": {"name": "robot"}, "rules": rules});
    ask(server, "POST", &format!("{rbac}/roles"), Some(role)).await.expect(201);
    let binding = json!({
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "robot"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    });
    ask(server, "POST", &format!("{rbac}/rolebindings"), Some(binding)).await.expect(201);
    token(server, "robot", json!({})).await
}

/// The token of a service account of its own that these rules hold for in all of the cluster.
async fn robot_who_may_anywhere(server: &ApiServer, of: &str, rules: Value) -> String {
    let name = of.replace('/', ".");
    ask(server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": name}}))).await.expect(201);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": name}, "rules": rules});
    ask(server, "POST", &format!("{rbac}/clusterroles"), Some(role)).await.expect(201);
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    });
    ask(server, "POST", &format!("{rbac}/clusterrolebindings"), Some(binding)).await.expect(201);
    token(server, &name, json!({})).await
}

#[tokio::test(start_paused = true)]
async fn who_has_no_right_does_not_learn_what_is_not_served() {
    let server = strict();
    ask(&server, "POST", ACCOUNTS, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let token = token(&server, "robot", json!({})).await;
    for path in ["/apis/example.com/v1/things", "/apis/example.com/v1/namespaces/default/things/a", "/api/v1/things"] {
        let refused = ask_as(&server, &token, "GET", path, None).await.expect(403);
        assert_eq!(refused["reason"], "Forbidden", "{path}");
        ask(&server, "GET", path, None).await.expect(404);
    }
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let refused = ask_as(&server, &token, "POST", rules, Some(json!({"spec": {}}))).await.expect(400);
    assert_eq!(refused["message"], "no namespace on request");
}
