//! Which faults act on which request, at which time: a question to the plan, not to chance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::plan::{Fault, Millis, Target, Verb, Window};

/// The faults of a world, and how often each acted. Clones are the same.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    windows: Vec<Window>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often each fault acted, by name.
    acted: BTreeMap<&'static str, u64>,
    /// How many writes there were under a window that kills; none left when it has killed.
    kills: BTreeMap<usize, Option<u32>>,
}

/// The author and the target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The number of the manager; none for nodes and users.
    pub manager: Option<usize>,
    /// The controller; none for what a manager does for all of them.
    pub controller: Option<String>,
    /// What it does.
    pub verb: Verb,
    /// To what, as in `pods` or `deployments.apps`; empty for what is no resource, such as discovery.
    pub resource: String,
}

// === impl Faults ===

impl Faults {
    /// The faults of a plan, in a world that begins now.
    #[must_use]
    pub fn new(windows: Vec<Window>) -> Self {
        Self(Arc::new(Shared { start: Instant::now(), windows, state: Mutex::default() }))
    }

    /// The time since the world began.
    #[must_use]
    pub fn now(&self) -> Millis {
        u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// The instant of a time.
    #[must_use]
    pub fn instant(&self, at: Millis) -> Instant {
        self.0.start + Duration::from_millis(at)
    }

    /// The windows that are open now for such a request.
    pub fn open<'a>(&'a self, about: &'a About) -> impl Iterator<Item = &'a Window> + 'a {
        let now = self.now();
        self.0.windows.iter().filter(move |window| window.from <= now && now < window.to && window.on.covers(about))
    }

    /// The first beginning after now of a window for such a request that `which` wants.
    pub fn next_beginning(&self, about: &About, which: impl Fn(Fault) -> bool) -> Option<(Millis, Fault)> {
        let now = self.now();
        let coming = self.0.windows.iter().filter(|window| window.from > now && which(window.fault));
        coming
            .filter(|window| window.on.covers(about))
            .map(|window| (window.from, window.fault))
            .min_by_key(|(from, _)| *from)
    }

    /// Until when a manager is stopped, if it is.
    #[must_use]
    pub fn frozen_until(&self, manager: Option<usize>) -> Option<Millis> {
        let now = self.now();
        let manager = manager?;
        let frozen = self.0.windows.iter().filter(|window| window.fault == Fault::Frozen);
        frozen
            .filter(|window| window.from <= now && now < window.to && window.on.manager == Some(manager))
            .map(|window| window.to)
            .max()
    }

    /// Notes that a fault acted.
    pub fn acted(&self, fault: Fault) {
        self.acted_as(fault.name());
    }

    /// Notes that something acted that is no window.
    pub fn acted_as(&self, name: &'static str) {
        *self.0.state.lock().acted.entry(name).or_default() += 1;
    }

    /// How often each fault acted.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.state.lock().acted.clone()
    }

    /// Counts a write. Returns for how long the manager is dead if that was its last one.
    #[must_use]
    pub fn dies_of_write(&self, about: &About) -> Option<Millis> {
        let now = self.now();
        let mut state = self.0.state.lock();
        for (number, window) in self.0.windows.iter().enumerate() {
            let Fault::Killed { writes, away } = window.fault else { continue };
            if !window.on.covers(about) || now < window.from || window.to <= now {
                continue;
            }
            let count = state.kills.entry(number).or_insert(Some(0));
            let Some(seen) = count else { continue };
            *seen += 1;
            if *seen >= writes {
                *count = None;
                *state.acted.entry(window.fault.name()).or_default() += 1;
                return Some(away);
            }
        }
        None
    }

    /// When a manager dies next in any case.
    #[must_use]
    pub fn next_death(&self, manager: usize) -> Option<Millis> {
        let now = self.now();
        let state = self.0.state.lock();
        let kills = self.0.windows.iter().enumerate().filter(|(number, window)| {
            let is_kill = matches!(window.fault, Fault::Killed { .. });
            is_kill && window.on.manager == Some(manager) && window.to >= now && state.kills.get(number) != Some(&None)
        });
        kills.map(|(_, window)| window.to).min()
    }

    /// Whether a manager dies at this time without enough writes, and for how long it is dead.
    #[must_use]
    pub fn dies_at_last(&self, manager: usize, at: Millis) -> Option<Millis> {
        let mut state = self.0.state.lock();
        for (number, window) in self.0.windows.iter().enumerate() {
            let Fault::Killed { away, .. } = window.fault else { continue };
            let is_spent = state.kills.get(&number) == Some(&None);
            if window.to == at && window.on.manager == Some(manager) && !is_spent {
                state.kills.insert(number, None);
                *state.acted.entry(window.fault.name()).or_default() += 1;
                return Some(away);
            }
        }
        None
    }
}

// === impl Target ===

impl Target {
    /// Whether a request is one of those that are meant.
    #[must_use]
    pub fn covers(&self, about: &About) -> bool {
        let is =
            |wanted: &Option<String>, got: Option<&str>| wanted.as_deref().is_none_or(|wanted| got == Some(wanted));
        self.manager.is_none_or(|manager| about.manager == Some(manager))
            && is(&self.controller, about.controller.as_deref())
            && is(&self.resource, Some(&about.resource))
            && self.verb.is_none_or(|verb| verb == about.verb)
    }
}

// === impl Verb ===

impl Verb {
    /// Whether it changes something.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}
