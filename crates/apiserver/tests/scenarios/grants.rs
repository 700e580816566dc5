//! Roles and bindings under RBAC: nobody gives away more than they hold.

use serde_json::{Value, json};
use steersman_apiserver::ApiServer;

use crate::access::strict;
use crate::support::{Got, ask, send};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const JANE: &str =
    "user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n";

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn role(name: &str, rules: Vec<Value>) -> Value {
    let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}});
    role["rules"] = rules.into();
    role
}

fn binding(name: &str, kind: &str, of: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": of},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

fn of_kind(mut object: Value, kind: &str) -> Value {
    object["kind"] = kind.into();
    object
}

/// A server on which jane may write roles and bindings, and read ConfigMaps.
async fn with_jane(further: Vec<Value>) -> ApiServer {
    let server = strict();
    let kinds = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
    let writes = ["create", "get", "update", "patch", "delete"];
    let own = [rule("rbac.authorization.k8s.io", &kinds, &writes), rule("", &["configmaps"], &["get", "list"])];
    let rules = own.into_iter().chain(further).collect();
    ask(&server, "POST", &format!("{RBAC}/clusterroles"), Some(role("jane", rules))).await.expect(201);
    let held = binding("jane", "ClusterRole", "jane", "jane");
    ask(&server, "POST", &format!("{RBAC}/clusterrolebindings"), Some(held)).await.expect(201);
    server
}

async fn by_jane(server: &ApiServer, method: &str, path: &str, kind: &str, body: &Value) -> Got {
    let headers = [("impersonate-user", "jane"), ("content-type", kind)];
    send(server, method, path, &headers, body.to_string().into_bytes()).await
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

#[tokio::test(start_paused = true)]
async fn nobody_writes_a_role_that_grants_more_than_they_hold_whatever_the_request() {
    let server = with_jane(Vec::new()).await;
    let reads = rule("", &["configmaps"], &["get"]);
    let more =
        vec![reads.clone(), rule("", &["secrets"], &["list", "get"]), rule("", &["configmaps"], &["list", "watch"])];
    let missing = "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"watch\"]}\n{APIGroups:[\"\"], \
                   Resources:[\"secrets\"], Verbs:[\"list\" \"get\"]}";
    for (kind, plural, at) in [
        ("Role", "roles", format!("{RBAC}/namespaces/default/roles")),
        ("ClusterRole", "clusterroles", format!("{RBAC}/clusterroles")),
    ] {
        by_jane(&server, "POST", &at, JSON, &role("held", vec![reads.clone()])).await.expect(201);
        let too_much = of_kind(role("more", more.clone()), kind);
        let wants = |name: &str| format!("{plural}.rbac.authorization.k8s.io {name:?} is forbidden: {JANE}{missing}");
        let new = format!("{at}/more");
        let held = format!("{at}/held");
        let changed = of_kind(role("held", more.clone()), kind);
        let json_patch = json!([{"op": "replace", "path": "/rules", "value": more}]);
        let requests = [
            ("POST", at.clone(), JSON, &too_much, "more"),
            ("POST", format!("{at}?dryRun=All"), JSON, &too_much, "more"),
            ("PUT", new.clone(), JSON, &too_much, "more"),
            ("PATCH", format!("{new}?fieldManager=m"), APPLY, &too_much, "more"),
            ("PUT", held.clone(), JSON, &changed, "held"),
            ("PATCH", held.clone(), MERGE, &json!({"rules": more}), "held"),
            ("PATCH", held.clone(), "application/json-patch+json", &json_patch, "held"),
            ("PATCH", format!("{held}?fieldManager=m&force=true"), APPLY, &changed, "held"),
        ];
        for (method, path, form, body, name) in requests {
            let refused = by_jane(&server, method, &path, form, body).await.expect(403);
            assert_eq!(refused["message"], wants(name), "{method} {path}");
            assert_eq!(refused["reason"], "Forbidden");
        }
        let mut unnamed = too_much.clone();
        unnamed["metadata"] = json!({"generateName": "more-"});
        let refused = by_jane(&server, "POST", &at, JSON, &unnamed).await.expect(403);
        let message = refused["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{plural}.rbac.authorization.k8s.io is forbidden: user")), "{message}");
        ask(&server, "GET", &new, None).await.expect(404);

        // What somebody else has granted is not hers to keep alive, but the garbage collector's fields are free.
        ask(&server, "POST", &at, Some(role("admins", more.clone()))).await.expect(201);
        let admins = format!("{at}/admins");
        by_jane(&server, "PATCH", &admins, MERGE, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(403);
        let finalizers = json!({"metadata": {"finalizers": ["example.com/a"]}});
        by_jane(&server, "PATCH", &admins, MERGE, &finalizers).await.expect(200);
        let fewer = json!({"rules": [reads]});
        by_jane(&server, "PATCH", &admins, MERGE, &fewer).await.expect(200);
    }
}

#[tokio::test(start_paused = true)]
async fn an_aggregated_role_takes_all_there_is() {
    let server = with_jane(Vec::new()).await;
    let roles = format!("{RBAC}/clusterroles");
    let mut gathering = role("gathering", Vec::new());
    gathering["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let refused = by_jane(&server, "POST", &roles, JSON, &gathering).await.expect(403);
    let why = "must have cluster-admin privileges to use the aggregationRule";
    assert_eq!(refused["message"], format!("clusterroles.rbac.authorization.k8s.io \"gathering\" is forbidden: {why}"));
    ask(&server, "POST", &roles, Some(gathering)).await.expect(201);
    let without = json!({"aggregationRule": null});
    let refused = by_jane(&server, "PATCH", &format!("{roles}/gathering"), MERGE, &without).await.expect(403);
    assert!(refused["message"].as_str().unwrap().ends_with(why), "{refused}");
    // It grants what it gathers, so that is what who binds it must hold.
    let mut gathered = role("gathered", vec![rule("", &["secrets"], &["get"])]);
    gathered["metadata"]["labels"] = json!({"a": "b"});
    ask(&server, "POST", &roles, Some(gathered)).await.expect(201);
    let bindings = format!("{RBAC}/clusterrolebindings");
    let all = binding("all", "ClusterRole", "gathering", "bob");
    let refused = by_jane(&server, "POST", &bindings, JSON, &all).await.expect(403);
    assert!(refused["message"].as_str().unwrap().ends_with("Resources:[\"secrets\"], Verbs:[\"get\"]}"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn nobody_binds_a_role_that_grants_more_than_they_hold() {
    let server = with_jane(Vec::new()).await;
    let local = format!("{RBAC}/namespaces/default/rolebindings");
    let secrets = role("secrets", vec![rule("", &["secrets"], &["get"])]);
    let reads = role("reads", vec![rule("", &["configmaps"], &["get"])]);
    for role in [&secrets, &reads] {
        ask(&server, "POST", &format!("{RBAC}/namespaces/default/roles"), Some(role.clone())).await.expect(201);
        ask(&server, "POST", &format!("{RBAC}/clusterroles"), Some(role.clone())).await.expect(201);
    }
    for (kind, at, plural) in [
        ("Role", local.clone(), "rolebindings"),
        ("ClusterRole", local.clone(), "rolebindings"),
        ("ClusterRole", format!("{RBAC}/clusterrolebindings"), "clusterrolebindings"),
    ] {
        let held = format!("held-{}", kind.to_lowercase());
        by_jane(&server, "POST", &at, JSON, &binding(&held, kind, "reads", "bob")).await.expect(201);
        let too_much = binding("more", kind, "secrets", "bob");
        let missing = "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}";
        for (method, path) in [("POST", at.clone()), ("PUT", format!("{at}/more"))] {
            let refused = by_jane(&server, method, &path, JSON, &too_much).await.expect(403);
            let want = format!("{plural}.rbac.authorization.k8s.io \"more\" is forbidden: {JANE}{missing}");
            assert_eq!(refused["message"], want);
        }
        let missing = binding("missing", kind, "missing", "bob");
        let refused = by_jane(&server, "POST", &at, JSON, &missing).await.expect(404);
        // Named after the resource of the request, as upstream.
        assert_eq!(refused["message"], format!("{plural}.rbac.authorization.k8s.io \"missing\" not found"));
        // The administrator binds what does not exist yet, and who is in no such group cannot add to it.
        ask(&server, "POST", &at, Some(too_much)).await.expect(201);
        let subjects = json!({"subjects": []});
        by_jane(&server, "PATCH", &format!("{at}/more"), MERGE, &subjects).await.expect(403);
        ask(&server, "DELETE", &format!("{at}/more"), None).await.expect(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_that_cannot_be_found_is_named_beside_what_is_missing() {
    let server = with_jane(Vec::new()).await;
    let gone = binding("gone", "ClusterRole", "gone", "jane");
    ask(&server, "POST", &format!("{RBAC}/clusterrolebindings"), Some(gone)).await.expect(201);
    let more = role("more", vec![rule("", &["secrets"], &["get"])]);
    for (at, plural) in [("clusterroles", "clusterroles"), ("namespaces/default/roles", "roles")] {
        let refused = by_jane(&server, "POST", &format!("{RBAC}/{at}"), JSON, &more).await.expect(403);
        let end = format!("; resolution errors: [{plural}.rbac.authorization.k8s.io \"gone\" not found]");
        assert!(refused["message"].as_str().unwrap().ends_with(&end), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_escalate_or_bind_gives_away_more_than_they_hold() {
    let mut bind = rule("rbac.authorization.k8s.io", &["clusterroles"], &["bind"]);
    bind["resourceNames"] = json!(["view"]);
    let escalate = rule("rbac.authorization.k8s.io", &["roles"], &["escalate"]);
    let server = with_jane(vec![bind, escalate]).await;
    let more = role("more", vec![rule("*", &["*"], &["*"])]);
    by_jane(&server, "POST", &format!("{RBAC}/namespaces/default/roles"), JSON, &more).await.expect(201);
    by_jane(&server, "POST", &format!("{RBAC}/clusterroles"), JSON, &more).await.expect(403);
    for at in [format!("{RBAC}/namespaces/default/rolebindings"), format!("{RBAC}/clusterrolebindings")] {
        by_jane(&server, "POST", &at, JSON, &binding("v", "ClusterRole", "view", "bob")).await.expect(201);
        by_jane(&server, "POST", &at, JSON, &binding("e", "ClusterRole", "edit", "bob")).await.expect(403);
    }
}
