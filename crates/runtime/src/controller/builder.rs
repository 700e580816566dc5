//! A controller under construction.

use std::time::Duration;

use kube::core::Resource as Named;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use steersman_base::ObjectKey;
use steersman_informer::{Change, Selection, SharedInformer, Typed};
use steersman_model::View;
use steersman_workqueue::{Gate, Priority, Queue, QueueOptions, RateLimiter};
use tokio_util::sync::CancellationToken;

use super::{BuildContext, Built, Controller, Engine, MainObject, Policy, Shared, Sources};
use crate::descriptor::Row;
use crate::handler::{self, Handler, Keys};
use crate::lease::Leadership;
use crate::live::Live;
use crate::predicate::Predicate;
use crate::reconcile::Freshness;
use crate::source::{Connected, Feed, Source, Watch};
use crate::{Context, Reconciler};

/// The time for which a key of a built-in controller waits that has no retries left: the longest delay of the default rate limiter.
const SET_ASIDE_FOR: Duration = Duration::from_secs(1000);

/// A controller under construction: its main kind, its other sources, and its options.
#[must_use = "a controller exists when it is given a reconciler"]
pub struct Builder<V: View> {
    cx: BuildContext,
    name: &'static str,
    queue_name: &'static str,
    /// The queues of the controller's row; empty without a row.
    queue_names: Vec<&'static str>,
    main: SharedInformer<V>,
    main_watch: Option<Watch<V>>,
    sources: Vec<Source>,
    filters: Vec<Box<dyn Predicate>>,
    workers: usize,
    limiter: Option<Box<dyn RateLimiter<ObjectKey>>>,
    policy: Policy,
    leadership: Leadership,
    reads_live: bool,
}

// === impl Builder ===

impl<V: View> Builder<V> {
    pub(crate) fn new(cx: BuildContext, name: &'static str, main: &SharedInformer<V>) -> Self {
        let leadership = cx.leadership();
        Self {
            cx,
            name,
            queue_name: name,
            queue_names: Vec::new(),
            main: main.clone(),
            main_watch: Some(Watch::new(main, handler::object())),
            sources: Vec::new(),
            filters: Vec::new(),
            workers: 1,
            limiter: None,
            policy: Policy::default(),
            leadership,
            reads_live: false,
        }
    }

    /// Applies the facts of a row.
    pub(super) fn with_row(mut self, row: &Row, workers: usize) -> Self {
        self.queue_name = row.queue(0);
        self.queue_names.clone_from(&row.queues);
        self.limiter = row.limiter.make();
        self.policy.retries_max = row.retries_max;
        // What refused the writes of a controller may end without a change of the object: a webhook, a quota, a missing right.
        self.policy.set_aside = row.retries_max.map(|_| SET_ASIDE_FOR);
        self.workers(workers)
    }

