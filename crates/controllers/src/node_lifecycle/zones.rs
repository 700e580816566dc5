//! Pure: zones, how disrupted they are, and whose turn it is to get a `NoExecute` taint.
//!
//! Follows `handleDisruption` in `node_lifecycle_controller.go` of Kubernetes 1.37.1.

use std::collections::BTreeMap;
use std::time::Duration;

use steersman_base::Istr;

use super::limiter::Limiter;

/// The rates of taints, by the state of a zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) primary: f64,
    pub(super) secondary: f64,
    /// A zone of more nodes is large.
    pub(super) large: usize,
    /// The share of nodes that are not ready from which a zone is disrupted.
    pub(super) threshold: f64,
}

/// The numbers of nodes of a zone, by readiness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) ready: usize,
    pub(super) unready: usize,
}

/// The state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its nodes were not counted yet.
    Initial,
    /// Most nodes are ready.
    Normal,
    /// Many nodes are not.
    Partial,
    /// No node is ready.
    Full,
}

/// The result of a count of all zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is, and was, a zone with ready nodes; or there is no zone.
    Usual,
    /// No zone has a ready node any more: the fault is likely on our side, and nothing is evicted.
    AllLost,
    /// As before, no zone has a ready node.
    StillLost,
    /// A node is ready again, after none was.
    SomeBack,
}

/// The next node of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// No node waits, or none will get its turn in this state of the zone.
    Idle,
    /// A node waits, and it is not its turn yet.
    Wait(Duration),
    /// It is the turn of this node.
    Take(Istr),
}

/// All zones.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<Istr, Zone>);

#[derive(Debug)]
struct Zone {
    state: State,
    limiter: Limiter,
    waiting: Waiting,
}

/// Nodes that wait for their taint, in order; each once.
#[derive(Debug, Default)]
struct Waiting {
    order: BTreeMap<u64, Istr>,
    places: BTreeMap<Istr, u64>,
    last: u64,
}

/// Fewer nodes that are not ready do not disrupt a zone.
const UNREADY_MIN: usize = 3;

// === impl Count ===

impl Count {
    pub(super) const fn size(self) -> usize {
        self.ready + self.unready
    }

    /// Returns the percentage of ready nodes.
    pub(super) fn percentage(self) -> f64 {
        100.0 * self.ready as f64 / self.size() as f64
    }
}

// === impl Rates ===

impl Rates {
    /// Returns the state of a zone.
    pub(super) fn state(&self, count: Count) -> State {
        // Upstream divides single-precision numbers: at the threshold itself that decides.
        let share = count.unready as f32 / count.size() as f32;
        if count.ready == 0 && count.unready > 0 {
            State::Full
        } else if count.unready >= UNREADY_MIN && share >= self.threshold as f32 {
            State::Partial
        } else {
            State::Normal
        }
    }

    /// Returns the rate of a zone of this size and state.
    pub(super) fn rate(&self, state: State, size: usize) -> f64 {
        match state {
            State::Initial | State::Normal | State::Full => self.primary,
            State::Partial if size > self.large => self.secondary,
            State::Partial => 0.0,
        }
    }
}

// === impl Zones ===

impl Zones {
    /// Adds a node to those of its zone that wait for a taint.
    pub(super) fn enqueue(&mut self, zone: &Istr, node: &Istr, rates: &Rates, now: Duration) {
        self.zone(zone, rates, now).waiting.push(node);
    }

    /// Removes a node from those that wait in a zone.
    pub(super) fn remove(&mut self, zone: &Istr, node: &Istr) {
        if let Some(zone) = self.0.get_mut(zone) {
            zone.waiting.remove(node);
        }
    }

    /// Puts a node back, before all others: its taint could not be set.
    pub(super) fn put_back(&mut self, zone: &Istr, node: &Istr) {
        if let Some(zone) = self.0.get_mut(zone) {
            zone.waiting.push_front(node);
        }
    }

    /// Records that the taint of a node that was taken has been set now, which others may have delayed.
    pub(super) fn tainted(&mut self, zone: &Istr, now: Duration) {
        if let Some(zone) = self.0.get_mut(zone) {
            zone.limiter.used(now);
        }
    }

