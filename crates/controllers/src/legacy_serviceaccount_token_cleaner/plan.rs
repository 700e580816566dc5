//! Pure: which tokens are marked as invalid, and which are deleted.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::names::annotations::{SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_UID};
use steersman_base::names::labels::{LEGACY_TOKEN_INVALID_SINCE, LEGACY_TOKEN_LAST_USED};
use steersman_base::{Istr, Meta, Time, Uid};
use steersman_model::View;
use steersman_model::core::{PodView, ServiceAccountView, TokenSecretView};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The time before which tokens are unused for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    now: Time,
    /// The time that is one period ago.
    since: Time,
}

/// The action on a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Keep,
    /// Mark it as invalid since today: the server refuses it, and an administrator can remove the mark.
    Invalidate,
    /// Delete it.
    Delete,
}

// === impl Limit ===

impl Limit {
    /// Returns the limit, if the use of tokens has been tracked for at least a period since the end of that day.
    pub(super) fn new(tracked_since: Time, period: Duration, now: Time) -> Option<Self> {
        let period = i64::try_from(period.as_secs()).unwrap_or(i64::MAX);
        let is_tracked_for_long = now >= tracked_since.plus_seconds(DAY_SECONDS).plus_seconds(period);
        is_tracked_for_long.then(|| Self { now, since: now.plus_seconds(period.saturating_neg()) })
    }

    /// Whether a token was created and last used before the limit. A token without a mark was not used since use is
    /// tracked; a mark that is no date says nothing, and keeps the token.
    pub(super) fn is_unused(&self, secret: &Meta) -> bool {
        let is_old = secret.creation_timestamp.is_none_or(|created| created < self.since);
        let is_unused = match secret.labels.get(LEGACY_TOKEN_LAST_USED) {
            Some(used) => date(used).is_some() && **used < *day(self.since),
            None => true,
        };
        is_old && is_unused && !secret.is_terminating()
    }

    /// Returns what to do with an unused token that was made automatically and that no pod uses.
    pub(super) fn step(&self, secret: &Meta) -> Step {
        let since = secret.labels.get(LEGACY_TOKEN_INVALID_SINCE).filter(|since| date(since).is_some());
        match since {
            None => Step::Invalidate,
            Some(since) if **since < *day(self.since) => Step::Delete,
            Some(_) => Step::Keep,
        }
    }

    /// Returns the patch that marks a token as invalid since today.
    pub(super) fn invalid(&self, secret: &Meta) -> Value {
        json!({ "metadata": { "uid": secret.uid, "labels": { LEGACY_TOKEN_INVALID_SINCE: day(self.now) } } })
    }
}

/// Returns the start of a day, if the text is a date.
pub(super) fn date(text: &str) -> Option<Time> {
    let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_date.then(|| format!("{text}T00:00:00Z").parse().ok()).flatten()
}

fn day(time: Time) -> String {
    let mut text = time.to_string();
    text.truncate(10);
    text
}

/// Returns the name of the account that a token is for.
pub(super) fn account_name(secret: &TokenSecretView) -> Option<&Istr> {
    secret.meta().annotations.get(SERVICE_ACCOUNT_NAME).filter(|name| !name.is_empty())
}

/// Whether a token was made automatically for an account: the account lists it. `account` has the name that the token says.
pub(super) fn is_automatic(secret: &TokenSecretView, account: &ServiceAccountView) -> bool {
    let uid = secret.meta().annotations.get(SERVICE_ACCOUNT_UID).filter(|uid| !uid.is_empty());
    let is_for_it = uid.is_none_or(|uid| account.meta().uid == Uid::new(uid));
    is_for_it && account.secret_names.contains(&secret.meta().name)
}

/// Adds the names of the secrets that a pod uses.
pub(super) fn add_secrets(pod: &PodView, names: &mut BTreeSet<Istr>) {
    let spec = &pod.spec;
    names.extend(spec.image_pull_secrets.iter().cloned());
    names.extend(spec.volumes.iter().flat_map(|volume| &volume.secret_names).cloned());
    for container in spec.containers.iter().chain(&spec.init_containers).chain(&spec.ephemeral_containers) {
        names.extend(container.env_secrets.iter().chain(&container.env_from_secrets).cloned());
    }
}
