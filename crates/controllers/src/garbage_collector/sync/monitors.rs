//! The monitored resources: every one that can be deleted, listed and watched, as long as it is served.
//!
//! 1. Only metadata is watched, and nothing where the manager already watches the whole objects.
//! 2. Discovery runs every half a minute, and when a CustomResourceDefinition or an APIService changes.
//! 3. A resource that cannot be listed delays the start of collection by [`PATIENCE`] and blocks nothing.
//! 4. Groups whose discovery fails, as when an aggregated API is down, are kept as they were.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use prometheus::{IntCounter, Opts};
use steersman_base::Resource;
use steersman_informer::__internal::store::{Advance, Watcher};
use steersman_informer::{Change, InformerFactory, MetaSource, Subscription};
use steersman_model::HasMeta;
use steersman_runtime::__internal::descriptor::ControllerContext;
use steersman_runtime::Error;
use steersman_runtime::mapper::{Discovered, RestMapper};
use steersman_runtime::metrics::FamilyError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Collector;
use crate::garbage_collector::Options;
use crate::garbage_collector::identity::Kind;

/// Starts and stops the monitors.
pub(in crate::garbage_collector) struct Monitors {
    collector: Collector,
    informers: InformerFactory,
    mapper: RestMapper,
    options: Options,
    /// Upstream's `garbagecollector_controller_resources_sync_error_total`.
    failures: IntCounter,
    watched: BTreeMap<Resource, Watched>,
    /// Tasks that wait for new caches, to report those that could not be filled.
    waiting: JoinSet<()>,
}

/// A monitored resource.
struct Watched {
    subscription: Subscription,
    /// Subscription to "the server went back in time"; ends when dropped.
    hook: Arc<Hook>,
}

struct Hook(Collector);

/// The time that new caches have to sync before collection continues without them: upstream's figure.
const PATIENCE: Duration = Duration::from_secs(30);
/// The retry period of the first discovery.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The verbs that a monitored resource needs: what cannot be deleted is not garbage, and the others cannot be
/// monitored.
const VERBS: [&str; 3] = ["delete", "list", "watch"];

// === impl Monitors ===

impl Monitors {
    pub(in crate::garbage_collector) fn new(
        cx: &ControllerContext,
        collector: &Collector,
        options: Options,
    ) -> Result<Self, FamilyError> {
        let failures = cx.metrics().counter(Opts::new(
            "garbagecollector_controller_resources_sync_error_total",
            "Number of garbage collector resources sync errors",
        ))?;
        Ok(Self {
            collector: collector.clone(),
            informers: cx.informers.clone(),
            mapper: cx.manager().mapper().clone(),
            options,
            failures,
            watched: BTreeMap::new(),
            waiting: JoinSet::new(),
        })
    }