    /// Takes the count of all zones into account: states and rates.
    pub(super) fn assess(&mut self, counts: &BTreeMap<Istr, Count>, rates: &Rates, now: Duration) -> Turn {
        for zone in counts.keys() {
            self.zone(zone, rates, now);
        }
        self.drop_absent(counts, rates, now);
        let states: BTreeMap<&Istr, State> = counts.iter().map(|(zone, count)| (zone, rates.state(*count))).collect();
        let are_full = states.values().all(|state| *state == State::Full);
        let counted = self.0.iter().filter(|(zone, _)| counts.contains_key(*zone));
        let were_full = counted.clone().count() == counted.filter(|(_, zone)| zone.state == State::Full).count();
        match (are_full, were_full) {
            (true, true) if counts.is_empty() => Turn::Usual,
            (true, _) => {
                for zone in self.0.values_mut() {
                    zone.state = State::Full;
                    zone.limiter.set_rate(0.0, now);
                    zone.waiting = Waiting::default();
                }
                if were_full { Turn::StillLost } else { Turn::AllLost }
            }
            (false, _) => {
                for (name, state) in states {
                    let Some(zone) = self.0.get_mut(name) else { continue };
                    if zone.state != state || were_full {
                        zone.state = state;
                        zone.limiter.set_rate(rates.rate(state, counts[name].size()), now);
                    }
                }
                if were_full { Turn::SomeBack } else { Turn::Usual }
            }
        }
    }

    /// Takes the next node of a zone. Nodes that need no taint any more are skipped, and cost nothing.
    pub(super) fn next(&mut self, zone: &Istr, now: Duration, needs_taint: impl Fn(&Istr) -> bool) -> Next {
        let Some(zone) = self.0.get_mut(zone) else { return Next::Idle };
        while let Some(node) = zone.waiting.first() {
            if !needs_taint(&node) {
                zone.waiting.remove(&node);
                continue;
            }
            return match zone.limiter.take(now) {
                Ok(()) => {
                    zone.waiting.remove(&node);
                    Next::Take(node)
                }
                Err(Some(wait)) => Next::Wait(wait),
                // Another count may change the rate.
                Err(None) => Next::Idle,
            };
        }
        Next::Idle
    }

    /// Returns the zones in which nodes wait.
    pub(super) fn waiting(&self) -> Vec<Istr> {
        self.0.iter().filter(|(_, zone)| !zone.waiting.order.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    fn zone(&mut self, name: &Istr, rates: &Rates, now: Duration) -> &mut Zone {
        self.0.entry(name.clone()).or_insert_with(|| Zone {
            state: State::Initial,
            limiter: Limiter::full(rates.primary, now),
            waiting: Waiting::default(),
        })
    }

    /// Forgets zones without counted nodes; one whose token is spent only later, so that it does not get another one for
    /// being absent.
    fn drop_absent(&mut self, counts: &BTreeMap<Istr, Count>, rates: &Rates, now: Duration) {
        self.0.retain(|name, zone| {
            if counts.contains_key(name) {
                return true;
            }
            zone.state = State::Initial;
            zone.limiter.set_rate(rates.primary, now);
            !zone.waiting.order.is_empty() || !zone.limiter.is_full(now)
        });
    }
}

// === impl Waiting ===

/// The beginning of the order: there is room before it for those that are put back.
const FIRST: u64 = 1 << 63;

impl Waiting {
    fn push(&mut self, node: &Istr) {
        if self.places.contains_key(node) {
            return;
        }
        self.last = self.last.max(FIRST) + 1;
        self.put(node, self.last);
    }

    fn push_front(&mut self, node: &Istr) {
        self.remove(node);
        let first = self.order.keys().next().copied().unwrap_or(FIRST);
        self.put(node, first - 1);
    }

    fn put(&mut self, node: &Istr, place: u64) {
        self.order.insert(place, node.clone());
        self.places.insert(node.clone(), place);
    }

    fn first(&self) -> Option<Istr> {
        self.order.values().next().cloned()
    }

    fn remove(&mut self, node: &Istr) {
        if let Some(place) = self.places.remove(node) {
            self.order.remove(&place);
        }
    }
}
