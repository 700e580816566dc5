//! One pass over one service: plan → hints → write, per address family.

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey, Resource, StringMap, Time};
use steersman_model::core::{PodView, ServiceView};
use steersman_model::{EndpointSliceView, Kind, View, object_body};
use steersman_runtime::__internal::writer::Naming;
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Propagation, WriteError, reasons};

use super::EndpointSlices;
use crate::endpointslice::packing::Packed;
use crate::endpointslice::plan::{Observed, plan};
use crate::endpointslice::{asks_for_topology_hints, endpoint, hints, zones};
use crate::service_pods::address::Family;

const SLICES: &Resource = &EndpointSliceView::RESOURCE;
const SERVICES: &Resource = &ServiceView::RESOURCE;

reasons! {
    /// Why the endpointslice controller writes.
    pub enum Why {
        /// Endpoints fit into no slice.
        NeedsSlice { endpoints: usize, family: &'static str } => "{endpoints} endpoints of {family} need a slice",
        /// The slice is not as it should be.
        Changed { endpoints: usize, before: usize } => "the slice has {before} endpoints and should have these {endpoints}",
        /// The slice has no endpoints left, or is not this service's.
        NotNeeded { endpoints: usize } => "none of its {endpoints} endpoints is wanted there any more",
    }
}

/// Why a pass is not through.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error("failed to {what} EndpointSlice for Service {service}: {}", .source.message())]
    Write { what: String, service: ObjectKey, source: WriteError },
    #[error("skipping Pod {pod} for Service {service}: Node {node} Not Found")]
    Nodeless { pod: Istr, service: ObjectKey, node: Istr },
}

/// One pass over one service.
pub(super) struct Pass<'a> {
    shell: &'a EndpointSlices,
    cx: &'a Context,
    service: &'a ServiceView,
    key: &'a ObjectKey,
    pods: &'a [Arc<PodView>],
    labels: StringMap,
    time: Option<Time>,
    /// The names of all slices of the service that this pass knows.
    known: BTreeSet<Istr>,
    /// Whether a slice is that of an earlier create, so that another pass has to look at its endpoints.
    found_earlier: bool,
    errors: Vec<SyncError>,
    nodeless: BTreeSet<Istr>,
}

/// Several errors as upstream says them: what is said twice, as for a pod of both families, is said once.
fn aggregate(errors: &[impl ToString]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if let [only] = &*texts { only.clone() } else { format!("[{}]", texts.join(", ")) }
}

// === impl Pass ===

impl<'a> Pass<'a> {
    pub(super) fn new(
        shell: &'a EndpointSlices,
        cx: &'a Context,
        service: &'a ServiceView,
        key: &'a ObjectKey,
        pods: &'a [Arc<PodView>],
        time: Option<Time>,
        known: BTreeSet<Istr>,
    ) -> Self {
        let labels = endpoint::labels(service);
        let errors = Vec::new();
        let nodeless = BTreeSet::new();
        Self { shell, cx, service, key, pods, labels, time, known, found_earlier: false, errors, nodeless }
    }

    /// Takes the names of the unknown nodes that pods were skipped for.
    pub(super) fn take_nodeless(&mut self) -> BTreeSet<Istr> {
        std::mem::take(&mut self.nodeless)
    }

    /// Whether all slices are as planned.
    pub(super) fn has_written_all(&self) -> bool {
        !self.found_earlier && self.errors.iter().all(|error| matches!(error, SyncError::Nodeless { .. }))
    }

