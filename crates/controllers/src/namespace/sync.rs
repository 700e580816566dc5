//! The shell: read the namespace → delete its content → report what remains → remove the finalizer.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use steersman_base::{Istr, Meta, ObjectKey, Resource};
use steersman_informer::WireError;
use steersman_informer::{Lister, Selection, Target};
use steersman_model::core::NamespaceView;
use steersman_model::{Kind, View};
use steersman_runtime::mapper::{ApiResource, RestMapper};
use steersman_runtime::writer::Selected;
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};

use super::content::{Outcome, is_asked_for};
use super::memory::LastPods;
use super::plan::{discovery_failure, finalized, hides_pods, work};
use super::pods::{EndingPod, seconds_to_end};
use super::status::{Findings, conditions};

const NAMESPACES: &Resource = &NamespaceView::RESOURCE;
const TERMINATING: &str = "Terminating";
/// The number of resources emptied concurrently, and of objects deleted concurrently: enough to hide the server's
/// response times, few enough that ten namespaces at a time leave capacity for others.
const AT_ONCE: usize = 16;
/// The maximum number of times that a write is retried after a conflict. Terminating namespaces are rarely changed more
/// often.
const CONFLICTS_MAX: usize = 10;

/// The controller's shell: the caches that it reads from.
pub(super) struct Namespaces {
    pub(super) mapper: RestMapper,
    pub(super) namespaces: Lister<NamespaceView>,
    pub(super) last_pods: Arc<LastPods>,
}

reasons! {
    /// Why the namespace controller writes.
    pub enum Why {
        /// The phase does not show that the namespace is terminating.
        Terminating => "the namespace is being deleted",
        /// The content of a terminating namespace is deleted.
        Content { namespace: Istr } => "namespace {namespace} is being deleted",
        /// The conditions do not report what remains.
        Conditions { left: usize, failures: usize } => "objects of {left} resources are left, {failures} things failed",
        /// Nothing remains.
        Empty => "nothing is left in the namespace",
    }
}

// === impl Namespaces ===

impl Reconciler for Namespaces {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        self.last_pods.forget(&key.name);
        if self.namespaces.get(key).is_none() {
            return Ok(Action::Done);
        }
        let Some(mut namespace) = self.marked(cx, key).await? else { return Ok(Action::Done) };
        if namespace.spec.finalizers.is_empty() {
            return Ok(Action::Done);
        }
        let findings = self.empty(cx, namespace.meta()).await;
        put_conditions(cx, &mut namespace, &findings).await;
        if cx.writer.is_shadow() {
            // Nothing was deleted in shadow mode, so the pass ends here.
            return Ok(Action::Done);
        }
        if let Some(failure) = findings.failure() {
            return Err(Error::message(failure));
        }
        if findings.seconds > 0 {
            return Ok(Action::After(Duration::from_secs(findings.seconds / 2 + 1)));
        }
        self.remove_finalizer(cx, namespace).await?;
        Ok(Action::Done)
    }
}

