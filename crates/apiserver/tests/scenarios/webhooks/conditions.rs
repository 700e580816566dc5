//! Match conditions: whether a webhook is asked hangs on expressions about the object and the request.

use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authorization, Options};

use super::{MUTATING, Reply, VALIDATING, configure, serve};
use crate::support::{CONFIG_MAPS, ask, config_map, server as api_server};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn conditions(expressions: &[&str]) -> Value {
    let named = |(at, expression): (usize, &&str)| json!({"name": format!("c{at}"), "expression": expression});
    expressions.iter().enumerate().map(named).collect()
}

/// Creates a ConfigMap under a webhook with these conditions. Returns the code, the message, and how often it was asked.
async fn created(api: &ApiServer, kind: &str, policy: &str, expressions: &[&str]) -> (u16, String, usize) {
    let hooks = serve(|_, _| Reply::allow()).await;
    let fields = json!({"failurePolicy": policy, "matchConditions": conditions(expressions)});
    configure(api, kind, "one", &hooks, vec![fields]).await;
    let got = ask(api, "POST", CONFIG_MAPS, Some(config_map("a"))).await;
    (got.code, got.body["message"].as_str().unwrap_or_default().to_owned(), hooks.asked().len())
}

#[tokio::test]
async fn a_webhook_is_asked_if_all_its_conditions_hold() {
    let missing = "object.data.none == 'x'";
    let refusal =
        "configmaps \"a\" is forbidden: expression 'object.data.none == 'x'' resulted in error: no such key: none";
    // failurePolicy, conditions, code, message, times asked
    let rows: &[(&str, &[&str], u16, &str, usize)] = &[
        ("Fail", &["object.data.a == 'b'", "request.operation == 'CREATE'"], 201, "", 1),
        ("Fail", &["object.data.a == 'b'", "request.operation == 'DELETE'"], 201, "", 0),
        ("Fail", &[missing], 403, refusal, 0),
        ("Fail", &["true", missing], 403, refusal, 0),
        ("Fail", &[missing, "false"], 201, "", 0),
        ("Ignore", &[missing], 201, "", 0),
        ("Ignore", &["true"], 201, "", 1),
        ("Fail", &["oldObject == null && object.kind == 'ConfigMap' && object.apiVersion == 'v1'"], 201, "", 1),
        ("Fail", &["request.resource.resource == 'configmaps' && request.namespace == 'default'"], 201, "", 1),
        ("Fail", &["!('system:masters' in request.userInfo.groups)"], 201, "", 0),
        ("Fail", &["authorizer.requestResource.check('create').allowed()"], 201, "", 1),
        (
            "Fail",
            &["[1, 2, 3].all(i, authorizer.path('/a').check('get').allowed())"],
            403,
            "configmaps \"a\" is forbidden: expression '[1, 2, 3].all(i, authorizer.path('/a').check('get').allowed())' \
             resulted in error: operation cancelled: actual cost limit exceeded",
            0,
        ),
    ];
    for kind in [MUTATING, VALIDATING] {
        for (policy, expressions, code, message, asked) in rows {
            let got = created(&api_server(), kind, policy, expressions).await;
            assert_eq!(got, (*code, (*message).to_owned(), *asked), "{kind} {policy} {expressions:?}");
        }
    }
}

#[tokio::test]
async fn conditions_see_the_old_object_and_what_webhooks_before_have_changed() {
    let api = api_server();
    let hooks = serve(|path, _| match path {
        "/first" => Reply::patch(&json!([{"op": "add", "path": "/data/first", "value": "was here"}])),
        _ => Reply::allow(),
    })
    .await;
    let first = json!({"name": "a.example.dev", "path": "/first"});
    let after = conditions(&["object != null && has(object.data.first)"]);
    let second = json!({"name": "b.example.dev", "path": "/second", "matchConditions": after});
    let changed = conditions(&["oldObject != null && object != null && object.data.a != oldObject.data.a"]);
    let third = json!({"name": "c.example.dev", "path": "/changed", "matchConditions": changed});
    let gone = conditions(&["object == null && oldObject.data.a == 'c'"]);
    let fourth = json!({"name": "d.example.dev", "path": "/gone", "matchConditions": gone});
    let first =
        json!({"name": first["name"], "path": first["path"], "matchConditions": conditions(&["object != null"])});
    configure(&api, MUTATING, "one", &hooks, vec![first, second]).await;
    configure(&api, VALIDATING, "two", &hooks, vec![third, fourth]).await;
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    assert_eq!(hooks.paths(), ["/first", "/second"]);
    ask(&api, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(json!({"data": {"a": "c"}}))).await.expect(200);
    assert_eq!(hooks.paths()[2..], ["/first", "/second", "/changed"]);
    ask(&api, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(json!({"data": {"z": "c"}}))).await.expect(200);
    assert_eq!(hooks.paths()[5..], ["/first", "/second"]);
    ask(&api, "DELETE", &format!("{CONFIG_MAPS}/a"), None).await.expect(200);
    assert_eq!(hooks.paths()[7..], ["/gone"]);
}

