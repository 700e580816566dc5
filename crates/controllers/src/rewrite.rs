//! Writes of objects of which a view holds a part: the object is read from the server, changed, and written back, so that
//! all other fields stay, known or not.

use serde_json::{Value, json};
use steersman_base::{Meta, Resource};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Context, Error, Reason};

/// Changes an object as the server has it: `change` returns whether anything is to be written. `subresource` is empty, or
/// `status`.
///
/// An object that was deleted or replaced is left alone. One that others change at the same time is, too: their change has
/// an event of its own.
pub(crate) async fn rewrite(
    cx: &Context,
    resource: &Resource,
    object: &Meta,
    subresource: &str,
    why: &dyn Reason,
    change: impl FnOnce(&mut Value) -> bool + Send,
) -> Result<(), Error> {
    let key = object.key();
    let Some(mut live) = cx.live.get_json(resource, &key).await? else { return Ok(()) };
    if live["metadata"]["uid"] != json!(object.uid) || !change(&mut live) {
        return Ok(());
    }
    let write = cx.writer.on_behalf_of(object);
    let written = write.put_subresource(resource, &key, subresource, live.to_string().into_bytes(), why).await;
    Ok(written.ok_if_replaced().ok_if_gone()?)
}
