//! The classic controller: an informer fills a queue, workers empty it, and after five failures a key is given up.
//!
//! This is client-go's `workqueue` example, with nothing hidden: no Manager, no Builder. The "business logic" looks at a pod
//! and fails for those whose name begins with `bad`.
//!
//! `cargo run -p example-queue-worker` makes a good and a bad pod, waits until both are dealt with, and cleans up. The
//! cluster is found as kubectl finds it; `cargo xtask k8s run -- cargo run -p example-queue-worker` brings its own.

use std::error::Error;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use steersman::base::ObjectKey;
use steersman::informer::{InformerFactory, Lister};
use steersman::model::{PodView, View};
use steersman::runtime::connection;
use steersman::workqueue::{Priority, Queue, QueueOptions, Shutdown};
use tokio::sync::mpsc;

const WORKERS: usize = 2;
/// A key that failed this often is reported and forgotten until it changes.
const RETRIES_MAX: u32 = 5;

/// What became of a key.
enum Outcome {
    Processed(ObjectKey),
    GivenUp(ObjectKey),
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = connection::connect(connection::Options::default()).await?;
    let informers = InformerFactory::new(client.clone());
    let pods = informers.informer::<PodView>();

    // Many events of one pod become one key in the queue.
    let queue: Queue<ObjectKey> = Queue::new("pods", QueueOptions::default());
    let feed = queue.clone();
    let subscription = pods.subscribe(move |change| feed.add(change.key(), Priority::Live));

    // Workers start when the cache is filled: until then, a pod that is not in it may exist.
    informers.start();
    informers.synced().await?;
    let (report, mut outcomes) = mpsc::unbounded_channel();
    let workers: Vec<_> =
        (0..WORKERS).map(|_| tokio::spawn(work(queue.clone(), pods.lister(), report.clone()))).collect();

    let api: Api<Pod> = Api::default_namespaced(client);
    let good = create(&api, "good-").await?;
    let bad = create(&api, "bad-").await?;
    let mut processed = false;
    let mut given_up = false;
    while !(processed && given_up) {
        match outcomes.recv().await {
            Some(Outcome::Processed(key)) => processed |= *key.name == *good,
            Some(Outcome::GivenUp(key)) => given_up |= *key.name == *bad,
            None => break,
        }
    }
    for name in [good, bad] {
        api.delete(&name, &DeleteParams::default()).await?;
    }

    subscription.close().await;
    queue.shutdown(Shutdown::Drain).await;
    for worker in workers {
        worker.await?;
    }
    informers.stop().await;
    Ok(())
}

async fn work(queue: Queue<ObjectKey>, pods: Lister<PodView>, report: mpsc::UnboundedSender<Outcome>) {
    while let Some(item) = queue.next().await {
        let key = item.key().clone();
        let outcome = match look_at(&pods, &key) {
            Ok(()) => {
                item.done();
                Outcome::Processed(key)
            }
            Err(error) if queue.num_requeues(&key) < RETRIES_MAX => {
                println!("{key}: {error}; trying again");
                item.retry();
                continue;
            }
            Err(error) => {
                println!("{key}: {error}; giving up after {RETRIES_MAX} retries");
                item.give_up();
                Outcome::GivenUp(key)
            }
        };
        // Nobody listens any more when the program ends.
        let _ = report.send(outcome);
    }
}

/// The business logic: level-driven, it reads the pod as it is now.
fn look_at(pods: &Lister<PodView>, key: &ObjectKey) -> Result<(), String> {
    match pods.get(key) {
        None => println!("{key}: does not exist any more"),
        Some(_) if key.name.starts_with("bad") => return Err("this pod is bad".into()),
        Some(pod) => println!("{key}: is {}, at version {}", pod.status.phase, pod.meta().resource_version),
    }
    Ok(())
}

async fn create(pods: &Api<Pod>, prefix: &str) -> Result<String, kube::Error> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "generateName": prefix },
        "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
    }))
    .map_err(kube::Error::SerdeError)?;
    Ok(pods.create(&PostParams::default(), &pod).await?.metadata.name.unwrap_or_default())
}
