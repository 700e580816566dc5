//! The shell: observe → claim → history → plan → write → status.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey, Resource, Selector};
use steersman_informer::Lister;
use steersman_model::apps::{ControllerRevisionView, StatefulSetStatus, StatefulSetView};
use steersman_model::core::{PersistentVolumeClaimView, PodView};
use steersman_model::{Kind, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};

use super::identity::{self, ClaimTemplate, ClaimTemplates};
use super::plan::{Observed, Plan, Pods, Step, is_recreated, plan};
use super::retention::Owners;
use super::{Options, status};
use crate::claim::{Selecting, claimed, claimed_if, usable};
use crate::history::memory::Patches;

mod revisions;

use revisions::History;

const SETS: &Resource = &StatefulSetView::RESOURCE;
const PODS: &Resource = &PodView::RESOURCE;
const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;

/// The controller's shell: the caches that it reads from.
pub(super) struct Sets {
    pub(super) sets: Lister<StatefulSetView>,
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) pods: Children<PodView>,
    pub(super) revisions: Children<ControllerRevisionView>,
    pub(super) patches: Patches,
    pub(super) options: Options,
}

reasons! {
    /// Why the StatefulSet controller writes.
    pub enum Why {
        /// A wanted pod does not exist.
        Missing { set: Istr, revision: Istr } => "there is no such pod; it is of revision {revision}"
            event "SuccessfulCreate" |pod| "Create Pod {pod} in StatefulSet {set} successful",
        /// A claim of a pod does not exist.
        NoClaim { set: Istr, pod: String } => "pod {pod} has no such claim"
            event "SuccessfulCreate" |claim| "Create Claim {claim} Pod {pod} in StatefulSet {set} success",
        /// A pod has ended.
        Ended { set: Istr, pod: Istr } => "it has ended, and is replaced"
            event "SuccessfulDelete" |name| "Delete Pod {name} in StatefulSet {set} successful"
            or "FailedDelete" |error| "Delete Pod {pod} in StatefulSet {set} failed error: {error}",
        /// A pod has an ordinal that is not wanted.
        Surplus { set: Istr, pod: Istr } => "its ordinal is not wanted"
            event "SuccessfulDelete" |name| "Delete Pod {name} in StatefulSet {set} successful"
            or "FailedDelete" |error| "Delete Pod {pod} in StatefulSet {set} failed error: {error}",
        /// A pod is of an old revision.
        Old { set: Istr, pod: Istr, update: Istr } => "it is not of revision {update}"
            event "SuccessfulDelete" |name| "Delete Pod {name} in StatefulSet {set} successful"
            or "FailedDelete" |error| "Delete Pod {pod} in StatefulSet {set} failed error: {error}",
        /// A pod lacks its label or its volumes.
        Identity { set: Istr, pod: Istr } => "it has not the label and the volumes of its ordinal"
            event "SuccessfulUpdate" |name| "Update Pod {name} in StatefulSet {set} successful"
            or "FailedUpdate" |error| "Update Pod {pod} in StatefulSet {set} failed error: {error}",
        /// A claim has not the owners that its retention policy asks for.
        Retention { set: Istr, pod: Istr, claim: Istr } =>
            "it has not the owners that the retention policy asks for, as the claim of {pod}"
            or "FailedUpdate" |error| "Update Pod {pod} in StatefulSet {set} failed error: could not update claim {claim} \
                for delete policy ownerRefs: {error}",
        /// The status is out of date.
        Status { replicas: i32, ready: i32, updated: i32 } =>
            "{replicas} pods are there, {ready} of them ready, {updated} updated",
    }
}

/// A pass over one StatefulSet.
struct Pass<'a> {
    cx: &'a Context,
    seen: &'a Observed<'a>,
}

