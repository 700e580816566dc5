//! A new server, as kube-apiserver's is.

use serde_json::{Value, json};
use steersman_base::{Clock, ObjectKey, Time};

use super::{OBJECTS, call, publish};
use crate::decode::ContentType;
use crate::registry::{Content, built_in};
use crate::{ApiServer, Options};

fn server() -> ApiServer {
    ApiServer::new(Options { clock: Clock::starting_at(Time::from_unix(0)), ..Options::default() })
}

/// The object without what differs from server to server.
fn plain(mut object: Value) -> Value {
    for field in ["uid", "resourceVersion", "creationTimestamp", "name"] {
        object["metadata"].as_object_mut().expect("metadata").remove(field);
    }
    for entry in object["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
        entry.as_object_mut().expect("an entry").remove("time");
    }
    object
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_at_once_is_what_a_create_would_have_stored() {
    let server = server();
    for line in OBJECTS.lines() {
        let object: Value = serde_json::from_str(line).expect("a line is JSON");
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let namespace = text("namespace");
        let name = text("name");
        let row = built_in().iter().find(|row| *row.resource.kind == *object["kind"].as_str().expect("a kind"));
        let row = row.expect("a resource");
        let stored =
            server.registry.store.get(&row.collection, &ObjectKey::new(&namespace, &name)).expect("it is stored");
        let stored = stored.parse().expect("it is JSON");
        // Names with this prefix are the server's alone.
        if name.starts_with("system-") {
            assert_eq!(plain(stored.clone()), plain(object), "{name}");
            assert_eq!(stored["metadata"]["generation"], 1);
            continue;
        }
        let mut again = object.clone();
        again["metadata"]["name"] = format!("{name}-again").into();
        let call = call(row.clone(), &namespace, "");
        let answer =
            server.registry.create(&call, again.to_string().as_bytes(), ContentType::Json).expect("it is good");
        let Content::Stored(made) = answer.body else { panic!("{name} is shown in another version") };
        assert_eq!(plain(stored), plain(made.parse().expect("it is JSON")), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_listens_says_where() {
    let server = server();
    let get = |plural: &str, group: &str, namespace: &str, name: &str| {
        server.registry.stored(group, "v1", plural, &ObjectKey::new(namespace, name))
    };
    let service = get("services", "", "default", "kubernetes").expect("the Service is there from the start");
    assert_eq!(service["spec"]["clusterIP"], server.registry.services.first_address());
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 6443);
    assert!(get("endpoints", "", "default", "kubernetes").is_none(), "nobody knows where it is");
    for port in [7001_u16, 7002] {
        publish(&server.registry, ([127, 0, 0, 1], port).into(), "PEM");
        let service = get("services", "", "default", "kubernetes").expect("the Service");
        assert_eq!(service["spec"]["ports"][0]["targetPort"], port);
        let endpoints = get("endpoints", "", "default", "kubernetes").expect("the Endpoints");
        assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], port);
        let slice = get("endpointslices", "discovery.k8s.io", "default", "kubernetes").expect("the slice");
        assert_eq!(slice["endpoints"], json!([{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}]));
        let map = get("configmaps", "", "kube-system", "extension-apiserver-authentication").expect("the map");
        assert_eq!(map["data"]["client-ca-file"], "PEM");
    }
}
