//! The number of objects of the resources that quotas count, and the queue of quotas to count again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use steersman_base::quota::DeviceClasses;
use steersman_base::{Istr, ObjectKey, watch};
use steersman_informer::{Change, SharedInformer};
use steersman_model::HasMeta;
use steersman_model::resource::{DeviceClassView, ResourceClaimView};
use steersman_runtime::source::Feed;

use super::plan::Counted;

/// The time that quotas wait after something was freed: many objects are deleted at once.
pub(super) const GATHERED_FOR: Duration = Duration::from_millis(50);

/// The state of the resources that quotas count.
pub(super) struct Monitored {
    counts: Mutex<BTreeMap<Counted, Monitor>>,
    /// Changes with every monitor that is filled, started or stopped.
    progress: watch::Sender<u64>,
    /// The queue, once the workers have started.
    feed: OnceLock<Feed>,
    /// The caches of claims of devices, once a quota needs them and they are filled.
    devices: OnceLock<DeviceCaches>,
}

/// The caches of claims of devices and of their classes.
pub(super) struct DeviceCaches {
    pub(super) claims: SharedInformer<ResourceClaimView>,
    pub(super) classes: SharedInformer<DeviceClassView>,
}

/// The state of one resource.
pub(super) enum Monitor {
    /// The server does not serve the resource.
    NotServed,
    /// The objects are being listed, and counted here.
    Filling(Arc<Counts>),
    /// The objects are counted.
    Filled(Arc<Counts>),
}

/// The number of objects by namespace.
#[derive(Default)]
pub(super) struct Counts(Mutex<HashMap<Istr, usize, RandomState>>);

/// The number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Known(usize),
    /// The resource is not served, or cannot be listed.
    Unknown,
    /// It will be known soon.
    NotYet,
}

// === impl Monitored ===

impl Default for Monitored {
    fn default() -> Self {
        let progress = watch::Sender::new(0);
        Self { counts: Mutex::default(), progress, feed: OnceLock::new(), devices: OnceLock::new() }
    }
}

impl Monitored {
    /// Enqueues quotas from now on. Those of before are enqueued with the start of the workers.
    pub(super) fn begin(&self, feed: Feed) {
        // Workers start once.
        let _ = self.feed.set(feed);
    }

    /// Counts quotas again, after some time.
    pub(super) fn count_again(&self, quotas: Vec<ObjectKey>, after: Duration) {
        let Some(feed) = self.feed.get() else { return };
        for key in quotas {
            feed.add_after(key, after.max(GATHERED_FOR));
        }
    }

    /// Notes the state of a resource; `None` if no quota counts it any more.
    pub(super) fn set(&self, resource: &Counted, monitor: Option<Monitor>) {
        {
            let mut counts = self.counts.lock();
            match monitor {
                Some(monitor) => drop(counts.insert(resource.clone(), monitor)),
                None => drop(counts.remove(resource)),
            }
        }
        self.progress.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Notes that the list of a monitor is complete, and returns whether it is; a monitor that was stopped or replaced before has
    /// counted only some of the objects.
    pub(super) fn filled(&self, resource: &Counted, counts: &Arc<Counts>) -> bool {
        let is_filled = {
            let mut held = self.counts.lock();
            let monitor = held.get_mut(resource);
            match monitor {
                Some(monitor) if monitor.is_filling(counts) => {
                    *monitor = Monitor::Filled(Arc::clone(counts));
                    true
                }
                _ => false,
            }
        };
        if is_filled {
            self.progress.send_modify(|count| *count = count.wrapping_add(1));
        }
        is_filled
    }

    /// Returns the number of objects of a resource in a namespace.
    pub(super) fn number(&self, resource: &Counted, namespace: &Istr) -> Number {
        match self.counts.lock().get(resource) {
            None | Some(Monitor::Filling(_)) => Number::NotYet,
            Some(Monitor::NotServed) => Number::Unknown,
            Some(Monitor::Filled(counts)) => Number::Known(counts.of(namespace)),
        }
    }

    /// Notes the caches of claims of devices, which are filled.
    pub(super) fn set_devices(&self, caches: DeviceCaches) {
        // They are started once.
        let _ = self.devices.set(caches);
        self.progress.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns the claims of devices of a namespace, if they are known.
    pub(super) fn device_claims(&self, namespace: &str) -> Option<Vec<Arc<ResourceClaimView>>> {
        Some(self.devices.get()?.claims.lister().namespace(namespace).list())
    }

    /// Returns the classes of devices; none before they are known.
    pub(super) fn classes(&self) -> DeviceClasses {
        let classes = self.devices.get().map(|devices| devices.classes.lister().list()).unwrap_or_default();
        classes.iter().map(|class| (class.meta().name.clone(), class.spec.extended_resource_name.clone())).collect()
    }

    /// Waits until the state of some resource changes.
    pub(super) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }
}

// === impl Monitor ===

impl Monitor {
    fn is_filling(&self, counts: &Arc<Counts>) -> bool {
        matches!(self, Self::Filling(filling) if Arc::ptr_eq(filling, counts))
    }
}

// === impl Counts ===

impl Counts {
    /// Counts a change. Each object is added once, and deleted once.
    pub(super) fn take_in(&self, change: &Change<dyn HasMeta>) {
        let mut counts = self.0.lock();
        match change {
            Change::Added { new, .. } => *counts.entry(new.meta().namespace.clone()).or_default() += 1,
            Change::Updated { .. } => {}
            Change::Deleted { last, .. } => {
                if let Some(count) = counts.get_mut(&last.meta().namespace) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        counts.remove(&last.meta().namespace);
                    }
                }
            }
        }
    }

    fn of(&self, namespace: &Istr) -> usize {
        self.0.lock().get(namespace).copied().unwrap_or_default()
    }
}
