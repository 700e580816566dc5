//! One webhook that is asked: the question goes out, the answer is read.

use super::super::attributes::{Attributes, Invocation};
use super::configuration::Hook;
use super::review::{self, Of, Response, Wrong};
use super::{Failure, Session};
use crate::registry::Registry;
use crate::registry::object_meta::new_uid;
use crate::status::Status;
use crate::webhook::{CallError, Pending};

/// A webhook that has been asked.
pub(super) struct Asking {
    version: &'static str,
    uid: String,
    pending: Pending,
}

/// Asks one webhook.
pub(super) fn start(
    registry: &Registry,
    session: &Session,
    hook: &Hook,
    invocation: &Invocation,
    attributes: &Attributes<'_>,
) -> Result<Asking, Failure> {
    if attributes.is_dry() && !hook.allows_dry_run {
        let message = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Failure::Refused(Status::bad_request(message)));
    }
    let Some(version) = review::version_of(&hook.review_versions) else {
        let why =
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return Err(Failure::Calling(why.to_owned()));
    };
    let uid = new_uid();
    let question = review::question(version, &attributes.request(&uid, invocation).map_err(Failure::Refused)?);
    let limit = session.line.time_for(hook.timeout);
    let endpoint = hook.client.endpoint(registry, limit);
    let endpoint = endpoint.map_err(|why| Failure::Calling(format!("could not get REST client: {why}")))?;
    let pending = session.line.start(endpoint, question.to_string().into(), limit);
    Ok(Asking { version, uid, pending })
}

// === impl Asking ===

impl Asking {
    /// Waits for the answer.
    pub(super) fn wait(self, hook: &Hook, of: Of) -> Result<Response, Failure> {
        let Self { version, uid, pending } = self;
        let body = pending.wait()?;
        review::read(version, &uid, of, &body).map_err(|wrong| {
            tracing::debug!(webhook = hook.name, ?wrong, "a webhook answered nonsense");
            Failure::Calling(match wrong {
                Wrong::Unreadable(why) => format!("failed to call webhook: {why}"),
                Wrong::Invalid(why) => format!("received invalid webhook response: {why}"),
            })
        })
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Calling(format!("failed to call webhook: {error}"))
    }
}
