//! A sink that writes down what it receives, and holds what a store would hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{ObjectKey, ResourceVersion};
use steersman_informer::__internal::delta_fifo::state::State;
use steersman_informer::__internal::delta_fifo::{Known, ListInfo, Popped};
use steersman_informer::__internal::sink::{Sink, Verdict, WatchEvent};
use steersman_informer::__internal::wire::Peeked;
use steersman_model::View;

pub struct Recorder<V>(Arc<Mutex<Inner<V>>>);

struct Inner<V> {
    reported: Vec<String>,
    objects: Objects<V>,
    reached: ResourceVersion,
    /// Decides what is stale, as it does for a store.
    fifo: State<V>,
}

struct Objects<V>(BTreeMap<ObjectKey, Arc<V>>);

impl<V: View> Recorder<V> {
    pub fn reported(&self) -> Vec<String> {
        self.0.lock().reported.clone()
    }

    pub fn holds(&self) -> Vec<String> {
        self.0.lock().objects.0.values().map(|object| shown(&**object)).collect()
    }

    pub fn objects(&self) -> Vec<Arc<V>> {
        self.0.lock().objects.0.values().cloned().collect()
    }

    fn note(&self, text: String, version: &ResourceVersion) {
        let mut inner = self.0.lock();
        // A deletion whose last state cannot be read brings one from before.
        let is_deletion = text.starts_with('-');
        inner.reported.push(text);
        if is_deletion && inner.reached.is_newer_than(version) {
            return;
        }
        assert!(
            !inner.reached.is_newer_than(version) || inner.reported.len() == 1,
            "back in time: {:?}",
            inner.reported
        );
        inner.reached = version.clone();
    }
}

fn shown<V: View>(object: &V) -> String {
    format!("{}@{}", object.meta().name, object.meta().resource_version)
}

impl<V: View> Default for Recorder<V> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            reported: Vec::new(),
            objects: Objects(BTreeMap::new()),
            reached: ResourceVersion::default(),
            fifo: State::new(),
        })))
    }
}

impl<V> Clone for Recorder<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V: View> Sink<V> for Recorder<V> {
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.0.lock().objects.known(key)
    }

    fn replace(&mut self, objects: Vec<Arc<V>>, version: ResourceVersion) {
        let mut text = format!("list {version}:");
        for object in &objects {
            text = format!("{text} {}", shown(&**object));
        }
        self.note(text, &version);
        let inner = &mut *self.0.lock();
        inner.fifo.replace(objects.clone(), ListInfo { version, begun: None }, &inner.objects);
        inner.fifo.take(usize::MAX);
        inner.objects.0 = objects.into_iter().map(|object| (object.meta().key(), object)).collect();
    }

    fn apply(&mut self, event: WatchEvent<V>) -> Verdict {
        let event_text = match &event {
            WatchEvent::Added(object) => format!("+ {}", shown(&**object)),
            WatchEvent::Modified(object) => format!("~ {}", shown(&**object)),
            WatchEvent::Deleted(object) => format!("- {}", shown(&**object)),
            WatchEvent::Unreadable { object, .. } => format!("at {}", object.resource_version),
        };
        let object = event.object().cloned();
        let is_deletion = matches!(event, WatchEvent::Deleted(_));
        let Peeked { key, resource_version: version, .. } = event.identity();
        let (verdict, ended) = {
            let inner = &mut *self.0.lock();
            let verdict = inner.fifo.apply(event, &inner.objects);
            let mut popped = inner.fifo.take(usize::MAX);
            let deltas = popped.as_mut().and_then(Popped::next_key);
            (verdict, deltas.filter(|_| object.is_none()).map(|deltas| deltas.newest().object().clone()))
        };
        if verdict == Verdict::Stale {
            return verdict;
        }
        if let Some(last) = ended {
            self.note(format!("- {}", shown(&*last)), &last.meta().resource_version);
            self.0.lock().objects.0.remove(&key);
        }
        if object.is_some() || !(version.is_empty() || self.0.lock().reached.is_newer_than(&version)) {
            self.note(event_text, &version);
        }
        match object {
            Some(_) if is_deletion => drop(self.0.lock().objects.0.remove(&key)),
            Some(object) => drop(self.0.lock().objects.0.insert(key, object)),
            None => {}
        }
        verdict
    }

    fn reached(&mut self, version: ResourceVersion) {
        self.0.lock().fifo.advance(version.clone());
        self.note(format!("at {version}"), &version);
    }
}

impl<V> Known<V> for Objects<V> {
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.0.get(key).cloned()
    }

    fn each_known(&self, look: &mut dyn FnMut(&Arc<V>)) {
        self.0.values().for_each(look);
    }
}
