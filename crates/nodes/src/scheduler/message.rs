//! The message about a pod that fits no node: `FitError` of `pkg/scheduler/framework/types.go`, with the addition of
//! the default preemption. Nothing is preempted here.

use std::collections::BTreeMap;

use super::filter::Refusal;

/// Returns the message, from the reason of each node; `never_preempts` is a pod that preempts nobody.
pub(super) fn unschedulable(refusals: &[Refusal], never_preempts: bool) -> String {
    let Some(first) = refusals.first() else { return "no nodes available to schedule pods".to_owned() };
    let all = refusals.len();
    if first.is_of_all {
        // Upstream's words, including the last two.
        return format!("0/{all} nodes are available: {}. not found", first.reasons.join(", "));
    }
    let reasons = refusals.iter().flat_map(|refusal| refusal.reasons.iter().map(AsRef::as_ref));
    let preemption = refusals.iter().map(|refusal| match refusal.is_resolvable {
        true => "No preemption victims found for incoming pod",
        false => "Preemption is not helpful for scheduling",
    });
    let reasons = histogram(reasons);
    let preemption = match never_preempts {
        true => "not eligible due to preemptionPolicy=Never.".to_owned(),
        false => format!("0/{all} nodes are available: {}.", histogram(preemption)),
    };
    format!("0/{all} nodes are available: {reasons}. preemption: {preemption}")
}

/// Returns each text with its count, sorted.
fn histogram<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    let mut lines: Vec<_> = counts.into_iter().map(|(text, count)| format!("{count} {text}")).collect();
    lines.sort();
    lines.join(", ")
}
