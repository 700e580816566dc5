//! Each verb does what it says.

use serde_json::{Value, json};
use steersman_base::{Meta, ObjectKey};
use steersman_runtime::writer::Selected;
use steersman_runtime::{Delete, Patch, Propagation, WriteError};

use crate::support::*;

const MAP: &str = "/api/v1/namespaces/default/configmaps/a";

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn pod(name: &str, app: &str) -> Vec<u8> {
    let container = json!({"name": "main", "image": "example/main:1"});
    let metadata = json!({"name": name, "labels": {"app": app}});
    bytes(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}))
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_replaced_and_changed() {
    let world = World::new().await;
    let write = world.writer.on_behalf_of(&world.owner);
    let why = Why::Silent;
    let key = ObjectKey::new("default", "a");
    let made = write.create(&CONFIG_MAPS, config_map("a"), &why).await.unwrap();
    assert!(!made.uid.is_empty() && !made.resource_version.is_empty(), "{made:?}");
    assert_eq!(made.creation_timestamp, Some(world.clock.now()), "the whole metadata is known");

    let changes = [
        (Patch::Strategic(&json!({"data": {"b": "2"}})), json!({"a": "1", "b": "2"})),
        (Patch::Merge(&json!({"data": {"a": null}})), json!({"b": "2"})),
        (Patch::Json(&json!([{"op": "add", "path": "/data/c", "value": "3"}])), json!({"b": "2", "c": "3"})),
    ];
    let mut last = made;
    for (patch, want) in changes {
        let changed = write.patch(&CONFIG_MAPS, &key, patch, &why).await.unwrap();
        assert_eq!(world.get(MAP).await.unwrap()["data"], want, "{patch:?}");
        assert!(changed.resource_version.is_newer_than(&last.resource_version), "{patch:?}");
        last = changed;
    }

    let whole = |meta: &Meta| {
        bytes(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"whole": "yes"}}))
    };
    let put = write.put(&CONFIG_MAPS, &key, whole(&last), &why).await.unwrap();
    assert_eq!(world.get(MAP).await.unwrap()["data"], json!({"whole": "yes"}));
    assert!(matches!(write.put(&CONFIG_MAPS, &key, whole(&last), &why).await, Err(WriteError::Conflict)), "{put:?}");

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    write.create_in(None, &NAMESPACES, bytes(&namespace), &why).await.unwrap();
    let elsewhere = write.create_in(Some("other"), &CONFIG_MAPS, config_map("a"), &why).await.unwrap();
    assert_eq!(elsewhere.namespace, "other");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn subresources_are_written() {
    let world = World::new().await;
    let write = world.writer.unowned();
    let why = Why::Silent;
    let key = ObjectKey::new("default", "web");
    let template = json!({
        "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
    });
    let selector = json!({"matchLabels": {"app": "web"}});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": selector, "template": template},
    });
    let made = write.create_in(Some("default"), &SETS, bytes(&set), &why).await.unwrap();

    let status = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": made, "status": {"replicas": 2}});
    write.put_status(&SETS, &key, bytes(&status), &why).await.unwrap();
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 5},
    });
    write.put_subresource(&SETS, &key, "scale", bytes(&scale), &why).await.unwrap();
    let patch = json!({"status": {"readyReplicas": 1}});
    write.patch_subresource(&SETS, &key, "status", Patch::Merge(&patch), &why).await.unwrap();
    let set = world.get("/apis/apps/v1/namespaces/default/replicasets/web").await.unwrap();
    let seen = (&set["spec"]["replicas"], &set["status"]["replicas"], &set["status"]["readyReplicas"]);
    assert_eq!(seen, (&json!(5), &json!(2), &json!(1)));

    write.create_in(Some("default"), &PODS, pod("p", "web"), &why).await.unwrap();
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"},
    });
    let pod = ObjectKey::new("default", "p");
    let said = write.post_subresource(&PODS, &pod, "binding", bytes(&binding), &why).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&said).unwrap()["status"], "Success");
    assert_eq!(world.get("/api/v1/namespaces/default/pods/p").await.unwrap()["spec"]["nodeName"], "n1");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_means_one_object_as_it_was_seen() {
    let world = World::new().await;
    let write = world.writer.on_behalf_of(&world.owner);
    let why = Why::Silent;
    let key = ObjectKey::new("default", "a");
    let seen = write.create(&CONFIG_MAPS, config_map("a"), &why).await.unwrap();

    let stranger = Meta { uid: "another".into(), ..seen.clone() };
    let refused = write.delete(&CONFIG_MAPS, &stranger, Propagation::Background, &why).await;
    assert!(matches!(refused, Err(WriteError::Conflict)), "another object of that name: {refused:?}");

    write.patch(&CONFIG_MAPS, &key, Patch::Merge(&json!({"data": {"b": "2"}})), &why).await.unwrap();
    let unchanged = Delete::default().unchanged_only();
    let refused = write.delete(&CONFIG_MAPS, &seen, unchanged, &why).await;
    assert!(matches!(refused, Err(WriteError::Conflict)), "it changed since: {refused:?}");
    assert!(world.get(MAP).await.is_ok());

    write.delete(&CONFIG_MAPS, &seen, Delete::default(), &why).await.unwrap();
    assert_eq!(world.get(MAP).await, Err(404));
    let gone = write.delete(&CONFIG_MAPS, &seen, Delete::default(), &why).await;
    assert!(matches!(gone, Err(WriteError::NotFound)), "{gone:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_collection_loses_what_is_selected_and_nothing_else() {
    let world = World::new().await;
    let write = world.writer.on_behalf_of(&world.owner);
    let why = Why::Silent;
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        write.create(&PODS, pod(name, app), &why).await.unwrap();
    }
    let selected = Selected { labels: "app in (x)", fields: "metadata.name!=b" };
    let at_once = Delete::from(Propagation::Background).grace_period_seconds(0);
    write.delete_collection(&PODS, Some("default"), selected, at_once, &why).await.unwrap();
    let pods = world.get("/api/v1/namespaces/default/pods").await.unwrap();
    let names: Vec<_> = pods["items"].as_array().unwrap().iter().map(|pod| pod["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["b", "c"]);
    world.stop().await;
}
