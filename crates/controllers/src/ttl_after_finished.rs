#![doc = include_str!("../docs/ttl-after-finished-controller.md")]
//!
//! Follows `pkg/controller/ttlafterfinished` of Kubernetes 1.37.1.

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::batch::JobView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::table;

mod metrics;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the ttl-after-finished controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "ttl-after-finished-controller",
    needs: const { &[JobView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Result<Built, Disabled> {
    let jobs = cx.informer::<JobView>();
    let clock = cx.clock.clone();
    let when_due = move |change: &Change<JobView>| match plan::delay(change, clock.now_micros()) {
        Some(delay) => Keys::after([change.key()], delay),
        None => Keys::default(),
    };
    let metrics = metrics::Metrics::new(cx.metrics())?;
    Ok(cx.controller(&jobs).watch_main(when_due).reconcile(sync::Finished { jobs: jobs.lister(), metrics }))
}
