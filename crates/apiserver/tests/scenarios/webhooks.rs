//! Admission webhooks: who is asked what, and what their answers do. The webhooks are servers of the test, on loopback.

mod bad;
mod conditions;
mod conversion;
mod server;

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::support::{CONFIG_MAPS, ask, config_map, pod, send, server as api_server};
pub(crate) use server::{HookServer, Reply, raw, serve};

/// Configures webhooks, each with these fields beside those that all have.
pub(crate) async fn configure(api: &ApiServer, kind: &str, name: &str, hooks: &HookServer, webhooks: Vec<Value>) {
    let webhooks: Vec<Value> = webhooks.into_iter().map(|fields| hooks.webhook(fields)).collect();
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": webhooks,
    });
    let plural = format!("{}s", kind.to_lowercase());
    ask(api, "POST", &format!("/apis/admissionregistration.k8s.io/v1/{plural}"), Some(body)).await.expect(201);
}

pub(crate) const MUTATING: &str = "MutatingWebhookConfiguration";
pub(crate) const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// A patch that sets an entry of a ConfigMap's data.
fn set(key: &str, value: &str) -> Reply {
    Reply::patch(&json!([{"op": "add", "path": format!("/data/{key}"), "value": value}]))
}

#[tokio::test]
async fn a_mutating_webhook_changes_what_is_stored() {
    let api = api_server();
    let hooks = serve(|_, _| set("added", "by webhook")).await;
    configure(&api, MUTATING, "one", &hooks, vec![json!({})]).await;
    let made = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    assert_eq!(made["data"], json!({"a": "b", "added": "by webhook"}));
    let stored = ask(&api, "GET", &format!("{CONFIG_MAPS}/a"), None).await.expect(200);
    assert_eq!(stored["data"], made["data"]);
    let owners = stored["metadata"]["managedFields"].to_string();
    assert!(!owners.contains("f:added"), "nobody owns what a webhook adds: {owners}");
}

#[tokio::test]
async fn a_webhook_learns_who_does_what_to_which_object() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::allow()).await;
    configure(&api, VALIDATING, "one", &hooks, vec![json!({})]).await;
    ask(&api, "POST", &format!("{CONFIG_MAPS}?fieldManager=me"), Some(config_map("a"))).await.expect(201);
    let patch = json!({"data": {"a": "c"}});
    ask(&api, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(patch)).await.expect(200);
    ask(&api, "DELETE", &format!("{CONFIG_MAPS}/a?gracePeriodSeconds=0"), None).await.expect(200);

    let [create, update, delete]: [Value; 3] = hooks.asked().try_into().unwrap();
    assert_eq!(create["apiVersion"], "admission.k8s.io/v1");
    let request = &create["request"];
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(request["requestKind"], request["kind"]);
    assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!(request["namespace"], "default");
    assert_eq!(request["name"], "a");
    assert_eq!(request["dryRun"], false);
    assert_eq!(request["userInfo"]["groups"], json!(["system:masters", "system:authenticated"]));
    assert_eq!(
        request["options"],
        json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"})
    );
    assert_eq!(request["object"]["data"], json!({"a": "b"}));
    assert_eq!(request["object"]["kind"], "ConfigMap");
    assert!(request["oldObject"].is_null());
    assert!(!request["object"]["metadata"]["uid"].is_null(), "a validating webhook sees the object as it is stored");

    assert_eq!(update["request"]["operation"], "UPDATE");
    assert_eq!(update["request"]["options"]["kind"], "UpdateOptions");
    assert_eq!(update["request"]["object"]["data"], json!({"a": "c"}));
    assert_eq!(update["request"]["oldObject"]["data"], json!({"a": "b"}));
    assert!(update["request"]["oldObject"]["metadata"]["managedFields"].is_array());

    assert_eq!(delete["request"]["operation"], "DELETE");
    assert!(delete["request"]["object"].is_null());
    assert_eq!(delete["request"]["oldObject"]["data"], json!({"a": "c"}));
    let options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 0});
    assert_eq!(delete["request"]["options"], options);
    assert_ne!(create["request"]["uid"], update["request"]["uid"]);
}

