#![doc = include_str!("../docs/disruption-controller.md")]
//!
//! Follows `pkg/controller/disruption` of Kubernetes 1.37.1.

use steersman_informer::Change;
use steersman_model::apps::{DeploymentView, ReplicaSetView, StatefulSetView};
use steersman_model::core::{PodView, ReplicationControllerView};
use steersman_model::policy::PodDisruptionBudgetView;
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext};
use steersman_runtime::Descriptor;
use steersman_runtime::events::About;
use steersman_runtime::handler::Keys;

use crate::service_pods::SelectedPods;
use crate::table;

mod map;
mod plan;
mod stale;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the disruption controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "disruption-controller",
    needs: const {
        &[
            PodDisruptionBudgetView::RESOURCE,
            PodView::RESOURCE,
            ReplicationControllerView::RESOURCE,
            ReplicaSetView::RESOURCE,
            DeploymentView::RESOURCE,
            StatefulSetView::RESOURCE,
        ]
    },
    options: |_| (),
    build,
});

/// The queue of pods whose condition `DisruptionTarget` may be stale: its name, and its number in the row.
const STALE: (&str, usize) = ("disruption-stale-pods", 2);

fn build(cx: &ControllerContext, (): ()) -> Built {
    let budgets = cx.informer::<PodDisruptionBudgetView>();
    let pods = cx.informer::<PodView>();
    let controllers = cx.informer::<ReplicationControllerView>();
    let sets = cx.informer::<ReplicaSetView>();
    let deployments = cx.informer::<DeploymentView>();
    let stateful = cx.informer::<StatefulSetView>();

    let known = budgets.lister();
    let events = cx.events.clone();
    let budgets_of_pod = move |change: &Change<PodView>| {
        if !map::matters(change) {
            return Vec::new();
        }
        let found = map::budgets_of(change, &known.namespace(&change.object().meta().namespace).list());
        if let Some(note) = map::too_many(change, &found) {
            events.warning(
                &About::new(&PodView::RESOURCE, change.object().meta()),
                "MultiplePodDisruptionBudgets",
                note,
            );
        }
        found
    };
    let of_budgets = cx
        .controller(&budgets)
        .watch(&pods, budgets_of_pod)
        .needs_cache(&controllers)
        .needs_cache(&sets)
        .needs_cache(&deployments)
        .needs_cache(&stateful)
        .reconcile(sync::Budgets {
            budgets: budgets.lister(),
            pods: SelectedPods::new(&pods),
            scales: sync::Scales {
                controllers: controllers.lister(),
                sets: sets.lister(),
                deployments: deployments.lister(),
                stateful: stateful.lister(),
                mapper: cx.manager().mapper().clone(),
            },
        });
    let clock = cx.clock.clone();
    let stale_pod = move |change: &Change<PodView>| match (stale::stale_in(change.object(), clock.now()), change) {
        (None, _) | (_, Change::Deleted { .. }) => Keys::default(),
        (Some(wait), _) => Keys::after([change.key()], wait),
    };
    let (name, number) = STALE;
    let of_stale_pods = cx.another(name, &pods).queue(number).watch_main(stale_pod);
    of_budgets.and(of_stale_pods.reconcile(sync::StaleTargets { pods: pods.lister() }))
}
