//! Pure: the conditions of a terminating namespace.

use std::collections::BTreeMap;

use steersman_base::{Condition, ConditionStatus, Istr, Resource, Time};

use super::content::Outcome;

/// What a pass has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// What could not be asked.
    pub(super) discovery: Option<String>,
    /// What could not be deleted, in the server's words.
    pub(super) failures: Vec<String>,
    /// How many objects are left, of which resource.
    pub(super) left: BTreeMap<String, usize>,
    /// How many of them wait for which finalizer.
    pub(super) finalizers: BTreeMap<Istr, usize>,
    /// For how many seconds they may be left.
    pub(super) seconds: u64,
    /// Whether nobody could tell what is left, of some resource at least.
    pub(super) unknown: bool,
}

/// A condition: its type, and what it says when all is well.
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

/// The conditions as they should be; `None` if they are. Those of others stay.
pub(super) fn conditions(held: &[Condition], findings: &Findings, now: Time) -> Option<Box<[Condition]>> {
    let mut conditions = held.to_vec();
    let mut changed = false;
    for condition in findings.conditions().into_iter().filter(|condition| !findings.cannot_tell(condition)) {
        changed |= set(&mut conditions, condition, now);
    }
    changed.then(|| conditions.into())
}

/// As upstream does it: the time changes with the status alone.
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
    /// Adds what came of one resource.
    pub(super) fn add(&mut self, resource: &Resource, outcome: Outcome) {
        let Outcome { count, finalizers, seconds, failure } = outcome;
        if count > 0 {
            // With a dot, even if there is no group: upstream's way.
            *self.left.entry(format!("{}.{}", resource.plural, resource.group)).or_default() += count;
        }
        self.unknown |= count == 0 && failure.is_some();
        for (name, count) in finalizers {
            *self.finalizers.entry(name).or_default() += count;
        }
        self.failures.extend(failure);
        self.seconds = self.seconds.max(seconds);
    }

    /// Everything that went wrong, in a sentence.
    pub(super) fn failure(&self) -> Option<String> {
        let all: Vec<&str> = self.discovery.iter().chain(&self.failures).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn conditions(&self) -> [Condition; 5] {
        let told = |found: Option<(&str, String)>, kind: Kind| match found {
            Some((reason, message)) => Condition::new(kind.type_, ConditionStatus::True).because(reason, &message),
            None => Condition::new(kind.type_, ConditionStatus::False).because(kind.reason, kind.message),
        };
        [
            told(self.discovery.clone().map(|message| ("DiscoveryFailed", message)), DISCOVERY),
            // Discovery that cannot be read is discovery that failed: there is nothing left to be parsed here.
            told(None, PARSING),
            told(self.deletion_failures().map(|message| ("ContentDeletionFailed", message)), DELETION),
            told(self.content_left().map(|message| ("SomeResourcesRemain", message)), CONTENT),
            told(self.finalizers_left().map(|message| ("SomeFinalizersRemain", message)), FINALIZERS),
        ]
    }

    /// Whether a condition says that nothing is left, and that is not known: then what was said before stays.
    fn cannot_tell(&self, condition: &Condition) -> bool {
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

/// One line of all; `None` of nothing.
fn sorted(each: impl Iterator<Item = String>) -> Option<String> {
    let mut all: Vec<String> = each.collect();
    all.sort();
    (!all.is_empty()).then(|| all.join(", "))
}