#[tokio::test]
async fn a_mutating_webhook_sees_what_was_sent_before_the_server_names_it() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::allow()).await;
    configure(&api, MUTATING, "one", &hooks, vec![json!({})]).await;
    let mut body = config_map("");
    body["metadata"] = json!({"generateName": "some-", "uid": "mine"});
    let made = ask(&api, "POST", CONFIG_MAPS, Some(body)).await.expect(201);
    let asked = hooks.asked().remove(0);
    assert!(asked["request"]["name"].is_null());
    let shown = &asked["request"]["object"]["metadata"];
    assert_eq!(shown["generateName"], "some-");
    assert!(shown["name"].is_null() && shown["uid"].is_null(), "{shown}");
    assert!(made["metadata"]["name"].as_str().unwrap().starts_with("some-"));
}

#[tokio::test]
async fn a_denial_is_answered_in_the_webhooks_words() {
    let api = api_server();
    let hooks = serve(|_, _| {
        let causes = json!([{"reason": "FieldValueInvalid", "message": "too odd", "field": "data.a"}]);
        Reply::answer(json!({
            "allowed": false, "warnings": ["think again"],
            "status": {"code": 422, "reason": "Odd", "message": "no odd data", "details": {"causes": causes}},
        }))
    })
    .await;
    configure(&api, VALIDATING, "one", &hooks, vec![json!({})]).await;
    let got = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await;
    let status = got.expect(422);
    assert_eq!(status["message"], "admission webhook \"a.example.dev\" denied the request: no odd data");
    assert_eq!(status["reason"], "Odd");
    assert_eq!(status["details"]["causes"][0]["field"], "data.a");
    ask(&api, "GET", &format!("{CONFIG_MAPS}/a"), None).await.expect(404);
}

#[tokio::test]
async fn warnings_come_in_headers_whether_or_not_the_request_passes() {
    let api = api_server();
    let hooks = serve(|_, review| {
        let is_allowed = review["request"]["name"] == "good";
        Reply::answer(json!({"allowed": is_allowed, "warnings": ["mind the gap"]}))
    })
    .await;
    configure(&api, VALIDATING, "one", &hooks, vec![json!({})]).await;
    for (name, code) in [("good", 201), ("bad", 400)] {
        let response = raw(&api, "POST", CONFIG_MAPS, &config_map(name)).await;
        assert_eq!(response.status().as_u16(), code);
        assert_eq!(response.headers()["warning"], "299 - \"mind the gap\"");
    }
}

#[tokio::test]
async fn webhooks_are_asked_in_the_order_of_names_and_again_if_needed() {
    let api = api_server();
    let hooks = serve(|path, review| {
        let data = &review["request"]["object"]["data"];
        match path {
            // Counts how often it has been asked.
            "/count" => {
                let count = data["count"].as_str().map_or(0, |count| count.parse::<u32>().unwrap());
                set("count", &(count + 1).to_string())
            }
            _ if data["last"].is_null() => set("last", "x"),
            _ => Reply::allow(),
        }
    })
    .await;
    let again = json!({"name": "count.example.dev", "path": "/count", "reinvocationPolicy": "IfNeeded"});
    configure(&api, MUTATING, "b", &hooks, vec![json!({"name": "last.example.dev", "path": "/last"})]).await;
    configure(&api, MUTATING, "a", &hooks, vec![again]).await;
    let made = ask(&api, "POST", CONFIG_MAPS, Some(config_map("x"))).await.expect(201);
    assert_eq!(made["data"], json!({"a": "b", "count": "2", "last": "x"}));
    assert_eq!(hooks.paths(), ["/count", "/last", "/count"]);
}

#[tokio::test]
async fn a_webhook_is_not_asked_again_unless_its_policy_says_so() {
    let api = api_server();
    let hooks = serve(|path, _| set(path.trim_start_matches('/'), "x")).await;
    let both =
        ["first", "second"].map(|name| json!({"name": format!("{name}.example.dev"), "path": format!("/{name}")}));
    configure(&api, MUTATING, "a", &hooks, both.to_vec()).await;
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("x"))).await.expect(201);
    assert_eq!(hooks.paths(), ["/first", "/second"]);
}

#[tokio::test]
async fn selectors_choose_by_labels_of_namespace_and_object() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::deny("no")).await;
    let chosen = json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "objectSelector": {"matchLabels": {"checked": "yes"}},
    });
    configure(&api, VALIDATING, "one", &hooks, vec![chosen]).await;
    let labelled = |name: &str| {
        let mut body = config_map(name);
        body["metadata"]["labels"] = json!({"checked": "yes"});
        body
    };
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    ask(&api, "POST", "/api/v1/namespaces/kube-system/configmaps", Some(labelled("a"))).await.expect(201);
    ask(&api, "POST", CONFIG_MAPS, Some(labelled("b"))).await.expect(400);
    // An update that takes the label away is still about a labelled object, and one that adds it too.
    let patch = json!({"metadata": {"labels": {"checked": "yes"}}});
    ask(&api, "PATCH", &format!("{CONFIG_MAPS}/a"), Some(patch)).await.expect(400);
}

