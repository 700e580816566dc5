#![doc = include_str!("../docs/garbage-collector-controller.md")]
//!
//! ```text
//! informers ── metadata ──▶ graph ──▶ queue "look at" ──▶ live reads ──▶ patch, conditional delete
//!                             ▲   └──▶ queue "orphan" ──▶ patch dependents, then the owner
//!                             └──────── "the server says it is not there" ◀──┘
//! ```
//!
//! Follows `pkg/controller/garbagecollector` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::Resource;
use steersman_runtime::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::manager::runnable;
use steersman_runtime::source::{self, Source};
use steersman_runtime::{Descriptor, Group};

use crate::table;

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

/// The controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "garbage-collector-controller",
    needs: &[],
    options: Options::from_flags,
    build,
});

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
    /// The options that flags set. Events are ignored: they are many, are deleted by themselves and own nothing.
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
        .source(work_of(&collector, Of::Looks))
        .reconcile(Looks { collector: collector.clone(), server: Arc::clone(&server) });
    let orphans = cx
        .another_of_keys(ORPHAN_CONTROLLER)
        .queue(1)
        .source(work_of(&collector, Of::Orphans))
        .reconcile(Orphans { collector: collector.clone(), server });
    sync::serve(cx.manager().admin(), DESCRIPTOR.name, &collector);
    cx.add(runnable("garbage-collector-monitors", Group::Caches, move |stop| monitors.run(stop)));
    Ok(looks.and(orphans))
}

/// What the graph has to do when workers begin; and whoever waits for the graph is told when they are to end.
fn work_of(collector: &Collector, of: Of) -> Source {
    let collector = collector.clone();
    source::task(move |feed, stop| async move {
        collector.begin(of, feed.queue());
        stop.cancelled().await;
        collector.stop();
    })
}
