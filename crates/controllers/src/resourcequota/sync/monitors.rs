//! The monitors: what frees a part of a quota, and the number of objects of any resource that a quota counts.
//!
//! 1. Pods, Services and claims are watched whole; of other resources the metadata, and only of those that a quota names.
//! 2. Resources are found by discovery: one that is not served yet is counted as soon as it is.
//! 3. A resource that cannot be listed holds back nothing else: its usage stays as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use steersman_base::quota::{DeviceClasses, Tracker};
use steersman_base::{Clock, Istr, Resource};
use steersman_informer::{Change, InformerFactory, Lister, MetaSource, SharedInformer, Subscription};
use steersman_model::HasMeta;
use steersman_model::core::ResourceQuotaView;
use steersman_model::resource::{DeviceClassView, ResourceClaimView};
use steersman_runtime::__internal::descriptor::ControllerContext;
use steersman_runtime::Error;
use steersman_runtime::mapper::{Discovered, RestMapper};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Caches;
use crate::resourcequota::map;
use crate::resourcequota::memory::{Counts, DeviceCaches, Monitor, Monitored};
use crate::resourcequota::plan::{self, Counted};

/// Starts and stops the monitors.
pub(in crate::resourcequota) struct Monitors {
    caches: Caches,
    quotas: SharedInformer<ResourceQuotaView>,
    monitored: Arc<Monitored>,
    informers: InformerFactory,
    mapper: RestMapper,
    clock: Clock,
    /// The monitors of numbers, each with the resource that is watched.
    watched: BTreeMap<Counted, (Resource, Subscription)>,
    /// Those of pods, Services and claims.
    whole: Vec<Subscription>,
    has_devices: bool,
    /// Tasks that wait for new caches.
    waiting: JoinSet<()>,
}

/// The time that new caches have before they are named in the log.
const PATIENCE: Duration = Duration::from_secs(30);
/// The retry period of the first discovery.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The verbs that a counted resource needs.
const VERBS: [&str; 4] = ["create", "delete", "list", "watch"];

// === impl Monitors ===

impl Monitors {
    pub(in crate::resourcequota) fn new(
        cx: &ControllerContext,
        quotas: &SharedInformer<ResourceQuotaView>,
        caches: &Caches,
        monitored: &Arc<Monitored>,
    ) -> Self {
        Self {
            caches: caches.clone(),
            quotas: quotas.clone(),
            monitored: Arc::clone(monitored),
            informers: cx.informers.clone(),
            mapper: cx.manager().mapper().clone(),
            clock: cx.clock.clone(),
            watched: BTreeMap::new(),
            whole: Vec::new(),
            has_devices: false,
            waiting: JoinSet::new(),
        }
    }

