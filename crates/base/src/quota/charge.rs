//! What a write adds to the quotas of its namespace, or why it is refused.

use super::amounts::{self, shown};
use super::{Amounts, Facts, Requirement, Subject, Tracker};
use crate::{Istr, Quantity};

/// A quota as it is enforced: from its status, not from its spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// The name.
    pub name: Istr,
    /// The limits: `status.hard`.
    pub hard: Amounts,
    /// The usage: `status.used`.
    pub used: Amounts,
    /// The scopes: only objects in all of them are counted.
    pub scopes: Vec<Requirement>,
}

/// A write that quotas may refuse.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The names under which quotas count the resource.
    pub tracker: &'a Tracker,
    /// The object.
    pub new: &'a Subject,
    /// The object before; none if it is new.
    pub old: Option<&'a Subject>,
    /// Whether it is the status that is written: it is counted, and never refused.
    pub is_status: bool,
}

/// Returns the quotas that the write changes, by their place, each with its new usage.
///
/// # Errors
/// A quota is exceeded, has no usage yet, or requires what the object does not specify; the message is upstream's.
pub fn charge(quotas: &[Quota], write: Write<'_>, facts: Facts<'_>) -> Result<Vec<(usize, Amounts)>, String> {
    let Write { tracker, new, old, is_status } = write;
    let mut counting = Vec::new();
    for (at, quota) in quotas.iter().enumerate().filter(|(_, quota)| quota.counts(tracker, new, facts)) {
        let tracked = || quota.hard.keys().filter(|name| tracker.tracks(name, facts.classes));
        let name = &quota.name;
        new.check_specified(tracked().map(|name| &**name))
            .map_err(|problem| format!("failed quota: {name}: {problem}"))?;
        if tracked().any(|tracked| !quota.used.contains_key(tracked)) {
            let names: Vec<&str> = tracked().map(|name| &**name).collect();
            return Err(format!("status unknown for quota: {name}, resources: {}", names.join(",")));
        }
        counting.push((at, quota));
    }
    if counting.is_empty() {
        return Ok(Vec::new());
    }
    let usage = new.usage(facts);
    let negative: Vec<&str> =
        usage.iter().filter(|(_, quantity)| quantity.is_negative()).map(|(name, _)| &**name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    let more = old.map(|old| amounts::without(&usage, &old.usage(facts)));
    let mut changed = Vec::new();
    for (at, quota) in counting {
        let was_counted = old.is_some_and(|old| quota.counts(tracker, old, facts));
        let added = more.as_ref().filter(|_| was_counted).unwrap_or(&usage);
        let requested: Amounts = added
            .iter()
            .filter(|(name, quantity)| !quantity.is_zero() && quota.hard.contains_key(*name))
            .map(|(name, quantity)| (name.clone(), *quantity))
            .collect();
        if requested.is_empty() {
            continue;
        }
        let mut used = quota.used.clone();
        amounts::add(&mut used, &requested);
        if !is_status {
            quota.check(&requested, &used)?;
        }
        changed.push((at, used));
    }
    Ok(changed)
}

// === impl Quota ===

impl Quota {
    /// Whether the quota counts an object: some of its names may, and the object is in all its scopes.
    #[must_use]
    pub fn counts(&self, tracker: &Tracker, subject: &Subject, facts: Facts<'_>) -> bool {
        self.hard.keys().any(|name| tracker.tracks(name, facts.classes))
            && self.scopes.iter().all(|scope| subject.is_in(scope))
    }

    fn check(&self, requested: &Amounts, used: &Amounts) -> Result<(), String> {
        let is_exceeded = |name: &Istr| {
            let limit = self.hard.get(name).copied().unwrap_or_default();
            used.get(name).copied().unwrap_or_default() > limit
        };
        let exceeded: Vec<&Istr> = requested.keys().filter(|name| is_exceeded(name)).collect();
        if exceeded.is_empty() {
            return Ok(());
        }
        let of = |amounts: &Amounts| -> String {
            let kept = |name: &&Istr| -> Option<(Istr, Quantity)> { Some(((*name).clone(), *amounts.get(*name)?)) };
            shown(&exceeded.iter().filter_map(kept).collect())
        };
        Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.name,
            of(requested),
            of(&self.used),
            of(&self.hard)
        ))
    }
}
