//! The webhooks of all configurations, read once for all requests.

use std::time::Duration;

use serde_json::Value;

use super::super::conditions::MatchConditions;
use super::super::matching::Criteria;
use crate::kinds::shared::json::{items, number, text};
use crate::registry::object_meta::meta_text;
use crate::registry::query::strings;
use crate::webhook::ClientConfig;

/// The time limit of a webhook that sets none: the default of `timeoutSeconds`.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest `timeoutSeconds`.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// The webhooks, in the order in which they are asked.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) mutating: Vec<Hook>,
    pub(crate) validating: Vec<Hook>,
}

/// A webhook of a configuration.
#[derive(Debug)]
pub(crate) struct Hook {
    /// `name`
    pub(crate) name: String,
    /// The identity of the webhook: names may repeat.
    pub(super) id: String,
    pub(super) criteria: Criteria,
    pub(super) conditions: MatchConditions,
    /// `failurePolicy: Ignore`
    pub(super) is_ignored_on_failure: bool,
    /// Whether it has no side effects in a dry run.
    pub(super) allows_dry_run: bool,
    /// `reinvocationPolicy: IfNeeded`
    pub(super) is_reinvoked: bool,
    pub(super) timeout: Duration,
    pub(super) review_versions: Vec<String>,
    pub(super) client: ClientConfig,
}

// === impl Hooks ===

impl Hooks {
    /// Reads the webhooks of stored configurations, which are ordered by name.
    pub(crate) fn read(mutating: &[Value], validating: &[Value]) -> Self {
        let read = |configurations: &[Value]| configurations.iter().flat_map(Hook::read_all).collect();
        Self { mutating: read(mutating), validating: read(validating) }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }
}

// === impl Hook ===

impl Hook {
    fn read_all(configuration: &Value) -> Vec<Self> {
        let owner = meta_text(configuration, "name");
        let hooks = items(&configuration["webhooks"]).iter().enumerate();
        hooks.map(|(at, hook)| Self::read(hook, format!("{owner}/{}/{at}", text(&hook["name"])))).collect()
    }

    fn read(hook: &Value, id: String) -> Self {
        let seconds = u64::try_from(number(&hook["timeoutSeconds"])).ok().filter(|seconds| *seconds > 0);
        Self {
            name: text(&hook["name"]).to_owned(),
            id,
            criteria: Criteria::of_webhook(hook),
            conditions: MatchConditions::read(&hook["matchConditions"]),
            is_ignored_on_failure: hook["failurePolicy"] == "Ignore",
            allows_dry_run: matches!(text(&hook["sideEffects"]), "None" | "NoneOnDryRun"),
            is_reinvoked: hook["reinvocationPolicy"] == "IfNeeded",
            timeout: seconds.map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.min(TIMEOUT_SECONDS_MAX))),
            review_versions: strings(&hook["admissionReviewVersions"]).into_iter().map(str::to_owned).collect(),
            client: ClientConfig::read(&hook["clientConfig"]),
        }
    }
}
