#![doc = include_str!("../docs/legacy-serviceaccount-token-cleaner-controller.md")]
//!
//! Follows `pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_model::Kind;
use steersman_model::core::{PodView, ServiceAccountView, TokenSecretView};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::{Descriptor, source};

use crate::{serviceaccount_token, table};

mod plan;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the cleaner of legacy tokens.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "legacy-serviceaccount-token-cleaner-controller",
    needs: const { &[TokenSecretView::RESOURCE, ServiceAccountView::RESOURCE, PodView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The time for which an unused token is kept, and an invalid one
    /// (`--legacy-service-account-token-clean-up-period`).
    pub clean_up_period: Duration,
    /// The period of passes; no flag sets it.
    pub every: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The only key: a pass concerns all tokens.
const PASS: &str = "all-tokens";

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        let clean_up_period = flags.duration("legacy-service-account-token-clean-up-period", 365 * DAY);
        Self { clean_up_period, every: DAY }
    }

    /// Sets how long an unused token is kept, and how long an invalid one.
    #[must_use]
    pub fn clean_up_period(mut self, clean_up_period: Duration) -> Self {
        self.clean_up_period = clean_up_period;
        self
    }

    /// Sets the period of passes.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    if options.clean_up_period.is_zero() {
        return Err(Disabled::because("--legacy-service-account-token-clean-up-period must be positive"));
    }
    let secrets = serviceaccount_token::informer(cx);
    let accounts = cx.informer::<ServiceAccountView>();
    let pods = cx.informer::<PodView>();
    let passes = source::ticker(options.every, || vec![ObjectKey::cluster(PASS)]).immediately();
    let builder = cx.controller(&secrets).without_main_watch().source(passes);
    Ok(builder.needs_cache(&secrets).needs_cache(&accounts).needs_cache(&pods).reconcile(sync::Cleaner {
        secrets: secrets.lister(),
        accounts: accounts.lister(),
        pods: pods.lister(),
        period: options.clean_up_period,
    }))
}
