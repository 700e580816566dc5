//! Pure: the conditions of a terminating namespace.

use std::collections::BTreeMap;

use steersman_base::{Condition, ConditionStatus, Istr, Resource, Time};

use super::content::Outcome;

/// The findings of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The failed discovery.
    pub(super) discovery: Option<String>,
    /// The failed deletions, in the server's words.
    pub(super) failures: Vec<String>,
    /// The number of remaining objects per resource.
    pub(super) left: BTreeMap<String, usize>,
    /// The number of remaining objects per finalizer.
    pub(super) finalizers: BTreeMap<Istr, usize>,
    /// For how many seconds they may remain.
    pub(super) seconds: u64,
    /// Whether the remaining number of some resource is unknown.
    pub(super) unknown: bool,
}

/// A condition: its type, and its reason and message in the good case.
struct Kind {
    type_: &'static str,
    reason: &'static str,
    message: &'static str,
}

const DISCOVERY: Kind = Kind {
    type_: "NamespaceDeletionDiscoveryFailure",
    reason: "ResourcesDiscovered",
    message: "All resources successfully discovered",
};
const PARSING: Kind = Kind {
    type_: "NamespaceDeletionGroupVersionParsingFailure",
    reason: "ParsedGroupVersions",
    message: "All legacy kube types successfully parsed",
};
const DELETION: Kind = Kind {
    type_: "NamespaceDeletionContentFailure",
    reason: "ContentDeleted",
    message: "All content successfully deleted, may be waiting on finalization",
};
const CONTENT: Kind =
    Kind { type_: "NamespaceContentRemaining", reason: "ContentRemoved", message: "All content successfully removed" };
const FINALIZERS: Kind = Kind {
    type_: "NamespaceFinalizersRemaining",
    reason: "ContentHasNoFinalizers",
    message: "All content-preserving finalizers finished",
};

/// Returns the conditions that the namespace should have; `None` if it has them. Conditions of others are kept.
pub(super) fn conditions(held: &[Condition], findings: &Findings, now: Time) -> Option<Box<[Condition]>> {
    let mut conditions = held.to_vec();
    let mut changed = false;
    for condition in findings.conditions().into_iter().filter(|condition| !findings.is_unknown(condition)) {
        changed |= set(&mut conditions, condition, now);
    }
    changed.then(|| conditions.into())
}

/// As upstream: the time changes only with the status.
fn set(conditions: &mut Vec<Condition>, wanted: Condition, now: Time) -> bool {
    let Some(held) = conditions.iter_mut().find(|held| held.type_ == wanted.type_) else {
        conditions.push(Condition { last_transition_time: Some(now), ..wanted });
        return true;
    };
    let says = |condition: &Condition| (condition.status, condition.reason.clone(), condition.message.clone());
    if says(held) == says(&wanted) {
        return false;
    }
    let since = if held.status == wanted.status { held.last_transition_time } else { Some(now) };
    *held = Condition { last_transition_time: since, ..wanted };
    true
}

// === impl Findings ===

impl Findings {
    /// Adds the result for one resource.
    pub(super) fn add(&mut self, resource: &Resource, outcome: Outcome) {
        let Outcome { count, finalizers, seconds, failure } = outcome;
        if count > 0 {
            // With a dot, even for the core group, as upstream.
            *self.left.entry(format!("{}.{}", resource.plural, resource.group)).or_default() += count;
        }
        self.unknown |= count == 0 && failure.is_some();
        for (name, count) in finalizers {
            *self.finalizers.entry(name).or_default() += count;
        }
        self.failures.extend(failure);
        self.seconds = self.seconds.max(seconds);
    }

    /// Returns all errors in one sentence.
    pub(super) fn failure(&self) -> Option<String> {
        let all: Vec<&str> = self.discovery.iter().chain(&self.failures).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn conditions(&self) -> [Condition; 5] {
        let reported = |found: Option<(&str, String)>, kind: Kind| match found {
            Some((reason, message)) => Condition::new(kind.type_, ConditionStatus::True).because(reason, &message),
            None => Condition::new(kind.type_, ConditionStatus::False).because(kind.reason, kind.message),
        };
        [
            reported(self.discovery.clone().map(|message| ("DiscoveryFailed", message)), DISCOVERY),
            // Unreadable discovery counts as failed discovery: nothing is parsed here.
            reported(None, PARSING),
            reported(self.deletion_failures().map(|message| ("ContentDeletionFailed", message)), DELETION),
            reported(self.content_left().map(|message| ("SomeResourcesRemain", message)), CONTENT),
            reported(self.finalizers_left().map(|message| ("SomeFinalizersRemain", message)), FINALIZERS),
        ]
    }

    /// Whether the condition would say that nothing remains while that is unknown: then its previous value is kept.
    fn is_unknown(&self, condition: &Condition) -> bool {
        let is_about_content = [CONTENT.type_, FINALIZERS.type_].contains(&&*condition.type_);
        self.unknown && is_about_content && condition.status == ConditionStatus::False
    }

    fn deletion_failures(&self) -> Option<String> {
        let mut failures = self.failures.clone();
        failures.sort();
        let count = failures.len();
        (count > 0).then(|| format!("Failed to delete all resource types, {count} remaining: {}", failures.join(", ")))
    }

    fn content_left(&self) -> Option<String> {
        let each = self.left.iter().map(|(resource, count)| format!("{resource} has {count} resource instances"));
        sorted(each).map(|all| format!("Some resources are remaining: {all}"))
    }

    fn finalizers_left(&self) -> Option<String> {
        let each = self.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances"));
        sorted(each).map(|all| format!("Some content in the namespace has finalizers remaining: {all}"))
    }
}

/// Joins lines; `None` if there are none.
fn sorted(each: impl Iterator<Item = String>) -> Option<String> {
    let mut all: Vec<String> = each.collect();
    all.sort();
    (!all.is_empty()).then(|| all.join(", "))
}
