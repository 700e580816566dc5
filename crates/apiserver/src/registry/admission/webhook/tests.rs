//! Tables for the pure parts: rules, answers, denials.

use serde_json::{Value, json};

use super::super::matching::{Asked, Rule};
use super::review::{self, Of, Wrong};

const DEPLOYMENT: Asked<'static> = Asked {
    group: "apps",
    version: "v1",
    resource: "deployments",
    subresource: "",
    operation: "CREATE",
    name: "web",
    is_namespaced: true,
};

#[test]
fn a_rule_matches_by_operation_group_version_resource_and_scope() {
    let rule = |operations: Value, groups: Value, versions: Value, resources: Value, scope: &str| {
        Rule::read(&json!({
            "operations": operations, "apiGroups": groups, "apiVersions": versions, "resources": resources, "scope": scope,
        }))
    };
    let status = Asked { subresource: "status", operation: "UPDATE", ..DEPLOYMENT };
    let node = Asked { group: "", resource: "nodes", is_namespaced: false, ..DEPLOYMENT };
    let exact = |resources: Value| rule(json!(["CREATE"]), json!(["apps"]), json!(["v1"]), resources, "*");
    let any = |resources: Value, scope: &str| rule(json!(["*"]), json!(["*"]), json!(["*"]), resources, scope);
    let rows: Vec<(&str, Rule, Asked<'_>, bool)> = vec![
        ("the resource itself", exact(json!(["deployments"])), DEPLOYMENT, true),
        ("any resource", any(json!(["*"]), "*"), DEPLOYMENT, true),
        (
            "another operation",
            rule(json!(["DELETE"]), json!(["*"]), json!(["*"]), json!(["*"]), "*"),
            DEPLOYMENT,
            false,
        ),
        ("another group", rule(json!(["*"]), json!([""]), json!(["*"]), json!(["*"]), "*"), DEPLOYMENT, false),
        ("another version", rule(json!(["*"]), json!(["*"]), json!(["v2"]), json!(["*"]), "*"), DEPLOYMENT, false),
        ("another resource", exact(json!(["pods"])), DEPLOYMENT, false),
        ("any resource, but no part of it", any(json!(["*"]), "*"), status, false),
        ("any part", any(json!(["deployments/*"]), "*"), status, true),
        ("any part is the whole, too", any(json!(["deployments/*"]), "*"), DEPLOYMENT, true),
        ("a part of any resource", any(json!(["*/status"]), "*"), status, true),
        ("another part", any(json!(["*/scale"]), "*"), status, false),
        ("anything", any(json!(["*/*"]), "*"), status, true),
        ("in namespaces", any(json!(["*"]), "Namespaced"), DEPLOYMENT, true),
        ("not in namespaces", any(json!(["*"]), "Cluster"), DEPLOYMENT, false),
        ("not in namespaces, and it is not", any(json!(["*"]), "Cluster"), node, true),
        ("in namespaces, and it is not", any(json!(["*"]), "Namespaced"), node, false),
        ("nowhere", any(json!(["*"]), "Elsewhere"), node, false),
    ];
    for (name, rule, asked, want) in rows {
        assert_eq!(rule.matches(asked), want, "{name}");
    }
}

fn wrong(of: Of, body: &str) -> String {
    match review::read("v1", "u", of, body.as_bytes()) {
        Err(Wrong::Unreadable(why)) => format!("unreadable: {why}"),
        Err(Wrong::Invalid(why)) => format!("invalid: {why}"),
        Ok(response) => format!("{response:?}"),
    }
}

#[test]
fn answers_that_make_no_sense_are_named_in_upstreams_words() {
    let review = |response: Value| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).to_string()
    };
    let rows: Vec<(&str, Of, String, &str)> = vec![
        ("no JSON", Of::Validating, "no".into(), "unreadable: couldn't get version/kind; json parse error: "),
        ("no object", Of::Validating, "[]".into(), "unreadable: couldn't get version/kind; json parse error: "),
        ("no response", Of::Validating, "{}".into(), "invalid: webhook response was absent"),
        (
            "another uid",
            Of::Validating,
            review(json!({"uid": "v", "allowed": true})),
            "invalid: expected response.uid=\"u\", got \"v\"",
        ),
        (
            "no kind",
            Of::Validating,
            json!({"response": {"uid": "u", "allowed": true}}).to_string(),
            "invalid: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
        (
            "a patch of a validating webhook",
            Of::Validating,
            review(json!({"uid": "u", "allowed": true, "patch": "W10=", "patchType": "JSONPatch"})),
            "invalid: validating webhook may not return response.patch",
        ),
        (
            "a patch without its type",
            Of::Mutating,
            review(json!({"uid": "u", "allowed": true, "patch": "W10="})),
            "invalid: webhook returned response.patch but not response.patchType",
        ),
        (
            "a type without a patch",
            Of::Mutating,
            review(json!({"uid": "u", "allowed": true, "patchType": "JSONPatch"})),
            "invalid: webhook returned response.patchType but not response.patch",
        ),
        (
            "allowed is no flag",
            Of::Mutating,
            review(json!({"uid": "u", "allowed": "yes"})),
            "unreadable: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
        (
            "a patch that is no base64",
            Of::Mutating,
            review(json!({"uid": "u", "allowed": true, "patch": "?", "patchType": "JSONPatch"})),
            "unreadable: illegal base64 data at input byte 0",
        ),
    ];
    for (name, of, body, want) in rows {
        let got = wrong(of, &body);
        assert!(got.starts_with(want), "{name}: {got}");
    }
}

#[test]
fn a_denial_has_the_webhooks_words_and_a_code_of_an_error() {
    let rows = [
        (json!(null), 400, "denied the request without explanation"),
        (json!({"message": "no"}), 400, "denied the request: no"),
        (json!({"reason": "Forbidden"}), 400, "denied the request: Forbidden"),
        (json!({"message": "no", "code": 403}), 403, "denied the request: no"),
        (json!({"message": "no", "code": 200}), 400, "denied the request: no"),
        (json!({"message": "no", "code": 70000}), 400, "denied the request: no"),
    ];
    for (result, code, message) in rows {
        let status = review::denial("a.b.c", &result);
        assert_eq!(status.code, code, "{result}");
        assert_eq!(status.to_json()["message"], format!("admission webhook \"a.b.c\" {message}"), "{result}");
        assert_eq!(status.to_json()["code"], code, "{result}");
    }
}