    /// Runs until `stop`. The informers of other controllers are declared by now, so that their watches can be shared.
    pub(in crate::garbage_collector) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let _ = stop.run_until_cancelled(self.follow()).await;
        Ok(())
    }

    async fn follow(&mut self) {
        // Kept, because they end when dropped. The manager repeats discovery from now on, because it is in use.
        let _signs = self.first_answer().await;
        let mut known = self.mapper.subscribe();
        loop {
            let now = known.borrow_and_update().clone();
            if let Some(now) = now {
                self.keep_up(&now).await;
            }
            if known.changed().await.is_err() {
                return;
            }
        }
    }

    /// Retries discovery until the server has answered for all groups. With some of them alone, an owner could seem to
    /// have no dependents, and be deleted before they have lost the reference.
    async fn first_answer(&self) -> Vec<Subscription> {
        loop {
            match self.mapper.watch(&self.informers).await {
                Ok(signs) => return signs,
                Err(error) => {
                    self.failures.inc();
                    tracing::warn!(%error, "discovery failed; garbage collection starts when it succeeds");
                    tokio::time::sleep(ASK_AGAIN).await;
                }
            }
        }
    }

    /// Starts monitors of new resources, and stops those that are no longer served.
    async fn keep_up(&mut self, known: &Discovered) {
        let is_kept = |resource: &&Resource| !self.options.ignores(resource);
        let wanted: Vec<Resource> =
            known.supporting(&VERBS).into_iter().map(|found| &found.resource).filter(is_kept).cloned().collect();
        if wanted.is_empty() {
            // A server without resources is not answering correctly.
            self.failures.inc();
            return;
        }
        let gone: Vec<Resource> = self.watched.keys().filter(|watched| !wanted.contains(watched)).cloned().collect();
        for resource in gone {
            tracing::info!(%resource, "the resource is no longer served; its watch is stopped");
            if let Some(watched) = self.watched.remove(&resource) {
                watched.subscription.close().await;
            }
            self.informers.retire_meta(&resource).await;
        }
        let mut new = Vec::new();
        for resource in wanted {
            if !self.watched.contains_key(&resource) {
                let watched = self.watch(&resource);
                new.push((resource.clone(), watched.subscription.synced()));
                self.watched.insert(resource, watched);
            }
        }
        if new.is_empty() {
            return;
        }
        tracing::info!(
            resources = self.watched.len(),
            new = new.len(),
            "started to watch a resource for garbage collection"
        );
        self.informers.start();
        // There is a store for each from now on.
        for (resource, _) in &new {
            let Some(watched) = self.watched.get(resource) else { continue };
            for ledger in self.informers.ledgers(resource) {
                let hook: Weak<Hook> = Arc::downgrade(&watched.hook);
                ledger.watch(hook);
            }
        }
        self.wait_for(new);
    }

    fn watch(&self, resource: &Resource) -> Watched {
        let collector = self.collector.clone();
        let kind = Kind::of(resource);
        let shown = resource.clone();
        let handler = move |change: &Change<dyn HasMeta>| collector.take_in(&shown, &kind, change);
        let subscription = self.informers.meta(resource).subscribe_meta(Box::new(handler));
        Watched { subscription, hook: Arc::new(Hook(self.collector.clone())) }
    }

    /// Waits until these caches are synced, or their time is over.
    fn wait_for(&mut self, new: Vec<(Resource, impl Future<Output = ()> + Send + 'static)>) {
        let collector = self.collector.clone();
        let failures = self.failures.clone();
        self.waiting.spawn(async move {
            let wait = |(resource, synced)| async move {
                tokio::time::timeout(PATIENCE, synced).await.err().map(|_| resource)
            };
            let late: Vec<Resource> = join_all(new.into_iter().map(wait)).await.into_iter().flatten().collect();
            if !late.is_empty() {
                failures.inc();
                let late: Vec<_> = late.iter().map(ToString::to_string).collect();
                tracing::warn!(
                    resources = late.join(", "),
                    "these resources cannot be read; garbage collection starts without them"
                );
            }
            collector.set_ready();
        });
        while self.waiting.try_join_next().is_some() {}
    }
}

// === impl Hook ===

impl Watcher for Hook {
    fn advanced(&self, advance: &Advance<'_>) {
        if advance.went_back {
            self.0.went_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use steersman_runtime::events::Recorder;

    use super::*;
    use crate::garbage_collector::identity::Identity;

    #[test]
    fn a_cache_that_goes_back_in_time_makes_nobody_absent() {
        let collector = Collector::new(Recorder::nowhere());
        let owner = Identity { uid: "gone".into(), ..Identity::default() };
        let hook = Hook(collector.clone());
        let advance = |went_back| Advance { reached: None, list: None, went_back, ended: None };
        collector.graph(|graph| graph.absent.add(owner.clone()));
        hook.advanced(&advance(false));
        assert!(collector.graph(|graph| graph.absent.has(&owner)));
        hook.advanced(&advance(true));
        assert!(!collector.graph(|graph| graph.absent.has(&owner)), "a restored server brings uids back");
    }
}
