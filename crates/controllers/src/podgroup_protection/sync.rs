//! The shell: observe → check the use → remove the finalizer.

use std::time::Duration;

use steersman_base::{ObjectKey, Resource};
use steersman_informer::{Index, Lister, Selection};
use steersman_model::core::PodView;
use steersman_model::scheduling::PodGroupView;
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Error, Reconciler, reasons};

use super::map::{FINALIZER, active_member, is_leaving};
use crate::protection;
use crate::rewrite::rewrite;

const GROUPS: &Resource = &PodGroupView::RESOURCE;

/// The delay before a group is reconciled again that a pod is in which the cache does not show: if the pod is deleted before
/// the cache has shown it, there is no event.
const UNSEEN_PAUSE: Duration = Duration::from_secs(30);

/// The controller's shell: the caches that it reads from.
pub(super) struct GroupProtection {
    pub(super) groups: Lister<PodGroupView>,
    /// Pods that have not ended, by their group.
    pub(super) members: Index<ObjectKey, PodView>,
}

reasons! {
    /// Why the pod group protection controller writes.
    pub enum Why {
        /// A group is terminating, and all its pods have ended.
        Released => "the group is being deleted, and all its pods have ended",
    }
}

// === impl GroupProtection ===

impl Reconciler for GroupProtection {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(group) = self.groups.get(key).filter(|group| is_leaving(group)) else { return Ok(Action::Done) };
        if self.members.count(key) > 0 {
            return Ok(Action::Done);
        }
        // A cache cannot prove that there is no pod.
        let pods = cx.live.list::<PodView>(Selection::namespace(&key.namespace)).await?;
        if pods.iter().any(|pod| active_member(pod).as_ref() == Some(key)) {
            return Ok(Action::After(UNSEEN_PAUSE));
        }
        let remove = |live: &mut _| protection::remove(live, FINALIZER);
        rewrite(cx, GROUPS, group.meta(), "", &Why::Released, remove).await?;
        Ok(Action::Done)
    }
}
