#![doc = include_str!("../docs/resourceclaim-controller.md")]
//!
//! Follows `pkg/controller/resourceclaim` of Kubernetes 1.37.1.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::{Change, SharedInformer};
use steersman_model::core::PodView;
use steersman_model::resource::{ResourceClaimTemplateView, ResourceClaimView};
use steersman_model::scheduling::PodGroupView;
use steersman_model::{Kind, View};
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::source::{self, Source};

use crate::resource_claims::{
    GroupClaims, claims_of_group, claims_of_pod, group_of, owning_group, templates_of_group, templates_of_pod,
};
use crate::table;

mod map;
mod memory;
mod metrics;
mod plan;
mod release;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The descriptor of the resource claim controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "resourceclaim-controller",
    needs: const { &[PodView::RESOURCE, ResourceClaimView::RESOURCE, ResourceClaimTemplateView::RESOURCE] },
    options: Options::from_flags,
    build,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether pods may be members of pod groups (the gate `GenericWorkload`).
    pub generic_workload: bool,
    /// Whether pod groups may have claims (the gate `DRAWorkloadResourceClaims`).
    pub workload_claims: bool,
}

/// The queue of claims.
const CLAIMS: &str = "resourceclaim-claims";
/// The queue of pod groups.
const GROUPS: &str = "resourceclaim-podgroups";

/// The caches of the controller.
struct Caches {
    pods: SharedInformer<PodView>,
    claims: SharedInformer<ResourceClaimView>,
    templates: SharedInformer<ResourceClaimTemplateView>,
    /// Absent if pods cannot be members of groups.
    groups: Option<SharedInformer<PodGroupView>>,
}

// === impl Options ===

