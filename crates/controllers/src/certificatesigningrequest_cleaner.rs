#![doc = include_str!("../docs/certificatesigningrequest-cleaner-controller.md")]
//!
//! Follows `pkg/controller/certificates/cleaner/cleaner.go` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_model::Kind;
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags};
use steersman_runtime::{Descriptor, source};

use crate::table;

mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the cleaner of certificate requests.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "certificatesigningrequest-cleaner-controller",
    needs: const { &[CertificateSigningRequestView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller; no flag sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The period of passes.
    pub every: Duration,
    /// The time for which a request is kept that was issued, denied or refused.
    pub ended_for: Duration,
    /// The time for which a request is kept that waits for an approval or a certificate.
    pub waiting_for: Duration,
}

const HOUR: Duration = Duration::from_secs(60 * 60);
/// The only key: a pass concerns all requests.
const PASS: &str = "all-requests";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(_: &Flags<'_>) -> Self {
        Self { every: HOUR, ended_for: HOUR, waiting_for: 24 * HOUR }
    }

    /// Sets the period of passes.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Sets how long a request is kept that was issued, denied or refused.
    #[must_use]
    pub fn ended_for(mut self, ended_for: Duration) -> Self {
        self.ended_for = ended_for;
        self
    }

    /// Sets how long a request is kept that waits for an approval or a certificate.
    #[must_use]
    pub fn waiting_for(mut self, waiting_for: Duration) -> Self {
        self.waiting_for = waiting_for;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Built {
    let requests = cx.informer::<CertificateSigningRequestView>();
    let passes = source::ticker(options.every, || vec![ObjectKey::cluster(PASS)]).immediately();
    let builder = cx.controller(&requests).without_main_watch().source(passes).needs_cache(&requests);
    builder.reconcile(sync::Cleaner { requests: requests.lister(), options })
}