impl Namespaces {
    /// Reads the namespace from the server, if it is terminating, and sets its phase accordingly.
    async fn marked(&self, cx: &Context, key: &ObjectKey) -> Result<Option<NamespaceView>, Error> {
        for _ in 0..CONFLICTS_MAX {
            let read = cx.live.get::<NamespaceView>(key).await?;
            let Some(mut namespace) = read.filter(|namespace| namespace.meta().is_terminating()) else {
                return Ok(None);
            };
            if namespace.status.phase == TERMINATING {
                return Ok(Some(namespace));
            }
            namespace.status.phase = Istr::interned(TERMINATING);
            let write = cx.writer.unowned();
            match write.put_status_of::<NamespaceView>(namespace.meta(), &namespace.status, &Why::Terminating).await {
                Ok(written) => {
                    namespace.metadata.resource_version = written.resource_version;
                    return Ok(Some(namespace));
                }
                Err(WriteError::NotFound) => return Ok(None),
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::message(format!("{key} is changed by others all the time")))
    }

    /// Deletes the content of the namespace: the pods first, and the rest when none is left.
    async fn empty(&self, cx: &Context, namespace: &Meta) -> Findings {
        let mut findings = Findings::default();
        let known = match self.mapper.refresh().await {
            Ok(known) => known,
            Err(error) => {
                findings.discovery = Some(error.to_string());
                findings.unknown = true;
                return findings;
            }
        };
        findings.discovery = discovery_failure(known.failures());
        let work = work(&known);
        if let Some(pods) = work.pods {
            findings.add(&pods.resource, self.empty_pods(cx, namespace, pods).await);
            // Pods that could not be counted may exist: a pod must not outlive its network policies.
            if findings.unknown || !findings.left.is_empty() {
                return findings;
            }
            self.last_pods.forget(&namespace.name);
        } else if hides_pods(known.failures()) {
            findings.unknown = true;
            return findings;
        }
        let each = work.others.into_iter().map(|kind| async move {
            let objects = list(cx, kind, &namespace.name).await;
            (&kind.resource, self.empty_resource(cx, kind, &namespace.name, objects, 0).await)
        });
        let each: Vec<_> = each.collect();
        let mut emptied = stream::iter(each).buffered(AT_ONCE);
        while let Some((resource, outcome)) = emptied.next().await {
            findings.add(resource, outcome);
        }
        findings
    }

    async fn empty_pods(&self, cx: &Context, namespace: &Meta, kind: &ApiResource) -> Outcome {
        // Before the list: a pod that is deleted right after it is noticed.
        self.last_pods.await_in(&namespace.name);
        let pods = match cx.live.list::<EndingPod>(Selection::namespace(&namespace.name)).await {
            Ok(pods) => pods,
            Err(error) => return Outcome::failed(said(&error), 0),
        };
        let since = namespace.deletion_timestamp().map(|since| cx.clock.now().since(since));
        let seconds = seconds_to_end(&pods, since.unwrap_or_default());
        let objects = pods.iter().map(|pod| Arc::new(pod.metadata.clone())).collect();
        self.empty_resource(cx, kind, &namespace.name, Ok(Some(objects)), seconds).await
    }

    /// Deletes the objects of one resource, if there are any that are not terminating yet, and returns what remains.
    async fn empty_resource(
        &self,
        cx: &Context,
        kind: &ApiResource,
        namespace: &Istr,
        objects: Result<Option<Vec<Arc<Meta>>>, WireError>,
        seconds: u64,
    ) -> Outcome {
        let resource = &kind.resource;
        let objects = match objects {
            Ok(Some(objects)) if is_asked_for(&objects) => {
                return Outcome::of_left(&objects, resource, namespace, seconds);
            }
            Ok(objects) => objects,
            Err(error) => return Outcome::failed(said(&error), seconds),
        };
        if let Err(error) = delete(cx, kind, namespace, objects.as_deref().unwrap_or_default()).await {
            return Outcome::failed(error.message(), seconds);
        }
        match list(cx, kind, namespace).await {
            Ok(Some(left)) => Outcome::of_left(&left, resource, namespace, seconds),
            // A resource that cannot be listed is not waited for.
            Ok(None) => Outcome { seconds, ..Outcome::default() },
            Err(error) => Outcome::failed(said(&error), seconds),
        }
    }

    /// Removes our finalizer.
    async fn remove_finalizer(&self, cx: &Context, mut namespace: NamespaceView) -> Result<(), Error> {
        let key = namespace.meta().key();
        for _ in 0..CONFLICTS_MAX {
            let Some(finalized) = finalized(&namespace) else { return Ok(()) };
            let body = serde_json::to_vec(&finalized)?;
            match cx.writer.unowned().put_subresource(NAMESPACES, &key, "finalize", body, &Why::Empty).await {
                Ok(_) | Err(WriteError::NotFound) => return Ok(()),
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
            match cx.live.get::<NamespaceView>(&key).await? {
                Some(now) if now.meta().uid == namespace.meta().uid => namespace = now,
                _ => return Ok(()),
            }
        }
        Err(Error::message(format!("{key} is changed by others all the time")))
    }
}

/// Lists the objects of a resource in a namespace; `None` if that is not supported.
async fn list(cx: &Context, kind: &ApiResource, namespace: &str) -> Result<Option<Vec<Arc<Meta>>>, WireError> {
    if !kind.supports(&["list"]) {
        return Ok(None);
    }
    let target = Target { resource: kind.resource.clone(), selection: Selection::namespace(namespace) };
    match cx.live.list_of::<Meta>(&target).await {
        Ok(objects) => Ok(Some(objects)),
        // A resource may be removed since the last discovery.
        Err(WireError::Status(status)) if matches!(status.code, 404 | 405) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes all objects of a resource at once, or one by one where the server does not support that.
async fn delete(cx: &Context, kind: &ApiResource, namespace: &Istr, objects: &[Arc<Meta>]) -> Result<(), WriteError> {
    // The consistency book does not track this: what remains is read from the server.
    let write = cx.writer.unowned();
    let resource = &kind.resource;
    let why = &Why::Content { namespace: namespace.clone() };
    let how = Propagation::Background;
    if kind.supports(&["deletecollection"]) {
        match write.delete_collection(resource, Some(namespace), Selected::default(), how, why).await {
            Err(error) if is_unsupported(&error) => {}
            outcome => return outcome,
        }
    }
    let deletes: Vec<_> = objects.iter().map(|object| write.delete(resource, object, how, why)).collect();
    let mut outcomes = stream::iter(deletes).buffer_unordered(AT_ONCE);
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            // Deleted or replaced meanwhile; a replacement is found by the list below.
            Ok(()) | Err(WriteError::Conflict) => {}
            Err(error) if is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether the resource or the method does not exist: upstream treats both alike (its issue 22413).
fn is_unsupported(error: &WriteError) -> bool {
    match error {
        WriteError::NotFound => true,
        // A 404 that is not the API's: the path is not served.
        WriteError::Rejected(rejection) => matches!(rejection.code, 404 | 405),
        _ => false,
    }
}

/// Writes the conditions if they changed. A failure to write them is not an error of the pass.
async fn put_conditions(cx: &Context, namespace: &mut NamespaceView, findings: &Findings) {
    let Some(conditions) = conditions(&namespace.status.conditions, findings, cx.clock.now()) else { return };
    namespace.status.conditions = conditions;
    let why = Why::Conditions { left: findings.left.len(), failures: findings.failures.len() };
    let write = cx.writer.unowned();
    match write.put_status_of::<NamespaceView>(namespace.meta(), &namespace.status, &why).await {
        Ok(written) => namespace.metadata.resource_version = written.resource_version,
        Err(error) => {
            tracing::warn!(namespace = %namespace.meta().key(), %error, "the conditions of the namespace could not be written");
        }
    }
}

/// Returns the server's message verbatim, if there is one.
fn said(error: &WireError) -> String {
    match error {
        WireError::Status(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}
