//! The shell: read the request → sign or refuse it → write its status.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::ObjectKey;
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::certificates::{CertificateSigningRequestStatus, CertificateSigningRequestView};
use steersman_runtime::source::Feed;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError, reasons};
use steersman_workqueue::Priority;
use tokio_util::sync::CancellationToken;

use super::certificate::{self, Serial};
use super::memory::Keys;
use super::plan::{self, Asked, Step};
use super::{Source, policy};
use crate::certificates::is_approved;

/// The time between two looks at the files of certificate authorities. Upstream is notified by the system, and looks
/// every minute.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Signs requests.
pub(super) struct Signing {
    pub(super) requests: Lister<CertificateSigningRequestView>,
    pub(super) keys: Arc<Keys>,
    pub(super) duration: Duration,
}

reasons! {
    /// Why the signing controller writes.
    pub enum Why {
        /// A request is approved, and its signer gives what it asks for.
        Approved { signer: &'static str } => "the request is approved, and {signer} signs it",
        /// A request is approved, and its signer does not give what it asks for.
        Refused { message: String } => "its signer does not give that: {message}",
    }
}

// === impl Signing ===

impl Reconciler for Signing {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(request) = self.requests.get(key) else { return Ok(Action::Done) };
        match plan::step(&request, |signer| self.keys.has(signer)) {
            Step::Nothing => {}
            Step::Refuse(message) => {
                let status = plan::refused(&request, &message, cx.clock.now());
                write(cx, &request, &status, &Why::Refused { message }).await?;
            }
            Step::Sign(asked) => {
                let pem = self.sign(cx, &request, &asked).map_err(|problem| {
                    // The authority is at fault, not the request: it is signed when that is repaired.
                    Error::message(format!("error auto signing csr: {}: {problem}", asked.signer.name()))
                })?;
                let why = Why::Approved { signer: asked.signer.name() };
                write(cx, &request, &plan::issued(&request, &pem), &why).await?;
            }
        }
        Ok(Action::Done)
    }
}

impl Signing {
    fn sign(&self, cx: &Context, request: &CertificateSigningRequestView, asked: &Asked) -> Result<String, String> {
        let authority = self.keys.authority(asked.signer)?;
        let lifetime = policy::lifetime(self.duration, request.spec.expiration_seconds);
        let validity = policy::validity(cx.clock.now(), lifetime, authority.not_after)?;
        let serial = serial()?;
        let signed = certificate::issue(&authority, &asked.request, &asked.usages, validity, serial);
        signed.map(|der| certificate::pem(&der)).map_err(|error| error.to_string())
    }
}

/// Returns random bytes that nobody can guess.
fn serial() -> Result<Serial, String> {
    let mut serial = Serial::default();
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut serial).map_err(|_| "unable to generate a serial number".to_owned())?;
    Ok(serial)
}

async fn write(
    cx: &Context,
    request: &CertificateSigningRequestView,
    status: &CertificateSigningRequestStatus,
    why: &Why,
) -> Result<(), WriteError> {
    let write = cx.writer.on_behalf_of(request.meta());
    let written = write.put_status_of::<CertificateSigningRequestView>(request.meta(), status, why).await;
    // It was changed or deleted by others, which is an event.
    written.ok_if_gone().ok_if_replaced()
}

/// Reads the files of certificate authorities again and again. When one of them can be used, the requests that wait are
/// enqueued.
pub(super) async fn watch_files(
    keys: Arc<Keys>,
    requests: Lister<CertificateSigningRequestView>,
    feed: Feed,
    stop: CancellationToken,
) {
    while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
        let mut is_new = false;
        for (signer, pair) in keys.files() {
            let contents = [read(&pair.certificate).await, read(&pair.key).await];
            is_new |= keys.saw(signer, contents);
        }
        if is_new {
            let waiting = requests
                .list()
                .into_iter()
                .filter(|request| request.status.certificate.is_empty() && is_approved(&request.status));
            let waiting: Vec<ObjectKey> = waiting.map(|request| request.meta().key()).collect();
            feed.add_all(&waiting, Priority::Live);
        }
    }
}

async fn read(source: &Source) -> Option<Vec<u8>> {
    match source {
        Source::File(path) => tokio::fs::read(path).await.ok(),
        Source::Text(text) => Some(text.as_bytes().to_vec()),
    }
}
