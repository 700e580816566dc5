//! The shell: observe → plan → write the finalizer and the condition.

use std::time::Duration;

use steersman_base::names::labels::IPADDRESS_MANAGED_BY;
use steersman_base::{Condition, ObjectKey, Resource};
use steersman_informer::{Lister, Selection};
use steersman_model::networking::{IpAddressView, ServiceCidrView};
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reason, Reconciler, reasons};

use super::plan::{self, Plan};
use super::ranges::ALLOCATOR;

const RANGES: &Resource = &ServiceCidrView::RESOURCE;
/// Upstream's field manager of the condition.
const MANAGER: &str = "service-cidr-controller";

/// The delay before a range is reconciled again that the server needs and the caches do not: if the address in it is deleted
/// before the cache has shown it, there is no event.
const UNSEEN_PAUSE: Duration = Duration::from_secs(30);

/// The controller's shell: the caches that it reads from.
pub(super) struct ServiceRanges {
    pub(super) ranges: Lister<ServiceCidrView>,
    pub(super) addresses: Lister<IpAddressView>,
}

reasons! {
    /// Why the controller of Service ranges writes.
    pub enum Why {
        /// A range lacks the finalizer.
        Unprotected => "a range must not be deleted while addresses depend on it",
        /// A range is not marked ready.
        Ready => "addresses can be allocated from the range"
            or "KubernetesServiceCIDRError" |_error| "The ServiceCIDR Status can not be set to Ready=True",
        /// A range is terminating, and addresses depend on it.
        Blocked => "the range is being deleted, and addresses depend on it",
        /// A range is terminating, and no address depends on it.
        Released => "the range is being deleted, and no address depends on it",
    }
}

// === impl ServiceRanges ===

impl Reconciler for ServiceRanges {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(range) = self.ranges.get(key) else { return Ok(Action::Done) };
        let now = cx.clock.now();
        let addresses = if range.meta().is_terminating() { self.addresses.list() } else { Vec::new() };
        match plan::plan(&range, &self.ranges.list(), &addresses, now) {
            Plan::Serve { protect, condition } => {
                if protect {
                    patch_finalizer(cx, &range, true, &Why::Unprotected).await?;
                }
                if let Some(condition) = condition {
                    apply(cx, &range, &condition, &Why::Ready).await?;
                }
            }
            Plan::Block(condition) => {
                if let Some(condition) = condition {
                    apply(cx, &range, &condition, &Why::Blocked).await?;
                }
            }
            Plan::Wait(left) => return Ok(Action::After(left)),
            Plan::Release => return release(cx, &range).await,
            Plan::Nothing => {}
        }
        Ok(Action::Done)
    }
}

/// Removes the finalizer, if the server knows no address that depends on the range either: the caches may not show a new
/// one, or that the range which covers this one is terminating, too.
async fn release(cx: &Context, range: &ServiceCidrView) -> Result<Action, Error> {
    let managed = Selection::everything().with_labels(&format!("{IPADDRESS_MANAGED_BY}={ALLOCATOR}"));
    let ranges = cx.live.list::<ServiceCidrView>(Selection::everything()).await?;
    let addresses = cx.live.list::<IpAddressView>(managed).await?;
    let is_same = |live: &&std::sync::Arc<ServiceCidrView>| live.meta().uid == range.meta().uid;
    let Some(live) = ranges.iter().find(is_same) else { return Ok(Action::Done) };
    match plan::plan(live, &ranges, &addresses, cx.clock.now()) {
        Plan::Release => {
            patch_finalizer(cx, range, false, &Why::Released).await?;
            Ok(Action::Done)
        }
        Plan::Block(condition) => {
            if let Some(condition) = condition {
                apply(cx, range, &condition, &Why::Blocked).await?;
            }
            Ok(Action::After(UNSEEN_PAUSE))
        }
        Plan::Wait(left) => Ok(Action::After(left)),
        // It is terminating on the server as well, and whoever removed the finalizer meanwhile has done this work.
        Plan::Serve { .. } | Plan::Nothing => Ok(Action::Done),
    }
}

async fn patch_finalizer(cx: &Context, range: &ServiceCidrView, is_kept: bool, why: &dyn Reason) -> Result<(), Error> {
    let patch = plan::finalizer_patch(range, is_kept);
    let write = cx.writer.on_behalf_of(range.meta());
    let patched = write.patch(RANGES, &range.meta().key(), Patch::Strategic(&patch), why).await;
    // A range that was deleted or replaced has an event of its own.
    Ok(patched.ok_if_gone().ok_if_replaced()?)
}

async fn apply(cx: &Context, range: &ServiceCidrView, condition: &Condition, why: &dyn Reason) -> Result<(), Error> {
    let object = plan::applied(range, condition, cx.clock.now());
    let write = cx.writer.on_behalf_of(range.meta());
    let apply = Patch::Apply { object: &object, manager: MANAGER, force: true };
    let applied = write.patch_subresource(RANGES, &range.meta().key(), "status", apply, why).await;
    Ok(applied.ok_if_gone().ok_if_replaced()?)
}
