//! The state of the simulated nodes and their faults, shared by the parts of this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::{Bucket, Istr, MicroTime, ObjectKey};
use tokio::sync::Notify;

use crate::kubelet::budget;
use crate::node::VERSION;
use crate::options::NodesOptions;

/// The simulated nodes. Cheap to clone; clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct Fleet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The budget of events.
    budget: Mutex<Bucket>,
    /// Notified when a node has changed.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    machines: BTreeMap<Istr, Machine>,
    /// Pods that a fault keeps from being ready.
    unready: BTreeSet<ObjectKey>,
}

/// One simulated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its number; its addresses follow from it.
    pub(crate) number: usize,
    /// The kubelet version that it reports.
    pub(crate) version: Istr,
    pub(crate) health: Health,
    /// Whether its annotation keeps it silent.
    pub(crate) is_silenced: bool,
    pub(crate) registration: Registration,
    /// Whether it was last seen cordoned.
    pub(crate) cordoned: bool,
    /// The time at which its lease was last renewed.
    pub(crate) renewed: Option<MicroTime>,
    /// The time at which its status was last written.
    pub(crate) reported: Option<MicroTime>,
}

/// The health of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// Its kubelet does nothing and sends no heartbeats.
    Silent,
    /// It is being removed, or is removed.
    Removed,
}

/// Whether the cluster knows a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registration {
    /// It was not observed yet.
    Missing,
    /// The cache showed it. If it disappears after that, somebody deleted it.
    Seen,
}

// === impl Fleet ===

impl Fleet {
    pub(crate) fn new(options: &NodesOptions, now: MicroTime) -> Self {
        let numbers = options.first..options.first + options.count;
        let machines = numbers.map(|number| (Istr::interned(&options.name(number)), Machine::new(number))).collect();
        let state = Mutex::new(State { machines, unready: BTreeSet::new() });
        Self(Arc::new(Shared { state, budget: Mutex::new(budget(now)), changed: Notify::new() }))
    }

    pub(crate) fn names(&self) -> Vec<Istr> {
        self.0.state.lock().machines.keys().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Machine> {
        self.0.state.lock().machines.get(name).cloned()
    }

    /// Returns the node, if its kubelet works.
    pub(crate) fn working(&self, name: &str) -> Option<Machine> {
        self.get(name).filter(|machine| machine.health == Health::Well)
    }

    /// Returns the nodes whose kubelets work and that the cluster knows.
    pub(crate) fn working_nodes(&self) -> Vec<(Istr, Machine)> {
        let state = self.0.state.lock();
        let beats = |machine: &Machine| machine.health == Health::Well && machine.registration == Registration::Seen;
        let working_nodes = state.machines.iter().filter(|(_, machine)| beats(machine));
        working_nodes.map(|(name, machine)| (name.clone(), machine.clone())).collect()
    }

    /// Changes a node, and notifies waiters. Returns whether the node exists.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Machine)) -> bool {
        let is_same = {
            let mut state = self.0.state.lock();
            let Some(machine) = state.machines.get_mut(name) else { return false };
            let before = machine.clone();
            change(machine);
            *machine == before
        };
        if !is_same {
            self.0.changed.notify_one();
        }
        true
    }

    /// Silences a node whose annotation says so, and resumes one whose annotation was removed.
    pub(crate) fn obey(&self, name: &str, silent: bool) {
        self.change(name, |machine| {
            if machine.is_silenced == silent {
                return;
            }
            machine.is_silenced = silent;
            match (silent, machine.health) {
                (true, Health::Well) => machine.health = Health::Silent,
                (false, Health::Silent) => {
                    machine.health = Health::Well;
                    // It sends a heartbeat at once.
                    machine.renewed = None;
                }
                _ => {}
            }
        });
    }

    /// Changes a node without notifying waiters.
    pub(crate) fn note(&self, name: &str, note: impl FnOnce(&mut Machine)) {
        if let Some(machine) = self.0.state.lock().machines.get_mut(name) {
            note(machine);
        }
    }

    /// Waits until a node has changed.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Whether this many events may be sent: a budget that all nodes share, so that a flood of normal events stays
    /// small.
    pub(crate) fn may_send(&self, count: usize, now: MicroTime) -> bool {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.0.budget.lock().try_take(count, now.since_epoch())
    }

    pub(crate) fn is_unready(&self, pod: &ObjectKey) -> bool {
        let state = self.0.state.lock();
        !state.unready.is_empty() && state.unready.contains(pod)
    }

    pub(crate) fn set_unready(&self, pod: &ObjectKey, unready: bool) {
        let mut state = self.0.state.lock();
        if unready {
            state.unready.insert(pod.clone());
        } else {
            state.unready.remove(pod);
        }
    }
}

// === impl Machine ===

impl Machine {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            number,
            version: Istr::interned(VERSION),
            health: Health::Well,
            is_silenced: false,
            registration: Registration::Missing,
            cordoned: false,
            renewed: None,
            reported: None,
        }
    }
}
