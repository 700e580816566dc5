//! Which resources are watched: every one that can be deleted, listed and watched, and no longer than it is served.
//!
//! 1. Only metadata is asked for, and nothing at all where somebody watches the whole objects.
//! 2. What there is, is asked for every half a minute, and when a CustomResourceDefinition or an APIService changes.
//! 3. A resource that cannot be listed delays the start of collection by [`PATIENCE`] and stops nothing.
//! 4. What could not be asked, as when an aggregated API is down, is taken to be as it was.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use prometheus::{IntCounter, Opts};
use steersman_base::Resource;
use steersman_informer::store::{Advance, Watcher};
use steersman_informer::{Change, InformerFactory, MetaSource, Subscription};
use steersman_model::HasMeta;
use steersman_runtime::Error;
use steersman_runtime::descriptor::ControllerContext;
use steersman_runtime::mapper::{Discovered, RestMapper};
use steersman_runtime::metrics::FamilyError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Collector;
use crate::garbage_collector::Options;
use crate::garbage_collector::identity::Kind;

/// Watches what there is, and keeps up with it.
pub(in crate::garbage_collector) struct Monitors {
    collector: Collector,
    informers: InformerFactory,
    mapper: RestMapper,
    options: Options,
    /// Upstream's `garbagecollector_controller_resources_sync_error_total`.
    failures: IntCounter,
    watched: BTreeMap<Resource, Watched>,
    /// Those who wait, each for some new caches, to say what could not be filled.
    waiting: JoinSet<()>,
}

/// A resource that is followed.
struct Watched {
    subscription: Subscription,
    /// Hears of a server that went back in time, for as long as it is held.
    hook: Arc<Hook>,
}

struct Hook(Collector);

/// How long new caches may take to fill before collection goes on without them: upstream's figure.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a server is asked that has not answered yet what there is.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// What can be collected: an object that cannot be deleted cannot be garbage, and the others cannot be followed.
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

    /// Runs until `stop`. The informers of others have been declared by now, so that metadata can ride along.
    pub(in crate::garbage_collector) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let _ = stop.run_until_cancelled(self.follow()).await;
        Ok(())
    }

    async fn follow(&mut self) {
        // Kept, because they end when dropped. The manager asks again and again what there is, now that somebody uses it.
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

    /// Asks until the server says which groups there are. With some of them alone, an owner could seem to have no
    /// dependents, and be let go before they have lost the reference.
    async fn first_answer(&self) -> Vec<Subscription> {
        loop {
            match self.mapper.watch(&self.informers).await {
                Ok(signs) => return signs,
                Err(error) => {
                    self.failures.inc();
                    tracing::warn!(%error, "cannot ask which resources there are; nothing is collected until then");
                    tokio::time::sleep(ASK_AGAIN).await;
                }
            }
        }
    }

    /// Watches what is new, and lets go of what is not served any more.
    async fn keep_up(&mut self, known: &Discovered) {
        let is_kept = |resource: &&Resource| !self.options.ignores(resource);
        let wanted: Vec<Resource> =
            known.supporting(&VERBS).into_iter().map(|found| &found.resource).filter(is_kept).cloned().collect();
        if wanted.is_empty() {
            // A server without resources is one that does not answer as it should.
            self.failures.inc();
            return;
        }
        let gone: Vec<Resource> = self.watched.keys().filter(|watched| !wanted.contains(watched)).cloned().collect();
        for resource in gone {
            tracing::info!(%resource, "not served any more; it is not watched any more");
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
        tracing::info!(resources = self.watched.len(), new = new.len(), "watching for garbage");
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
        let (collector, kind) = (self.collector.clone(), Kind::of(resource));
        let shown = resource.clone();
        let handler = move |change: &Change<dyn HasMeta>| collector.take_in(&shown, &kind, change);
        let subscription = self.informers.meta(resource).subscribe_meta(Box::new(handler));
        Watched { subscription, hook: Arc::new(Hook(self.collector.clone())) }
    }

    /// When these caches are filled, or have had their time, there is no reason to wait any longer.
    fn wait_for(&mut self, new: Vec<(Resource, impl Future<Output = ()> + Send + 'static)>) {
        let (collector, failures) = (self.collector.clone(), self.failures.clone());
        self.waiting.spawn(async move {
            let wait = |(resource, synced)| async move {
                tokio::time::timeout(PATIENCE, synced).await.err().map(|_| resource)
            };
            let late: Vec<Resource> = join_all(new.into_iter().map(wait)).await.into_iter().flatten().collect();
            if !late.is_empty() {
                failures.inc();
                let late: Vec<_> = late.iter().map(ToString::to_string).collect();
                tracing::warn!(resources = late.join(", "), "these cannot be read; garbage is collected without them");
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
