//! The shell: adopts and releases objects.

use std::sync::Arc;

use serde_json::json;
use steersman_base::{Istr, Meta, Selector};
use steersman_model::Kind;
use steersman_runtime::__internal::Children;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Context, Error, Patch, WriteError, reasons};

use super::{Claim, claim, owner_ref};

/// The objects of an owner after claiming.
pub(crate) struct Claimed<V> {
    /// The owner's objects that count.
    pub(crate) own: Vec<Arc<V>>,
    /// The owner's objects that do not count.
    pub(crate) others: Vec<Arc<V>>,
    /// Whether one of them was adopted in this pass.
    pub(crate) has_adopted: bool,
}

/// Claims objects for one owner, in one pass.
struct Claimer<'a, O> {
    cx: &'a Context,
    owner: &'a O,
    /// The finalizer that objects of the owner have.
    finalizer: Option<&'static str>,
    /// Whether the server was asked if the owner still exists: once per pass is enough.
    checked: bool,
}

reasons! {
    /// Why an object gets another controller.
    pub(crate) enum Why {
        /// An object without controller matches the selector.
        Adopt { object: Istr } => "orphan {object} matches the selector",
        /// An object of ours no longer matches the selector.
        Release { object: Istr } => "{object} does not match the selector any more",
    }
}

/// Returns the owner's objects: orphans that match and count are adopted, objects that no longer match are released. An
/// object that does not `count` is neither adopted nor released.
pub(crate) async fn claimed<O: Kind, V: Kind>(
    cx: &Context,
    children: &Children<V>,
    owner: &O,
    selector: &Selector,
    counts: impl Fn(&V) -> bool,
) -> Result<Claimed<V>, Error> {
    claimed_if(cx, children, owner, |object| selector.matches(&object.meta().labels), counts).await
}

/// As [`claimed`], with a condition of the owner's own in place of a selector.
pub(crate) async fn claimed_if<O: Kind, V: Kind>(
    cx: &Context,
    children: &Children<V>,
    owner: &O,
    is_selected: impl Fn(&V) -> bool,
    counts: impl Fn(&V) -> bool,
) -> Result<Claimed<V>, Error> {
    claimed_by(&mut Claimer { cx, owner, finalizer: None, checked: false }, children, is_selected, counts).await
}

/// As [`claimed`]; adopted objects get a finalizer, and released ones lose it.
pub(crate) async fn claimed_with<O: Kind, V: Kind>(
    cx: &Context,
    children: &Children<V>,
    owner: &O,
    selector: &Selector,
    counts: impl Fn(&V) -> bool,
    finalizer: &'static str,
) -> Result<Claimed<V>, Error> {
    let is_selected = |object: &V| selector.matches(&object.meta().labels);
    let finalizer = Some(finalizer);
    claimed_by(&mut Claimer { cx, owner, finalizer, checked: false }, children, is_selected, counts).await
}

async fn claimed_by<O: Kind, V: Kind>(
    claimer: &mut Claimer<'_, O>,
    children: &Children<V>,
    is_selected: impl Fn(&V) -> bool,
    counts: impl Fn(&V) -> bool,
) -> Result<Claimed<V>, Error> {
    let mut claimed = Claimed { own: Vec::new(), others: Vec::new(), has_adopted: false };
    let mut refused = None;
    for object in children.own_and_orphaned(claimer.cx, claimer.owner.meta()).await? {
        let is_claimed = claim(claimer.owner.meta(), is_selected(&object), object.meta());
        let outcome = match is_claimed {
            _ if !counts(&object) => {
                if is_claimed == Claim::Keep {
                    claimed.others.push(object);
                }
                Ok(())
            }
            Claim::Ignore => Ok(()),
            Claim::Keep => {
                claimed.own.push(object);
                Ok(())
            }
            Claim::Release => claimer.release::<V>(object.meta()).await,
            Claim::Adopt => {
                claimer.check_still_wanted().await?;
                claimer.adopt::<V>(object.meta()).await.map(|is_there| {
                    if is_there {
                        claimed.own.push(object);
                        claimed.has_adopted = true;
                    }
                })
            }
        };
        match outcome {
            Ok(()) => {}
            Err(error) if concerns_one_object(&error) => refused = refused.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    // What the owner has is not certain before every object is claimed.
    refused.map_or(Ok(claimed), |error| Err(error.into()))
}

/// Whether a failure to claim an object concerns that object alone: the server refused the write. The others are claimed
/// all the same. Any other failure would meet them, too.
pub(super) fn concerns_one_object(error: &WriteError) -> bool {
    matches!(error, WriteError::Rejected(_) | WriteError::Conflict)
}

// === impl Claimer ===

impl<O: Kind> Claimer<'_, O> {
    /// The cache may show an owner that was deleted or replaced: before the first adoption, the server is asked.
    async fn check_still_wanted(&mut self) -> Result<(), Error> {
        if self.checked {
            return Ok(());
        }
        let key = self.owner.meta().key();
        let uid = &self.owner.meta().uid;
        match self.cx.live.get_meta(&O::RESOURCE, &key).await? {
            Some(live) if live.uid == *uid && !live.is_terminating() => {
                self.checked = true;
                Ok(())
            }
            Some(live) if live.uid == *uid => {
                Err(Error::message(format!("{key} was deleted just now: it adopts nothing")))
            }
            _ => Err(Error::message(format!("{key} is gone, or another one: it adopts nothing"))),
        }
    }

    /// Adopts an object; returns whether it still exists.
    async fn adopt<V: Kind>(&self, object: &Meta) -> Result<bool, WriteError> {
        let mut patch = json!({ "metadata": { "ownerReferences": [owner_ref(self.owner)], "uid": object.uid } });
        if let Some(finalizer) = self.finalizer {
            patch["metadata"]["finalizers"] = json!([finalizer]);
        }
        let why = Why::Adopt { object: object.name.clone() };
        let write = self.cx.writer.on_behalf_of(self.owner.meta());
        match write.patch(&V::RESOURCE, &object.key(), Patch::Strategic(&patch), &why).await {
            Ok(_) => Ok(true),
            Err(WriteError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn release<V: Kind>(&self, object: &Meta) -> Result<(), WriteError> {
        let drop_us = json!({ "$patch": "delete", "uid": self.owner.meta().uid });
        let mut patch = json!({ "metadata": { "ownerReferences": [drop_us], "uid": object.uid } });
        if let Some(finalizer) = self.finalizer {
            patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([finalizer]);
        }
        let why = Why::Release { object: object.name.clone() };
        let write = self.cx.writer.on_behalf_of(self.owner.meta());
        let released = write.patch(&V::RESOURCE, &object.key(), Patch::Strategic(&patch), &why).await;
        // It has no owners any more, or another object has the name: it is released either way.
        let is_released =
            |error: &WriteError| matches!(error, WriteError::Rejected(status) if status.reason == "Invalid");
        released.ok_if_gone().ok_if(is_released)
    }
}
