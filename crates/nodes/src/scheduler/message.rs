//! What is said about a pod for which there is no node: `FitError` of `pkg/scheduler/framework/types.go`, with what the
//! default preemption adds. Nothing is preempted here.

use std::collections::BTreeMap;

use super::filter::Refusal;

/// The message, from what each node says.
pub(super) fn unschedulable(refusals: &[Refusal]) -> String {
    if refusals.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let all = refusals.len();
    let reasons = refusals.iter().flat_map(|refusal| refusal.reasons.iter().map(AsRef::as_ref));
    let preemption = refusals.iter().map(|refusal| match refusal.is_resolvable {
        true => "No preemption victims found for incoming pod",
        false => "Preemption is not helpful for scheduling",
    });
    let (reasons, preemption) = (histogram(reasons), histogram(preemption));
    format!("0/{all} nodes are available: {reasons}. preemption: 0/{all} nodes are available: {preemption}.")
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
