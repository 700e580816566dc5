#![doc = include_str!("../docs/token-cleaner-controller.md")]
//!
//! Follows `pkg/controller/bootstrap/tokencleaner.go` of Kubernetes 1.37.1.

use steersman_model::Kind;
use steersman_model::core::BootstrapTokenView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;

use crate::{bootstrap_token, table};

mod map;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the cleaner of bootstrap tokens.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "token-cleaner-controller",
    needs: const { &[BootstrapTokenView::RESOURCE] },
    options: |_| (),
    build,
});

fn build(cx: &ControllerContext, (): ()) -> Built {
    let tokens = bootstrap_token::informer(cx);
    cx.controller(&tokens).watch_main(map::changed).reconcile(sync::Cleaner { tokens: tokens.lister() })
}
