//! Mutating webhooks: asked one after the other, each with what the one before has made of the object.
//!
//! Mutating policies come before them, in every round ([`Policies::mutate`](super::Policies)).
//!
//! A webhook with `reinvocationPolicy: IfNeeded` is asked once more if, after its turn, another webhook or a plug-in has changed
//! the object. Nobody is asked more than twice.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::attributes::{Attributes, Invocation};
use super::super::policy::Memory;
use super::asking::start;
use super::configuration::Hook;
use super::review::{self, Of, Response};
use super::{Failure, Session};
use crate::patch::{Patch, PatchType};
use crate::registry::Registry;
use crate::status::Status;

/// The webhooks that are to be called again.
#[derive(Default)]
struct Reinvocation<'a> {
    /// Asked since the object last changed.
    asked: BTreeSet<&'a str>,
    /// To be asked again.
    again: BTreeSet<&'a str>,
}

/// Asks the webhooks, twice if need be.
pub(super) fn admit(
    registry: &Registry,
    session: &Session,
    attributes: &mut Attributes<'_>,
    in_tree: &mut dyn FnMut(&mut Value) -> Result<(), Status>,
) -> Result<(), Status> {
    let mut memory = Reinvocation::default();
    let mut of_policies = Memory::default();
    let policies = &session.mutating_policies;
    if let Some(object) = &mut attributes.object {
        in_tree(object)?;
    }
    let changed_by_policy = policies.mutate(registry, attributes, &mut of_policies)?;
    let changed_by_webhook = round(registry, session, attributes, &mut memory, true)?;
    if !changed_by_policy && !changed_by_webhook {
        return Ok(());
    }
    let before = attributes.object.clone();
    if let Some(object) = &mut attributes.object {
        in_tree(object)?;
    }
    policies.mutate(registry, attributes, &mut of_policies)?;
    if attributes.object != before {
        memory.object_changed();
    }
    round(registry, session, attributes, &mut memory, false)?;
    Ok(())
}

/// Asks all webhooks, or those that are to be asked again. Returns whether one has changed the object.
fn round<'a>(
    registry: &Registry,
    session: &'a Session,
    attributes: &mut Attributes<'_>,
    memory: &mut Reinvocation<'a>,
    is_first: bool,
) -> Result<bool, Status> {
    let mut has_changed = false;
    for hook in &session.hooks.mutating {
        let Some(invocation) = attributes.asked_of(registry, hook)? else { continue };
        if !is_first && !memory.again.contains(hook.id.as_str()) {
            continue;
        }
        let asked = ask(registry, session, hook, &invocation, attributes);
        if matches!(asked, Ok(true)) {
            memory.object_changed();
            has_changed = true;
        }
        if hook.is_reinvoked {
            memory.asked.insert(&hook.id);
        }
        if let Err(failure) = asked {
            session.judge(hook, failure)?;
        }
    }
    Ok(has_changed)
}

/// Asks one webhook, and does what it says. Returns whether that has changed the object.
fn ask(
    registry: &Registry,
    session: &Session,
    hook: &Hook,
    invocation: &Invocation,
    attributes: &mut Attributes<'_>,
) -> Result<bool, Failure> {
    let asking = start(registry, session, hook, invocation, attributes)?;
    let Response { is_allowed, patch, patch_type, result, warnings } = asking.wait(hook, Of::Mutating)?;
    session.warn(warnings);
    if !is_allowed {
        return Err(Failure::Refused(review::denial(&hook.name, &result)));
    }
    match patched(&hook.name, &patch, &patch_type, || attributes.shown(invocation))? {
        Some(patched) => attributes.take_patched(invocation, patched).map_err(Failure::Refused),
        None => Ok(false),
    }
}

/// Returns what the patch of a webhook makes of the object that was shown to it; none if it changes nothing.
pub(super) fn patched(
    hook: &str,
    patch: &[u8],
    patch_type: &str,
    shown: impl FnOnce() -> Result<Option<Value>, Status>,
) -> Result<Option<Value>, Failure> {
    if patch.is_empty() {
        return Ok(None);
    }
    let undecodable = |why: String| Failure::Calling(format!("received undecodable patch in webhook response: {why}"));
    let operations = crate::decode::json(patch).map_err(undecodable)?.value;
    match &operations {
        Value::Array(list) if list.is_empty() => return Ok(None),
        Value::Null => return Ok(None),
        Value::Array(_) => {}
        other => {
            let found = crate::decode::type_name(other);
            return Err(undecodable(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch")));
        }
    }
    let internal = |why: String| Failure::Refused(Status::internal(why));
    let Some(shown) = shown().map_err(Failure::Refused)? else {
        let why = format!(
            "admission webhook {hook:?} attempted to modify the object, which is not supported for this operation"
        );
        return Err(internal(why));
    };
    if patch_type != "JSONPatch" {
        return Err(Failure::Calling(format!("unsupported patch type {patch_type:?}")));
    }
    let patch = Patch::read(PatchType::Json, patch).map_err(|error| internal(error.message))?;
    patch.apply_json(shown).map(Some).map_err(internal)
}

// === impl Reinvocation ===

impl Reinvocation<'_> {
    /// Remembers that everybody who has been asked has seen another object.
    fn object_changed(&mut self) {
        self.again.append(&mut self.asked);
    }
}
