//! One storage, and two servers one after the other.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::store::memory::Memory;
use steersman_apiserver::{ApiServer, Options, TokenKey};
use steersman_base::Clock;

use crate::support::{ask, send};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view";

fn clock() -> Clock {
    Clock::starting_at("2026-11-15T12:00:00Z".parse().unwrap())
}

fn on(storage: &Arc<Memory>, token_key: Option<TokenKey>) -> ApiServer {
    ApiServer::new(Options::default().clock(clock()).storage(storage.clone()).token_key(token_key))
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
}

/// The address and the node port of a Service.
fn held(service: &Value) -> (Value, Value) {
    (service["spec"]["clusterIP"].clone(), service["spec"]["ports"][0]["nodePort"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_server_takes_up_what_its_storage_holds() {
    let storage = Arc::new(Memory::new(clock()));
    let first = on(&storage, None);
    let (ip, port) = held(&ask(&first, "POST", SERVICES, Some(service("a"))).await.expect(201));
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    ask(&first, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", Some(definition)).await.expect(201);
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    ask(&first, "POST", widgets, Some(widget)).await.expect(201);
    let role = ask(&first, "PATCH", ROLE, Some(json!({"rules": []}))).await.expect(200);
    let own = ask(&first, "GET", &format!("{SERVICES}/kubernetes"), None).await.expect(200);
    drop(first);

    let second = on(&storage, None);
    let objects = ask(&second, "GET", widgets, None).await.expect(200);
    assert_eq!(objects["items"][0]["metadata"]["name"], "w", "its definition is served");
    assert_eq!(ask(&second, "GET", ROLE, None).await.expect(200), role, "what is there stays as it is");
    assert_eq!(ask(&second, "GET", &format!("{SERVICES}/kubernetes"), None).await.expect(200), own);
    for (name, field, value) in [("b", "clusterIP", &ip), ("c", "clusterIP", &own["spec"]["clusterIP"])] {
        let mut wanted = service(name);
        wanted["spec"][field] = value.clone();
        ask(&second, "POST", SERVICES, Some(wanted)).await.expect(422);
    }
    let mut wanted = service("d");
    wanted["spec"]["ports"][0]["nodePort"] = port;
    ask(&second, "POST", SERVICES, Some(wanted)).await.expect(422);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    ask(&second, "DELETE", definitions, None).await.expect(200);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ask(&second, "GET", definitions, None).await.expect(404);
}

#[test]
fn a_server_that_was_made_before_there_was_a_runtime_takes_up_what_waits() {
    let storage = Arc::new(Memory::new(clock()));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    runtime().block_on(async {
        let first = on(&storage, None);
        let definition = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        });
        ask(&first, "POST", path, Some(definition)).await.expect(201);
        // It ends before the definition is established.
    });
    let second = on(&storage, None);
    runtime().block_on(async {
        ask(&second, "GET", "/apis/example.com/v1/widgets", None).await.expect(200);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let definition = ask(&second, "GET", &format!("{path}/widgets.example.com"), None).await.expect(200);
        let mut conditions = definition["status"]["conditions"].as_array().unwrap().iter();
        assert!(conditions.any(|it| it["type"] == "Established" && it["status"] == "True"), "{definition}");
    });
}

#[tokio::test(start_paused = true)]
async fn tokens_outlive_a_server_whose_key_is_kept() {
    let storage = Arc::new(Memory::new(clock()));
    let first = on(&storage, None);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    ask(&first, "POST", accounts, Some(json!({"metadata": {"name": "robot"}}))).await.expect(201);
    let made = ask(&first, "POST", &format!("{accounts}/robot/token"), Some(json!({}))).await.expect(201);
    let bearer = format!("Bearer {}", made["status"]["token"].as_str().unwrap());
    let pem = first.token_key_pem().unwrap().to_owned();
    drop(first);

    let headers = [("authorization", bearer.as_str())];
    let again = on(&storage, Some(TokenKey::from_pem(&pem).unwrap())).requiring_authentication();
    send(&again, "GET", accounts, &headers, Vec::new()).await.expect(200);
    let other = on(&storage, None).requiring_authentication();
    send(&other, "GET", accounts, &headers, Vec::new()).await.expect(401);
    assert!(TokenKey::from_pem("no key").is_err());
}

#[tokio::test]
async fn clients_trust_a_server_whose_authority_is_kept() {
    let storage = Arc::new(Memory::new(Clock::default()));
    let options = || Options::default().storage(storage.clone()).admin_token("secret");
    let first = Listening::start(&ApiServer::new(options()), ListenOptions::default()).await.unwrap();
    let old = first.kubeconfig();
    let key = first.authority_key_pem();
    let own_url = first.url();
    drop(first);
    for (key, is_trusted) in [(Some(key), true), (None, false)] {
        let kept = ListenOptions::default().authority_key_pem(key);
        let second = Listening::start(&ApiServer::new(options()), kept).await.unwrap();
        let kubeconfig = old.replace(&own_url, &second.url());
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        let answer = kube::Client::try_from(config).unwrap().apiserver_version().await;
        assert_eq!(answer.is_ok(), is_trusted, "{answer:?}");
    }
}
