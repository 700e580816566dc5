//! Pure: the next step of an attachment.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Istr, MicroTime};
use steersman_model::storage::VolumeAttachmentView;

/// The next step of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing is left to do.
    Nothing,
    /// Something is to be done after this time.
    Wait(Duration),
    /// It gets the finalizer.
    Hold,
    /// It is attached.
    Attach,
    /// It is not attached any more.
    Detach,
    /// It loses the finalizer.
    Release,
}

/// Returns the finalizer of a driver's attacher.
pub(super) fn finalizer(driver: &str) -> String {
    format!("external-attacher/{}", driver.replace('/', "-"))
}

/// Returns the next step of an attachment.
pub(super) fn next(attachment: &VolumeAttachmentView, delay: Duration, now: MicroTime) -> Step {
    let meta = &attachment.metadata;
    let is_held = meta.has_finalizer(&finalizer(&attachment.spec.attacher));
    let since = meta.deletion_timestamp().or(meta.creation_timestamp).map_or(now, MicroTime::from);
    let is_due = now >= since + delay;
    let wait = || Step::Wait((since + delay).since(now));
    match (meta.is_terminating(), is_held, attachment.status.attached) {
        (true, false, _) | (false, true, true) => Step::Nothing,
        (true, true, _) if !is_due => wait(),
        (true, true, true) => Step::Detach,
        (true, true, false) => Step::Release,
        (false, false, _) => Step::Hold,
        (false, true, false) if is_due => Step::Attach,
        (false, true, false) => wait(),
    }
}

/// Returns the patch with the finalizers. Others have finalizers, too: none of theirs gets lost.
pub(super) fn finalizers(attachment: &VolumeAttachmentView, is_held: bool) -> Value {
    let meta = &attachment.metadata;
    let ours = finalizer(&attachment.spec.attacher);
    let mut all: Vec<&str> = meta.finalizers().iter().map(Istr::as_str).filter(|name| *name != ours).collect();
    if is_held {
        all.push(&ours);
    }
    json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": all } })
}

/// Returns the patch with the status.
pub(super) fn status(attachment: &VolumeAttachmentView, is_attached: bool) -> Value {
    let status = json!({ "attached": is_attached, "attachError": null, "detachError": null });
    json!({ "metadata": { "uid": attachment.metadata.uid }, "status": status })
}
