//! The shell: recognize the request → review the access of its user → approve it.

use std::time::Duration;

use http::{Request, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde_json::Value;
use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::certificates::CertificateSigningRequestView;
use steersman_model::{Kind, View, status_body};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, reasons};

use super::plan;

const REQUESTS: &Resource = &CertificateSigningRequestView::RESOURCE;
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// The longest answer: the review with its reason.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The authorizers of a server may ask a webhook, for half a minute by default, and more than one.
const PATIENCE: Duration = Duration::from_secs(65);

/// Approves requests of kubelets.
pub(super) struct Approving {
    pub(super) requests: Lister<CertificateSigningRequestView>,
    pub(super) reviews: Reviews,
}

/// Reviews of access, with the controller's own account. They change nothing.
pub(super) struct Reviews {
    client: kube::Client,
}

reasons! {
    /// Why the approving controller writes.
    pub enum Why {
        /// The user of a request may have a client certificate of a kubelet.
        Allowed { right: &'static str } => "its user may create certificatesigningrequests/{right}",
    }
}

// === impl Approving ===

impl Reconciler for Approving {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(request) = self.requests.get(key) else { return Ok(Action::Done) };
        let rights = plan::rights(&request);
        for right in &rights {
            if !self.reviews.is_allowed(&right.review(&request.spec)).await? {
                continue;
            }
            let status = plan::approved(&request, *right);
            let body = status_body::<CertificateSigningRequestView>(request.meta(), &status);
            let why = Why::Allowed { right: right.subresource() };
            let write = cx.writer.on_behalf_of(request.meta());
            let written = write.put_subresource(REQUESTS, key, "approval", body, &why).await;
            // It was changed or deleted by others, which is an event.
            written.ok_if_gone().ok_if_replaced()?;
            return Ok(Action::Done);
        }
        // A role may be bound later, which is no event.
        Ok(if rights.is_empty() { Action::Done } else { Action::Again })
    }
}

// === impl Reviews ===

impl Reviews {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    async fn is_allowed(&self, review: &Value) -> Result<bool, Error> {
        let slow = || Error::message(format!("cannot review access: the server did not answer within {PATIENCE:?}"));
        tokio::time::timeout(PATIENCE, self.ask(review)).await.unwrap_or_else(|_| Err(slow()))
    }

    async fn ask(&self, review: &Value) -> Result<bool, Error> {
        let json = "application/json";
        let request = Request::post(REVIEWS).header(header::ACCEPT, json).header(header::CONTENT_TYPE, json);
        let response = self.client.send(request.body(Body::from(review.to_string().into_bytes()))?).await?;
        let code = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(Error::message)?;
        let answer: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        if !code.is_success() {
            let message = answer["message"].as_str().unwrap_or_default();
            return Err(Error::message(format!("cannot review access: the server answered {code}: {message}")));
        }
        Ok(answer["status"]["allowed"] == true)
    }
}
