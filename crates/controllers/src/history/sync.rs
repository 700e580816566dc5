//! The shell: creates, renumbers and deletes revisions.

use steersman_base::{Istr, Meta, Resource};
use steersman_model::apps::ControllerRevisionView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::{Outcome, Written};
use steersman_runtime::{Context, Error, Propagation, WriteError, reasons};

pub(crate) const REVISIONS: &Resource = &ControllerRevisionView::RESOURCE;

reasons! {
    /// Why a revision is written.
    pub(crate) enum Why {
        /// No revision has this template.
        NewTemplate { number: i64 } => "no revision has this template; it is number {number}",
        /// The template was used before.
        UsedBefore { from: i64, to: i64 } => "the template of revision {from} is used again, as number {to}",
        /// A revision is beyond the revision history limit.
        Forget { limit: i32 } => "{limit} revisions without pods are kept, and it is older",
        /// Two revisions have the same template.
        Duplicate { of: Istr } => "it has the same template as {of}",
        /// A revision has no hash.
        Label => "it has no label with its hash",
    }
}

/// Creates a revision.
pub(crate) async fn create(
    cx: &Context,
    owner: &Meta,
    revision: &ControllerRevisionView,
) -> Result<Written, WriteError> {
    let body = serde_json::to_vec(revision).map_err(|error| WriteError::Invalid(error.to_string()))?;
    let why = Why::NewTemplate { number: revision.revision };
    cx.writer.on_behalf_of(owner).create(REVISIONS, body, &why).await
}

/// Reads the revision that has the name of a new one. One that was deleted since is no collision: the next pass creates the new
/// one under that name.
pub(crate) async fn taken(cx: &Context, revision: &ControllerRevisionView) -> Result<ControllerRevisionView, Error> {
    let key = revision.meta().key();
    let taken = cx.live.get::<ControllerRevisionView>(&key).await?;
    taken
        .ok_or_else(|| Error::message(format!("revision {key} was in the way and has been deleted: it is tried again")))
}

/// Gives a revision another number.
pub(crate) async fn renumber(
    cx: &Context,
    owner: &Meta,
    revision: &ControllerRevisionView,
    to: i64,
) -> Result<(), Error> {
    let why = Why::UsedBefore { from: revision.revision, to };
    put(cx, owner, &ControllerRevisionView { revision: to, ..revision.clone() }, &why).await
}

/// Replaces a revision.
pub(crate) async fn put(cx: &Context, owner: &Meta, revision: &ControllerRevisionView, why: &Why) -> Result<(), Error> {
    let body = serde_json::to_vec(revision)?;
    cx.writer.on_behalf_of(owner).put(REVISIONS, &revision.meta().key(), body, why).await?;
    Ok(())
}

/// Deletes a revision.
pub(crate) async fn delete(cx: &Context, owner: &Meta, revision: &Meta, why: &Why) -> Result<(), Error> {
    let deleted = cx.writer.on_behalf_of(owner).delete(REVISIONS, revision, Propagation::Background, why).await;
    // Deleted or replaced meanwhile: nothing is left to do.
    Ok(deleted.ok_if_gone().ok_if_replaced()?)
}
