//! Random operations against a model that keeps everything and compresses nothing until it is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use steersman_base::{Meta, ObjectKey};

use super::{Shelf, line};
use crate::delta_fifo::state::State;
use crate::delta_fifo::{Delta, End, Known, ListInfo};
use crate::sink::{Verdict, WatchEvent};
use crate::test_objects::{key, object};

/// What can happen to a cluster of four names, and to the queue.
#[derive(Clone, Debug)]
enum Step {
    /// Create the name, or update what has it.
    Put(u8),
    Delete(u8),
    /// The watch breaks: events are lost until the next list.
    Disconnect,
    List,
    Resync,
    Bookmark,
    /// An old event comes again.
    Replay(u8),
    Pop(u8),
    FailingPop(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..4).prop_map(Step::Put),
        3 => (0u8..4).prop_map(Step::Delete),
        1 => Just(Step::Disconnect),
        2 => Just(Step::List),
        1 => Just(Step::Resync),
        1 => Just(Step::Bookmark),
        1 => any::<u8>().prop_map(Step::Replay),
        3 => (1u8..5).prop_map(Step::Pop),
        1 => (1u8..5).prop_map(Step::FailingPop),
    ];
    prop::collection::vec(step, 1..120)
}

/// The cluster itself, and what the queue must have of it.
#[derive(Default)]
struct World {
    version: u32,
    uids: u32,
    cluster: BTreeMap<ObjectKey, Arc<Meta>>,
    history: Vec<(bool, Arc<Meta>)>,
    connected: bool,
}

/// The queue in its simplest form: a list of (key, every delta), compressed by rules that are looked up one by one.
#[derive(Default)]
struct Model {
    queue: Vec<(ObjectKey, Vec<Plain>)>,
    list: bool,
    synced: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Plain {
    what: char,
    object: Arc<Meta>,
}

impl Model {
    fn push(&mut self, what: char, object: &Arc<Meta>) {
        let delta = Plain { what, object: Arc::clone(object) };
        match self.queue.iter_mut().find(|(held, _)| *held == object.key()) {
            Some((_, deltas)) => {
                deltas.push(delta);
                compress(deltas);
            }
            None => self.queue.push((object.key(), vec![delta])),
        }
    }

    fn newest(&self, key: &ObjectKey, store: &Shelf) -> Option<Arc<Meta>> {
        match self.queue.iter().find(|(held, _)| held == key) {
            Some((_, deltas)) => {
                let last = deltas.last().unwrap();
                (!"DM".contains(last.what)).then(|| Arc::clone(&last.object))
            }
            None => store.known(key),
        }
    }

    fn replace(&mut self, objects: &[Arc<Meta>], store: &Shelf) {
        let mut before = std::mem::take(&mut self.queue);
        for object in objects {
            let at = before.iter().position(|(held, _)| *held == object.key());
            if let Some(at) = at {
                self.queue.push(before.remove(at));
            }
            self.push('R', object);
        }
        for (key, deltas) in before {
            self.queue.push((key.clone(), deltas));
            if let Some(last) = self.newest(&key, store) {
                self.push('M', &last);
            }
        }
        for (key, held) in &store.0 {
            if self.queue.iter().all(|(other, _)| other != key) {
                self.push('M', held);
            }
        }
        self.list = true;
    }

    fn take(&mut self, keys_max: usize) -> Option<Vec<String>> {
        if self.queue.is_empty() && !self.list {
            return None;
        }
        let count = if self.list { self.queue.len() } else { keys_max.min(self.queue.len()) };
        self.synced |= self.list;
        self.list = false;
        Some(self.queue.drain(..count).map(|(_, deltas)| show(&deltas)).collect())
    }
}

fn show(deltas: &[Plain]) -> String {
    let lines: Vec<_> =
        deltas.iter().map(|delta| format!("{}:{}", delta.what, crate::test_objects::show(&delta.object))).collect();
    lines.join(" ")
}

/// Applies the rules of the module until none applies.
fn compress(deltas: &mut Vec<Plain>) {
    loop {
        let uids: Vec<_> = deltas.iter().map(|delta| delta.object.uid.clone()).collect();
        let merged = (1..deltas.len()).find_map(|at| {
            let left = &deltas[at - 1];
            let right = &deltas[at];
            if uids[at - 1] != uids[at] {
                return None;
            }
            match (left.what, right.what) {
                ('A', 'U' | 'R' | 'S' | 'A') => Some((at, Plain { what: 'A', ..right.clone() })),
                ('U' | 'R' | 'S', 'U' | 'R' | 'S') => Some((at, right.clone())),
                ('D', 'M') => Some((at, left.clone())),
                ('M' | 'D', 'D') | ('M', 'M') => Some((at, right.clone())),
                _ => None,
            }
        });
        if let Some((at, merged)) = merged {
            deltas.splice(at - 1..=at, [merged]);
            continue;
        }
        let passing = uids.iter().find(|uid| **uid != uids[0] && *uid != uids.last().unwrap()).cloned();
        let Some(passing) = passing else { return };
        deltas.retain(|delta| delta.object.uid != passing);
    }
}

impl World {
    fn put(&mut self, name: u8) -> Arc<Meta> {
        self.version += 1;
        let key = key(&format!("n{name}"));
        let uid = self.cluster.get(&key).map(|held| held.uid.to_string());
        let uid = uid.unwrap_or_else(|| {
            self.uids += 1;
            self.uids.to_string()
        });
        let put = object(&format!("{}#{uid}@{}", key.name, self.version));
        self.cluster.insert(key, Arc::clone(&put));
        put
    }

