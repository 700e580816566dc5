//! Connection and reflector.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_base::{Meta, ObjectKey, Resource, ResourceVersion};
use steersman_informer::__internal::reflector::{Lists, Reflector, ReflectorOptions};
use steersman_informer::__internal::sink::{Sink, Verdict, WatchEvent};
use steersman_informer::__internal::wire::latest_version;
use steersman_informer::{Selection, Target};
use steersman_model::{DecodeError, Encoded, PodView, View};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Outcome, PATIENCE, Place};

type Objects<V> = BTreeMap<ObjectKey, Arc<V>>;

/// What a store would hold, once it was filled.
struct Held<V>(Arc<Mutex<Option<Objects<V>>>>);

/// A pod that is read as JSON, to be compared with one that came as protobuf.
struct JsonPod(PodView);

fn pods(selection: Selection) -> Target {
    Target { resource: Resource::namespaced("", "v1", "pods", "Pod"), selection }
}

impl Place {
    async fn create_pod(&self, name: &str) -> Outcome {
        let container = json!({"name": "c", "image": "i", "env": [{"name": "A", "value": "\"}]{\\"}]});
        let spec = json!({"containers": [container], "automountServiceAccountToken": false});
        self.post(&self.path("pods"), json!({"metadata": {"name": name, "labels": {"l": name}}, "spec": spec})).await?;
        Ok(())
    }

    fn reflect<V: View>(&self, target: Target, lists: Lists) -> (Held<V>, DropGuard) {
        let stop = CancellationToken::new();
        let held = Held(Arc::default());
        let mut options = ReflectorOptions::default();
        options.lists = lists;
        tokio::spawn(Reflector::new(self.client.clone(), target, options).run(Held(Arc::clone(&held.0)), stop.clone()));
        (held, stop.drop_guard())
    }
}

impl<V: View> Held<V> {
    /// What is held once it is as it should be.
    async fn until(&self, right: impl Fn(&Objects<V>) -> bool) -> Result<Objects<V>, Elapsed> {
        let waiting = async {
            loop {
                let now = self.0.lock().clone();
                if now.as_ref().is_some_and(&right) {
                    return now.unwrap_or_default();
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await
    }
}

impl<V: View> Sink<V> for Held<V> {
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.0.lock().as_ref()?.get(key).cloned()
    }

    fn replace(&mut self, objects: Vec<Arc<V>>, _: ResourceVersion) {
        *self.0.lock() = Some(objects.into_iter().map(|object| (object.meta().key(), object)).collect());
    }

    fn apply(&mut self, event: WatchEvent<V>) -> Verdict {
        let mut held = self.0.lock();
        let objects = held.get_or_insert_default();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => objects.insert(object.meta().key(), object),
            WatchEvent::Deleted(object) => objects.remove(&object.meta().key()),
            WatchEvent::Unreadable { .. } => return Verdict::NoNews,
        };
        Verdict::News
    }

    fn reached(&mut self, _: ResourceVersion) {}
}

impl View for JsonPod {
    fn meta(&self) -> &Meta {
        self.0.meta()
    }
    fn decode(body: Encoded<'_>) -> Result<Self, DecodeError> {
        PodView::decode(body).map(Self)
    }
}

#[tokio::test]
async fn streams_and_pages_in_protobuf_and_json_show_the_same_world() -> Outcome {
    let place = Place::new("formats").await?;
    for count in 0..3 {
        place.create_pod(&format!("listed-{count}")).await?;
    }
    let target = pods(Selection::namespace(&place.namespace));
    let (streamed, _one) = place.reflect::<PodView>(target.clone(), Lists::Streamed);
    let (paged, _two) = place.reflect::<PodView>(target.clone(), Lists::Paged);
    let (json, _three) = place.reflect::<JsonPod>(target.clone(), Lists::Streamed);
    let (json_paged, _four) = place.reflect::<JsonPod>(target.clone(), Lists::Paged);
    let (metadata, _five) = place.reflect::<Meta>(target.clone(), Lists::Streamed);
    let (metadata_paged, _six) = place.reflect::<Meta>(target.clone(), Lists::Paged);
    streamed.until(|pods| pods.len() == 3).await?;

    for count in 0..3 {
        place.create_pod(&format!("watched-{count}")).await?;
    }
    let path = format!("{}/listed-0?gracePeriodSeconds=0", place.path("pods"));
    place.client.request::<Value>(Request::delete(path).body(Vec::new())?).await?;
    place.create_pod("last").await?;

    let last = ObjectKey::new(&place.namespace, "last");
    let pods = streamed.until(|pods| pods.contains_key(&last)).await?;
    assert_eq!(pods.len(), 6);
    let now = latest_version(&place.client, &target, PATIENCE).await?;
    assert!(now.has_reached(&pods[&last].metadata.resource_version), "the latest version covers what was written");
    assert!(paged.until(|pods| pods.contains_key(&last)).await?.values().eq(pods.values()));
    for json in [json, json_paged] {
        let same = json.until(|pods| pods.contains_key(&last)).await?;
        assert!(same.values().map(|pod| &pod.0).eq(pods.values().map(|pod| &**pod)));
    }
    let metadata = metadata.until(|pods| pods.contains_key(&last)).await?;
    assert!(metadata_paged.until(|pods| pods.contains_key(&last)).await?.values().eq(metadata.values()));
    assert!(metadata.keys().eq(pods.keys()));
    Ok(())
}

#[tokio::test]
async fn a_write_does_not_wait_behind_more_watches_than_a_connection_holds() -> Outcome {
    let place = Place::new("lanes").await?;
    let mut watches = Vec::new();
    for count in 0..150 {
        let selection = Selection::namespace(&place.namespace).with_labels(&format!("l!=none-{count}"));
        watches.push(place.reflect::<Meta>(pods(selection), Lists::Streamed));
    }
    for (held, _) in &watches {
        held.until(|_| true).await?;
    }
    timeout(Duration::from_secs(5), place.create_pod("seen-by-all")).await??;
    for (held, _) in &watches {
        held.until(|pods| pods.len() == 1).await?;
    }
    Ok(())
}
