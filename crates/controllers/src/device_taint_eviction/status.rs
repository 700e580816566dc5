//! Pure: the condition of a rule that says how far its evictions are.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Condition, ConditionStatus, Istr, Resource, Time, condition};
use steersman_model::resource::DeviceTaintRuleView;
use steersman_model::{Kind, View};

const RULES: &Resource = &DeviceTaintRuleView::RESOURCE;
/// The condition of rules.
const IN_PROGRESS: &str = "EvictionInProgress";
/// A condition is written at most once in this time: upstream's figure.
pub(super) const PERIOD: Duration = Duration::from_secs(10);

/// The numbers of pods that a rule evicts, or would evict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// The namespaces of the pods that are to be evicted, one for each pod.
    pub(super) pending: Vec<Istr>,
    /// Published devices of the rule.
    pub(super) published: usize,
    /// Allocated devices of the rule.
    pub(super) allocated: usize,
    /// The pods that were evicted since the start.
    pub(super) evicted: u64,
}

/// Returns the time until the condition may be written again, if it is too early.
pub(super) fn too_early(rule: &DeviceTaintRuleView, now: Time) -> Option<Duration> {
    let held = condition::find(&rule.status.conditions, IN_PROGRESS)?;
    let since = now.since(held.last_transition_time?);
    (held.observed_generation == rule.meta().generation && since < PERIOD).then(|| PERIOD.saturating_sub(since))
}

/// Returns the condition of a rule, if it is another than the one it has. The texts are upstream's.
pub(super) fn changed(rule: &DeviceTaintRuleView, counts: &Counts, now: Time) -> Option<Condition> {
    let held = condition::find(&rule.status.conditions, IN_PROGRESS);
    let effect = &rule.spec.taint.effect;
    let (status, reason, mut message) = match &**effect {
        "NoExecute" if !counts.pending.is_empty() => {
            let message = format!("{} in {}.", counts.pods("needs", "need", "to be evicted"), counts.namespaces());
            (ConditionStatus::True, "PodsPendingEviction", message)
        }
        "NoExecute" if counts.evicted > 0 => (ConditionStatus::False, "Completed", String::new()),
        "NoExecute" => (ConditionStatus::False, "NotStarted", String::new()),
        "None" => (ConditionStatus::False, "NoEffect", counts.simulated()),
        _ => (ConditionStatus::False, "OtherEffect", "Eviction only happens for the NoExecute effect.".to_owned()),
    };
    if counts.evicted > 0 {
        let space = if message.is_empty() { "" } else { " " };
        let pods = if counts.evicted == 1 { "1 pod".to_owned() } else { format!("{} pods", counts.evicted) };
        message += &format!("{space}{pods} evicted since starting the controller.");
    }
    let wanted = Condition {
        type_: IN_PROGRESS.into(),
        status,
        reason: reason.into(),
        message: message.into(),
        observed_generation: rule.meta().generation,
        last_transition_time: held.and_then(|held| held.last_transition_time),
        ..Condition::default()
    };
    // Upstream counts the time from the last write, not from the last change of the status.
    (held != Some(&wanted)).then(|| Condition { last_transition_time: Some(now), ..wanted })
}

/// Returns what to apply to the status of a rule.
pub(super) fn applied(rule: &DeviceTaintRuleView, condition: &Condition) -> Value {
    json!({
        "apiVersion": RULES.api_version(),
        "kind": RULES.kind,
        "metadata": { "name": rule.meta().name, "uid": rule.meta().uid },
        "status": { "conditions": [condition] },
    })
}

// === impl Counts ===

impl Counts {
    fn pods(&self, one: &str, many: &str, what: &str) -> String {
        match self.pending.len() {
            1 => format!("1 pod {one} {what}"),
            count => format!("{count} pods {many} {what}"),
        }
    }

    fn namespaces(&self) -> String {
        match self.pending.iter().collect::<BTreeSet<_>>().len() {
            1 => "1 namespace".to_owned(),
            count => format!("{count} different namespaces"),
        }
    }

    fn simulated(&self) -> String {
        let devices = |count: usize, kind: &str| match count {
            1 => format!("1 {kind} device selected."),
            _ => format!("{count} {kind} devices selected."),
        };
        format!(
            "{} {} {} in {} if the effect was NoExecute. This information will not be updated again. Recreate the \
             DeviceTaintRule to trigger an update.",
            devices(self.published, "published"),
            devices(self.allocated, "allocated"),
            self.pods("would", "would", "be evicted"),
            self.namespaces(),
        )
    }
}
