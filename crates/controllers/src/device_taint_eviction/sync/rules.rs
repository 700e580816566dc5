//! The conditions of rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Resource};
use steersman_model::resource::DeviceTaintRuleView;
use steersman_model::{Kind, View};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler};

use super::super::memory::Memory;
use super::super::plan::{as_if_evicting, devices, matches, newest, selects};
use super::super::status::{self, Counts};
use super::{Observed, Why};

const RULES: &Resource = &DeviceTaintRuleView::RESOURCE;
/// The field manager of the conditions: upstream's.
const MANAGER: &str = "device-taint-eviction-controller";

/// The shell of the queue of rules.
pub(in super::super) struct Rules {
    pub(in super::super) observed: Arc<Observed>,
    pub(in super::super) memory: Arc<Memory>,
}

// === impl Rules ===

impl Reconciler for Rules {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(rule) = self.observed.rules.as_ref().and_then(|rules| rules.get(key)) else { return Ok(Action::Done) };
        let now = cx.clock.now();
        if let Some(wait) = status::too_early(&rule, now) {
            return Ok(Action::After(wait));
        }
        let counts = self.counts(cx, &rule);
        let Some(condition) = status::changed(&rule, &counts, now) else { return Ok(Action::Done) };
        let object = status::applied(&rule, &condition);
        let patch = Patch::Apply { object: &object, manager: MANAGER, force: true };
        let why = Why::RuleStatus { pending: counts.pending.len(), evicted: counts.evicted };
        let write = cx.writer.on_behalf_of(rule.meta());
        let written = write.patch_subresource(RULES, key, "status", patch, &why).await;
        // A rule that was replaced has an event of its own.
        written.ok_if_gone().ok_if_replaced()?;
        Ok(Action::Done)
    }
}

impl Rules {
    fn counts(&self, cx: &Context, rule: &Arc<DeviceTaintRuleView>) -> Counts {
        let evicted = self.memory.evicted(&rule.meta().uid);
        match &*rule.spec.taint.effect {
            "NoExecute" => Counts { pending: self.pending(cx, rule), evicted, ..Counts::default() },
            // What would happen if it did evict.
            "None" => {
                let published = self.observed.slices.keys().into_iter().map(|pool| {
                    let slices = self.observed.slices.get(&pool);
                    let devices = newest(&slices).flat_map(|slice| &slice.spec.devices);
                    devices.filter(|device| matches(rule, &pool.driver, &pool.name, &device.name)).count()
                });
                let published = published.sum();
                let claims = self.observed.claims.filter(|claim| selects(rule, claim));
                let allocated = claims.iter().flat_map(|claim| devices(claim));
                let allocated = allocated.filter(|it| matches(rule, &it.driver, &it.pool, &it.device)).count();
                Counts { pending: self.pending(cx, &Arc::new(as_if_evicting(rule))), published, allocated, evicted }
            }
            _ => Counts { evicted, ..Counts::default() },
        }
    }

    /// Returns the namespace of each pod that the rule's taint evicts, now or later.
    fn pending(&self, cx: &Context, rule: &Arc<DeviceTaintRuleView>) -> Vec<Istr> {
        let claims = self.observed.claims.filter(|claim| selects(rule, claim));
        let users: BTreeSet<ObjectKey> = claims.iter().flat_map(|claim| self.observed.users(claim)).collect();
        let seen = cx.clock.now_micros();
        let pods = users.iter().filter_map(|key| self.observed.pods.get(key));
        let pods = pods.filter(|pod| !pod.meta().is_terminating());
        let pending = pods.filter(|pod| {
            let claims = self.observed.claims_of(pod);
            let eviction = self.observed.eviction_by(pod, &claims, std::slice::from_ref(rule), seen);
            eviction.is_some_and(|eviction| !eviction.rules.is_empty())
        });
        pending.map(|pod| pod.meta().namespace.clone()).collect()
    }
}
