//! The one way to write.
//!
//! 1. Every write has a [`Reason`] and, unless it concerns no cached object ([`Writer::unowned`]), an owner: the object on
//!    whose behalf it is made.
//! 2. Every write is in the consistency book before the caller goes on, so that the owner's next reconcile waits until
//!    the caches show it.
//! 3. Deletes name the uid they mean: a new object of the same name is never touched. A patch should, too.
//! 4. No write is sent twice: an outcome that is not known is [`WriteError::Unknown`], and the server is asked for the
//!    object instead. What never left, or was turned away with `Retry-After`, may be sent again ([`Retries`]); nothing else. A
//!    create under a name of our choice ([`Behalf::create_named`]) is tried again by a later pass under the same name, which
//!    the server refuses if the first arrived after all.
//! 5. Conflict, not found, already exists and a terminating namespace are ordinary outcomes, each a variant.
//! 6. Nothing leaves without [`Leadership`], which is asked right before the bytes go, and again while they do:
//!    [`WriteError::NotLeader`].
//! 7. The event that tells of a write, or of its failure, is sent by the writer, about the owner, as the reason says.
//! 8. An owner whose create was refused because its namespace is terminating creates nothing more: the writer answers
//!    [`WriteError::NamespaceTerminating`] without asking the server again, for no namespace comes back.
//! 9. Every write, and every failed one, is in the decision log. In shadow mode that is all: nothing is sent, no event is
//!    told, and the caller is answered as if it had been.

use std::sync::Arc;

use steersman_base::{Meta, Resource};
use steersman_informer::InformerFactory;
use steersman_informer::consistency::Book;
use steersman_model::View;

use crate::decisions::Pass;
use crate::events::Recorder;
use crate::lease::Leadership;
use terminating::Terminating;

mod answer;
mod behalf;
mod error;
mod named;
mod naming;
mod options;
mod outcome;
mod send;
mod slow_start;
mod status;
mod terminating;
#[cfg(test)]
mod tests;
mod typed;

pub use behalf::Behalf;
pub use error::{Rejection, RejectionCause, RejectionDetails, WriteError};
pub use naming::Naming;
pub use options::{Delete, Patch, Propagation, Retries, Selected};
pub use outcome::Outcome;
pub use typed::Upserted;

/// What the server says of the object it has now: its metadata. The rest of the answer is not asked for.
///
/// In shadow mode: what is known without asking.
pub type Written = Meta;

/// Sends writes, with reasons. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
    bound: Option<Arc<Bound>>,
    pass: Option<Pass>,
}

/// What all writers of a manager have in common, but for their clients.
#[derive(Clone)]
struct Shared {
    client: kube::Client,
    book: Book,
    leadership: Leadership,
    retries: Retries,
    mode: Mode,
    /// Where [`Behalf::create_or_patch`] finds the existing object; without it, it asks the server.
    caches: Option<InformerFactory>,
    /// Shared by all writers of a manager.
    terminating: Arc<Terminating>,
}

/// For which controller a writer writes.
struct Bound {
    controller: &'static str,
    owner_resource: Resource,
    recorder: Recorder,
}

/// Whether writes are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Live,
    Shadow,
}

// === impl Writer ===

impl Writer {
    /// A writer that sends through `client` and keeps `book`; it always leads, and speaks for no controller.
    #[must_use]
    pub fn new(client: kube::Client, book: Book) -> Self {
        let shared = Shared {
            client,
            book,
            leadership: Leadership::always(),
            retries: Retries::default(),
            mode: Mode::Live,
            caches: None,
            terminating: Arc::default(),
        };
        Self { shared: Arc::new(shared), bound: None, pass: None }
    }

    /// The same, writing only while this is held.
    #[must_use]
    pub fn led_by(self, leadership: Leadership) -> Self {
        self.with(|shared| shared.leadership = leadership)
    }

    /// The same, through another client: that of a controller with an account of its own.
    #[must_use]
    pub fn through(self, client: kube::Client) -> Self {
        self.with(|shared| shared.client = client)
    }

    /// The same, keeping another book: that of a controller.
    pub(crate) fn keeping(self, book: Book) -> Self {
        self.with(|shared| shared.book = book)
    }

    /// The same, sending again what may be sent again, by this policy.
    #[must_use]
    pub fn retrying(self, retries: Retries) -> Self {
        self.with(|shared| shared.retries = retries)
    }

    /// The same in shadow mode: decisions are logged, nothing is sent, and callers are answered as if it had been.
    #[must_use]
    pub fn in_shadow(self) -> Self {
        self.with(|shared| shared.mode = Mode::Shadow)
    }

    /// The same with the caches of a manager, in which existing objects are looked up.
    #[must_use]
    pub fn with_caches(self, caches: InformerFactory) -> Self {
        self.with(|shared| shared.caches = Some(caches))
    }

    /// The client through which writes are sent.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.shared.client
    }

    /// Whether nothing is sent.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.shared.mode == Mode::Shadow
    }

    /// The same for one controller, whose owners are objects of this resource, and whose events this recorder tells. It
    /// speaks for the component that upstream names as their source; if it names none yet, for the controller.
    #[must_use]
    pub fn bound_to(&self, controller: &'static str, owner_resource: Resource, recorder: Recorder) -> Self {
        let recorder = recorder.or_for_component(controller);
        let bound = Some(Arc::new(Bound { controller, owner_resource, recorder }));
        Self { shared: Arc::clone(&self.shared), bound, pass: self.pass.clone() }
    }

    /// The same for one pass: its writes are in the decision log.
    #[must_use]
    pub fn in_pass(&self, pass: &Pass) -> Self {
        Self { pass: Some(pass.clone()), ..self.clone() }
    }

    /// The pass that is written in, if it is known: for noting what was seen and what was refused.
    #[must_use]
    pub fn pass(&self) -> Option<&Pass> {
        self.pass.as_ref()
    }

    /// Returns the handle that writes on behalf of an object: the consistency book is kept per owner, and events are about it.
    /// The owner is what a lister returned (`&*cake`), or its metadata.
    #[must_use]
    pub fn on_behalf_of<'a>(&'a self, owner: &'a impl View) -> Behalf<'a> {
        Behalf::new(self, Some(owner.meta()))
    }

    /// Writes that concern no cached owner, such as a heartbeat. Nobody waits until the caches show them, and they have no
    /// events.
    #[must_use]
    pub fn unowned(&self) -> Behalf<'_> {
        Behalf::new(self, None)
    }

    /// The resource of the owners: the main kind of the controller. None for a writer that speaks for no controller.
    #[must_use]
    pub fn owner_resource(&self) -> Option<&Resource> {
        self.bound.as_ref().map(|bound| &bound.owner_resource)
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }

    fn controller(&self) -> &'static str {
        self.bound.as_ref().map_or("", |bound| bound.controller)
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("controller", &self.controller())
            .field("mode", &self.shared.mode)
            .finish_non_exhaustive()
    }
}