    fn delete(&mut self, name: u8) -> Option<Arc<Meta>> {
        let gone = self.cluster.remove(&key(&format!("n{name}")))?;
        self.version += 1;
        Some(object(&format!("{}#{}@{}", gone.name, gone.uid, self.version)))
    }
}

/// Everything side by side: the cluster, the queue, its model, and the stores that both feed.
#[derive(Default)]
struct Run {
    world: World,
    fifo: State<Meta>,
    model: Model,
    store: Shelf,
}

impl Run {
    fn event(&mut self, is_gone: bool, object: &Arc<Meta>) {
        self.world.history.push((is_gone, Arc::clone(object)));
        if !self.world.connected {
            return;
        }
        let known = self.model.newest(&object.key(), &self.store);
        let what = match (is_gone, &known) {
            (true, _) => 'D',
            (false, Some(known)) if known.uid == object.uid => 'U',
            (false, _) => 'A',
        };
        self.model.push(what, object);
        let event = match (is_gone, what) {
            (true, _) => WatchEvent::Deleted(Arc::clone(object)),
            (false, 'A') => WatchEvent::Added(Arc::clone(object)),
            (false, _) => WatchEvent::Modified(Arc::clone(object)),
        };
        assert_eq!(self.fifo.apply(event, &self.store), Verdict::News, "an event in its turn is news");
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Put(name) => {
                let object = self.world.put(*name);
                self.event(false, &object);
            }
            Step::Delete(name) => {
                if let Some(object) = self.world.delete(*name) {
                    self.event(true, &object);
                }
            }
            Step::Disconnect => self.world.connected = false,
            Step::List => {
                self.world.connected = true;
                let objects: Vec<_> = self.world.cluster.values().cloned().collect();
                let list = ListInfo { version: self.world.version.to_string().as_str().into(), begun: None };
                self.fifo.replace(objects.clone(), list, &self.store);
                self.model.replace(&objects, &self.store);
            }
            Step::Resync => {
                self.fifo.resync(&self.store);
                for (key, held) in &self.store.0 {
                    if self.model.queue.iter().all(|(other, _)| other != key) {
                        self.model.push('S', held);
                    }
                }
            }
            Step::Bookmark if self.world.connected => {
                self.fifo.advance(self.world.version.to_string().as_str().into());
            }
            Step::Bookmark => {}
            Step::Replay(which) => self.replay(*which),
            Step::Pop(keys_max) => self.pop(usize::from(*keys_max)),
            Step::FailingPop(keys_max) => {
                let before = self.model.queue.clone();
                let Some(popped) = self.fifo.take(usize::from(*keys_max)) else { return };
                let count = popped.len();
                self.fifo.put_back(popped);
                self.model.queue = before;
                self.model.queue.rotate_left(count);
            }
        }
    }

    /// A change that everybody has long seen comes again. (An old *Added* of something gone is beyond what a watch can
    /// send, and beyond what can be distinguished from a new one.)
    fn replay(&mut self, which: u8) {
        let Some((is_gone, object)) = self.world.history.get(usize::from(which) % self.world.history.len().max(1))
        else {
            return;
        };
        let is_last = self.world.cluster.get(&object.key()).is_some_and(|held| held.uid == object.uid);
        if !self.world.connected || (*is_gone && is_last) || (!*is_gone && !self.fifo.has_synced()) {
            return;
        }
        let event = if *is_gone { WatchEvent::Deleted } else { WatchEvent::Modified }(Arc::clone(object));
        let known = self.model.newest(&object.key(), &self.store);
        if *is_gone && known.is_some_and(|known| known.uid == object.uid) {
            return;
        }
        assert_ne!(self.fifo.apply(event, &self.store), Verdict::News, "{} is old", crate::test_objects::show(object));
    }

    fn pop(&mut self, keys_max: usize) {
        let popped = self.fifo.take(keys_max);
        let Some(mut popped) = popped else {
            assert_eq!(self.model.take(keys_max), None);
            return;
        };
        let mut lines = Vec::new();
        let reached = popped.reached.clone();
        for deltas in popped.drain() {
            assert!(deltas.as_slice().len() <= 4, "{deltas:?}");
            lines.push(deltas.as_slice().iter().map(line).collect::<Vec<_>>().join(" "));
            for delta in deltas {
                match (&delta, delta.state()) {
                    (_, Some(state)) => drop(self.store.0.insert(state.key(), Arc::clone(state))),
                    (Delta::Deleted { last, end: End::Observed | End::Missed }, None) => {
                        self.store.0.remove(&last.key());
                    }
                    _ => unreachable!(),
                }
            }
        }
        assert_eq!(lines, self.model.take(keys_max).unwrap_or_default());
        assert_eq!(self.fifo.has_synced(), self.model.synced);
        if let Some(reached) = reached
            && self.world.connected
            && reached.as_str() == self.world.version.to_string()
        {
            assert_eq!(self.store.0, self.world.cluster, "at version {reached} the store is the cluster");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn the_queue_behaves_like_its_model_and_the_store_converges(steps in steps()) {
        let mut run = Run::default();
        for step in &steps {
            run.step(step);
        }
        run.step(&Step::List);
        run.pop(usize::MAX);
        prop_assert_eq!(&run.store.0, &run.world.cluster);
        prop_assert!(run.fifo.is_empty());
    }
}
