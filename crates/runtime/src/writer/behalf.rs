//! The verbs, and what is done around each: log, send, book, event.

use std::future::Future;

use bytes::Bytes;
use steersman_base::{Meta, ObjectKey, Resource};

use super::error::Failure;
use super::in_flight::{InFlight, Name};
use super::send::{Call, Verb};
use super::{Delete, Patch, Selected, WriteError, Writer, Written, answer, slow_start};
use crate::Reason;
use crate::connection::exchange::{JSON, JSON_METADATA, JSON_METADATA_LIST};
use crate::decisions::{self, Decision, Fate};
use crate::events::About;

/// Writes on behalf of one object, or without an owner.
///
/// Every verb returns a [`WriteError`] if the write was not made, or may not have been.
#[derive(Clone, Copy)]
pub struct Behalf<'a> {
    pub(super) writer: &'a Writer,
    pub(super) owner: Option<&'a Meta>,
}

/// The result of a successful write.
pub(super) struct Answer {
    pub(super) meta: Written,
    body: Bytes,
    /// Whether the server returned only a status, and not the object.
    is_status: bool,
    /// Whether this is the answer to a read after the write, and not to the write.
    pub(super) is_found: bool,
}

// === impl Behalf ===

impl<'a> Behalf<'a> {
    pub(super) fn new(writer: &'a Writer, owner: Option<&'a Meta>) -> Self {
        Self { writer, owner }
    }

