//! Who may give away what, and which pods a namespace lets in, on the embedded server and on kube-apiserver: the same codes,
//! objects, words and warnings.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Authorization, Options};

use crate::compare::normal;
use crate::frame::kube_apiserver;

/// Both servers, and what differs between them.
struct Servers {
    both: [Client; 2],
    user: Option<&'static str>,
    /// Tokens of the sender; the administrator's if there are none.
    tokens: Option<[String; 2]>,
    groups: &'static [&'static str],
    compared: usize,
    different: Vec<String>,
}

/// kube-apiserver sees roles and namespaces through caches.
const SEEN: Duration = Duration::from_millis(1500);
/// The number of times that a request is repeated which changes nothing, while the answers differ: under load, caches lag for longer.
const LOOKS_MAX: usize = 50;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

impl Servers {
    async fn start(namespace: &str) -> Self {
        let ours = ApiServer::new(Options::default().authorization(Authorization::Rbac));
        let both = [kube_apiserver().await, Client::new(ours, "default")];
        let new = Self { both, user: None, tokens: None, groups: &[], compared: 0, different: Vec::new() };
        new.ask("POST", "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        new
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> [Value; 2] {
        let [theirs, ours] = &self.both;
        let [of_theirs, of_ours] = self.tokens.clone().map_or([None, None], |tokens| tokens.map(Some));
        [self.send(theirs, of_theirs, method, path, body).await, self.send(ours, of_ours, method, path, body).await]
    }

    async fn send(&self, client: &Client, token: Option<String>, method: &str, path: &str, body: &Value) -> Value {
        let kind = match method {
            "PATCH" if path.contains("fieldManager") => "application/apply-patch+yaml",
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let mut request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        request = request.header("accept", "application/json").header("user-agent", "compare/1");
        if let Some(user) = self.user {
            request = request.header("impersonate-user", user);
        }
        for group in self.groups {
            request = request.header("impersonate-group", *group);
        }
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
        let warnings: Vec<String> =
            response.headers().get_all("warning").iter().map(|it| it.to_str().unwrap().to_owned()).collect();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value =
            serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
        json!({"code": code, "warnings": warnings, "body": normal(&body, "")})
    }

    /// Sends a request that changes nothing until the answers are equal, [`LOOKS_MAX`] times at most; returns the last ones.
    async fn ask_until_alike(&self, method: &str, path: &str, body: &Value) -> [Value; 2] {
        for _ in 1..LOOKS_MAX {
            let answers = self.ask(method, path, body).await;
            if answers[0] == answers[1] {
                return answers;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.ask(method, path, body).await
    }

    async fn compare(&mut self, method: &str, path: &str, body: &Value) {
        let [theirs, ours] = match path.contains("dryRun=All") {
            true => self.ask_until_alike(method, path, body).await,
            false => self.ask(method, path, body).await,
        };
        self.compared += 1;
        // A refused sender hears of the mode that was tried first: upstream begins with the one that has worked last.
        let is_refused = |answer: &Value| answer["code"] == 403;
        let has_modes = self.tokens.is_some() && is_refused(&theirs) && is_refused(&ours);
        if theirs != ours && !has_modes {
            self.different.push(format!("== {method} {path} {body}\n   theirs: {theirs}\n   ours:   {ours}"));
        }
    }

    fn end(self) {
        let Self { compared, different, .. } = self;
        println!("{} of {compared} differ\n{}", different.len(), different.join("\n"));
        assert!(different.is_empty(), "{} of {compared} differ", different.len());
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn role(name: &str, rules: Vec<Value>) -> Value {
    let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}});
    role["rules"] = rules.into();
    role
}

fn binding(name: &str, kind: &str, of: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": of},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "compare-jane"}],
    })
}

fn of_kind(mut object: Value, kind: &str) -> Value {
    object["kind"] = kind.into();
    object
}

#[tokio::test]
async fn roles_and_bindings_are_given_away_as_on_kube_apiserver() {
    const NAMESPACE: &str = "compare-grants";
    let mut servers = Servers::start(NAMESPACE).await;
    let kinds = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
    let mut bind = rule("rbac.authorization.k8s.io", &["clusterroles"], &["bind"]);
    bind["resourceNames"] = json!(["edit"]);
    let own = vec![
        rule("rbac.authorization.k8s.io", &kinds, &["create", "get", "update", "patch", "delete"]),
        rule("", &["configmaps", "pods/*"], &["get", "list"]),
        rule("apps", &["*/scale"], &["*"]),
        json!({"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]}),
        bind,
    ];
    servers.ask("POST", &format!("{RBAC}/clusterroles"), &role("compare-jane", own)).await;
    let held = binding("compare-jane", "ClusterRole", "compare-jane");
    servers.ask("POST", &format!("{RBAC}/clusterrolebindings"), &held).await;
    let lost = binding("compare-lost", "ClusterRole", "compare-missing");
    tokio::time::sleep(SEEN).await;

    let mut named = rule("", &["configmaps", "secrets"], &["get", "watch"]);
    named["resourceNames"] = json!(["a", "b"]);
    let wanted: Vec<(&str, Vec<Value>)> = vec![
        ("reads", vec![rule("", &["configmaps"], &["get"])]),
        ("more", vec![rule("", &["secrets", "configmaps"], &["list", "get", "watch"])]),
        ("twice", vec![rule("", &["secrets"], &["list"]), rule("", &["secrets"], &["list", "get"])]),
        ("named", vec![named]),
        ("all", vec![rule("*", &["*"], &["*"])]),
        ("scales", vec![rule("apps", &["deployments/scale", "deployments"], &["patch"])]),
        ("wrong", vec![json!({"verbs": ["get"]}), rule("", &[], &["get"]), rule("", &["secrets"], &[])]),
        ("paths", vec![json!({"nonResourceURLs": ["/metrics/a", "/metrics", "/x"], "verbs": ["get", "put"]})]),
    ];
    servers.user = Some("compare-jane");
    for root in [format!("{RBAC}/namespaces/{NAMESPACE}/roles"), format!("{RBAC}/clusterroles")] {
        let kind = if root.ends_with("clusterroles") { "ClusterRole" } else { "Role" };
        for (name, rules) in &wanted {
            let name = format!("compare-{name}");
            let wants = of_kind(role(&name, rules.clone()), kind);
            let at = format!("{root}/{name}");
            servers.compare("PUT", &at, &wants).await;
            servers.compare("PATCH", &format!("{at}?fieldManager=m"), &wants).await;
            servers.compare("POST", &root, &wants).await;
            servers.user = None;
            servers.ask("PUT", &at, &of_kind(role(&name, rules.clone()), kind)).await;
            servers.user = Some("compare-jane");
            for change in [
                json!({"metadata": {"labels": {"a": "b"}}}),
                json!({"metadata": {"finalizers": ["example.com/a"]}}),
                json!({"metadata": {"finalizers": null}}),
                json!({"rules": [rule("", &["configmaps"], &["get"])]}),
                json!({"rules": rules}),
            ] {
                servers.compare("PATCH", &at, &change).await;
            }
            servers.compare("PUT", &at, &wants).await;
        }
        let mut unnamed = role("x", vec![rule("", &["secrets"], &["get"])]);
        unnamed["metadata"] = json!({"generateName": "compare-"});
        servers.compare("POST", &root, &unnamed).await;
        if kind == "Role" {
            continue;
        }
        let mut gathering = role("compare-gathering", vec![rule("", &["configmaps"], &["get"])]);
        gathering["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"compare": "b"}}]});
        servers.compare("POST", &root, &gathering).await;
    }
    for root in [format!("{RBAC}/namespaces/{NAMESPACE}/rolebindings"), format!("{RBAC}/clusterrolebindings")] {
        for kind in ["Role", "ClusterRole", "Other"] {
            let roles = ["compare-reads", "compare-more", "compare-gone", "edit", "", "a/b"];
            for (at, of) in roles.into_iter().enumerate() {
                let name = format!("compare-{}-{at}", kind.to_lowercase());
                servers.compare("POST", &root, &binding(&name, kind, of)).await;
                servers.compare("PUT", &format!("{root}/{name}"), &binding(&name, kind, of)).await;
                let subjects = json!({"subjects": []});
                servers.compare("PATCH", &format!("{root}/{name}"), &subjects).await;
            }
        }
    }
    servers.user = None;
    servers.ask("POST", &format!("{RBAC}/clusterrolebindings"), &lost).await;
    servers.user = Some("compare-jane");
    let last = role("compare-last", vec![rule("", &["x"], &["y"])]);
    for at in ["clusterroles".to_owned(), format!("namespaces/{NAMESPACE}/roles")] {
        servers.compare("POST", &format!("{RBAC}/{at}"), &last).await;
    }
    // What is left of it in the cluster grants nothing to other tests.
    servers.user = None;
    for name in ["compare-jane", "compare-lost"] {
        servers.ask("DELETE", &format!("{RBAC}/clusterrolebindings/{name}"), &Value::Null).await;
    }
    servers.end();
}

#[tokio::test]
async fn who_impersonates_is_let_through_as_on_kube_apiserver() {
    const NAMESPACE: &str = "compare-impersonation";
    let mut servers = Servers::start(NAMESPACE).await;
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    servers.ask("POST", &accounts, &json!({"metadata": {"name": "robot"}})).await;
    let to = |resources: &[&str], verb: &str| rule("authentication.k8s.io", resources, &[verb]);
    let on = |resources: &[&str], verbs: &[&str]| rule("*", resources, verbs);
    let mut jane = to(&["users"], "impersonate:user-info");
    jane["resourceNames"] = json!(["jane"]);
    // Upstream tries the mode first that has worked last, so that no user may be impersonated in two.
    let mut legacy = rule("", &["users"], &["impersonate"]);
    legacy["resourceNames"] = json!(["bob", "system:anonymous", "system:node:N", "system:serviceaccount:default"]);
    let rules = vec![
        jane,
        legacy,
        to(&["groups"], "impersonate:user-info"),
        to(&["serviceaccounts"], "impersonate:serviceaccount"),
        to(&["nodes"], "impersonate:arbitrary-node"),
        on(&["configmaps"], &["impersonate-on:user-info:list", "impersonate-on:serviceaccount:get"]),
        on(
            &["selfsubjectreviews"],
            &[
                "impersonate-on:user-info:create",
                "impersonate-on:serviceaccount:create",
                "impersonate-on:arbitrary-node:create",
            ],
        ),
    ];
    servers.ask("POST", &format!("{RBAC}/clusterroles"), &role("compare-robot", rules)).await;
    let mut held = binding("compare-robot", "ClusterRole", "compare-robot");
    held["subjects"] = json!([{"kind": "ServiceAccount", "name": "robot", "namespace": NAMESPACE}]);
    servers.ask("POST", &format!("{RBAC}/clusterrolebindings"), &held).await;
    let tokens = servers.ask("POST", &format!("{accounts}/robot/token"), &json!({"spec": {}})).await;
    servers.tokens = Some(tokens.map(|answer| answer["body"]["status"]["token"].as_str().unwrap().to_owned()));
    servers.both[0] = {
        let kubeconfig = std::env::var("STEERSMAN_RIG_KUBECONFIG").expect("run me with `cargo xtask k8s test`");
        let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.auth_info = kube::config::AuthInfo::default();
        Client::try_from(config).unwrap()
    };
    tokio::time::sleep(SEEN).await;
    let users = [
        "jane",
        "bob",
        "system:anonymous",
        "system:node:n",
        "system:node:N",
        "system:serviceaccount:default:default",
        "system:serviceaccount:default",
    ];
    let groups: [&[&str]; 5] =
        [&[], &["devs"], &["system:masters"], &["system:unauthenticated"], &["a", "b", "c", "d"]];
    let config_maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    for user in users {
        for groups in groups {
            servers.user = Some(user);
            servers.groups = groups;
            servers.compare("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await;
            servers.compare("GET", &config_maps, &Value::Null).await;
            servers.compare("GET", &format!("{config_maps}/a"), &Value::Null).await;
            servers.compare("DELETE", &format!("{config_maps}/a"), &Value::Null).await;
            servers.compare("GET", "/api/v1/nodes", &Value::Null).await;
            servers.compare("GET", "/apis/apps", &Value::Null).await;
        }
    }
    servers.end();
}

/// Pods that break the standards in one way each, or in several.
fn pods() -> Vec<Value> {
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let good = json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": "i", "securityContext": context}],
        // The tests beside this one make a default class for a moment.
        "priorityClassName": "system-cluster-critical",
    });
    let changes = [
        json!({}),
        json!({"hostNetwork": true, "hostPID": true}),
        json!({"hostIPC": true, "os": {"name": "linux"}}),
        json!({"volumes": [{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "nfs": {"server": "s", "path": "/"}}]}),
        json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/"}}]}),
        json!({"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i", "securityContext": {}}]}),
        json!({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 90},
                                                                    {"containerPort": 2, "hostPort": 100}]}]}),
        json!({"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": true}}],
               "initContainers": [{"name": "d", "image": "i", "securityContext": {"procMount": "Unmasked"}}]}),
        json!({"hostUsers": false, "securityContext": {"runAsUser": 0},
               "containers": [{"name": "c", "image": "i", "securityContext": {"procMount": "Unmasked"}}]}),
        json!({"containers": [{"name": "c", "image": "i", "securityContext": {
            "capabilities": {"add": ["NET_RAW", "CHOWN", "BPF"]}, "runAsNonRoot": false, "runAsUser": 0}}]}),
        json!({"securityContext": {"runAsNonRoot": false, "runAsUser": 0, "seccompProfile": {"type": "Unconfined"},
                                   "appArmorProfile": {"type": "Unconfined"},
                                   "seLinuxOptions": {"type": "a", "user": "u", "role": "r"}}}),
        json!({"containers": [{"name": "c", "image": "i", "securityContext": {
            "seccompProfile": {"type": "Unconfined"}, "appArmorProfile": {"type": "Unconfined"},
            "seLinuxOptions": {"type": "container_engine_t"}}}]}),
        json!({"securityContext": {"sysctls": [
            {"name": "net.ipv4.tcp_rmem", "value": "1"}, {"name": "net.ipv4.tcp_keepalive_time", "value": "1"},
            {"name": "net.ipv4.tcp_notsent_lowat", "value": "1"}, {"name": "kernel.msgmax", "value": "1"},
            {"name": "net.ipv4.ip_local_reserved_ports", "value": "1"}]}}),
        json!({"containers": [{"name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": 1, "host": "h"}},
                               "lifecycle": {"preStop": {"httpGet": {"port": 1, "host": "g"}}}}]}),
        json!({"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": true, "seccompProfile": null},
               "containers": [{"name": "c", "image": "i"}]}),
        json!({"os": {"name": "windows"}, "hostNetwork": true, "containers": [{"name": "c", "image": "i"}],
               "securityContext": {"seccompProfile": null, "windowsOptions": {"hostProcess": true}}}),
    ];
    let specs = changes.into_iter().map(|change| {
        let mut spec = good.clone();
        json_patch::merge(&mut spec, &change);
        spec
    });
    specs.enumerate().map(|(at, spec)| json!({"metadata": {"name": format!("p{at}")}, "spec": spec})).collect()
}

