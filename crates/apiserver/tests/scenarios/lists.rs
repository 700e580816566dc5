//! Pages, selectors, versions.

use serde_json::json;

use crate::support::{CONFIG_MAPS, Got, ask, config_map, pod, send, server};

fn names(got: &serde_json::Value) -> Vec<&str> {
    got["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_revision_whatever_is_written_between_them() {
    let server = server();
    for name in ["a", "b", "c", "d"] {
        ask(&server, "POST", CONFIG_MAPS, Some(config_map(name))).await.expect(201);
    }
    let first = ask(&server, "GET", &format!("{CONFIG_MAPS}?limit=2"), None).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    ask(&server, "DELETE", &format!("{CONFIG_MAPS}/c"), None).await.expect(200);
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("bb"))).await.expect(201);
    ask(&server, "PATCH", &format!("{CONFIG_MAPS}/d"), Some(json!({"data": {"a": "new"}}))).await.expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let path = format!("{CONFIG_MAPS}?limit=2&continue={token}");
    let second = ask(&server, "GET", &path, None).await.expect(200);
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][1]["data"]["a"], "b");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    server.compact(server.revision());
    let expired = ask(&server, "GET", &path, None).await.expect(410);
    assert_eq!(expired["reason"], "Expired");
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let rest = ask(&server, "GET", &format!("{CONFIG_MAPS}?limit=9&continue={token}"), None).await.expect(200);
    assert_eq!(names(&rest), ["bb", "d"], "a list that has expired goes on from the present");
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_by_labels_and_fields() {
    let server = server();
    let pods = "/api/v1/namespaces/default/pods";
    for (name, node) in [("a", "n1"), ("b", "n2"), ("c", "n1")] {
        let mut body = pod(name);
        body["spec"]["nodeName"] = node.into();
        body["metadata"]["labels"] = json!({"app": name});
        ask(&server, "POST", pods, Some(body)).await.expect(201);
    }
    let check = async |query: &str, want: &[&str]| {
        let got = ask(&server, "GET", &format!("{pods}?{query}"), None).await.expect(200);
        assert_eq!(names(&got), want, "{query}");
    };
    check("fieldSelector=spec.nodeName%3Dn1", &["a", "c"]).await;
    check("fieldSelector=spec.nodeName!%3Dn1", &["b"]).await;
    check("fieldSelector=metadata.name%3Db", &["b"]).await;
    check("labelSelector=app+in+(a,b)", &["a", "b"]).await;
    check("labelSelector=app!%3Da&fieldSelector=spec.nodeName%3Dn1", &["c"]).await;
    check("labelSelector=!app", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_over_all_namespaces_has_them_in_order() {
    let server = server();
    for namespace in ["kube-system", "default", "kube-public"] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        ask(&server, "POST", &path, Some(config_map("a"))).await.expect(201);
    }
    let mut token = String::new();
    let mut seen = Vec::new();
    loop {
        let path = format!("/api/v1/configmaps?limit=1&continue={token}");
        let page = ask(&server, "GET", &path, None).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["metadata"]["namespace"].clone()));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    // Two of the last namespace are the server's own.
    assert_eq!(seen, ["default", "kube-public", "kube-system", "kube-system", "kube-system"]);
}

#[tokio::test(start_paused = true)]
async fn answers_come_in_the_form_that_is_asked_for() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let get =
        async |accept: &str| -> Got { send(&server, "GET", CONFIG_MAPS, &[("accept", accept)], Vec::new()).await };
    let json = "application/vnd.kubernetes.protobuf, application/json";
    assert_eq!(get(json).await.expect(200)["kind"], "ConfigMapList", "no protobuf yet, so the next");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json";
    assert_eq!(get(table).await.expect(200)["kind"], "Table");
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = get(partial).await.expect(200);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert!(list["items"][0].get("data").is_none());
    let of_one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
    let refused = get(of_one).await.expect(406);
    let want = "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)";
    assert_eq!((&refused["message"], &refused["reason"]), (&want.into(), &"NotAcceptable".into()));
    let one = format!("{CONFIG_MAPS}/a");
    let refused = send(&server, "GET", &one, &[("accept", partial)], Vec::new()).await.expect(406);
    let want = "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)";
    assert_eq!(refused["message"], want);
    let got = send(&server, "GET", &one, &[("accept", of_one)], Vec::new()).await.expect(200);
    let whole = ask(&server, "GET", &one, None).await.expect(200);
    let metadata =
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": whole["metadata"]});
    assert_eq!(got, metadata);
    let yaml = get("application/yaml").await.expect(200);
    assert!(yaml.as_str().unwrap().contains("kind: ConfigMapList"), "{yaml}");
    get("application/vnd.kubernetes.protobuf").await.expect(406);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_not_read_from_a_state_before_the_version_that_is_asked_for() {
    let server = server();
    let made = ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    for reached in ["", "0", "1", version] {
        ask(&server, "GET", &format!("{CONFIG_MAPS}/a?resourceVersion={reached}"), None).await.expect(200);
    }
    let later = ask(&server, "GET", &format!("{CONFIG_MAPS}/a?resourceVersion=99999"), None).await.expect(504);
    assert_eq!(later["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    ask(&server, "GET", &format!("{CONFIG_MAPS}/a?resourceVersion=x"), None).await.expect(500);
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_version_are_of_exactly_that_version() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("b"))).await.expect(201);
    let last = ask(&server, "POST", CONFIG_MAPS, Some(config_map("c"))).await.expect(201);
    let version = last["metadata"]["resourceVersion"].as_str().unwrap();
    ask(&server, "POST", CONFIG_MAPS, Some(config_map("a"))).await.expect(201);
    for (query, want) in [
        ("limit=2", vec!["b", "c"]),
        ("limit=2&resourceVersionMatch=NotOlderThan", vec!["a", "b"]),
        ("resourceVersionMatch=Exact", vec!["b", "c"]),
        ("", vec!["a", "b", "c"]),
    ] {
        let got =
            ask(&server, "GET", &format!("{CONFIG_MAPS}?resourceVersion={version}&{query}"), None).await.expect(200);
        assert_eq!(names(&got), want, "{query}");
    }
}
