//! A whole list, read at once: for who must know what the server has now.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use steersman_base::ResourceVersion;
use steersman_model::View;

use super::{Accept, Expected, ListDecoder, ListQuery, WireError, list_request, send};
use crate::target::Target;

/// How many objects are asked for at once: client-go's page.
const PAGE: u32 = 500;

/// The objects of a target as the server has them now, in one consistent list, and the version of the list.
///
/// # Errors
/// See [`WireError`]; also if objects change so fast that the list expires between two pages. Nobody retries here.
pub async fn read_list<V: View>(
    client: &Client,
    target: &Target,
    patience: Duration,
) -> Result<(Vec<Arc<V>>, ResourceVersion), WireError> {
    let (mut objects, mut version) = (Vec::new(), None);
    let mut continue_token = String::new();
    loop {
        let query = ListQuery { limit: Some(PAGE), continue_token: &continue_token };
        let request = list_request(target, query, Accept::of::<V>())?;
        let mut answer = send(client, request, patience).await?;
        let mut decoder = ListDecoder::new(answer.format, Expected::new(&target.resource, V::PROJECTION));
        while let Some(chunk) = answer.chunk(patience).await? {
            decoder.feed(&chunk);
            while let Some(item) = decoder.next_item()? {
                let object = V::decode(item);
                let kind = || target.resource.kind.to_string();
                objects.push(Arc::new(object.map_err(|source| WireError::Object { object: kind(), source })?));
            }
        }
        let meta = decoder.finish()?;
        // All pages are of one version; the first says it.
        version.get_or_insert(meta.resource_version);
        continue_token = meta.continue_token;
        if continue_token.is_empty() {
            return Ok((objects, version.unwrap_or_default()));
        }
    }
}
