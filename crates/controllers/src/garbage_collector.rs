//! The garbage collector: what belongs to something that is gone, goes too.
//!
//! 1. An object goes when it has owners and all of them are gone. It stays while one of them is there; references to the
//!    others are taken out of it.
//! 2. Nothing goes on hearsay: the deletion is on condition that the object is the same, in the version that was decided on.
//!    That its owners are gone was watched or read; if that is not known, or the version has changed, the object and its
//!    owners are read from the server first.
//! 3. An owner that is deleted in the foreground goes after the dependents that block it. Cycles are opened, so that they
//!    go as well; an object that owns itself goes at once.
//! 4. An owner that is deleted with `--cascade=orphan` goes after all its dependents have lost their reference.
//! 5. An object is deleted in the way that its own finalizers ask for.
//! 6. Every resource that can be deleted, listed and watched is followed, custom ones as soon as they are served. One that
//!    cannot be read is left out, and stops nothing, also right after a restart.
//! 7. An object is looked at when something happened that concerns it, and once. What cannot be decided yet (an owner of an
//!    unknown kind, a reference that others contradict) is looked at again less and less often.
//! 8. An owner in another namespace is none: it counts as gone, and an event says so.
//!
//! ```text
//! informers ── metadata ──▶ graph ──▶ queue "look at" ──▶ live reads ──▶ patch, conditional delete
//!                             ▲   └──▶ queue "orphan" ──▶ patch dependents, then the owner
//!                             └──────── "the server says it is not there" ◀──┘
//! ```
//!
//! Follows `pkg/controller/garbagecollector` of Kubernetes 1.37.1. See `docs/controllers/garbage-collector-controller.md`.

use std::sync::Arc;

use steersman_base::Resource;
use steersman_runtime::manager::runnable;
use steersman_runtime::source::{self, Source};
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Group, Stage, Workers};

mod absent;
mod classify;
mod dump;
mod graph;
mod identity;
mod patch;
mod sample;
mod sync;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use sample::{SampleGraph, sample_graph};
pub use sync::Why;
use sync::{Collector, Looks, Monitors, Of, Orphans, Server};

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "garbage-collector-controller",
    aliases: &["garbagecollector"],
    account: "generic-garbage-collector",
    default: Enabled::Yes,
    gates: &[],
    needs: &[],
    workers: Workers::flag("concurrent-gc-syncs", 20),
    stage: Stage::Normal,
    build,
};

/// The other one of its two queues, with as many workers.
pub const ORPHAN_CONTROLLER: &str = "garbage-collector-orphan-controller";

/// How the garbage collector works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether it works at all: `--enable-garbage-collector`.
    pub enabled: bool,
    /// Group and plural name of resources that are not followed: neither do their objects go, nor are they waited for.
    pub ignored: Vec<(String, String)>,
}

// === impl Options ===

impl Options {
    fn ignores(&self, resource: &Resource) -> bool {
        self.ignored.iter().any(|(group, plural)| *group == resource.group && *plural == resource.plural)
    }
}

impl Default for Options {
    /// Events are many, go by themselves and own nothing.
    fn default() -> Self {
        let events = |group: &str| (group.to_owned(), "events".to_owned());
        Self { enabled: true, ignored: vec![events(""), events("events.k8s.io")] }
    }
}

fn build(cx: &BuildContext, workers: usize) -> Build {
    let options = cx.options::<Options>();
    if !options.enabled {
        return Build::Disabled("--enable-garbage-collector=false".to_owned());
    }
    let collector = Collector::new(cx.events.for_component(DESCRIPTOR.name));
    let server = Arc::new(Server::new(cx, &collector));
    let looks = cx
        .controller_of_keys(DESCRIPTOR.name)
        .queue_name("garbage_collector_attempt_to_delete")
        .source(work_of(&collector, Of::Looks))
        .workers(workers)
        .reconcile_with(Looks { collector: collector.clone(), server: Arc::clone(&server) });
    let orphans = cx
        .controller_of_keys(ORPHAN_CONTROLLER)
        .queue_name("garbage_collector_attempt_to_orphan")
        .source(work_of(&collector, Of::Orphans))
        .workers(workers)
        .reconcile_with(Orphans { collector: collector.clone(), server });
    collector.connect(looks.queue().clone(), orphans.queue().clone());
    sync::serve(cx.manager().admin(), DESCRIPTOR.name, &collector);
    let monitors = Monitors::new(cx, &collector, options);
    cx.add(runnable("garbage-collector-monitors", Group::Caches, move |stop| monitors.run(stop)));
    Build::Enabled
}

/// What the graph has to do when workers begin; and whoever waits for the graph is told when they are to end.
fn work_of(collector: &Collector, of: Of) -> Source {
    let collector = collector.clone();
    source::task(move |_, stop| async move {
        collector.begin(of);
        stop.cancelled().await;
        collector.stop();
    })
}
