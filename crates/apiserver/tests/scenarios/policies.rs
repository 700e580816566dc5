//! Validating admission policies: who is refused, warned or let pass, and in which words.

#![allow(clippy::needless_pass_by_value, reason = "tests write values in place")]

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::support::{CONFIG_MAPS, ask, config_map, server};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// Stores a policy about ConfigMaps with these fields, and a binding of it.
async fn policy(api: &ApiServer, name: &str, fields: Value, binding: Value) {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    let mut spec = json!({"matchConstraints": {"resourceRules": [rule]}});
    merge(&mut spec, fields);
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    ask(api, "POST", POLICIES, Some(policy)).await.expect(201);
    let mut spec = json!({"policyName": name, "validationActions": ["Deny"]});
    merge(&mut spec, binding);
    let binding = json!({"metadata": {"name": format!("{name}-binding")}, "spec": spec});
    ask(api, "POST", BINDINGS, Some(binding)).await.expect(201);
}

fn merge(spec: &mut Value, fields: Value) {
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
}

#[tokio::test]
async fn a_failed_validation_refuses_the_write_in_upstreams_words() {
    let api = server();
    let validations = json!([
        {"expression": "object.data.a == 'b'", "message": "a must be b"},
        {"expression": "!has(object.data.size) || int(object.data.size) < 5", "reason": "Forbidden",
         "messageExpression": "'size is ' + object.data.size"},
    ]);
    policy(&api, "sizes", json!({"validations": validations}), json!({})).await;
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("fine"))).await.expect(201);

    let mut wrong = config_map("wrong");
    wrong["data"]["a"] = "c".into();
    let got = ask(&api, "POST", CONFIG_MAPS, Some(wrong)).await.expect(422);
    let why = "ValidatingAdmissionPolicy 'sizes' with binding 'sizes-binding' denied request: a must be b";
    assert_eq!(got["message"], format!("configmaps \"wrong\" is forbidden: {why}"));
    assert_eq!(got["reason"], "Invalid");
    assert_eq!(got["details"], json!({"name": "wrong", "kind": "configmaps", "causes": [{"message": why}]}));

    let patch = json!({"data": {"size": "7"}});
    let got = ask(&api, "PATCH", &format!("{CONFIG_MAPS}/fine"), Some(patch)).await.expect(403);
    assert_eq!(got["reason"], "Forbidden");
    assert!(got["message"].as_str().unwrap().ends_with("denied request: size is 7"), "{got}");
    let held = ask(&api, "GET", &format!("{CONFIG_MAPS}/fine"), None).await.expect(200);
    assert_eq!(held["data"], json!({"a": "b"}), "a refused write changes nothing");
}

#[tokio::test]
async fn policies_follow_their_bindings_and_end_with_them() {
    let api = server();
    let fields = json!({"validations": [{"expression": "false", "message": "never"}]});
    policy(&api, "never", fields, json!({})).await;
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(422);
    // Other resources are not met, and neither are policies themselves.
    ask(&api, "POST", "/api/v1/namespaces", Some(json!({"metadata": {"name": "other"}}))).await.expect(201);
    ask(&api, "DELETE", &format!("{BINDINGS}/never-binding"), None).await.expect(200);
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
}

#[tokio::test]
async fn match_conditions_selectors_names_and_operations_choose() {
    let api = server();
    let rule = |fields: Value| {
        let mut rule =
            json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
        merge(&mut rule, fields);
        json!([rule])
    };
    let never = json!([{"expression": "false"}]);
    let rows = [
        (json!({"resourceRules": rule(json!({"resourceNames": ["b"]}))}), json!([]), 201),
        (json!({"resourceRules": rule(json!({"resourceNames": ["a"]}))}), json!([]), 422),
        (json!({"resourceRules": rule(json!({"operations": ["DELETE"]}))}), json!([]), 201),
        (
            json!({"resourceRules": rule(json!({})), "excludeResourceRules": rule(json!({"resourceNames": ["a"]}))}),
            json!([]),
            201,
        ),
        (json!({"resourceRules": rule(json!({})), "objectSelector": {"matchLabels": {"x": "y"}}}), json!([]), 201),
        (
            json!({"resourceRules": rule(json!({}))}),
            json!([{"name": "no", "expression": "object.metadata.name == 'b'"}]),
            201,
        ),
        (
            json!({"resourceRules": rule(json!({}))}),
            json!([{"name": "yes", "expression": "request.operation == 'CREATE'"}]),
            422,
        ),
    ];
    for (constraints, conditions, code) in rows {
        let fields = json!({"matchConstraints": constraints, "matchConditions": conditions, "validations": never});
        policy(&api, "some", fields.clone(), json!({})).await;
        let path = format!("{CONFIG_MAPS}?dryRun=All");
        let got = ask(&api, "POST", &path, Some(config_map("a"))).await;
        assert_eq!(got.code, code, "{fields}: {}", got.body);
        ask(&api, "DELETE", &format!("{POLICIES}/some"), None).await.expect(200);
        ask(&api, "DELETE", &format!("{BINDINGS}/some-binding"), None).await.expect(200);
    }
}

