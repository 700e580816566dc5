//! Constants and functions shared by everything that sends requests.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use http::{HeaderMap, header};

/// A request without an answer after this long will get none: upstream's servers give up after a minute.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(65);
pub(crate) const JSON: &str = "application/json";
/// Metadata only; as a fallback plain JSON, which every server has and which contains the metadata.
pub(crate) const JSON_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// The same for a collection: kube-apiserver answers 406 to a request for one object's metadata there, after it has
/// deleted.
pub(crate) const JSON_METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// The wait after a 429 without a time: upstream's servers ask for one second if they ask at all.
pub(crate) const THROTTLED_MIN: Duration = Duration::from_secs(1);

/// Returns the seconds after which the server asks to retry.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<u32> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

/// Whether a request found no connection, and so was never sent; after any other failure the outcome is unknown.
pub(crate) fn never_sent(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let client = error.downcast_ref::<hyper_util::client::legacy::Error>();
        if client.is_some_and(hyper_util::client::legacy::Error::is_connect) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Appends an encoded value to a query.
pub(crate) fn encode(query: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(query, "%{byte:02X}");
        }
    }
}
