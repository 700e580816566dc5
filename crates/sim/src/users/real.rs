//! Users of a real server: it may be unavailable for a while, and then they retry.

use std::time::Duration;

use http::{Method, Request, header};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// The number of attempts.
const ATTEMPTS: usize = 8;
/// The time limit of an attempt.
const PATIENCE: Duration = Duration::from_secs(5);
/// The delay between attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Asks the server. None if it refuses, or if it is away for too long. What was done though nobody heard of it is refused
/// the second time, as it is for people.
pub(super) async fn ask(
    client: &Client,
    method: &Method,
    path: &str,
    content_type: &str,
    bytes: &[u8],
) -> Option<Value> {
    for _ in 0..ATTEMPTS {
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
        let request = request.body(Body::from(bytes.to_vec())).ok()?;
        let asked = async {
            let answer = client.send(request).await.ok()?;
            let status = answer.status();
            let bytes = answer.into_body().collect_bytes().await.ok()?;
            Some((status, bytes))
        };
        match tokio::time::timeout(PATIENCE, asked).await.ok().flatten() {
            Some((status, bytes)) if status.is_success() => {
                return Some(serde_json::from_slice(&bytes).unwrap_or_default());
            }
            Some((status, _)) if !status.is_server_error() && status.as_u16() != 429 => return None,
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    None
}