impl Options {
    /// Returns the options that feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            generic_workload: flags.gate("GenericWorkload", false),
            workload_claims: flags.gate("DRAWorkloadResourceClaims", false),
        }
    }

    /// Sets whether pods may be members of pod groups.
    #[must_use]
    pub fn generic_workload(mut self, generic_workload: bool) -> Self {
        self.generic_workload = generic_workload;
        self
    }

    /// Sets whether pod groups may have claims.
    #[must_use]
    pub fn workload_claims(mut self, workload_claims: bool) -> Self {
        self.workload_claims = workload_claims;
        self
    }

    fn group_claims(self) -> GroupClaims {
        if self.workload_claims { GroupClaims::On } else { GroupClaims::Off }
    }

    fn has_groups(self) -> bool {
        self.generic_workload || self.workload_claims
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

fn build(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let caches = Caches {
        pods: cx.informer::<PodView>(),
        claims: cx.informer::<ResourceClaimView>(),
        templates: cx.informer::<ResourceClaimTemplateView>(),
        groups: options.has_groups().then(|| cx.informer::<PodGroupView>()),
    };
    let metrics = metrics::Metrics::new(cx.metrics())?;
    let maker = Arc::new(sync::Maker {
        claims: caches.claims.lister(),
        owned: cx.children(&caches.claims),
        templates: caches.templates.lister(),
        metrics: metrics.clone(),
    });
    let mut built = of_pods(cx, &caches, options, &maker);
    if let Some(groups) = caches.groups.as_ref().filter(|_| options.workload_claims) {
        built = built.and(of_groups(cx, &caches, groups, &maker));
    }
    Ok(built.and(of_claims(cx, &caches, options, metrics)))
}

/// Builds the queue of pods: their claims are made from templates, and reserved.
fn of_pods(cx: &ControllerContext, caches: &Caches, options: Options, maker: &Arc<sync::Maker>) -> Built {
    let pods = &caches.pods;
    let known = Arc::new(sync::Known {
        claims: caches.claims.lister(),
        groups: caches.groups.as_ref().map(SharedInformer::lister),
        options: options.group_claims(),
    });
    let of_pod = Arc::clone(&known);
    let by_claim = pods.shared_index(claims_of_pod);
    let of_claim = Arc::clone(&known);
    let by_template = pods.shared_index(templates_of_pod);
    let of_template = Arc::clone(&known);
    let builder = cx
        .controller(pods)
        .reads_live()
        .watch_main(move |change| map::pod(change, |pod| of_pod.needs_work(pod)))
        .watch(&caches.claims, move |change: &Change<ResourceClaimView>| {
            map::waiting(&by_claim.get(&change.key()), |pod| of_claim.needs_work(pod))
        })
        .watch(&caches.templates, move |change: &Change<ResourceClaimTemplateView>| {
            map::waiting(&by_template.get(&change.key()), |pod| of_template.needs_work(pod))
        });
    let builder = match &caches.groups {
        None => builder,
        Some(groups) => {
            let by_group = pods.shared_index(group_of);
            let of_group = Arc::clone(&known);
            let by_group_of_claim = by_group.clone();
            let of_group_claim = Arc::clone(&known);
            let builder = builder.watch(groups, move |change: &Change<PodGroupView>| {
                map::waiting(&by_group.get(&change.key()), |pod| of_group.needs_work(pod))
            });
            // The cache of claims may lag behind that of groups.
            builder.watch(&caches.claims, move |change: &Change<ResourceClaimView>| {
                let pods = owning_group(change.object().meta()).map(|group| by_group_of_claim.get(&group));
                map::waiting(&pods.unwrap_or_default(), |pod| of_group_claim.needs_work(pod))
            })
        }
    };
    builder.reconcile(sync::Pods { pods: pods.lister(), known, maker: Arc::clone(maker) })
}

/// Builds the queue of pod groups: their claims are made from templates.
fn of_groups(
    cx: &ControllerContext,
    caches: &Caches,
    groups: &SharedInformer<PodGroupView>,
    maker: &Arc<sync::Maker>,
) -> Built {
    let by_claim = groups.shared_index(claims_of_group);
    let by_template = groups.shared_index(templates_of_group);
    let keys =
        |groups: Vec<Arc<PodGroupView>>| -> Vec<ObjectKey> { groups.iter().map(|group| group.meta().key()).collect() };
    cx.another(GROUPS, groups)
        .reads_live()
        .watch(&caches.claims, move |change: &Change<ResourceClaimView>| keys(by_claim.get(&change.key())))
        .watch(&caches.templates, move |change: &Change<ResourceClaimTemplateView>| {
            keys(by_template.get(&change.key()))
        })
        .reconcile(sync::Groups { groups: groups.lister(), maker: Arc::clone(maker) })
}

/// Builds the queue of claims: those that nothing uses any more are released.
fn of_claims(cx: &ControllerContext, caches: &Caches, options: Options, metrics: metrics::Metrics) -> Built {
    let memory = Arc::new(memory::Gone::default());
    let gone = Arc::clone(&memory);
    let claims_of = move |change: &Change<PodView>| {
        if map::is_deleted_user(change) {
            gone.add(&change.object().meta().uid);
        }
        map::claims_of_pod(change)
    };
    let builder = cx
        .another(CLAIMS, &caches.claims)
        .watch_main(map::claim)
        .watch(&caches.pods, claims_of)
        .source(counted(&caches.claims, metrics));
    let builder = match caches.groups.as_ref().filter(|_| options.workload_claims) {
        None => builder,
        Some(groups) => {
            let gone = Arc::clone(&memory);
            builder.watch(groups, move |change: &Change<PodGroupView>| match change {
                Change::Deleted { last, .. } => {
                    gone.add(&last.meta().uid);
                    claims_of_group(last)
                }
                Change::Added { .. } | Change::Updated { .. } => Vec::new(),
            })
        }
    };
    builder.reconcile(sync::Claims {
        claims: caches.claims.lister(),
        pods: caches.pods.lister(),
        groups: caches.groups.as_ref().filter(|_| options.workload_claims).map(SharedInformer::lister),
        memory,
    })
}

/// Returns the source that counts the claims: it enqueues nothing, and sees every claim once, whoever leads.
fn counted(claims: &SharedInformer<ResourceClaimView>, metrics: metrics::Metrics) -> Source {
    let claims = claims.clone();
    source::task(move |_, stop| async move {
        let subscription = claims.subscribe(move |change| metrics.claim_changed(change));
        stop.cancelled().await;
        subscription.close().await;
    })
}
