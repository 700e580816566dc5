//! The shell: observe → plan → create, update and delete slices.

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_base::{Istr, Meta, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::ServiceView;
use steersman_model::{EndpointSliceView, EndpointsView, Kind, View, object_body};
use steersman_runtime::__internal::Found;
use steersman_runtime::__internal::writer::Naming;
use steersman_runtime::events::About;
use steersman_runtime::writer::{Behalf, Outcome};
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};
use tokio::time::Instant;

use super::map::{has_mirror, is_mirrored};
use super::metrics::Metrics;
use super::plan::{Plan, Skipped, plan};
use crate::service_pods::memory::Tracker;

const ENDPOINTS: &Resource = &EndpointsView::RESOURCE;
const SLICES: &Resource = &EndpointSliceView::RESOURCE;

/// The controller's shell: the caches that it reads from, and its memory.
pub(super) struct Mirror {
    pub(super) endpoints: Lister<EndpointsView>,
    pub(super) services: Lister<ServiceView>,
    pub(super) slices: Found<ObjectKey, EndpointSliceView>,
    pub(super) endpoints_per_subset_max: usize,
    pub(super) metrics: Metrics,
    pub(super) tracker: Arc<Tracker>,
}

reasons! {
    /// Why the mirroring controller writes.
    pub enum Why {
        /// A subset has no slice.
        NeedsSlice { endpoints: usize } => "{endpoints} addresses have no slice",
        /// A slice is not as its subset.
        Changed { endpoints: usize } => "the slice should have these {endpoints} addresses",
        /// No subset has the slice's ports, or nothing is to be mirrored.
        NotNeeded => "nothing is to be mirrored to it any more",
    }
}

// === impl Mirror ===

impl Reconciler for Mirror {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let began = Instant::now();
        let done = self.sync(cx, key).await;
        self.metrics.took(began.elapsed());
        done
    }
}

impl Mirror {
    async fn sync(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let mut slices = self.slices.get(cx, key).await?;
        let known: BTreeSet<Istr> = slices.iter().map(|slice| slice.meta().name.clone()).collect();
        slices.retain(|slice| !slice.meta().is_terminating());
        let endpoints = cx.get(&self.endpoints, key).await?;
        let has_mirror = self.services.get(key).is_some_and(|service| has_mirror(&service));
        let Some(mirrored) = endpoints.as_deref().filter(|endpoints| has_mirror && is_mirrored(endpoints)) else {
            self.metrics.forget(key);
            let write = match &endpoints {
                Some(endpoints) => cx.writer.on_behalf_of(endpoints.meta()),
                None => cx.writer.unowned(),
            };
            for slice in &slices {
                self.delete(&write, slice).await?;
            }
            return Ok(Action::Done);
        };
        let plan = plan(mirrored, slices, self.endpoints_per_subset_max);
        self.report(cx, mirrored, plan.skipped);
        self.metrics.planned(key, &plan);
        self.write(cx, mirrored, plan, &known).await
    }

    /// Creates, then updates, then deletes; the first failure is the last write. `known` are the names of the slices that this
    /// pass has seen.
    async fn write(
        &self,
        cx: &Context,
        endpoints: &EndpointsView,
        plan: Plan,
        known: &BTreeSet<Istr>,
    ) -> Result<Action, Error> {
        let mut action = Action::Done;
        let write = cx.writer.on_behalf_of(endpoints.meta());
        // The garbage collector deletes slices of Endpoints that are terminating; new ones would make it more work.
        for slice in plan.create.iter().filter(|_| !endpoints.meta().is_terminating()) {
            match self.create(&write, slice, known).await {
                // There is nothing to create in any more.
                Err(WriteError::NamespaceTerminating) => return Ok(Action::Done),
                created => {
                    if !created? {
                        // Its addresses may be others.
                        action = Action::Again;
                    }
                }
            }
        }
        for slice in &plan.update {
            let why = Why::Changed { endpoints: slice.endpoints.len() };
            let updated = write.put(SLICES, &slice.meta().key(), object_body(slice), &why).await?;
            self.tracker.wrote(&updated);
            self.metrics.changed("update");
        }
        for slice in &plan.delete {
            self.delete(&write, slice).await?;
        }
        Ok(action)
    }

    /// Creates a slice. Returns whether it is this one, and not that of an earlier create: its addresses may be others, and the
    /// event that shows it must trigger a pass.
    async fn create(
        &self,
        write: &Behalf<'_>,
        slice: &EndpointSliceView,
        known: &BTreeSet<Istr>,
    ) -> Result<bool, WriteError> {
        let naming =
            Naming { prefix: slice.meta().generate_name(), purpose: "", is_seen: &|name| known.contains(name) };
        let body = |name: &str| {
            let metadata = Meta { name: Istr::new(name), ..slice.meta().clone() };
            object_body(&EndpointSliceView { metadata, ..slice.clone() })
        };
        let why = Why::NeedsSlice { endpoints: slice.endpoints.len() };
        let created = write.create_named(SLICES, naming, body, &why).await?;
        if !created.is_earlier {
            self.tracker.wrote(&created.meta);
        }
        self.metrics.changed("create");
        Ok(!created.is_earlier)
    }

    async fn delete(&self, write: &Behalf<'_>, slice: &EndpointSliceView) -> Result<(), WriteError> {
        let deleted = write.delete(SLICES, slice.meta(), Propagation::Background, &Why::NotNeeded).await;
        if deleted.is_ok() {
            self.tracker.deleted(&slice.meta().uid);
            self.metrics.changed("delete");
        }
        deleted.ok_if_gone().ok_if_replaced()
    }

    /// Reports addresses that are not mirrored.
    fn report(&self, cx: &Context, endpoints: &EndpointsView, skipped: Skipped) {
        let about = About::new(ENDPOINTS, endpoints.meta());
        let Skipped { all, invalid } = skipped;
        if invalid > 0 {
            let note = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
            cx.events.warning(&about, "InvalidIPAddress", note);
        }
        if all > invalid {
            let note = format!(
                "A max of {} addresses can be mirrored to EndpointSlices per Endpoints subset. {all} addresses were skipped",
                self.endpoints_per_subset_max
            );
            cx.events.warning(&about, "TooManyAddressesToMirror", note);
        }
    }
}
