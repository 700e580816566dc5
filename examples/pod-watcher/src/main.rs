//! A pod watcher on a bare informer.
//!
//! `cargo run -p example-pod-watcher` makes a pod, labels it and deletes it, and shows what an informer says of that.
//! `cargo run -p example-pod-watcher -- --watch` only watches, until Ctrl-C.
//!
//! The cluster is found as kubectl finds it; `cargo xtask k8s run -- cargo run -p example-pod-watcher` brings its own.

use std::error::Error;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman::informer::{Change, InformerFactory};
use steersman::model::{PodView, View};
use steersman::runtime::connection;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = connection::connect(connection::Options::default()).await?;

    // Declare what is needed, then start: whoever asks for pods gets this same informer.
    let informers = InformerFactory::new(client.clone());
    let pods = informers.informer::<PodView>();
    let by_node = pods.index(|pod| (!pod.spec.node_name.is_empty()).then(|| pod.spec.node_name.clone()));

    let (gone, mut is_gone) = mpsc::unbounded_channel();
    let subscription = pods.subscribe(move |change| {
        println!("{}", sentence(change));
        if let Change::Deleted { last, .. } = change {
            // Nobody waits any more when the program ends.
            let _ = gone.send(last.meta().name.to_string());
        }
    });
    informers.start();
    informers.synced().await?;
    println!("{} pods are known, at version {}", pods.lister().len(), pods.reached().unwrap_or_default());

    if std::env::args().any(|arg| arg == "--watch") {
        tokio::signal::ctrl_c().await?;
    } else {
        let name = make_and_break_a_pod(client).await?;
        while is_gone.recv().await.is_some_and(|gone| gone != name) {}
    }
    println!("{} nodes have pods", by_node.keys().len());
    subscription.close().await;
    informers.stop().await;
    Ok(())
}

fn sentence(change: &Change<PodView>) -> String {
    let pod = change.key();
    match change {
        Change::Added { initial: true, .. } => format!("{pod} was here before we came"),
        Change::Added { new, .. } => format!("{pod} is new, at version {}", new.meta().resource_version),
        Change::Updated { old, new } if old.meta().labels != new.meta().labels => {
            format!("{pod} has other labels: {:?}", new.meta().labels)
        }
        Change::Updated { new, .. } => format!("{pod} changed, and is {}", new.status.phase),
        Change::Deleted { end, .. } => format!("{pod} is gone ({end:?})"),
    }
}

async fn make_and_break_a_pod(client: kube::Client) -> Result<String, kube::Error> {
    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "generateName": "watched-" },
        "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
    }))
    .map_err(kube::Error::SerdeError)?;
    let name = pods.create(&PostParams::default(), &pod).await?.metadata.name.unwrap_or_default();
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "watched": "closely" } } }));
    pods.patch(&name, &PatchParams::default(), &labels).await?;
    pods.delete(&name, &DeleteParams::default()).await?;
    Ok(name)
}