    /// Creates an object from a JSON body, in the owner's namespace.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn create(&self, resource: &Resource, body: Vec<u8>, why: &dyn Reason) -> Result<Written, WriteError> {
        self.create_in(self.owner.map(|owner| &*owner.namespace), resource, body, why).await
    }

    /// Creates an object from a JSON body in a namespace, or for the whole cluster.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn create_in(
        &self,
        namespace: Option<&str>,
        resource: &Resource,
        body: Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        let key = ObjectKey::new(namespace.unwrap_or_default(), "");
        self.write(&Call { verb: Verb::Create, body: body.into(), ..object(resource, key) }, why).await
    }

    /// Patches an object. The patch should contain the uid of the object.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        patch: Patch<'_>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        self.patch_subresource(resource, key, "", patch, why).await
    }

    /// Patches an object through a subresource, such as `status`.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn patch_subresource(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: &str,
        patch: Patch<'_>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        let query = patch.query();
        let content_type = patch.content_type();
        let body = patch.body().to_string();
        let body = body.into();
        let call = object(resource, key.clone());
        self.write(&Call { verb: Verb::Patch, subresource, query, content_type, body, ..call }, why).await
    }

    /// Replaces an object. The body's resourceVersion is the precondition.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn put(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        body: Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        self.put_subresource(resource, key, "", body, why).await
    }

    /// Replaces the status of an object. The body's resourceVersion is the precondition.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn put_status(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        body: Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        self.put_subresource(resource, key, "status", body, why).await
    }

    /// Replaces a subresource of an object, such as `scale`, or `finalize` of a namespace.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn put_subresource(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: &str,
        body: Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Written, WriteError> {
        self.write(&Call { verb: Verb::Update, subresource, body: body.into(), ..object(resource, key.clone()) }, why)
            .await
    }

    /// Posts to a subresource, such as `binding`, `eviction` or `token`, and returns the response; in shadow mode, the
    /// body.
    ///
    /// # Errors
    /// See [`WriteError`].
    #[doc(hidden)]
    pub async fn post_subresource(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: &str,
        body: Vec<u8>,
        why: &dyn Reason,
    ) -> Result<Bytes, WriteError> {
        let body = body.into();
        // The response may be more than an object.
        let call = Call { verb: Verb::Create, subresource, body, accept: JSON, ..object(resource, key.clone()) };
        self.perform(&call, why).await.map(|answer| answer.body)
    }

    /// Deletes an object: this one, and not a new one of its name.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn delete(
        &self,
        resource: &Resource,
        object: &Meta,
        how: impl Into<Delete>,
        why: &dyn Reason,
    ) -> Result<(), WriteError> {
        let body = how.into().body(Some(object)).to_string().into();
        let verb = Verb::Delete(object.into());
        self.perform(&Call { verb, body, ..self::object(resource, object.key()) }, why).await.map(drop)
    }

    /// Deletes the selected objects of a resource, in a namespace or everywhere. The remaining objects are read from
    /// the server, and the owner waits until the caches show that state.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selected: Selected<'_>,
        how: impl Into<Delete>,
        why: &dyn Reason,
    ) -> Result<(), WriteError> {
        let query = selected.query();
        let body = how.into().body(None).to_string().into();
        let call = object(resource, ObjectKey::new(namespace.unwrap_or_default(), ""));
        let verb = Verb::DeleteCollection;
        self.perform(&Call { verb, query, body, accept: JSON_METADATA_LIST, ..call }, why).await.map(drop)
    }

    /// Makes `count` similar writes, in batches of 1, 2, 4, …, and stops after the first batch with a failure. Returns
    /// how many succeeded, and the first failure.
    pub async fn slow_start<F, T, E>(&self, count: usize, write: impl FnMut(usize) -> F) -> (usize, Option<E>)
    where
        F: Future<Output = Result<T, E>>,
    {
        slow_start::slow_start(count, write).await
    }

    async fn write(&self, call: &Call<'_>, why: &dyn Reason) -> Result<Written, WriteError> {
        self.perform(call, why).await.map(|answer| answer.meta)
    }

    /// The path of every write except creates under chosen names, which read before they report.
    async fn perform(&self, call: &Call<'_>, why: &dyn Reason) -> Result<Answer, WriteError> {
        self.check_namespace(call)?;
        if let Some(answer) = self.announce(call, why) {
            return Ok(answer);
        }
        let in_flight = InFlight::new(self, call, Name::Given);
        let outcome = self.writer.exchange(call).await.and_then(|body| read(call, body));
        self.enter_in_book(call, &outcome);
        in_flight.ended();
        self.conclude(call, outcome, why)
    }

    /// Records that the server does not have this object any more: the owner waits until the caches do not show it.
    pub fn saw_gone(&self, resource: &Resource, object: &Meta) {
        if let Some(owner) = self.owner {
            self.writer.shared.book.removed(&owner.uid, resource, object.into());
        }
    }

    /// Refuses a create for an owner whose namespace is known to be terminating: no request is sent.
    pub(super) fn check_namespace(&self, call: &Call<'_>) -> Result<(), WriteError> {
        let terminating = &self.writer.shared.terminating;
        let is_refused = self.creates_beside(call).is_some_and(|owner| terminating.has(&owner.uid));
        if is_refused { Err(WriteError::NamespaceTerminating) } else { Ok(()) }
    }

    /// Returns the owner, if the call creates an object in the owner's own namespace. The end of another namespace says nothing
    /// about this one, and a cluster-scoped owner outlives them all.
    fn creates_beside(&self, call: &Call<'_>) -> Option<&Meta> {
        let is_beside = |owner: &&Meta| !owner.namespace.is_empty() && owner.namespace == call.key.namespace;
        self.owner.filter(|_| call.is_create()).filter(is_beside)
    }

    /// Logs a write that is about to be sent. In shadow mode it is not sent, and this is the result.
    pub(super) fn announce(&self, call: &Call<'_>, why: &dyn Reason) -> Option<Answer> {
        let shadow = self.writer.is_shadow();
        if tracing::enabled!(tracing::Level::INFO) {
            tracing::info!(
                verb = call.verb.as_str(),
                resource = call.resource_text(),
                object = call.object_text(),
                reason = why.code(),
                shadow,
                "write: {why}"
            );
        }
        shadow.then(|| {
            let meta = answer::as_if_written(&call.key, &call.body);
            self.log(call, &meta, why, Fate::WouldWrite);
            Answer { meta, body: call.body.clone(), is_status: false, is_found: false }
        })
    }

    /// Reports a write that is in the book, and returns its result.
    pub(super) fn conclude(
        &self,
        call: &Call<'_>,
        outcome: Result<Answer, Failure>,
        why: &dyn Reason,
    ) -> Result<Answer, WriteError> {
        let is_terminating = matches!(&outcome, Err(Failure { error: WriteError::NamespaceTerminating, .. }));
        if let Some(owner) = self.creates_beside(call).filter(|_| is_terminating) {
            self.writer.shared.terminating.add(&owner.uid);
        }
        self.record(call, &outcome, why);
        outcome.map_err(|failure| failure.error)
    }

    /// Lets the owner wait until the caches show what was done, or may have been.
    pub(super) fn enter_in_book(&self, call: &Call<'_>, outcome: &Result<Answer, Failure>) {
        let (book, Some(owner)) = (&self.writer.shared.book, self.owner) else { return };
        if !self.writer.caches_show(&call.key.namespace) {
            return;
        }
        match (outcome, &call.verb) {
            (Ok(_), Verb::Delete(object)) => book.deleted(&owner.uid, call.resource, object.clone()),
            // The object with this uid is not there any more, whatever the caches show.
            (Err(Failure { error: WriteError::NotFound, .. }), Verb::Delete(object)) => {
                book.removed(&owner.uid, call.resource, object.clone());
            }
            (Ok(answer), _) if is_removed(call, &answer.meta) => {
                book.removed(&owner.uid, call.resource, (&answer.meta).into());
            }
            (Ok(answer), _) if !answer.meta.resource_version.is_empty() => {
                book.wrote(&owner.uid, call.resource, answer.meta.resource_version.clone());
            }
            // Something was done at an unknown version: a binding, an eviction, a collection.
            (Ok(answer), verb) if answer.is_status || *verb == Verb::DeleteCollection => {
                book.unknown(&owner.uid, call.resource, &call.key);
            }
            (Err(Failure { error: WriteError::Unknown(_), .. }), _) => {
                book.unknown(&owner.uid, call.resource, &call.key);
            }
            (Ok(_) | Err(_), _) => {}
        }
    }

    /// Records the write in the decision log and in an event.
    fn record(&self, call: &Call<'_>, outcome: &Result<Answer, Failure>, why: &dyn Reason) {
        match outcome {
            Ok(answer) => {
                self.log(call, &answer.meta, why, Fate::Written(answer.meta.resource_version.to_string()));
                let name = if answer.meta.name.is_empty() { &call.key.name } else { &answer.meta.name };
                self.event(|recorder, about| {
                    if let Some(reason) = why.event() {
                        recorder.normal(about, reason, why.note(name));
                    }
                });
            }
            Err(failure) => {
                let meta = answer::as_if_written(&call.key, &call.body);
                self.log(call, &meta, why, Fate::Failed(decisions::cut(&failure.error)));
                self.event(|recorder, about| {
                    if let Some(reason) = why.failure_event().filter(|_| is_reported(&call.verb, &failure.error)) {
                        recorder.warning(about, reason, why.failure_note(&failure.said));
                    }
                });
            }
        }
    }

    fn log(&self, call: &Call<'_>, meta: &Meta, why: &dyn Reason, fate: Fate) {
        let Some(pass) = self.writer.pass() else { return };
        let object = match (&call.verb, &*call.key.name) {
            (Verb::Create, "") => meta.key().to_string(),
            _ => call.object_text(),
        };
        let write = decisions::Write { verb: call.verb.as_str(), resource: call.resource_text(), object };
        pass.note(Decision { rule: why.code(), why: decisions::cut(why), write: Some(write), fate });
    }

    fn event(&self, record: impl FnOnce(&crate::events::Recorder, &About<'_>)) {
        if let (Some(bound), Some(owner)) = (&self.writer.bound, self.owner) {
            record(&bound.recorder, &About::new(&bound.owner_resource, owner));
        }
    }
}

