//! Every verb of the writer on a real kube-apiserver: whether it is understood there, and what it is answered.

use serde_json::{Value, json};
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::InformerFactory;
use steersman_runtime::writer::{Delete, Patch, Propagation, Selected, Writer};

use super::{Outcome, Place};

steersman_runtime::reasons! {
    /// Why anything is written.
    enum Why {
        /// To see whether it works.
        Try => "to see whether it works",
    }
}

const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

fn pod(name: &str) -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false});
    json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec})
}

#[tokio::test]
async fn a_real_server_takes_every_verb_of_the_writer() -> Outcome {
    let place = Place::new("writer").await?;
    let writer = Writer::new(place.client.clone(), Book::new(&InformerFactory::new(place.client.clone())));
    let owner = Meta { namespace: place.namespace.as_str().into(), name: "owner".into(), ..Meta::default() };
    let write = writer.on_behalf_of(&owner);
    let why = Why::Try;
    let bytes = |value: &Value| value.to_string().into_bytes();

    let made = write.create(&CONFIG_MAPS, bytes(&json!({"metadata": {"generateName": "a-"}})), &why).await?;
    assert!(made.name.starts_with("a-") && !made.resource_version.is_empty(), "{made:?}");
    let patch = json!({"metadata": {"uid": made.uid.to_string()}, "data": {"a": "1"}});
    let patched = write.patch(&CONFIG_MAPS, &made.key(), Patch::Merge(&patch), &why).await?;
    assert_ne!(patched.resource_version, made.resource_version);
    let whole = json!({"metadata": {"name": &*made.name, "resourceVersion": patched.resource_version.to_string()}});
    let put = write.put(&CONFIG_MAPS, &made.key(), bytes(&whole), &why).await?;
    write.delete(&CONFIG_MAPS, &put, Delete::default(), &why).await?;

    for name in ["p1", "p2", "p3"] {
        write.create(&PODS, bytes(&pod(name)), &why).await?;
    }
    let p3 = ObjectKey::new(&place.namespace, "p3");
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p3"}, "target": {"name": "n"}});
    write.post_subresource(&PODS, &p3, "binding", bytes(&binding), &why).await?;
    let running = json!({"status": {"phase": "Running"}});
    let seen = write.patch_subresource(&PODS, &p3, "status", Patch::Merge(&running), &why).await?;
    assert_eq!(seen.name, "p3");

    // Not an error of ours after the server has done it: what it deleted, it answers as a list.
    let selected = Selected { labels: "app in (x)", fields: "metadata.name!=p3" };
    let at_once = Delete::from(Propagation::Background).grace_period_seconds(0);
    write.delete_collection(&PODS, Some(&place.namespace), selected, at_once, &why).await?;
    let request = http::Request::get(place.path("pods")).body(Vec::new())?;
    let left: Value = place.client.request(request).await?;
    let names: Vec<_> = left["items"].as_array().into_iter().flatten().map(|pod| &pod["metadata"]["name"]).collect();
    assert_eq!(names, ["p3"]);
    write.delete(&PODS, &seen, at_once, &why).await?;
    Ok(())
}
