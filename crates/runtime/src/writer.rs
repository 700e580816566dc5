//! The one way to write in a reconcile.
//!
//! 1. Every write has a [`Reason`](crate::Reason) and, unless it concerns no cached object ([`Writer::unowned`]), an owner: the object
//!    on whose behalf it is made.
//! 2. Every write is in the consistency book before the caller continues, so that the owner's next reconcile waits
//!    until the caches show it. A write whose future is dropped, by a timeout, say, has an unknown outcome (4).
//! 3. Deletes have the uid as a precondition: a new object of the same name is never touched. A patch should have it,
//!    too.
//! 4. No write is sent twice: an unknown outcome is [`WriteError::Unknown`], and the object is read from the server
//!    instead. A request that was not sent, or was refused with `Retry-After`, may be sent again ([`Retries`]); nothing
//!    else. A create under a chosen name is retried by a later pass under the same name, which the server refuses if
//!    the first one arrived after all.
//! 5. Conflict, not found, already exists and a terminating namespace are ordinary outcomes, each a variant.
//! 6. Nothing is sent without [`Leadership`], which is checked right before the bytes are sent, and again while they
//!    are: [`WriteError::NotLeader`].
//! 7. The event about a write, or about its failure, is sent by the writer, about the owner, as the reason declares.
//! 8. An owner whose create was refused because its namespace is terminating creates nothing more: the writer returns
//!    [`WriteError::NamespaceTerminating`] without a request, because a terminating namespace never recovers.
//! 9. Every write, and every failed one, is in the decision log. In shadow mode that is all: nothing is sent, no event
//!    is recorded, and the caller gets a successful result.

use std::sync::Arc;

use steersman_base::{Meta, Resource};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::InformerFactory;
use steersman_model::View;

use crate::decisions::Pass;
use crate::events::Recorder;
use crate::lease::Leadership;
use terminating::Terminating;

mod answer;
mod behalf;
mod error;
mod in_flight;
mod named;
pub(crate) mod naming;
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
pub(crate) use naming::{Created, Naming};
pub use options::{Delete, Patch, Propagation, Retries, Selected};
pub use outcome::Outcome;
pub use typed::Upserted;

/// The metadata of the object as stored. The rest of the response is not requested.
///
/// In shadow mode: what is known without a request.
pub type Written = Meta;

/// Sends writes, with reasons. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
    bound: Option<Arc<Bound>>,
    pass: Option<Pass>,
    /// Whether the caches lag behind this controller's writes, so that existing objects are read from the server.
    reads_live: bool,
}

/// The state that all writers of a manager share, except their clients.
#[derive(Clone)]
struct Shared {
    client: kube::Client,
    book: Book,
    leadership: Leadership,
    retries: Retries,
    mode: Mode,
    /// The caches in which [`Behalf::create_or_patch`] finds the existing object; without them, it reads from the
    /// server.
    caches: Option<InformerFactory>,
    /// Shared by all writers of a manager.
    terminating: Arc<Terminating>,
}

/// The controller of a writer.
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
    /// Creates a writer that sends through `client` and records in `book`; it needs no leadership, and belongs to no
    /// controller.
    #[doc(hidden)]
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
        Self { shared: Arc::new(shared), bound: None, pass: None, reads_live: false }
    }

    /// Returns the same writer, which writes only while this leadership is held.
    #[doc(hidden)]
    #[must_use]
    pub fn led_by(self, leadership: Leadership) -> Self {
        self.with(|shared| shared.leadership = leadership)
    }

    /// Returns the same writer with another client: that of a controller with an account of its own.
    #[doc(hidden)]
    #[must_use]
    pub fn through(self, client: kube::Client) -> Self {
        self.with(|shared| shared.client = client)
    }

    /// Returns the same writer with another book: that of a controller.
    pub(crate) fn keeping(self, book: Book) -> Self {
        self.with(|shared| shared.book = book)
    }

    /// Returns the same writer with these retries.
    #[doc(hidden)]
    #[must_use]
    pub fn retrying(self, retries: Retries) -> Self {
        self.with(|shared| shared.retries = retries)
    }

    /// Returns the same writer in shadow mode: decisions are logged, nothing is sent, and callers get successful
    /// results.
    #[doc(hidden)]
    #[must_use]
    pub fn in_shadow(self) -> Self {
        self.with(|shared| shared.mode = Mode::Shadow)
    }

    /// Returns the same writer with the caches of a manager, in which existing objects are found.
    #[must_use]
    pub(crate) fn with_caches(self, caches: InformerFactory) -> Self {
        self.with(|shared| shared.caches = Some(caches))
    }

    /// Whether the caches can show objects of a namespace: those of a manager of one namespace never show others.
    fn caches_show(&self, namespace: &str) -> bool {
        let only = self.shared.caches.as_ref().and_then(InformerFactory::namespace);
        only.is_none_or(|only| namespace.is_empty() || **only == *namespace)
    }

    /// Returns the client that writes are sent with.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.shared.client
    }

    /// Whether nothing is sent.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.shared.mode == Mode::Shadow
    }

    /// Returns the same writer for one controller, whose owners are objects of this resource, and whose events go to
    /// this recorder, with the controller as their source unless the recorder has one.
    #[doc(hidden)]
    #[must_use]
    pub fn bound_to(&self, controller: &'static str, owner_resource: Resource, recorder: Recorder) -> Self {
        let recorder = recorder.or_for_component(controller);
        let bound = Some(Arc::new(Bound { controller, owner_resource, recorder }));
        Self { bound, ..self.clone() }
    }

    /// Returns the same writer for one pass: its writes are in the decision log.
    #[doc(hidden)]
    #[must_use]
    pub fn in_pass(&self, pass: &Pass) -> Self {
        Self { pass: Some(pass.clone()), ..self.clone() }
    }

    /// Returns the same writer for a pass that reads live, or not.
    pub(crate) fn reading_live(mut self, reads_live: bool) -> Self {
        self.reads_live = reads_live;
        self
    }

    /// Returns the current pass, if there is one: to record observations and refusals.
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

    /// Returns a handle for writes without a cached owner, such as a heartbeat. No key waits until the caches show
    /// them, and they have no events.
    #[must_use]
    pub fn unowned(&self) -> Behalf<'_> {
        Behalf::new(self, None)
    }

    /// Returns the resource of the owners: the main kind of the controller. `None` for a writer without a controller.
    #[must_use]
    pub(crate) fn owner_resource(&self) -> Option<&Resource> {
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