#[tokio::test]
async fn configurations_of_webhooks_are_exempt() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::deny("no")).await;
    let all = json!({"rules": [{
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
    }]});
    configure(&api, VALIDATING, "one", &hooks, vec![all.clone()]).await;
    configure(&api, MUTATING, "one", &hooks, vec![all]).await;
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(400);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
        "resourceAttributes": {"verb": "get", "resource": "pods"},
    }});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    ask(&api, "POST", reviews, Some(review)).await.expect(201);
    for kind in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/one");
        ask(&api, "DELETE", &path, None).await.expect(200);
    }
    ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
}

#[tokio::test]
async fn equivalent_versions_are_converted_both_ways_unless_the_match_is_exact() {
    let api = api_server();
    let hooks = serve(|_, review| {
        let request = &review["request"];
        assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "Event"}));
        assert_eq!(request["requestKind"]["group"], "events.k8s.io");
        assert_eq!(request["object"]["message"], "what was");
        Reply::patch(&json!([{"op": "replace", "path": "/message", "value": "what is"}]))
    })
    .await;
    let rule = json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["events"]});
    let both = vec![
        json!({"name": "exact.example.dev", "matchPolicy": "Exact", "rules": [rule], "path": "/exact"}),
        json!({"name": "same.example.dev", "rules": [rule], "path": "/same"}),
    ];
    configure(&api, MUTATING, "one", &hooks, both).await;
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"}, "note": "what was",
        "eventTime": "2026-11-15T12:00:00.000000Z", "reportingController": "example.dev/c", "reportingInstance": "i",
        "action": "Watch", "reason": "Because", "type": "Normal", "regarding": {"namespace": "default"},
    });
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let made = ask(&api, "POST", path, Some(event)).await.expect(201);
    assert_eq!(hooks.paths(), ["/same"]);
    assert_eq!(made["note"], "what is");
    assert_eq!(made["apiVersion"], "events.k8s.io/v1");
}

#[tokio::test]
async fn a_dry_run_asks_only_webhooks_without_side_effects() {
    let api = api_server();
    let hooks = serve(|_, review| {
        assert_eq!(review["request"]["dryRun"], true);
        Reply::allow()
    })
    .await;
    configure(&api, VALIDATING, "one", &hooks, vec![json!({"sideEffects": "NoneOnDryRun"})]).await;
    ask(&api, "POST", &format!("{CONFIG_MAPS}?dryRun=All"), Some(config_map("a"))).await.expect(201);
    assert_eq!(hooks.asked().len(), 1);
    ask(&api, "GET", &format!("{CONFIG_MAPS}/a"), None).await.expect(404);
}

#[tokio::test]
async fn subresources_are_asked_about_with_their_own_bodies() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::allow()).await;
    let rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]});
    configure(&api, VALIDATING, "one", &hooks, vec![json!({"rules": [rule]})]).await;
    let pods = "/api/v1/namespaces/default/pods";
    ask(&api, "POST", pods, Some(pod("p"))).await.expect(201);
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    ask(&api, "POST", &format!("{pods}/p/binding"), Some(binding)).await.expect(201);
    ask(&api, "PATCH", &format!("{pods}/p/status"), Some(json!({"status": {"phase": "Running"}}))).await.expect(200);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    ask(&api, "POST", &format!("{pods}/p/eviction"), Some(eviction)).await.expect(201);
    let labels = json!({"app": "x"});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    });
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    ask(&api, "POST", sets, Some(set)).await.expect(201);
    ask(&api, "PATCH", &format!("{sets}/r/scale"), Some(json!({"spec": {"replicas": 3}}))).await.expect(200);
    let asked = hooks.asked();
    let short = |review: &Value| {
        let request = &review["request"];
        let part = request["subResource"].as_str().unwrap_or_default();
        let kind = request["kind"]["kind"].as_str().unwrap();
        let shown = request["object"]["kind"].as_str().unwrap();
        format!("{} {kind} {shown} {part}", request["operation"].as_str().unwrap())
    };
    let shorts: Vec<String> = asked.iter().map(short).collect();
    let want = [
        "CREATE Pod Pod ",
        "CREATE Binding Binding binding",
        "UPDATE Pod Pod status",
        "CREATE Eviction Eviction eviction",
        "CREATE ReplicaSet ReplicaSet ",
        "UPDATE Scale Scale scale",
    ];
    assert_eq!(shorts, want);
}

