//! A new cluster, on the embedded server and on kube-apiserver: the objects that nobody has made.

use serde_json::{Value, json};

use crate::compare::{Request, normal, send};
use crate::frame::clients;

const LISTS: [&str; 6] = [
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/networking.k8s.io/v1/ipaddresses",
    "/api/v1/componentstatuses",
];

/// What a list has, without what other tests have made, and what differs from server to server: times and addresses.
fn plain(list: &Value) -> Vec<Value> {
    let list = normal(list, "");
    let items = list["items"].as_array().expect("items").iter().map(|item| {
        let mut item = item.clone();
        for field in ["apiVersion", "kind"] {
            item.as_object_mut().unwrap().remove(field);
        }
        if let Some(condition) = item.pointer_mut("/status/conditions/0") {
            condition["lastTransitionTime"] = "<some>".into();
        }
        // The status of a component has no version; a stored object always has one.
        item["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        if item["metadata"]["creationTimestamp"] == json!("<some>") {
            item["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
        }
        if item.pointer("/spec/cidrs").is_some() {
            item["spec"]["cidrs"] = json!(["<some>"]);
        }
        if item["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("10.")) {
            item["metadata"]["name"] = "<some>".into();
        }
        item
    });
    let is_own = |item: &Value| {
        let number = item["metadata"]["name"].as_str().and_then(|name| name.strip_prefix('x'));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            return false; // Of `compare_kinds`.
        }
        let automanaged = &item["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"];
        let parent = item.pointer("/spec/parentRef/name");
        *automanaged != json!("true") && parent.is_none_or(|parent| parent == "kubernetes")
    };
    let mut items: Vec<Value> = items.filter(is_own).collect();
    items.sort_by_key(|item| item["metadata"]["name"].to_string());
    items
}

#[tokio::test]
async fn a_new_cluster_has_what_kube_apiserver_makes() {
    let clients = clients().await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    for path in LISTS {
        let get = Request { method: "GET", path: path.to_owned(), content_type: "application/json", body: Value::Null };
        let mut lists = Vec::new();
        for client in &clients {
            let (code, list) = send(client, &get).await;
            assert_eq!(code, 200, "{path}: {list}");
            lists.push(plain(&list));
        }
        assert!(!lists[0].is_empty(), "{path}");
        assert_eq!(lists[1], lists[0], "{path}: ours, theirs");
    }
}

#[tokio::test]
async fn ephemeral_containers_are_put_without_a_uid() {
    let clients = clients().await;
    let pods = "/api/v1/namespaces/default/pods";
    let mut answers = Vec::new();
    for client in &clients {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "with-ephemeral"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let post = Request { method: "POST", path: pods.to_owned(), content_type: "application/json", body: pod };
        let (_, mut pod) = send(client, &post).await;
        for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp"] {
            pod["metadata"].as_object_mut().unwrap().remove(field);
        }
        pod["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
        let path = format!("{pods}/with-ephemeral/ephemeralcontainers");
        let put = Request { method: "PUT", path, content_type: "application/json", body: pod };
        let (code, body) = send(client, &put).await;
        answers.push((code, normal(&body["spec"]["ephemeralContainers"], ""), body["metadata"]["uid"].is_string()));
    }
    assert_eq!(answers[1], answers[0]);
    assert_eq!(answers[0].0, 200, "{answers:?}");
}