    /// Runs until `stop`.
    pub(in crate::resourcequota) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let _ = stop.run_until_cancelled(self.follow()).await;
        Ok(())
    }

    async fn follow(&mut self) {
        self.watch_whole();
        let named = Arc::new(tokio::sync::Notify::new());
        let notify = Arc::clone(&named);
        let _of_quotas = self.quotas.subscribe(move |change| {
            if map::is_counted_again(change) || matches!(change, Change::Deleted { .. }) {
                notify.notify_one();
            }
        });
        // Without a quota that needs discovery, there is none.
        while self.wanted().is_empty() && !self.wants_devices() {
            named.notified().await;
        }
        // Kept, because they end when dropped.
        let _signs = self.first_answer().await;
        let mut known = self.mapper.subscribe();
        loop {
            let now = known.borrow_and_update().clone();
            if let Some(now) = now {
                self.keep_up(&now).await;
            }
            tokio::select! {
                biased;
                () = named.notified() => {}
                changed = known.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn first_answer(&self) -> Vec<Subscription> {
        loop {
            match self.mapper.watch(&self.informers).await {
                Ok(signs) => {
                    self.informers.start();
                    return signs;
                }
                Err(error) => {
                    tracing::warn!(%error, "discovery failed; objects are counted when it succeeds");
                    tokio::time::sleep(ASK_AGAIN).await;
                }
            }
        }
    }

    /// Watches what is counted by more than its number.
    fn watch_whole(&mut self) {
        let quotas = self.caches.quotas.clone();
        let monitored = Arc::clone(&self.monitored);
        let freed = move |tracker: &Tracker, namespace: &Istr, after: &dyn Fn() -> Option<Duration>| {
            count_again(&quotas, &monitored, tracker, namespace, after);
        };
        let if_true = |frees: bool| frees.then_some(Duration::ZERO);
        let of_pods = freed.clone();
        let clock = self.clock.clone();
        self.whole.push(self.caches.pods.subscribe(move |change| {
            of_pods(&Tracker::Pods, &change.object().meta().namespace, &|| map::pod_frees(change, clock.now()));
        }));
        let of_services = freed.clone();
        self.whole.push(self.caches.services.subscribe(move |change| {
            let namespace = &change.object().meta().namespace;
            of_services(&Tracker::Services, namespace, &|| if_true(map::service_frees(change)));
        }));
        self.whole.push(self.caches.claims.subscribe(move |change| {
            let namespace = &change.object().meta().namespace;
            freed(&Tracker::VolumeClaims, namespace, &|| if_true(map::claim_frees(change)));
        }));
    }

    /// Returns the resources whose number some quota limits.
    fn wanted(&self) -> BTreeSet<Counted> {
        self.caches.quotas.list().iter().flat_map(|quota| plan::needs(&quota.spec).objects).collect()
    }

    fn wants_devices(&self) -> bool {
        self.caches.quotas.list().iter().any(|quota| plan::needs(&quota.spec).devices)
    }

    /// Starts monitors that are missing, and stops those that no quota needs, or that are no longer served.
    async fn keep_up(&mut self, known: &Discovered) {
        let wanted = self.wanted();
        let served: BTreeMap<Counted, Resource> = known
            .supporting(&VERBS)
            .into_iter()
            .filter(|found| found.is_namespaced())
            .map(|found| (counted(&found.resource), found.resource.clone()))
            .filter(|(counted, _)| wanted.contains(counted))
            .collect();
        let is_gone =
            |(counted, (resource, _)): &(&Counted, &(Resource, Subscription))| served.get(*counted) != Some(resource);
        let gone: Vec<Counted> = self.watched.iter().filter(is_gone).map(|(counted, _)| counted.clone()).collect();
        for counted in gone {
            // Before it ends: its count is not to be taken for complete.
            self.monitored.set(&counted, None);
            if let Some((resource, subscription)) = self.watched.remove(&counted) {
                tracing::info!(%resource, "the objects are no longer counted");
                subscription.close().await;
                self.informers.retire_meta(&resource).await;
            }
        }
        for counted in &wanted {
            match served.get(counted) {
                Some(resource) if !self.watched.contains_key(counted) => self.watch(counted, resource),
                Some(_) => {}
                None => self.monitored.set(counted, Some(Monitor::NotServed)),
            }
        }
        let has_claims = known.resource("resource.k8s.io", Some("v1"), "resourceclaims").is_some();
        if !self.has_devices && has_claims && self.wants_devices() {
            self.watch_devices();
        }
        self.informers.start();
        while self.waiting.try_join_next().is_some() {}
    }

    /// Counts the objects of a resource.
    fn watch(&mut self, counted: &Counted, resource: &Resource) {
        let (group, plural) = counted;
        let Some(tracker) = Tracker::of(group, plural) else { return };
        let counts = Arc::new(Counts::default());
        let quotas = self.caches.quotas.clone();
        let monitored = Arc::clone(&self.monitored);
        let take_in = Arc::clone(&counts);
        let of_changes = tracker.clone();
        let handler = move |change: &Change<dyn HasMeta>| {
            take_in.take_in(change);
            if let Change::Deleted { last, .. } = change {
                count_again(&quotas, &monitored, &of_changes, &last.meta().namespace, &at_once);
            }
        };
        let subscription = self.informers.meta(resource).subscribe_meta(Box::new(handler));
        self.monitored.set(counted, Some(Monitor::Filling(Arc::clone(&counts))));
        let synced = subscription.synced();
        let monitored = Arc::clone(&self.monitored);
        let quotas = self.caches.quotas.clone();
        let counted_resource = counted.clone();
        let shown = resource.clone();
        self.waiting.spawn(async move {
            logged_if_late(&shown, synced).await;
            // The wait ends with the subscription, too.
            if !monitored.filled(&counted_resource, &counts) {
                return;
            }
            let all = quotas.list();
            monitored.count_again(map::counting(&all, &tracker, &DeviceClasses::default()), Duration::ZERO);
        });
        self.watched.insert(counted.clone(), (resource.clone(), subscription));
    }

    /// Watches claims of devices and their classes.
    fn watch_devices(&mut self) {
        self.has_devices = true;
        let claims = self.informers.informer::<ResourceClaimView>();
        let classes = self.informers.informer::<DeviceClassView>();
        let quotas = self.caches.quotas.clone();
        let monitored = Arc::clone(&self.monitored);
        self.whole.push(claims.subscribe(move |change| {
            // Their spec does not change.
            if let Change::Deleted { last, .. } = change {
                count_again(&quotas, &monitored, &Tracker::DeviceClaims, &last.meta().namespace, &at_once);
            }
        }));
        let quotas = self.caches.quotas.clone();
        let monitored = Arc::clone(&self.monitored);
        self.waiting.spawn(async move {
            claims.synced().await;
            classes.synced().await;
            monitored.set_devices(DeviceCaches { claims, classes });
            let all = quotas.list();
            let needy: Vec<_> = all.iter().filter(|quota| plan::needs(&quota.spec).devices).cloned().collect();
            monitored.count_again(map::keys(&needy), Duration::ZERO);
        });
    }
}

/// Counts the quotas of a namespace again that count a resource, after the time that `after` returns, if any. Most namespaces have
/// no quota: what a change frees is asked only where one is.
fn count_again(
    quotas: &Lister<ResourceQuotaView>,
    monitored: &Monitored,
    tracker: &Tracker,
    namespace: &Istr,
    after: &dyn Fn() -> Option<Duration>,
) {
    let quotas = quotas.namespace(namespace).list();
    if quotas.is_empty() {
        return;
    }
    if let Some(after) = after() {
        monitored.count_again(map::counting(&quotas, tracker, &monitored.classes()), after);
    }
}

fn at_once() -> Option<Duration> {
    Some(Duration::ZERO)
}

fn counted(resource: &Resource) -> Counted {
    (Istr::from(&*resource.group), Istr::from(&*resource.plural))
}

/// Waits until a cache is filled, and names it in the log if that takes long.
async fn logged_if_late(resource: &Resource, synced: impl Future<Output = ()> + Send) {
    tokio::pin!(synced);
    if tokio::time::timeout(PATIENCE, &mut synced).await.is_err() {
        tracing::warn!(%resource, "the objects cannot be listed; quotas keep the number that they had");
        synced.await;
    }
}