#[tokio::test]
async fn a_webhook_of_a_service_is_found_by_its_annotation() {
    let api = api_server();
    let hooks = serve(|_, _| set("added", "x")).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "hook", "annotations": {"webhooks.steersman.dev/address": hooks.address.to_string()}},
        "spec": {"ports": [{"port": 443}]},
    });
    ask(&api, "POST", "/api/v1/namespaces/default/services", Some(service)).await.expect(201);
    let by_service = json!({"service": {"namespace": "default", "name": "hook", "path": "/x"}});
    configure(&api, MUTATING, "one", &hooks, vec![json!({"clientConfig": by_service})]).await;
    let made = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    assert_eq!(made["data"]["added"], "x");
    assert_eq!(hooks.paths(), ["/x"]);
}

#[tokio::test]
async fn a_service_without_an_address_fails_the_call() {
    let api = api_server();
    let hooks = serve(|_, _| Reply::allow()).await;
    let by_service = |name: &str| json!({"clientConfig": {"service": {"namespace": "default", "name": name}}});
    configure(&api, MUTATING, "one", &hooks, vec![by_service("gone")]).await;
    let got = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(500);
    let want = "Internal error occurred: failed calling webhook \"a.example.dev\": failed to call webhook: Post \
                \"https://gone.default.svc:443/?timeout=10s\": service \"gone\" not found";
    assert_eq!(got["message"], want);
}

#[tokio::test]
async fn a_configuration_that_makes_no_sense_is_refused() {
    let api = api_server();
    let hook = json!({
        "name": "short", "clientConfig": {"url": "http://user@host/?a=b#c"}, "timeoutSeconds": 31, "sideEffects": "Some",
        "admissionReviewVersions": ["v2"], "failurePolicy": "Maybe", "matchPolicy": "Any", "reinvocationPolicy": "Often",
        "rules": [{"operations": ["*", "READ"], "apiGroups": [], "apiVersions": [""], "resources": ["*/*", "pods"], "scope": "X"}],
    });
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": MUTATING, "metadata": {"name": "a"}, "webhooks": [hook],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let status = ask(&api, "POST", path, Some(body)).await.expect(422);
    let causes = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    let want = [
        "webhooks[0].name",
        "webhooks[0].rules[0].operations",
        "webhooks[0].rules[0].operations[1]",
        "webhooks[0].rules[0].apiGroups",
        "webhooks[0].rules[0].apiVersions[0]",
        "webhooks[0].rules[0].resources",
        "webhooks[0].rules[0].scope",
        "webhooks[0].failurePolicy",
        "webhooks[0].matchPolicy",
        "webhooks[0].sideEffects",
        "webhooks[0].timeoutSeconds",
        "webhooks[0].reinvocationPolicy",
        "webhooks[0].clientConfig.url",
        "webhooks[0].clientConfig.url",
        "webhooks[0].clientConfig.url",
        "webhooks[0].clientConfig.url",
        "webhooks[0].admissionReviewVersions",
    ];
    assert_eq!(fields, want, "{status}");
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_asked_under_a_paused_clock_too() {
    let api = api_server();
    let hooks = serve(|_, _| set("added", "x")).await;
    configure(&api, MUTATING, "one", &hooks, vec![json!({})]).await;
    let made = ask(&api, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    assert_eq!(made["data"]["added"], "x");
}

#[tokio::test]
async fn server_side_apply_asks_webhooks_and_keeps_its_owners() {
    let api = api_server();
    let hooks = serve(|_, _| set("added", "x")).await;
    configure(&api, MUTATING, "one", &hooks, vec![json!({})]).await;
    let body = config_map("a").to_string().into_bytes();
    let path = format!("{CONFIG_MAPS}/a?fieldManager=me");
    let headers = [("content-type", "application/apply-patch+yaml")];
    let made = send(&api, "PATCH", &path, &headers, body).await.expect(201);
    assert_eq!(made["data"], json!({"a": "b", "added": "x"}));
    assert_eq!(hooks.asked()[0]["request"]["operation"], "CREATE");
    assert_eq!(hooks.asked()[0]["request"]["options"]["kind"], "CreateOptions");
}
