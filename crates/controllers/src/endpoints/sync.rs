//! The shell: observe → plan → write.

use std::sync::Arc;

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::core::{EndpointsView, PodView, ServiceView};
use steersman_model::{Kind, View, object_body};
use steersman_runtime::events::About;
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Propagation, Reconciler, WriteError, reasons};

use super::map;
use super::plan::{Plan, plan};
use crate::service_pods::memory::{Once, TriggerTimes};
use crate::service_pods::{self, ServicePods, address};

const ENDPOINTS: &Resource = &EndpointsView::RESOURCE;
const SERVICES: &Resource = &ServiceView::RESOURCE;

/// The controller's shell: the caches that it reads from, and its memory.
pub(super) struct Endpoints {
    pub(super) services: Lister<ServiceView>,
    pub(super) endpoints: Lister<EndpointsView>,
    pub(super) pods: ServicePods,
    pub(super) times: TriggerTimes,
    pub(super) warned: Once,
}

reasons! {
    /// Why the endpoints controller writes.
    pub enum Why {
        /// The service has no Endpoints yet.
        Missing { ready: usize, not_ready: usize } => "the service has no Endpoints; {ready} addresses are ready, {not_ready} are not",
        /// The Endpoints do not match the pods.
        Changed { ready: usize, not_ready: usize } => "{ready} addresses are ready, {not_ready} are not",
        /// There is no service of this name.
        ServiceGone => "there is no service of that name",
    }
}

// === impl Endpoints ===

impl Reconciler for Endpoints {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(service) = self.services.get(key) else {
            self.times.forget(key);
            self.remove(cx, key).await?;
            return Ok(Action::Done);
        };
        if !service_pods::has_endpoints(&service) {
            return Ok(Action::Done);
        }
        let pods = self.pods.of(&service);
        self.log_invalid(&pods);
        let current = cx.get(&self.endpoints, key).await?;
        let (time, seen) = self.times.observe(&service, &pods);
        match plan(&service, &pods, current.as_deref(), time) {
            Plan::Nothing => {}
            Plan::Create(endpoints) => create(cx, &service, &endpoints).await?,
            Plan::Update(endpoints) => update(cx, &service, &endpoints).await?,
        }
        self.times.keep(key, seen);
        Ok(Action::Done)
    }
}

impl Endpoints {
    /// Deletes the Endpoints of a deleted service. Those that the cache does not show yet enqueue the key when it does.
    async fn remove(&self, cx: &Context, key: &ObjectKey) -> Result<(), Error> {
        let Some(endpoints) = self.endpoints.get(key) else { return Ok(()) };
        // What somebody wrote cannot be made again, and the cache of services may be behind: a service of this name that
        // was just created has an event of its own.
        if !map::is_ours(endpoints.meta()) && cx.live.get_meta(SERVICES, key).await?.is_some() {
            return Ok(());
        }
        let write = cx.writer.unowned();
        let deleted = write.delete(ENDPOINTS, endpoints.meta(), Propagation::Background, &Why::ServiceGone).await;
        // Deleted or replaced meanwhile.
        Ok(deleted.ok_if_gone().ok_if_replaced()?)
    }

    fn log_invalid(&self, pods: &[Arc<PodView>]) {
        for pod in pods {
            if let Some(address) = address::invalid(pod).filter(|_| self.warned.is_first(&pod.meta().uid)) {
                tracing::warn!(pod = %pod.meta().key(), %address, "the address is invalid and left out of the Endpoints");
            }
        }
    }
}

async fn create(cx: &Context, service: &ServiceView, endpoints: &EndpointsView) -> Result<(), Error> {
    let (ready, not_ready) = counts(endpoints);
    let body = object_body(endpoints);
    let why = Why::Missing { ready, not_ready };
    let created = cx.writer.on_behalf_of(service.meta()).create(ENDPOINTS, body, &why).await;
    // Nothing can be created in a terminating namespace.
    let Err(error) = created.ok_if_terminating() else { return Ok(()) };
    let key = service.meta().key();
    let note = format!("Failed to create endpoint for service {key}: {}", error.message());
    report(cx, endpoints, &error, "FailedToCreateEndpoint", note);
    Err(error.into())
}

async fn update(cx: &Context, service: &ServiceView, endpoints: &EndpointsView) -> Result<(), Error> {
    let (ready, not_ready) = counts(endpoints);
    let body = object_body(endpoints);
    let why = Why::Changed { ready, not_ready };
    let key = endpoints.meta().key();
    let updated = cx.writer.on_behalf_of(service.meta()).put(ENDPOINTS, &key, body, &why).await;
    let Err(error) = updated else { return Ok(()) };
    let note = format!("Failed to update endpoint {key}: {}", error.message());
    report(cx, endpoints, &error, "FailedToUpdateEndpoint", note);
    Err(error.into())
}

/// Upstream's warnings are about the Endpoints, not about the service.
fn report(cx: &Context, endpoints: &EndpointsView, error: &WriteError, reason: &str, note: String) {
    if !matches!(error, WriteError::NotLeader) {
        cx.events.warning(&About::new(ENDPOINTS, endpoints.meta()), reason, note);
    }
}

fn counts(endpoints: &EndpointsView) -> (usize, usize) {
    let ready = endpoints.subsets.iter().map(|subset| subset.addresses.len()).sum();
    let not_ready = endpoints.subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
    (ready, not_ready)
}
