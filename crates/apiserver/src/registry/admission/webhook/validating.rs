//! Validating webhooks: asked all at once, and each must agree.

use super::super::attributes::Attributes;
use super::Session;
use super::asking::start;
use super::review::{self, Of, Response};
use crate::registry::Registry;
use crate::status::Status;

/// Asks the webhooks. If several refuse, the first of them is heard.
pub(super) fn admit(registry: &Registry, session: &Session, attributes: &Attributes<'_>) -> Result<(), Status> {
    let mut invocations = Vec::new();
    for hook in &session.hooks.validating {
        if let Some(invocation) = attributes.asked_of(registry, hook)? {
            invocations.push((hook, invocation));
        }
    }
    if invocations.is_empty() {
        return Ok(());
    }
    if session.line.is_over() {
        return Err(Status::timed_out());
    }
    let asked: Vec<_> = invocations
        .iter()
        .map(|(hook, invocation)| (*hook, start(registry, session, hook, invocation, attributes)))
        .collect();
    // All are heard, so that the warnings of all are known.
    let mut verdict = Ok(());
    for (hook, asking) in asked {
        let answered = asking.and_then(|asking| asking.wait(hook, Of::Validating));
        let judged = match answered {
            Ok(Response { is_allowed, result, warnings, .. }) => {
                session.warn(warnings);
                if is_allowed { Ok(()) } else { Err(review::denial(&hook.name, &result)) }
            }
            Err(failure) => session.judge(hook, failure),
        };
        verdict = verdict.and(judged);
    }
    verdict
}
