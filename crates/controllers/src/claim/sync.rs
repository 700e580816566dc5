//! The shell: takes what is to be taken, and lets go what is to be let go.

use serde_json::json;
use steersman_base::{Istr, Meta, Selector};
use steersman_model::Kind;
use steersman_runtime::{Context, Error, Patch, WriteError, live, reasons};

use super::{Claim, claim, owner_ref};

/// Claims objects for one owner, in one pass.
pub(crate) struct Claimer<'a, O> {
    cx: &'a Context,
    client: &'a kube::Client,
    owner: &'a O,
    selector: &'a Selector,
    /// Whether the server was asked if the owner is still there: once a pass is enough.
    checked: bool,
}

reasons! {
    /// Why an object changes hands.
    pub(crate) enum Why {
        /// An object without owner matches the selector.
        Adopt { object: Istr } => "orphan {object} matches the selector",
        /// An object of ours does not match the selector any more.
        Release { object: Istr } => "{object} does not match the selector any more",
    }
}

// === impl Claimer ===

impl<'a, O: Kind> Claimer<'a, O> {
    pub(crate) fn new(cx: &'a Context, client: &'a kube::Client, owner: &'a O, selector: &'a Selector) -> Self {
        Self { cx, client, owner, selector, checked: false }
    }

    /// Whether the object is the owner's, after it was adopted or let go if it was to be.
    pub(crate) async fn claim<V: Kind>(&mut self, object: &V) -> Result<bool, Error> {
        let object = object.meta();
        match claim(self.owner.meta(), self.selector, object) {
            Claim::Ignore => Ok(false),
            Claim::Keep => Ok(true),
            Claim::Release => self.release::<V>(object).await.map(|()| false),
            Claim::Adopt => {
                self.check_still_wanted().await?;
                self.adopt::<V>(object).await
            }
        }
    }

    /// The cache may show an owner that is gone, or another of its name: before the first adoption, the server is asked.
    async fn check_still_wanted(&mut self) -> Result<(), Error> {
        if self.checked {
            return Ok(());
        }
        let (key, uid) = (self.owner.meta().key(), &self.owner.meta().uid);
        let live = live::get_meta(self.client, &O::RESOURCE, &key).await?;
        match live {
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

    async fn adopt<V: Kind>(&self, object: &Meta) -> Result<bool, Error> {
        let patch = json!({ "metadata": { "ownerReferences": [owner_ref(self.owner)], "uid": object.uid } });
        let why = Why::Adopt { object: object.name.clone() };
        let write = self.cx.writer.on_behalf_of(self.owner.meta());
        match write.patch(&V::RESOURCE, &object.key(), Patch::Strategic(&patch), &why).await {
            Ok(_) => Ok(true),
            Err(WriteError::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn release<V: Kind>(&self, object: &Meta) -> Result<(), Error> {
        let drop_us = json!({ "$patch": "delete", "uid": self.owner.meta().uid });
        let patch = json!({ "metadata": { "ownerReferences": [drop_us], "uid": object.uid } });
        let why = Why::Release { object: object.name.clone() };
        let write = self.cx.writer.on_behalf_of(self.owner.meta());
        match write.patch(&V::RESOURCE, &object.key(), Patch::Strategic(&patch), &why).await {
            Ok(_) | Err(WriteError::NotFound) => Ok(()),
            // It has no owners any more, or is another object of that name: released either way.
            Err(WriteError::Rejected(status)) if status.reason == "Invalid" => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
