#![doc = include_str!("../docs/ttl-controller.md")]
//!
//! Follows `pkg/controller/ttl` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_model::Kind;
use steersman_model::core::NodeView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::table;

mod memory;
mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the TTL controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "ttl-controller",
    needs: const { &[NodeView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let nodes = cx.informer::<NodeView>();
    let size = Arc::new(memory::Size::new(nodes.lister()));
    let changes = Arc::clone(&size);
    let controller = cx.controller(&nodes).watch_main(move |change| changes.nodes_to_check(change));
    controller.reconcile(sync::Ttl { nodes: nodes.lister(), size })
}