#[tokio::test]
async fn the_authorizer_decides_by_the_roles_of_the_cluster() {
    let check = "authorizer.serviceAccount('default', 'robot').group('').resource('configmaps').namespace('default')\
                 .check('get').allowed()";
    let strict = ApiServer::new(Options::default().authorization(Authorization::Rbac));
    assert_eq!(created(&strict, VALIDATING, "Fail", &[check]).await.2, 0);
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "reader"}, "rules": rules});
    ask(&strict, "POST", &format!("{rbac}/roles"), Some(role)).await.expect(201);
    let binding = json!({
        "metadata": {"name": "robot"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    });
    ask(&strict, "POST", &format!("{rbac}/rolebindings"), Some(binding)).await.expect(201);
    ask(&strict, "DELETE", &format!("{CONFIGURATIONS}/one"), None).await.expect(200);
    ask(&strict, "DELETE", &format!("{CONFIG_MAPS}/a"), None).await.expect(200);
    assert_eq!(created(&strict, VALIDATING, "Fail", &[check]).await.2, 1);
    assert_eq!(created(&api_server(), VALIDATING, "Fail", &[check]).await.2, 1, "without roles all is allowed");
}

#[tokio::test]
async fn conditions_are_checked_when_they_come() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::allow()).await;
    let body = |conditions: Value| {
        let webhook = hooks.webhook(json!({"matchConditions": conditions}));
        json!({"metadata": {"name": "one"}, "webhooks": [webhook]})
    };
    let one = |name: &str, expression: &str| json!([{"name": name, "expression": expression}]);
    let at = "webhooks[0].matchConditions[0]";
    let many: Value = (0..65).map(|at| json!({"name": format!("c{at}"), "expression": "true"})).collect();
    let rows = [
        (one("a", ""), format!("{at}.expression: Required value")),
        (one("", "true"), format!("{at}.name: Required value")),
        (
            one("a", "object.x ="),
            format!(
                "{at}.expression: Invalid value: \"object.x =\": compilation failed: ERROR: <input>:1:10: Syntax error"
            ),
        ),
        (
            one("a", " 'text' "),
            format!("{at}.expression: Invalid value: \"'text'\": must evaluate to bool but got string"),
        ),
        (
            one("a", "params.x == 1"),
            format!(
                "{at}.expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared"
            ),
        ),
        (one("not a name", "true"), format!("{at}.name: Invalid value: \"not a name\": name part must consist of")),
        (many, "webhooks[0].matchConditions: Too many: 65: must have at most 64 items".to_owned()),
        (
            json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]),
            "webhooks[0].matchConditions[1].name: Duplicate value: \"a\"".to_owned(),
        ),
    ];
    for (conditions, want) in rows {
        let got = ask(&api, "POST", CONFIGURATIONS, Some(body(conditions.clone()))).await.expect(422);
        let message = got["message"].as_str().unwrap();
        let prefix = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"one\" is invalid: ";
        assert!(message.starts_with(&format!("{prefix}{want}")), "{conditions}: {message}");
    }
    let made = ask(&api, "POST", CONFIGURATIONS, Some(body(one("a", "object.x == 1")))).await.expect(201);
    assert_eq!(made["webhooks"][0]["matchConditions"], one("a", "object.x == 1"));
}
