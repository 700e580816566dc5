//! Reviews: bodies that are answered with a status, and never stored.

use serde_json::Value;

use crate::decode::ContentType;
use crate::registry::object_meta::metadata;
use crate::registry::subresource::read_body;
use crate::registry::write::Part;
use crate::registry::{Answer, Call, Content, Registry};
use crate::status::Status;

/// Answers the POST of a review with its body and the status that `judge` returns.
pub(crate) fn answer(
    registry: &Registry,
    call: &Call,
    body: &[u8],
    content_type: ContentType,
    judge: impl FnOnce(&mut Value) -> Result<Value, Status>,
) -> Result<Answer, Status> {
    let resource = &call.row.resource;
    let mut review = read_body(body, content_type, &resource.group, &resource.version, &resource.kind, call)?;
    review["kind"] = resource.kind.clone().into();
    review["apiVersion"] = resource.api_version().into();
    if !call.namespace.is_empty() {
        metadata(&mut review).insert("namespace".into(), call.namespace.clone().into());
    }
    registry.record_owners(call, Part::Whole, None, &mut review)?;
    review["status"] = judge(&mut review)?;
    Ok(Answer::created(Content::Value(review)))
}