    /// Watches objects of this kind; a change enqueues the main object that controls the object.
    pub fn owns<K>(self) -> Self
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        let informer = self.cx.informers.typed::<K>(Selection::everything());
        self.owns_in(&informer)
    }

    /// Watches the objects of an informer; a change enqueues the main object that controls the object.
    pub fn owns_in<W: View>(self, informer: &SharedInformer<W>) -> Self {
        let main = self.main.target().resource.clone();
        self.source(Watch::new(informer, handler::controller_owner(main)))
    }

    /// Watches objects of another kind; `handler` returns the keys of the main objects that a change concerns.
    pub fn watches<K>(self, handler: impl Handler<Typed<K>>) -> Self
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        let informer = self.cx.informers.typed::<K>(Selection::everything());
        self.source(Watch::new(&informer, handler))
    }

    /// Watches the objects of an informer; `handler` returns the keys of the main objects that a change concerns, some
    /// of them [after a delay](crate::handler::Keys::after) if needed.
    pub fn watch<W: View>(self, informer: &SharedInformer<W>, handler: impl Handler<W>) -> Self {
        self.source(Watch::new(informer, handler))
    }

    /// Delays the start of the controller until the cache of this kind is filled. Changes of its objects enqueue nothing.
    ///
    /// For kinds that the reconciler reads with a [`Lister`](crate::Lister) or an index, and does not watch: a controller waits
    /// for the caches of its own sources only, and others may be empty when it starts.
    pub fn needs<K>(self) -> Self
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        let informer = self.cx.informers.typed::<K>(Selection::everything());
        self.needs_cache(&informer)
    }

    /// Delays the start of the controller until this cache is filled. Changes in it enqueue nothing.
    pub fn needs_cache<W: View>(self, informer: &SharedInformer<W>) -> Self {
        self.watch(informer, |_| Keys::default())
    }

    /// Replaces the handler of changes of main objects, which enqueues the object's own key.
    pub fn watch_main(mut self, handler: impl Handler<V>) -> Self {
        self.main_watch = self.main_watch.map(|watch| watch.handled_by(handler));
        self
    }

    /// Adds a source: a [`Watch`] with options, a channel, a ticker, a task.
    pub fn source(mut self, source: impl Into<Source>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// Ignores changes of main objects that a predicate does not admit. If there are several, all must admit a change.
    ///
    /// Changes of other kinds are not filtered: use [`Watch::filter`] for one of them, [`filter_all`](Self::filter_all) for
    /// all.
    pub fn filter(mut self, predicate: impl Predicate) -> Self {
        self.main_watch = self.main_watch.map(|watch| watch.filter(predicate));
        self
    }

    /// Ignores changes of all watched kinds that a predicate does not admit, as controller-runtime's `WithEventFilter`.
    ///
    /// [`generation_changed`](crate::predicate::generation_changed) is rarely right here: kinds without a generation, such
    /// as ConfigMap, are then never reconciled after an update.
    pub fn filter_all(mut self, predicate: impl Predicate) -> Self {
        self.filters.push(Box::new(predicate));
        self
    }

    /// Ignores changes of main objects for which the condition is false.
    pub fn when(mut self, condition: impl Fn(&Change<V>) -> bool + Send + Sync + 'static) -> Self {
        self.main_watch = self.main_watch.map(|watch| watch.when(condition));
        self
    }

    /// Enqueues nothing for changes of main objects; other sources do. The controller does not wait for the main objects' cache
    /// either: if its reconciler reads it, add [`needs`](Self::needs).
    pub fn without_main_watch(mut self) -> Self {
        self.main_watch = None;
        self
    }

    /// Enqueues every main object again at this interval, if the predicates admit it:
    /// [`generation_changed`](crate::predicate::generation_changed) and its like admit no resync, as in controller-runtime. To
    /// reconcile an object again whatever they say, return [`Action::After`](crate::Action::After).
    pub fn resync(mut self, every: Duration) -> Self {
        self.main_watch = self.main_watch.map(|watch| watch.resync(every));
        self
    }

    /// Sets the priority of changes of main objects: see [`Watch::priority`].
    pub fn priority(mut self, priority: Priority) -> Self {
        self.main_watch = self.main_watch.map(|watch| watch.priority(priority));
        self
    }

    /// Sets the number of workers; one by default.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Sets the name of the queue in metrics, if it is not the controller's.
    pub fn queue_name(mut self, name: &'static str) -> Self {
        self.queue_name = name;
        self
    }

    /// Sets which queue of the row this is, for a controller with several; the first by default.
    #[doc(hidden)]
    pub fn queue(mut self, number: usize) -> Self {
        if let Some(name) = self.queue_names.get(number) {
            self.queue_name = name;
        }
        self
    }

    /// Sets the rate limiter of failed keys.
    pub fn limiter(mut self, limiter: impl RateLimiter<ObjectKey> + 'static) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// Cancels a reconcile that takes longer than this, and retries it.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.policy.timeout = Some(time);
        self
    }

    /// Gives a key up after this many retries in a row, until it changes; by default retries never end.
    pub fn give_up_after(mut self, retries: u32) -> Self {
        self.policy.retries_max = Some(retries);
        self.policy.set_aside = None;
        self
    }

    /// Declares that the reconciler reads everything it decides from through [`Context::main`] and [`Context::get`],
    /// which read from the server when the caches lag: it then continues while a cache does not show its writes.
    /// Without this, its keys wait until the caches do; a stalled watch is restarted after half a minute.
    pub fn reads_live(mut self) -> Self {
        self.reads_live = true;
        self
    }

    /// Runs the controller whether this process leads or not. Its writes are not checked for leadership either.
    pub fn without_leadership(mut self) -> Self {
        self.leadership = Leadership::always();
        self
    }

    /// Returns the informer of the main kind.
    #[must_use]
    pub fn main(&self) -> &SharedInformer<V> {
        &self.main
    }

    /// Returns the context that the controller is built with.
    #[doc(hidden)]
    #[must_use]
    pub fn context(&self) -> &BuildContext {
        &self.cx
    }

    /// Finishes the controller, as the result of a `build` function.
    #[doc(hidden)]
    pub fn reconcile(self, reconciler: impl Reconciler) -> Built {
        Built::new(move || self.reconcile_with(reconciler))
    }

    /// Finishes the controller. It runs when the manager runs, or at once if that runs already.
    pub fn reconcile_with(self, reconciler: impl Reconciler) -> Controller {
        self.build_with(|_| reconciler)
    }

    /// As [`reconcile_with`](Self::reconcile_with), for a reconciler that needs the controller's queue.
    pub fn build_with<R: Reconciler>(self, reconciler: impl FnOnce(&Queue<ObjectKey>) -> R) -> Controller {
        let mut options = QueueOptions::default();
        if let Some(metrics) = self.cx.manager.queue_metrics() {
            options.metrics = metrics;
        }
        if let Some(limiter) = self.limiter {
            options.limiter = limiter;
        }
        let is_closed = !self.leadership.is_always();
        options.gate = if is_closed { Gate::Closed } else { Gate::Open };
        let queue = Queue::new(self.queue_name, options);
        let feed = Feed::new(queue.clone(), self.filters, is_closed);
        let mut sources = Sources::default();
        for source in self.main_watch.map(Source::from).into_iter().chain(self.sources) {
            match source.connect(&feed) {
                Connected::Watching(watching) => sources.watching.push(*watching),
                Connected::Task(task) => sources.tasks.push(task),
            }
        }
        let book = if self.reads_live { self.cx.book.another_reading_live() } else { self.cx.book.another() };
        let controller = Controller::new(Shared {
            name: self.name,
            workers: self.workers,
            feed,
            connected: sources.into(),
            unreached: Mutex::default(),
            source_panic: Mutex::default(),
            book: book.clone(),
            informers: self.cx.informers.clone(),
        });
        let activity = self.cx.manager.observe(&controller);
        let objects = self.main.lister();
        let resource = self.main.target().resource.clone();
        // Of the writer and of the context: every event of a controller names the controller as its source.
        let events = self.cx.events.clone().or_for_component(self.name);
        let mut writer = self.cx.writer.bound_to(self.name, resource, events.clone()).keeping(book.clone());
        if self.leadership.is_always() {
            writer = writer.led_by(Leadership::always());
        }
        let live = Live::in_turn(self.cx.client.clone(), book.live_reads().clone());
        let context = Context {
            writer,
            clock: self.cx.clock.clone(),
            freshness: Freshness::CaughtUp,
            events,
            live,
            stop: CancellationToken::new(), // that of the manager, once it runs
        };
        self.cx.manager.add_engine(Engine {
            controller: controller.clone(),
            context,
            policy: self.policy,
            activity,
            leadership: self.leadership,
            main: Box::new(move |key| {
                let object = objects.get(key)?;
                let meta = object.meta();
                Some(MainObject { uid: meta.uid.clone(), version: meta.resource_version.clone() })
            }),
            reconciler: Box::new(reconciler(&queue)),
            book,
            decisions: self.cx.decisions.clone(),
            reachability: self.cx.informers.reachability().clone(),
        });
        controller
    }
}

impl<V: View> std::fmt::Debug for Builder<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Controller {
    fn new(shared: Shared) -> Self {
        Self(shared.into())
    }

    /// Enqueues all keys of a list, behind live changes.
    pub fn trigger_all(&self, keys: &[ObjectKey]) {
        self.0.feed.add_all(keys, Priority::Background);
    }
}
