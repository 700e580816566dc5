//! Pure: a service, its pods and its Endpoints → the write.

use std::sync::Arc;

use steersman_base::{Istr, Meta, StringMap, Time, names};
use steersman_model::View;
use steersman_model::core::{EndpointsView, PodView, ServiceView};

use super::{KEEPER, subsets};
use crate::service_pods;

/// The value of the annotation that says that addresses are left out.
const TRUNCATED: &str = "truncated";

/// The write of a pass.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// The Endpoints are up to date.
    Nothing,
    /// There are no Endpoints.
    Create(EndpointsView),
    /// The Endpoints are out of date.
    Update(EndpointsView),
}

/// Decides what to write. `time` is the time of the change that triggered the pass, if known.
pub(super) fn plan(
    service: &ServiceView,
    pods: &[Arc<PodView>],
    current: Option<&EndpointsView>,
    time: Option<Time>,
) -> Plan {
    let mut wanted = subsets::subsets(service, pods);
    let truncated = subsets::truncate(&mut wanted).then(|| Istr::interned(TRUNCATED));
    let labels = labels(service);
    let over_capacity = names::annotations::ENDPOINTS_OVER_CAPACITY;
    let annotations = |held: &StringMap| {
        let held = service_pods::with(held, over_capacity, truncated.clone());
        service_pods::triggered_at(&held, time)
    };
    let Some(current) = current else {
        let name = service.meta().name.clone();
        let namespace = service.meta().namespace.clone();
        let annotations = annotations(&StringMap::default());
        let metadata = Meta { name, namespace, labels, annotations, ..Meta::default() };
        return Plan::Create(EndpointsView { metadata, subsets: wanted.into() });
    };
    let held = current.meta();
    let same_capacity = held.annotations.get(over_capacity) == truncated.as_ref();
    if same_capacity && held.labels == labels && subsets::repack(&current.subsets) == wanted {
        return Plan::Nothing;
    }
    let annotations = annotations(&held.annotations);
    let metadata = Meta { labels, annotations, ..held.clone() };
    Plan::Update(EndpointsView { metadata, subsets: wanted.into() })
}

/// Returns the labels: those of the service, whether it is headless, and the managing controller.
fn labels(service: &ServiceView) -> StringMap {
    let headless = service_pods::is_headless(service).then(Istr::default);
    let labels = service_pods::with(&service.meta().labels, names::labels::HEADLESS_SERVICE, headless);
    service_pods::with(&labels, names::labels::ENDPOINTS_MANAGED_BY, Some(Istr::interned(KEEPER)))
}