    /// Brings the slices of one family to what they should be. What goes wrong is noted, and keeps no other family.
    pub(super) async fn family(&mut self, family: Family, slices: Vec<Arc<EndpointSliceView>>) {
        let seen = Observed {
            service: self.service,
            pods: self.pods,
            labels: &self.labels,
            endpoints_per_slice_max: self.shell.endpoints_per_slice_max,
        };
        let plan = plan(&seen, family, slices, |name| self.shell.node(name));
        for pod in &plan.nodeless {
            let node = pod.spec.node_name.clone();
            let pod = pod.meta().name.clone();
            let service = self.key.clone();
            self.nodeless.insert(node.clone());
            self.errors.push(SyncError::Nodeless { pod, service, node });
        }
        let mut packed = plan.packed;
        self.shell.metrics.planned(self.key, family, &plan.groups, packed.added, packed.removed);
        self.give_hints(&mut packed, family);
        packed.reuse(|slice| endpoint::is_owned(slice, self.service));
        match self.write(packed, family).await {
            Ok(is_as_planned) => self.found_earlier |= !is_as_planned,
            Err(error) => self.errors.push(error),
        }
    }

    /// Decides who should use which endpoint, and records an event if that begins or ceases to work.
    fn give_hints(&self, packed: &mut Packed, family: Family) {
        let topology = &self.shell.memory.topology;
        let near = hints::near(self.service).filter(|_| !asks_for_topology_hints(self.service));
        let distribution = near.and(self.service.spec.traffic_distribution.as_ref());
        self.shell.metrics.distributed(self.key, distribution);
        if asks_for_topology_hints(self.service) {
            match zones::spread(packed, topology.shares().as_ref()) {
                Ok(allotted) => {
                    if !topology.set(self.key, family, allotted) {
                        self.report_hints("Topology Aware Hints has been enabled", family, true);
                    }
                }
                Err(why) => {
                    topology.clear(self.key, family);
                    hints::remove(packed);
                    self.report_hints(&why, family, false);
                }
            }
            return;
        }
        if topology.clear(self.key, family) {
            self.report_hints("Topology Aware Hints has been disabled", family, false);
        }
        match near {
            Some(near) => hints::prefer(packed, near),
            None => hints::remove(packed),
        }
    }

    fn report_hints(&self, what: &str, family: Family, enabled: bool) {
        let about = About::new(SERVICES, self.service.meta());
        let note = format!("{what}, addressType: {family}");
        if enabled {
            self.cx.events.normal(&about, "TopologyAwareHintsEnabled", note);
        } else {
            self.cx.events.warning(&about, "TopologyAwareHintsDisabled", note);
        }
    }

    /// Creates, then updates, then deletes: endpoints that move are twice there for a while, and never nowhere. The first
    /// failure is the last write. Returns whether the slices are as planned: one that an earlier create made may not be.
    async fn write(&self, packed: Packed, family: Family) -> Result<bool, SyncError> {
        let mut is_as_planned = true;
        let (mut creates, updates): (Vec<_>, Vec<_>) =
            packed.drafts.into_iter().partition(|draft| draft.base.is_none());
        if self.service.meta().is_terminating() {
            // The garbage collector deletes slices of this service; new ones would only make it more work.
            creates.clear();
        }
        let count = creates.len() + updates.len() + packed.delete.len();
        let slice = |draft| endpoint::slice(draft, self.service, family, &self.labels, self.time);
        for draft in creates {
            let why = Why::NeedsSlice { endpoints: draft.endpoints.len(), family: family.as_str() };
            match self.create(&slice(draft), &why).await {
                // There is nothing to create in any more.
                Err(WriteError::NamespaceTerminating) => return Ok(true),
                created => is_as_planned &= created.map_err(|error| self.failed("create", error))?,
            }
        }
        for draft in updates {
            let before = draft.base.as_ref().map_or(0, |base| base.endpoints.len());
            let why = Why::Changed { endpoints: draft.endpoints.len(), before };
            let slice = slice(draft);
            let updated = self.update(&slice, &why).await;
            updated.map_err(|error| self.failed(&format!("update {}", slice.meta().name), error))?;
        }
        for slice in &packed.delete {
            self.delete(slice).await?;
        }
        let topology = if asks_for_topology_hints(self.service) { "Auto" } else { "Disabled" };
        let distribution = self.service.spec.traffic_distribution.as_ref();
        let distribution = distribution.filter(|_| topology == "Disabled" && hints::near(self.service).is_some());
        let distribution = distribution.map_or("", Istr::as_str);
        self.shell.metrics.wrote(topology, distribution, count);
        Ok(is_as_planned)
    }

