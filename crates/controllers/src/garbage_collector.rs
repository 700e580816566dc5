#![doc = include_str!("../docs/garbage-collector-controller.md")]
//!
//! ```text
//! informers ── metadata ──▶ graph ──▶ queue "delete" ──▶ live reads ──▶ patch, conditional delete
//!                             ▲   └──▶ queue "orphan" ──▶ patch dependents, then the owner
//!                            └──────── "absent on the server" ◀──────────┘
//! ```
//!
//! Follows `pkg/controller/garbagecollector` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::Resource;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::manager::runnable;
use steersman_runtime::source::{self, Source};
use steersman_runtime::{Descriptor, Group};

use crate::table;

mod absent;
mod dump;
mod graph;
mod identity;
mod patch;
mod plan;
mod sample;
mod sync;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use sample::{SampleGraph, sample_graph};
pub use sync::Why;
use sync::{Checks, Collector, Monitors, Orphans, Purpose, Server};

/// The descriptor of the garbage collector.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "garbage-collector-controller",
    needs: &[],
    options: Options::from_flags,
    build,
});

/// The name of the second queue's controller, which has as many workers.
pub const ORPHAN_CONTROLLER: &str = "garbage-collector-orphan-controller";

/// Options of the garbage collector.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Whether it runs at all: `--enable-garbage-collector`.
    pub enabled: bool,
    /// Group and plural name of resources that are not monitored: their objects are not deleted, and not waited for as
    /// dependents.
    pub ignored: Vec<(String, String)>,
}

// === impl Options ===

impl Options {
    /// Returns the options that flags set. Events are ignored: they are many, expire and own nothing.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        let events = |group: &str| (group.to_owned(), "events".to_owned());
        let enabled = flags.is_on("enable-garbage-collector", true);
        Self { enabled, ignored: vec![events(""), events("events.k8s.io")] }
    }

    fn ignores(&self, resource: &Resource) -> bool {
        self.ignored.iter().any(|(group, plural)| *group == resource.group && *plural == resource.plural)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    if !options.enabled {
        return Err(Disabled::because("--enable-garbage-collector=false"));
    }
    let collector = Collector::new(cx.events.clone());
    let server = Arc::new(Server::new(cx, &collector));
    let monitors = Monitors::new(cx, &collector, options)?;
    let looks = cx
        .controller_of_keys()
        .source(pending_work(&collector, Purpose::Checks))
        .reconcile(Checks { collector: collector.clone(), server: Arc::clone(&server) });
    let orphans = cx
        .another_of_keys(ORPHAN_CONTROLLER)
        .queue(1)
        .source(pending_work(&collector, Purpose::Orphans))
        .reconcile(Orphans { collector: collector.clone(), server });
    sync::serve(cx.manager().admin(), DESCRIPTOR.name, &collector);
    cx.add(runnable("garbage-collector-monitors", Group::Caches, move |stop| monitors.run(stop)));
    Ok(looks.and(orphans))
}

/// The source of a queue: enqueues pending work when the workers start, and wakes those that wait for the graph when they stop.
fn pending_work(collector: &Collector, purpose: Purpose) -> Source {
    let collector = collector.clone();
    source::task(move |feed, stop| async move {
        collector.begin(purpose, feed.queue());
        stop.cancelled().await;
        collector.stop();
    })
}
