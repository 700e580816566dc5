//! Reads of metrics and scales, with the controller's own account.

use std::time::Duration;

use http::{Request, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde::de::DeserializeOwned;

use crate::horizontal_pod_autoscaler::answer::refusal;

/// Reads JSON from the server.
pub(in crate::horizontal_pod_autoscaler) struct Fetch {
    client: kube::Client,
}

/// The longest answer: the usage of a hundred thousand pods.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The longest wait: an aggregated API server that does not answer must not keep a worker from other autoscalers.
const PATIENCE: Duration = Duration::from_secs(30);

// === impl Fetch ===

impl Fetch {
    pub(in crate::horizontal_pod_autoscaler) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Reads what is at a path; `what` names it in errors.
    pub(super) async fn json<T: DeserializeOwned>(&self, path: &str, what: &str) -> Result<T, String> {
        match tokio::time::timeout(PATIENCE, self.read(path, what)).await {
            Ok(Ok(body)) => serde_json::from_slice(&body).map_err(|error| error.to_string()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(format!("the server did not answer within {PATIENCE:?} (get {what})")),
        }
    }

    async fn read(&self, path: &str, what: &str) -> Result<bytes::Bytes, String> {
        let request = Request::get(path).header(header::ACCEPT, "application/json").body(Body::empty());
        let request = request.map_err(|error| format!("{error} (get {what})"))?;
        let response = self.client.send(request).await.map_err(|error| error.to_string())?;
        let code = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if code.is_success() { Ok(body) } else { Err(refusal(code.as_u16(), &body, what)) }
    }
}
