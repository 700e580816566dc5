//! Which source the events of a controller have.

use k8s_openapi::api::core::v1::{Event, ResourceQuota};
use k8s_openapi::api::events::v1::Event as SeriesEvent;
use kube::api::ListParams;
use steersman_base::{Meta, ObjectKey, Resource};
use steersman_runtime::events::{About, EventSink};
use steersman_runtime::{Action, Context, Error, Manager, Reconciler};
use steersman_testing::{Failure, TestCluster};

use crate::support::*;

const QUOTAS: Resource = Resource::namespaced("", "v1", "resourcequotas", "ResourceQuota");

/// Records an event about each quota.
struct Reporting;

impl Reconciler for Reporting {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let meta = Meta { namespace: key.namespace.clone(), name: key.name.clone(), ..Meta::default() };
        cx.events.normal(&About::new(&QUOTAS, &meta), "Seen", "it was seen");
        Ok(Action::Done)
    }
}

fn reporting(manager: &Manager) {
    manager.controller::<ResourceQuota>("reporting").reconcile_with(Reporting);
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_reconcile_names_its_controller() -> Result<(), Failure> {
    let cluster = TestCluster::builder().with(reporting).start().await?;
    cluster.create(quota("a")).await?;
    cluster.settle().await?;
    let events = cluster.api::<Event>().list(&ListParams::default()).await?.items;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].source.as_ref().and_then(|source| source.component.as_deref()), Some("reporting"));
    assert_eq!(events[0].reporting_component.as_deref(), Some("reporting"));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_series_of_events_of_a_reconcile_names_its_controller() -> Result<(), Failure> {
    let builder = TestCluster::builder().with(reporting);
    let cluster = builder.manager_options(|options| options.events.sink = EventSink::EventsV1).start().await?;
    cluster.create(quota("a")).await?;
    cluster.settle().await?;
    let events = cluster.api::<SeriesEvent>().list(&ListParams::default()).await?.items;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reporting_controller.as_deref(), Some("reporting"));
    assert_eq!(events[0].reporting_instance.as_deref(), Some("reporting"), "a server asks for both");
    cluster.stop().await
}
