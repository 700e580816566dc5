//! A controller that knows only metadata: every Secret without a label `team` gets one that says so.
//!
//! The contents of the Secrets never reach this process: the watch asks the server for metadata alone, which takes half a
//! kilobyte of memory per object, however large the objects are.

use serde_json::json;
use steersman::base::{Meta, ObjectKey, Resource};
use steersman::informer::{Lister, Selection};
use steersman::runtime::predicate::labels_changed;
use steersman::runtime::{Action, Context, Controller, Error, Manager, Patch, Reconciler, reasons};

/// What is labelled. Any resource would do, also one that is known only at run time.
pub const SECRETS: Resource = Resource::namespaced("", "v1", "secrets", "Secret");

/// The label that every Secret has.
pub const TEAM: &str = "team";

reasons! {
    /// Why the labeller writes.
    pub enum Why {
        /// Nobody said whose it is.
        NoTeam => "nobody said whose it is",
    }
}

/// The controller: what it reads from.
pub struct Labeller {
    secrets: Lister<Meta>,
}

impl Reconciler for Labeller {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(secret) = self.secrets.get(key) else { return Ok(Action::Done) };
        if secret.labels.contains_key(TEAM) || secret.is_terminating() {
            return Ok(Action::Done);
        }
        // The uid makes sure that a new Secret of the same name is never meant.
        let patch = json!({ "metadata": { "uid": secret.uid, "labels": { TEAM: "nobody" } } });
        cx.writer.on_behalf_of(&*secret).patch(&SECRETS, key, Patch::Merge(&patch), &Why::NoTeam).await?;
        Ok(Action::Done)
    }
}

/// Adds the controller to a manager.
pub fn add_labeller(manager: &Manager) -> Controller {
    let secrets = manager.informers().informer_for::<Meta>(SECRETS, Selection::everything());
    let labeller = Labeller { secrets: secrets.lister() };
    manager.context().controller_on("labeller", &secrets).filter(labels_changed()).reconcile_with(labeller)
}
