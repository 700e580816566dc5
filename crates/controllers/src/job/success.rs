//! Pure: whether the succeeded indexes are enough.

use steersman_model::batch::{SuccessPolicy, SuccessRule};

use super::indexes::Indexes;

/// Returns which rule the succeeded indexes of a Job fulfil, in upstream's words, if they do.
pub(super) fn met(policy: Option<&SuccessPolicy>, completions: i32, succeeded: &Indexes) -> Option<String> {
    let rules = &policy?.rules;
    let at = rules.iter().position(|rule| is_met(rule, completions, succeeded))?;
    Some(format!("Matched rules at index {at}"))
}

fn is_met(rule: &SuccessRule, completions: i32, succeeded: &Indexes) -> bool {
    if succeeded.is_empty() {
        return false;
    }
    let is_enough = |count: i32| rule.succeeded_count.is_some_and(|wanted| count >= wanted);
    let Some(indexes) = &rule.succeeded_indexes else { return is_enough(succeeded.len()) };
    let indexes = Indexes::parse(indexes, completions);
    let count = indexes.overlap(succeeded);
    !indexes.is_empty() && (count == indexes.len() || is_enough(count))
}
