#![doc = include_str!("../docs/podcertificaterequest-cleaner-controller.md")]
//!
//! Follows `pkg/controller/certificates/cleaner/pcrcleaner.go` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_model::Kind;
use steersman_model::certificates::PodCertificateRequestView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::{Descriptor, source};

use crate::table;

mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the cleaner of pods' certificate requests.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "podcertificaterequest-cleaner-controller",
    needs: const { &[PodCertificateRequestView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller; no flag sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The period of passes.
    pub every: Duration,
    /// The time for which a request is kept.
    pub kept_for: Duration,
}

const MINUTE: Duration = Duration::from_secs(60);
/// The only key: a pass concerns all requests.
const PASS: &str = "all-requests";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(_: &Flags<'_>) -> Self {
        Self { every: 5 * MINUTE, kept_for: 15 * MINUTE }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let requests = cx.informer::<PodCertificateRequestView>();
    let passes = source::ticker(options.every, || vec![ObjectKey::cluster(PASS)]).immediately();
    let builder = cx.controller(&requests).without_main_watch().source(passes).needs_cache(&requests);
    builder.reconcile(sync::Cleaner { requests: requests.lister(), options })
}
