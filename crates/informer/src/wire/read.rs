//! A whole list, read at once: the server's current state.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use steersman_base::ResourceVersion;
use steersman_model::{DecodeError, View};

use super::{Accept, Expected, ListDecoder, ListQuery, WireError, list_request, send};
use crate::target::Target;

/// The page size: client-go's.
const PAGE: u32 = 500;

/// Reads the objects of a target in one consistent list, and the version of the list.
///
/// If one cannot be decoded from protobuf, all are read again as JSON; one that cannot be decoded then either is logged
/// and left out.
///
/// # Errors
/// See [`WireError`]; also if objects change so fast that the list expires between two pages. It is not retried here.
pub async fn read_list<V: View>(
    client: &Client,
    target: &Target,
    patience: Duration,
) -> Result<(Vec<Arc<V>>, ResourceVersion), WireError> {
    let accept = Accept::of::<V>();
    match (read_as(client, target, patience, accept).await, accept.without_protobuf()) {
        (Err(WireError::Object(error)), Some(json)) => {
            tracing::warn!(%target, %error, "an object cannot be read; listed again, as JSON");
            read_as(client, target, patience, json).await
        }
        (read, _) => read,
    }
}

async fn read_as<V: View>(
    client: &Client,
    target: &Target,
    patience: Duration,
    accept: Accept,
) -> Result<(Vec<Arc<V>>, ResourceVersion), WireError> {
    let mut objects = Vec::new();
    let mut version = None;
    let mut continue_token = String::new();
    loop {
        let query = ListQuery { limit: Some(PAGE), continue_token: &continue_token };
        let request = list_request(target, query, accept)?;
        let mut answer = send(client, request, patience).await?;
        let mut decoder = ListDecoder::new(answer.format, Expected::new(&target.resource, V::PROJECTION));
        while let Some(chunk) = answer.chunk(patience).await? {
            decoder.feed(&chunk);
            loop {
                match decoder.next_object() {
                    Ok(Some(object)) => objects.push(Arc::new(object)),
                    Ok(None) => break,
                    Err(WireError::Object(error)) if matches!(error.source, DecodeError::Json(_)) => {
                        tracing::warn!(%target, %error, "an object cannot be read; the list goes on without it");
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let meta = decoder.finish()?;
        // All pages are of one version; the first has it.
        version.get_or_insert(meta.resource_version);
        continue_token = meta.continue_token;
        if continue_token.is_empty() {
            return Ok((objects, version.unwrap_or_default()));
        }
    }
}
