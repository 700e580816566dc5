//! A sink that writes down what it is told, and holds what a store would hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{ObjectKey, ResourceVersion};
use steersman_informer::__internal::sink::{Sink, WatchEvent};
use steersman_model::View;

pub struct Recorder<V>(Arc<Mutex<Inner<V>>>);

struct Inner<V> {
    told: Vec<String>,
    objects: BTreeMap<ObjectKey, Arc<V>>,
    reached: ResourceVersion,
}

impl<V: View> Recorder<V> {
    pub fn told(&self) -> Vec<String> {
        self.0.lock().told.clone()
    }

    pub fn holds(&self) -> Vec<String> {
        self.0.lock().objects.values().map(|object| shown(&**object)).collect()
    }

    pub fn objects(&self) -> Vec<Arc<V>> {
        self.0.lock().objects.values().cloned().collect()
    }

    fn note(&self, text: String, version: &ResourceVersion) {
        let mut inner = self.0.lock();
        // A deletion whose last state cannot be read brings one from before.
        let is_deletion = text.starts_with('-');
        inner.told.push(text);
        if is_deletion && inner.reached.is_newer_than(version) {
            return;
        }
        assert!(!inner.reached.is_newer_than(version) || inner.told.len() == 1, "back in time: {:?}", inner.told);
        inner.reached = version.clone();
    }
}

fn shown<V: View>(object: &V) -> String {
    format!("{}@{}", object.meta().name, object.meta().resource_version)
}

impl<V> Default for Recorder<V> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            told: Vec::new(),
            objects: BTreeMap::new(),
            reached: ResourceVersion::default(),
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
        self.0.lock().objects.get(key).cloned()
    }

    fn replace(&mut self, objects: Vec<Arc<V>>, version: ResourceVersion) {
        let mut text = format!("list {version}:");
        for object in &objects {
            text = format!("{text} {}", shown(&**object));
        }
        self.note(text, &version);
        self.0.lock().objects = objects.into_iter().map(|object| (object.meta().key(), object)).collect();
    }

    fn apply(&mut self, event: WatchEvent<V>) {
        let (text, object, stays) = match event {
            WatchEvent::Added(object) => (format!("+ {}", shown(&*object)), object, true),
            WatchEvent::Modified(object) => (format!("~ {}", shown(&*object)), object, true),
            WatchEvent::Deleted(object) => (format!("- {}", shown(&*object)), object, false),
        };
        self.note(text, &object.meta().resource_version);
        let objects = &mut self.0.lock().objects;
        if stays {
            objects.insert(object.meta().key(), object);
        } else {
            objects.remove(&object.meta().key());
        }
    }

    fn reached(&mut self, version: ResourceVersion) {
        self.note(format!("at {version}"), &version);
    }
}
