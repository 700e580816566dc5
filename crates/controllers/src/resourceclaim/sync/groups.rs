//! The claims of pod groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_informer::Lister;
use steersman_model::View;
use steersman_model::scheduling::PodGroupView;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::super::plan::Holder;
use super::make::Maker;
use crate::pod_claims::is_made_for;

/// The shell of the queue of pod groups.
pub(in super::super) struct Groups {
    pub(in super::super) groups: Lister<PodGroupView>,
    pub(in super::super) maker: Arc<Maker>,
}

// === impl Groups ===

impl Reconciler for Groups {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let group = cx.main(&self.groups, key).await?;
        let Some(group) = group.filter(|group| !group.meta().is_terminating()) else { return Ok(Action::Done) };
        let holder = Holder::group(&group);
        let mut made = BTreeMap::new();
        for entry in holder.claims {
            let is_ours = |claim: &_| is_made_for(claim, group.meta());
            if !self.maker.is_lacking(cx, &holder, entry, is_ours).await? {
                continue;
            }
            if let Some(claim) = self.maker.find_or_make(cx, &holder, entry).await? {
                made.insert(entry.name.clone(), claim);
            }
        }
        if !made.is_empty() {
            self.maker.report(cx, &holder, &made).await?;
        }
        Ok(Action::Done)
    }
}