    /// Creates a slice. Returns whether it is this one, and not that of an earlier create: its endpoints may be others, and the
    /// event that shows it must trigger a pass.
    async fn create(&self, slice: &EndpointSliceView, why: &Why) -> Result<bool, WriteError> {
        let naming =
            Naming { prefix: slice.meta().generate_name(), purpose: "", is_seen: &|name| self.known.contains(name) };
        let body = |name: &str| {
            let metadata = Meta { name: Istr::new(name), ..slice.meta().clone() };
            object_body(&EndpointSliceView { metadata, ..slice.clone() })
        };
        let write = self.cx.writer.on_behalf_of(self.service.meta());
        let created = write.create_named(SLICES, naming, body, why).await?;
        if !created.is_earlier {
            self.shell.memory.tracker.wrote(&created.meta);
        }
        self.shell.metrics.changed("create");
        Ok(!created.is_earlier)
    }

    async fn update(&self, slice: &EndpointSliceView, why: &Why) -> Result<(), WriteError> {
        let write = self.cx.writer.on_behalf_of(self.service.meta());
        let updated = write.put(SLICES, &slice.meta().key(), object_body(slice), why).await?;
        self.shell.memory.tracker.wrote(&updated);
        self.shell.metrics.changed("update");
        Ok(())
    }

    async fn delete(&self, slice: &EndpointSliceView) -> Result<(), SyncError> {
        let why = Why::NotNeeded { endpoints: slice.endpoints.len() };
        let write = self.cx.writer.on_behalf_of(self.service.meta());
        let deleted = write.delete(SLICES, slice.meta(), Propagation::Background, &why).await;
        if deleted.is_ok() {
            self.shell.memory.tracker.deleted(&slice.meta().uid);
            self.shell.metrics.changed("delete");
        }
        // Gone, or another one of that name by now: what was wanted.
        let deleted = deleted.ok_if_gone().ok_if_replaced();
        deleted.map_err(|error| self.failed(&format!("delete {}", slice.meta().name), error))
    }

    /// The service does not have these families any more.
    pub(super) async fn drop_others(&mut self, slices: Vec<Arc<EndpointSliceView>>) {
        for slice in slices {
            if let Some(family) = Family::parse(&slice.address_type) {
                self.shell.memory.topology.clear(self.key, family);
                self.shell.metrics.dropped(self.key, family);
            }
            let deleted = self.delete(&slice).await;
            self.errors.extend(deleted.err());
        }
    }

    /// Records the errors as an event, and returns the first: an error that says how to go on comes before one that does not.
    pub(super) fn end(self) -> Result<Action, Error> {
        if self.errors.is_empty() {
            return Ok(if self.found_earlier { Action::Again } else { Action::Done });
        }
        let note = format!("Error updating Endpoint Slices for Service {}: {}", self.key, aggregate(&self.errors));
        let is_write = |error: &SyncError| matches!(error, SyncError::Write { .. });
        let is_reported = |error: &SyncError| !matches!(error, SyncError::Write { source: WriteError::NotLeader, .. });
        if self.errors.iter().all(is_reported) {
            let about = About::new(SERVICES, self.service.meta());
            self.cx.events.warning(&about, "FailedToUpdateEndpointSlices", note);
        }
        let mut errors = self.errors;
        let first = errors.iter().position(is_write).unwrap_or(0);
        Err(errors.swap_remove(first).into())
    }

    fn failed(&self, what: &str, source: WriteError) -> SyncError {
        SyncError::Write { what: what.to_owned(), service: self.key.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::aggregate;

    #[test]
    fn errors_are_reported_once_each() {
        for (errors, want) in
            [(&["a"][..], "a"), (&["a", "a"], "a"), (&["a", "b"], "[a, b]"), (&["b", "a", "b"], "[b, a]")]
        {
            assert_eq!(aggregate(errors), want, "{errors:?}");
        }
    }
}