/// Whether a write has removed its object: one that takes the last finalizer off a terminating object does, unless a grace
/// period is left. The finalizers of a Namespace are in its spec, too, which the answer does not show.
fn is_removed(call: &Call<'_>, answer: &Meta) -> bool {
    answer.is_terminating()
        && answer.finalizers().is_empty()
        && answer.deletion_grace_period_seconds().unwrap_or(0) == 0
        && !(call.resource.group.is_empty() && call.resource.plural == "namespaces")
}

/// Whether a warning is sent about this failure: upstream sends none where nothing can be done about it.
fn is_reported(verb: &Verb, error: &WriteError) -> bool {
    match error {
        WriteError::NamespaceTerminating | WriteError::NotLeader => false,
        // The object was deleted or replaced, as wanted.
        WriteError::NotFound | WriteError::Conflict => !matches!(verb, Verb::Delete(_)),
        _ => true,
    }
}

/// A call about an object itself. It requests metadata: all a controller needs to know of what it wrote.
pub(super) fn object(resource: &Resource, key: ObjectKey) -> Call<'_> {
    let verb = Verb::Update;
    let query = String::new();
    let body = Bytes::new();
    Call { verb, resource, key, subresource: "", query, content_type: JSON, accept: JSON_METADATA, body }
}

/// Reads a successful response. A deletion's is ignored: it may be an object, a status or a list.
pub(super) fn read(call: &Call<'_>, body: Bytes) -> Result<Answer, Failure> {
    if matches!(call.verb, Verb::Delete(_) | Verb::DeleteCollection) {
        let meta = Meta { name: call.key.name.clone(), namespace: call.key.namespace.clone(), ..Meta::default() };
        return Ok(Answer { meta, body, is_status: false, is_found: false });
    }
    let (meta, is_status) = answer::written(&body)?;
    Ok(Answer { meta, body, is_status, is_found: false })
}

// === impl Answer ===

impl Answer {
    /// The result of a write whose object was found.
    pub(super) fn found(meta: Written) -> Self {
        Self { meta, body: Bytes::new(), is_status: false, is_found: true }
    }
}

impl std::fmt::Debug for Behalf<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Behalf").field("owner", &self.owner.map(Meta::key)).finish_non_exhaustive()
    }
}