#[tokio::test]
async fn parameters_are_objects_that_the_binding_chooses() {
    let api = server();
    let limit = json!({"metadata": {"name": "limit", "namespace": "kube-system"}, "data": {"max": "3"}});
    ask(&api, "POST", "/api/v1/namespaces/kube-system/configmaps", Some(limit)).await.expect(201);
    let fields = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [
            {"name": "size", "expression": "int(object.data.size)"},
            {"name": "max", "expression": "int(params.data.max)"},
        ],
        "validations": [{
            "expression": "variables.size <= variables.max",
            "messageExpression": "'at most ' + string(variables.max)",
        }],
    });
    let chosen = json!({"paramRef": {"name": "limit", "namespace": "kube-system", "parameterNotFoundAction": "Deny"}});
    policy(&api, "limits", fields, chosen).await;
    let sized = |size: &str| {
        let mut map = config_map("a");
        map["data"] = json!({"size": size});
        map
    };
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    ask(&api, "POST", &path, Some(sized("3"))).await.expect(201);
    let got = ask(&api, "POST", &path, Some(sized("4"))).await.expect(422);
    assert!(got["message"].as_str().unwrap().ends_with("denied request: at most 3"), "{got}");
    let got = ask(&api, "POST", &path, Some(config_map("a"))).await.expect(422);
    let why = "expression 'variables.size <= variables.max' resulted in error: composited variable \"size\" fails to \
               evaluate: no such key: size";
    assert!(got["message"].as_str().unwrap().ends_with(why), "{got}");

    let limit = "/api/v1/namespaces/kube-system/configmaps/limit";
    ask(&api, "DELETE", limit, None).await.expect(422);
    ask(&api, "DELETE", &format!("{POLICIES}/limits"), None).await.expect(200);
    ask(&api, "DELETE", limit, None).await.expect(200);
}

#[tokio::test]
async fn what_cannot_be_evaluated_fails_or_is_passed_over() {
    let missing = json!({"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}});
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let rows = [
        (json!([{"expression": "object.gone == 1"}]), Value::Null, json!({}), "Fail", 422),
        (json!([{"expression": "object.gone == 1"}]), Value::Null, json!({}), "Ignore", 201),
        (json!([{"expression": "true"}]), kind.clone(), missing.clone(), "Fail", 422),
        (json!([{"expression": "true"}]), kind, missing, "Ignore", 201),
    ];
    for (validations, kind, binding, policy_word, code) in rows {
        let api = server();
        let fields = json!({"validations": validations, "paramKind": kind, "failurePolicy": policy_word});
        policy(&api, "odd", fields.clone(), binding).await;
        let got = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await;
        assert_eq!(got.code, code, "{fields}: {}", got.body);
    }
}

#[tokio::test]
async fn warnings_do_not_refuse_and_audits_are_silent() {
    let api = server();
    let fields = json!({"validations": [{"expression": "false", "message": "think again"}]});
    policy(&api, "soft", fields.clone(), json!({"validationActions": ["Warn"]})).await;
    policy(&api, "softer", fields, json!({"validationActions": ["Audit"]})).await;
    let response = crate::webhooks::raw(&api, "POST", CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(response.status(), 201);
    let warnings: Vec<&str> = response.headers().get_all("warning").iter().map(|it| it.to_str().unwrap()).collect();
    let want =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'soft' with binding 'soft-binding': think again\"";
    assert_eq!(warnings, [want]);
}

#[tokio::test]
async fn expressions_that_explode_end_by_their_cost() {
    let api = server();
    let numbers: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    let list = format!("[{}]", numbers.join(","));
    let all = format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c >= 0)))");
    policy(&api, "costly", json!({"validations": [{"expression": all}]}), json!({})).await;
    let got = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(422);
    let message = got["message"].as_str().unwrap();
    assert!(message.ends_with("operation cancelled: actual cost limit exceeded"), "{}", &message[message.len() - 99..]);
}