/// A write of a pass.
enum Task<'a> {
    Step(&'a Step),
    /// Give the claims of a surplus pod the right owners.
    Own(&'a PodView),
    /// Delete a surplus pod.
    ScaleDown(&'a PodView),
    /// Delete an old pod.
    Replace(&'a PodView),
}

/// Claims of a pod that cannot be created.
struct NoClaims {
    /// The error of each, for an event.
    said: Vec<String>,
    /// The first failure.
    error: Error,
}

// === impl Sets ===

impl Reconciler for Sets {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(set) = cx.main(&self.sets, key).await? else {
            self.patches.forget(key);
            return Ok(Action::Done);
        };
        let unusable = |problem| Error::terminal(format!("StatefulSet {key} is left alone: {problem}"));
        let selector = usable(set.selector(), set.spec.template.labels()).map_err(unusable)?;
        let held = claimed(cx, &self.revisions, &*set, &selector, |_| true).await?.own;
        let is_ours = |pod: &PodView| identity::is_member(&set, pod) && selector_matches(&selector, pod);
        let pods = claimed_if(cx, &self.pods, &*set, is_ours, |_| true).await?.own;
        let history = match revisions::history(cx, &set, held, &self.patches, self.options).await {
            Ok(Some(history)) => history,
            // A terminating StatefulSet gets no new revision.
            Ok(None) => return Ok(Action::Done),
            Err(error) => return Err(error),
        };
        self.refuse_unknown_strategy(cx, &set)?;
        self.work(cx, &set, &history, pods).await
    }
}

impl Sets {
    /// With the feature gate `StatefulSetRecreateStrategy` off, the strategy `Recreate` is unknown.
    fn refuse_unknown_strategy(&self, cx: &Context, set: &StatefulSetView) -> Result<(), Error> {
        if !is_recreated(set) || self.options.recreate {
            return Ok(());
        }
        let text = format!(
            "statefulset {} uses Recreate strategy but feature gate StatefulSetRecreateStrategy is disabled",
            set.meta().key()
        );
        cx.events.warning(&About::new(SETS, set.meta()), "UnknownStrategy", text.as_str());
        Err(Error::message(text))
    }

    async fn work(
        &self,
        cx: &Context,
        set: &StatefulSetView,
        history: &History,
        pods: Vec<Arc<PodView>>,
    ) -> Result<Action, Error> {
        let templates = ClaimTemplates::of(set)?;
        let pods = Pods::of(set, pods);
        let claims = self.claims_of(cx, set, &templates, &pods).await?;
        let claim = |name: &str| claims.get(name).cloned();
        let seen = Observed {
            set,
            templates: &templates,
            current: &history.current,
            update: &history.update,
            pods: &pods,
            claim: &claim,
            options: self.options,
            now: cx.clock.now(),
        };
        let plan = plan(&seen);
        let pass = Pass { cx, seen: &seen };
        let (replaced, outcome) = pass.perform(&plan).await;
        let status = status::status(&seen, &plan, history.collisions, replaced);
        let stored = pass.store(&status).await;
        let truncated = pass.truncate(history).await;
        outcome?;
        stored?;
        truncated?;
        Ok(status::next_check(&seen, &status).map_or(Action::Done, Action::After))
    }

    /// Returns the claims of the pods that a pass may write.
    async fn claims_of(
        &self,
        cx: &Context,
        set: &StatefulSetView,
        templates: &ClaimTemplates,
        pods: &Pods,
    ) -> Result<HashMap<String, Arc<PersistentVolumeClaimView>>, Error> {
        let mut claims = HashMap::new();
        for template in templates.iter() {
            for ordinal in pods.ordinals(set) {
                let name = template.claim_name(set, ordinal);
                let key = ObjectKey::new(&set.meta().namespace, &name);
                claims.extend(cx.get(&self.claims, &key).await?.map(|claim| (name, claim)));
            }
        }
        Ok(claims)
    }
}

fn selector_matches(selector: &Selector, pod: &PodView) -> bool {
    selector.matches(&pod.meta().labels)
}

// === impl Pass ===

impl Pass<'_> {
    /// Makes the writes; returns how many old pods were deleted in a rolling update, and the first failure.
    async fn perform(&self, plan: &Plan) -> (usize, Result<(), Error>) {
        let replace: Vec<_> = plan.replace.iter().map(|pod| Task::Replace(pod)).collect();
        let is_recreated = is_recreated(self.seen.set);
        let mut wanted: Vec<_> = plan.wanted.iter().map(Task::Step).collect();
        if !self.seen.is_ordered() {
            // A create that fails ends the batches; what is to be done to other pods does not wait for it.
            wanted.sort_by_key(|task| matches!(task, Task::Step(Step::Create { .. })));
        }
        let own: Vec<_> = plan.own.iter().map(|pod| Task::Own(pod)).collect();
        let scale_down: Vec<_> = plan.scale_down.iter().map(|pod| Task::ScaleDown(pod)).collect();
        let first = if is_recreated { &replace[..] } else { &[] };
        for tasks in [first, &wanted, &own, &scale_down] {
            if let Err(error) = self.each(tasks).await {
                return (0, Err(error));
            }
        }
        let last = if is_recreated { &[] } else { &replace[..] };
        for (at, task) in last.iter().enumerate() {
            if let Err(error) = self.task(task).await {
                return (at, Err(error));
            }
        }
        (last.len(), Ok(()))
    }

    /// Makes writes one after the other until one fails, or in growing batches if pods do not wait for each other.
    async fn each(&self, tasks: &[Task<'_>]) -> Result<(), Error> {
        if self.seen.is_ordered() {
            for task in tasks {
                self.task(task).await?;
            }
            return Ok(());
        }
        let behalf = self.cx.writer.on_behalf_of(self.seen.set.meta());
        let (_, failure) = behalf.slow_start(tasks.len(), |at| self.task(&tasks[at])).await;
        failure.map_or(Ok(()), Err)
    }

    async fn task(&self, task: &Task<'_>) -> Result<(), Error> {
        match task {
            Task::Step(step) => self.step(step).await,
            Task::Own(pod) => self.own_claims(pod).await,
            Task::ScaleDown(pod) => {
                self.delete(pod, &Why::Surplus { set: self.name(), pod: pod.meta().name.clone() }).await
            }
            Task::Replace(pod) => self.replace(pod).await,
        }
    }

    async fn replace(&self, pod: &PodView) -> Result<(), Error> {
        let update = self.seen.update.name.clone();
        self.delete(pod, &Why::Old { set: self.name(), pod: pod.meta().name.clone(), update }).await
    }

    async fn step(&self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Create { ordinal, is_update } => self.create(*ordinal, *is_update).await,
            Step::DeleteEnded(pod) => {
                self.delete(pod, &Why::Ended { set: self.name(), pod: pod.meta().name.clone() }).await
            }
            Step::DeleteBroken(pod) => self.replace(pod).await,
            Step::Claims(pod) => {
                let Some(ordinal) = identity::ordinal(pod) else { return Ok(()) };
                self.create_claims(ordinal, &pod.meta().name).await.map_err(|none| none.error)?;
                self.own_claims(pod).await
            }
            Step::Amend(pod) => self.amend(pod).await,
        }
    }

    async fn create(&self, ordinal: i64, is_update: bool) -> Result<(), Error> {
        let set = self.seen.set;
        let name = identity::pod_name(set, ordinal);
        let revision = if is_update { self.seen.update } else { self.seen.current };
        if let Err(none) = self.create_claims(ordinal, &name).await {
            let text = format!("Create Pod {name} in StatefulSet {} failed error: {none}", self.name());
            self.warn("FailedCreate", &text);
            return Err(none.error);
        }
        let body = identity::pod_body(set, self.seen.templates, revision, ordinal)?;
        let why = Why::Missing { set: self.name(), revision: revision.name.clone() };
        let created = self.cx.writer.on_behalf_of(set.meta()).create(PODS, body, &why).await;
        if let Err(error) = &created
            && is_reported(error)
        {
            let text = format!("Create Pod {name} in StatefulSet {} failed error: {}", self.name(), error.message());
            self.warn("FailedCreate", &text);
        }
        if created.is_ok() {
            let metadata = Meta { name: Istr::new(&name), ..Meta::default() };
            self.warn_of_others(&PodView { metadata, ..PodView::default() });
        }
        // Nothing can be created in a terminating namespace.
        Ok(created.ok_if_terminating()?)
    }

    /// Creates the claims of an ordinal that do not exist: one that cannot be created does not hold back the others.
    async fn create_claims(&self, ordinal: i64, pod: &str) -> Result<(), NoClaims> {
        let mut none: Option<NoClaims> = None;
        for template in self.seen.templates.iter() {
            let Err(failed) = self.create_claim(template, ordinal, pod).await else { continue };
            match &mut none {
                None => none = Some(failed),
                Some(none) => none.said.extend(failed.said),
            }
        }
        none.map_or(Ok(()), Err)
    }

    async fn create_claim(&self, template: &ClaimTemplate, ordinal: i64, pod: &str) -> Result<(), NoClaims> {
        let set = self.seen.set;
        let name = template.claim_name(set, ordinal);
        let failed = |said: String, error: Error| Err(NoClaims { said: vec![said], error });
        match (self.seen.claim)(&name) {
            Some(claim) if claim.meta().is_terminating() => {
                let said = format!("pvc {name} is being deleted");
                return failed(said.clone(), Error::message(said));
            }
            Some(_) => return Ok(()),
            None => {}
        }
        let body = match template.body(set, ordinal) {
            Ok(body) => body,
            Err(error) => return failed(format!("failed to create PVC {name}: {error}"), error.into()),
        };
        let why = Why::NoClaim { set: self.name(), pod: pod.to_owned() };
        let created = self.cx.writer.on_behalf_of(set.meta()).create(CLAIMS, body, &why).await;
        // Nothing can be created in a terminating namespace, and so no pod will be.
        let Err(error) = created.ok_if_terminating() else { return Ok(()) };
        let said = error.message();
        if is_reported(&error) {
            let set = self.name();
            let text = format!("Create Claim {name} for Pod {pod} in StatefulSet {set} failed error: {said}");
            self.warn("FailedCreate", &text);
        }
        failed(format!("failed to create PVC {name}: {said}"), error.into())
    }

    /// Warns of the claims of a pod that another controller owns.
    fn warn_of_others(&self, pod: &PodView) {
        for name in self.seen.claims_of_others(pod) {
            let text = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, the \
                retention policy is ignored for this claim"
            );
            self.warn("ConflictingController", &text);
        }
    }

    /// Gives the claims of a pod the owners that the retention policy asks for.
    async fn own_claims(&self, pod: &PodView) -> Result<(), Error> {
        let Some(ordinal) = identity::ordinal(pod) else { return Ok(()) };
        let owners = Owners { set: self.seen.set, pod };
        self.warn_of_others(pod);
        for template in self.seen.templates.iter() {
            let name = template.claim_name(self.seen.set, ordinal);
            let Some(claim) = (self.seen.claim)(&name) else { continue };
            if owners.are_right(claim.meta()) {
                continue;
            }
            self.own_claim(claim.meta(), &owners).await?;
        }
        Ok(())
    }

    /// Replaces the owners of a claim. The role of the controller allows to PUT claims, not to patch them, so that the
    /// whole claim is read first.
    async fn own_claim(&self, claim: &Meta, owners: &Owners<'_>) -> Result<(), Error> {
        let key = claim.key();
        let Some(mut object) = self.cx.live.get_json(CLAIMS, &key).await? else { return Ok(()) };
        if object["metadata"]["uid"].as_str() != Some(&*claim.uid.to_string())
            || object["metadata"]["resourceVersion"].as_str() != Some(&*claim.resource_version.to_string())
        {
            return Err(Error::message(format!("claim {key} has changed meanwhile")));
        }
        object["metadata"]["ownerReferences"] = serde_json::to_value(owners.right(claim))?;
        let pod = owners.pod.meta().name.clone();
        let why = Why::Retention { set: self.name(), pod, claim: claim.name.clone() };
        let write = self.cx.writer.on_behalf_of(self.seen.set.meta());
        Ok(write.put(CLAIMS, &key, serde_json::to_vec(&object)?, &why).await.ok_if_gone()?)
    }

    /// Gives an adopted pod its label and volumes. The server refuses other volumes for an existing pod.
    async fn amend(&self, pod: &PodView) -> Result<(), Error> {
        let Some(ordinal) = identity::ordinal(pod) else { return Ok(()) };
        let set = self.seen.set;
        self.own_claims(pod).await?;
        if identity::has_identity(set, pod) && identity::has_storage(set, self.seen.templates, pod) {
            return Ok(());
        }
        if let Err(none) = self.create_claims(ordinal, &pod.meta().name).await {
            let text = format!("Update Pod {} in StatefulSet {} failed error: {none}", pod.meta().name, self.name());
            self.warn("FailedUpdate", &text);
            return Err(none.error);
        }
        let key = pod.meta().key();
        let Some(mut object) = self.cx.live.get_json(PODS, &key).await? else { return Ok(()) };
        if object["metadata"]["uid"].as_str() != Some(&*pod.meta().uid.to_string()) {
            return Ok(());
        }
        identity::amend(&mut object, set, self.seen.templates, ordinal);
        let why = Why::Identity { set: self.name(), pod: pod.meta().name.clone() };
        let write = self.cx.writer.on_behalf_of(set.meta());
        Ok(write.put(PODS, &key, serde_json::to_vec(&object)?, &why).await.ok_if_gone()?)
    }

    async fn delete(&self, pod: &PodView, why: &Why) -> Result<(), Error> {
        let write = self.cx.writer.on_behalf_of(self.seen.set.meta());
        let deleted = write.delete(PODS, pod.meta(), Propagation::Background, why).await;
        // Deleted or replaced meanwhile: nothing is left to do.
        Ok(deleted.ok_if_gone().ok_if_replaced()?)
    }

    async fn store(&self, status: &StatefulSetStatus) -> Result<(), Error> {
        let set = self.seen.set;
        let updated = status.updated_replicas;
        let why = Why::Status { replicas: status.replicas, ready: status.ready_replicas, updated };
        let write = self.cx.writer.on_behalf_of(set.meta());
        let stored = write.put_status_if_changed::<StatefulSetView, _>(set.meta(), &set.status, status, &why).await;
        Ok(stored.ok_if_gone()?)
    }

    /// Deletes revisions beyond the limit.
    async fn truncate(&self, history: &History) -> Result<(), Error> {
        let seen = self.seen;
        let pods = seen.pods.all().map(|pod| identity::revision_of(pod));
        let live: HashSet<&str> = pods.chain([&*seen.current.name, &*seen.update.name]).collect();
        revisions::truncate(self.cx, seen.set, history, &live).await
    }

    fn name(&self) -> Istr {
        self.seen.set.meta().name.clone()
    }

    fn warn(&self, reason: &'static str, text: &str) {
        self.cx.events.warning(&About::new(SETS, self.seen.set.meta()), reason, text);
    }
}

// === impl NoClaims ===

impl fmt::Display for NoClaims {
    /// As Go's `Aggregate`: several errors are a list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.said {
            [said] => f.write_str(said),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

/// Whether a failed create is reported. An object of the name that belongs to another is not, as upstream.
fn is_reported(error: &WriteError) -> bool {
    !matches!(error, WriteError::AlreadyExists | WriteError::NamespaceTerminating | WriteError::NotLeader)
}
