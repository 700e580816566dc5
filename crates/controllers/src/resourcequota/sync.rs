//! The shell: count the objects of a namespace → write the status.

mod monitors;

use std::sync::Arc;
use std::time::Duration;

use steersman_base::quota::{DeviceClasses, Facts, Subject, Tracker, amounts};
use steersman_base::{Istr, ObjectKey, Quantity, Time};
use steersman_informer::{Lister, SharedInformer};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PodView, ResourceQuotaView, ServiceView};
use steersman_runtime::writer::Outcome;
use steersman_runtime::{Action, Context, Error, Reconciler, WriteError, reasons};

pub(super) use monitors::Monitors;

use super::memory::{Monitored, Number};
use super::plan::{self, Needs, Observed};
use super::{Options, usage};

/// The time that a pass waits for caches that are being filled: with them, one write of the status is enough.
const PATIENCE: Duration = Duration::from_secs(1);
/// The delay until a quota is counted again after its usage was written: the API server may have charged it for an
/// object that the caches did not show yet.
const CONFIRMED_AFTER: Duration = Duration::from_secs(5);
/// The delay until a quota is counted again if something could not be counted. The monitors enqueue it as soon as it
/// can.
const RETRIED_AFTER: Duration = Duration::from_secs(60);

/// The caches that are counted.
#[derive(Clone)]
pub(super) struct Caches {
    pub(super) quotas: Lister<ResourceQuotaView>,
    pub(super) pods: SharedInformer<PodView>,
    pub(super) services: SharedInformer<ServiceView>,
    pub(super) claims: SharedInformer<PersistentVolumeClaimView>,
}

/// The controller's shell.
#[derive(Clone)]
pub(super) struct Quotas {
    pub(super) caches: Caches,
    pub(super) monitored: Arc<Monitored>,
    pub(super) options: Options,
}

reasons! {
    /// Why the resourcequota controller writes.
    pub enum Why {
        /// The status of a quota does not say what its namespace uses.
        Counted { namespace: Istr } => "the usage of namespace {namespace} is another one"
    }
}

// === impl Quotas ===

impl Reconciler for Quotas {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(quota) = self.caches.quotas.get(key) else { return Ok(Action::Done) };
        let needs = plan::needs(&quota.spec);
        self.settled(&needs, &key.namespace).await;
        // The quota may have been charged in the meantime.
        let Some(quota) = self.caches.quotas.get(key) else { return Ok(Action::Done) };
        let classes = self.monitored.classes();
        let observed = self.observe(&quota, &needs, &classes, cx.clock.now());
        let status = plan::status(&quota.spec, &quota.status, &observed, &classes);
        if status == quota.status {
            return Ok(if observed.unknown.is_empty() { Action::Done } else { Action::After(RETRIED_AFTER) });
        }
        let why = Why::Counted { namespace: key.namespace.clone() };
        let write = cx.writer.on_behalf_of(quota.meta());
        match write.put_status_of::<ResourceQuotaView>(quota.meta(), &status, &why).await {
            // Charged meanwhile: what was counted is old.
            Err(WriteError::Conflict) => Ok(Action::Again),
            written => {
                written.map(drop).ok_if_gone()?;
                Ok(Action::After(CONFIRMED_AFTER))
            }
        }
    }
}

impl Quotas {
    /// Waits until what a quota needs is known, for a while.
    async fn settled(&self, needs: &Needs, namespace: &Istr) {
        let Caches { pods, services, claims, .. } = &self.caches;
        let all = async {
            if needs.pods {
                pods.synced().await;
            }
            if needs.services {
                services.synced().await;
            }
            if needs.claims {
                claims.synced().await;
            }
            let mut progress = self.monitored.progress();
            while (needs.waits_for_devices && self.monitored.device_claims(namespace).is_none())
                || needs.objects.iter().any(|it| self.monitored.number(it, namespace) == Number::NotYet)
            {
                if progress.changed().await.is_err() {
                    return;
                }
            }
        };
        // What is not known by then is left as it is.
        let _ = tokio::time::timeout(PATIENCE, all).await;
    }

    /// Counts what a quota needs.
    fn observe(&self, quota: &ResourceQuotaView, needs: &Needs, classes: &DeviceClasses, now: Time) -> Observed {
        let Caches { pods, services, claims, .. } = &self.caches;
        let namespace = &quota.meta().namespace;
        let scopes = usage::scopes(quota);
        let facts = Facts { now, classes };
        let mut observed = Observed::default();
        let mut add = |tracker: Tracker, used: Option<amounts::Amounts>| match used {
            Some(used) => {
                amounts::add(&mut observed.used, &plan::with_zeros(used, &quota.spec, &tracker, classes));
            }
            None => observed.unknown.push(tracker),
        };
        if needs.pods {
            let list = || pods.lister().namespace(namespace).list();
            let count = || usage::of_pods(&list(), &scopes, self.options.pod_level_resources, now);
            add(Tracker::Pods, pods.has_synced().then(count));
        }
        if needs.services {
            let list = || services.lister().namespace(namespace).list();
            let count = || usage::of(list().iter().map(|it| Subject::Service(usage::service(it))), &scopes, facts);
            add(Tracker::Services, services.has_synced().then(count));
        }
        if needs.claims {
            let list = || claims.lister().namespace(namespace).list();
            let subject = |it: &Arc<PersistentVolumeClaimView>| Subject::VolumeClaim(Box::new(usage::volume_claim(it)));
            let count = || usage::of(list().iter().map(subject), &scopes, facts);
            add(Tracker::VolumeClaims, claims.has_synced().then(count));
        }
        if needs.devices {
            let pod_named = |name: &str| pods.lister().namespace(namespace).get(name);
            let count =
                |claims: Vec<_>| usage::of(usage::device_claims(&claims, pod_named, now).into_iter(), &scopes, facts);
            add(Tracker::DeviceClaims, self.monitored.device_claims(namespace).map(count));
        }
        for resource in &needs.objects {
            let (group, plural) = resource;
            let Some(tracker) = Tracker::of(group, plural) else { continue };
            let number = self.monitored.number(resource, namespace);
            // Objects other than pods and claims are in no scope: a quota with scopes counts none of them.
            let count = |number: usize| {
                let number = if scopes.is_empty() { number } else { 0 };
                let one = Subject::Object(tracker.clone()).usage(facts);
                let number = i64::try_from(number).unwrap_or(i64::MAX);
                one.into_iter().map(|(name, quantity): (Istr, Quantity)| (name, quantity * number)).collect()
            };
            let used = match number {
                Number::Known(number) => Some(count(number)),
                Number::Unknown | Number::NotYet => None,
            };
            add(tracker.clone(), used);
        }
        observed
    }
}
