//! What is said about a pod for which there is no node: `FitError` of `pkg/scheduler/framework/types.go`, with what the
//! default preemption adds. Nothing is preempted here.

use std::collections::BTreeMap;

use super::filter::Refusal;

/// The message, from what each node says; `is_meek` is a pod that would take nobody's place away.
pub(super) fn unschedulable(refusals: &[Refusal], is_meek: bool) -> String {
    let Some(first) = refusals.first() else { return "no nodes available to schedule pods".to_owned() };
    let all = refusals.len();
    if first.is_of_all {
        // Upstream's words, the last two included.
        return format!("0/{all} nodes are available: {}. not found", first.reasons.join(", "));
    }
    let reasons = refusals.iter().flat_map(|refusal| refusal.reasons.iter().map(AsRef::as_ref));
    let preemption = refusals.iter().map(|refusal| match refusal.is_resolvable {
        true => "No preemption victims found for incoming pod",
        false => "Preemption is not helpful for scheduling",
    });
    let reasons = histogram(reasons);
    let preemption = match is_meek {
        true => "not eligible due to preemptionPolicy=Never.".to_owned(),
        false => format!("0/{all} nodes are available: {}.", histogram(preemption)),
    };
    format!("0/{all} nodes are available: {reasons}. preemption: {preemption}")
}

/// Each text with how often it comes, sorted as texts.
fn histogram<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    let mut lines: Vec<_> = counts.into_iter().map(|(text, count)| format!("{count} {text}")).collect();
    lines.sort();
    lines.join(", ")
}