#[tokio::test]
async fn pods_are_let_in_as_on_kube_apiserver() {
    const NAMESPACE: &str = "compare-pod-security";
    let mut servers = Servers::start(NAMESPACE).await;
    let home = format!("/api/v1/namespaces/{NAMESPACE}");
    let labels = |enforce: Value, version: Value, warn: Value| {
        json!({"metadata": {"labels": {
            "pod-security.kubernetes.io/enforce": enforce, "pod-security.kubernetes.io/enforce-version": version,
            "pod-security.kubernetes.io/warn": warn, "pod-security.kubernetes.io/warn-version": version,
        }}})
    };
    for wrong in [json!("high"), json!(""), json!("Baseline")] {
        servers.compare("PATCH", &home, &labels(wrong.clone(), Value::Null, wrong)).await;
    }
    for wrong in ["v1", "v1.01", "v1.9999999999999999999", "1.2", "v2.0"] {
        servers.compare("PATCH", &home, &labels(json!("privileged"), wrong.into(), Value::Null)).await;
    }
    let versions =
        ["v1.0", "v1.8", "v1.19", "v1.22", "v1.24", "v1.25", "v1.29", "v1.31", "v1.34", "v1.36", "v1.99", "latest"];
    for version in versions {
        for (enforce, warn) in [("baseline", "restricted"), ("restricted", "privileged")] {
            servers.compare("PATCH", &home, &labels(enforce.into(), version.into(), warn.into())).await;
            tokio::time::sleep(Duration::from_millis(600)).await;
            for pod in pods() {
                servers.compare("POST", &format!("{home}/pods?dryRun=All"), &pod).await;
                let labels = json!({"a": "b"});
                let template = json!({"metadata": {"labels": labels, "annotations": pod["metadata"]["annotations"]},
                                      "spec": pod["spec"]});
                let spec = json!({"selector": {"matchLabels": labels}, "template": template});
                let deployment = json!({"metadata": {"name": "d"}, "spec": spec});
                let deployments = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments?dryRun=All");
                servers.compare("POST", &deployments, &deployment).await;
            }
        }
    }
    // Existing pods, under a level that gets stricter.
    let free = labels(json!("privileged"), json!("latest"), json!("privileged"));
    servers.compare("PATCH", &home, &free).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    for pod in &pods() {
        servers.ask_until_alike("POST", &format!("{home}/pods?dryRun=All"), pod).await;
    }
    for pod in pods() {
        servers.compare("POST", &format!("{home}/pods"), &pod).await;
    }
    // Existing pods are seen through a cache, too.
    let stricter = labels("baseline".into(), "latest".into(), Value::Null);
    servers.ask_until_alike("PATCH", &format!("{home}?dryRun=All"), &stricter).await;
    for (level, version) in
        [("baseline", "latest"), ("baseline", "v1.20"), ("restricted", "v1.20"), ("baseline", "v1.20")]
    {
        servers.compare("PATCH", &home, &labels(level.into(), version.into(), Value::Null)).await;
    }
    tokio::time::sleep(Duration::from_millis(600)).await;
    servers.ask_until_alike("POST", &format!("{home}/pods?dryRun=All"), &pods()[1]).await;
    servers.compare("PATCH", &format!("{home}/pods/p5"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
    for name in ["p0", "p1", "p5"] {
        let path = format!("{home}/pods/{name}/ephemeralcontainers");
        let more = json!({"spec": {"ephemeralContainers": [
            {"name": "e", "image": "i", "securityContext": {"privileged": true}}]}});
        servers.compare("PATCH", &path, &more).await;
    }
    servers.end();
}
