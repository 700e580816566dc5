//! The shell of claims: observe → plan → bind, ask for a volume, or wait.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::StorageClassView;
use steersman_runtime::{Action, Context, Error, Reconciler};

use super::{Binder, CLAIMS, Why, send_event};
use crate::persistentvolume_binder::matching::{self, Wanted};
use crate::persistentvolume_binder::plan::{self, ClaimStep, Note, Unnamed};
use crate::persistentvolume_binder::plugin::{self, Provisioner};
use crate::persistentvolume_binder::{class, edit, map};
use crate::rewrite::rewrite;
use crate::{csi_migration, pod_claims};

/// Reconciles claims.
pub(in crate::persistentvolume_binder) struct Claims(pub(in crate::persistentvolume_binder) Arc<Binder>);

impl Reconciler for Claims {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let binder = &*self.0;
        let Some(claim) = binder.claims.get(key) else {
            binder.memory.forget(key);
            return Ok(Action::Done);
        };
        if let Some(change) = csi_migration::of_claim(&claim.meta().annotations) {
            let migrate = |live: &mut _| edit::migrate(live, change);
            rewrite(cx, CLAIMS, claim.meta(), "", &Why::Migrated, migrate).await?;
            return Ok(Action::Done);
        }
        match binder.claim_step(&claim)? {
            ClaimStep::Bind(volume) => binder.bind(cx, &claim, &volume).await,
            ClaimStep::Wait(note) => binder.wait(cx, &claim, note).await,
            ClaimStep::Lost(note) => binder.lose(cx, &claim, &note).await,
            ClaimStep::Assign(class) => binder.assign(cx, &claim, &class).await,
            ClaimStep::Provision => binder.provision(cx, &claim).await,
            ClaimStep::Refuse(note, error) => {
                send_event(cx, CLAIMS, claim.meta(), &note);
                Err(Error::message(error))
            }
        }
    }
}

// === impl Binder ===

impl Binder {
    fn claim_step(&self, claim: &PersistentVolumeClaimView) -> Result<ClaimStep, Error> {
        let key = claim.meta().key();
        let named = map::volume_of_claim(claim).and_then(|volume| self.volumes.get(&volume));
        if map::is_completed(claim) {
            self.memory.leave(&key);
            return Ok(plan::bound_claim(claim, named.as_ref()));
        }
        if !claim.spec.volume_name.is_empty() {
            self.memory.leave(&key);
            let is_of_another = named.as_ref().is_some_and(|volume| self.is_of_another(volume, claim));
            return Ok(plan::named_claim(claim, named.as_ref(), is_of_another));
        }
        let class = self.class(class::of_claim(claim));
        let is_delayed = class.as_deref().is_some_and(class::is_delayed);
        let found = self.find(&key, claim, is_delayed)?;
        // Classes are listed only for claims without one, which are rare.
        let classes = if class::named(claim).is_none() { self.classes.list() } else { Vec::new() };
        Ok(plan::unnamed_claim(Unnamed {
            claim,
            found,
            class: class.as_deref(),
            default: class::default_of(&classes).map(|class| &**class),
            unscheduled: &self.unscheduled(&key, is_delayed),
        }))
    }

    /// Returns the volume for a claim: one that is reserved for it, or else a free one that suits. If the claim waits for its
    /// first pod, the scheduler chooses free ones.
    fn find(
        &self,
        key: &ObjectKey,
        claim: &PersistentVolumeClaimView,
        is_delayed: bool,
    ) -> Result<Option<Arc<PersistentVolumeView>>, Error> {
        let reserved = self.volumes_by_claim.get(key).into_iter();
        let reserved =
            reserved.filter(|volume| matching::is_bound_to(volume, claim) && matching::suits_reserved(volume, claim));
        // One that is bound by uid comes first: its binding has begun.
        let is_begun = |volume: &PersistentVolumeView| plan::needs_claim(volume);
        let reserved = reserved.min_by_key(|volume| (!is_begun(volume), volume.meta().name.clone()));
        if reserved.is_some() || is_delayed {
            self.memory.leave(key);
            return Ok(reserved);
        }
        let wanted = Wanted::by(claim).map_err(Error::message)?;
        Ok(self.memory.find_or_wait(key, &wanted, |volume| !self.is_of_another(volume, claim)))
    }

    /// Whether another claim is bound to a volume: one whose reference was removed by hand is still that of its claim.
    fn is_of_another(&self, volume: &PersistentVolumeView, claim: &PersistentVolumeClaimView) -> bool {
        let bound = self.claims_by_volume.get(&volume.meta().name);
        bound.iter().any(|other| other.meta().uid != claim.meta().uid)
    }

    /// Returns the names of the pods of a claim that have no node.
    fn unscheduled(&self, key: &ObjectKey, is_delayed: bool) -> Vec<Istr> {
        if !is_delayed {
            return Vec::new();
        }
        let pods = self.pods_by_claim.get(key);
        let waits = |pod: &&Arc<PodView>| pod.spec.node_name.is_empty() && !pod_claims::is_terminated(pod);
        let mut names: Vec<Istr> = pods.iter().filter(waits).map(|pod| pod.meta().name.clone()).collect();
        names.sort_unstable();
        names
    }

    async fn wait(&self, cx: &Context, claim: &PersistentVolumeClaimView, note: Option<Note>) -> Result<Action, Error> {
        if let Some(note) = note {
            send_event(cx, CLAIMS, claim.meta(), &note);
        }
        if !edit::is_reported_unbound(claim, "Pending") {
            let report = |live: &mut _| edit::report_unbound(live, "Pending");
            rewrite(cx, CLAIMS, claim.meta(), "status", &Why::Pending, report).await?;
        }
        Ok(Action::Done)
    }

    /// Reports that a claim has lost its volume, unless the server still has that.
    async fn lose(&self, cx: &Context, claim: &PersistentVolumeClaimView, note: &Note) -> Result<Action, Error> {
        if claim.status.phase == "Lost" {
            return Ok(Action::Done);
        }
        if let Some(key) = map::volume_of_claim(claim) {
            let volume = cx.live.get::<PersistentVolumeView>(&key).await?.map(Arc::new);
            if let ClaimStep::Bind(volume) = plan::bound_claim(claim, volume.as_ref()) {
                return self.bind(cx, claim, &volume).await;
            }
        }
        let mut is_lost = false;
        let report = |live: &mut serde_json::Value| {
            let named = live["spec"]["volumeName"].as_str().unwrap_or_default();
            is_lost = claim.spec.volume_name == named && edit::report_unbound(live, "Lost");
            is_lost
        };
        let why = Why::Lost { why: note.text.clone() };
        rewrite(cx, CLAIMS, claim.meta(), "status", &why, report).await?;
        if is_lost {
            send_event(cx, CLAIMS, claim.meta(), note);
        }
        Ok(Action::Done)
    }

    async fn assign(&self, cx: &Context, claim: &PersistentVolumeClaimView, class: &Istr) -> Result<Action, Error> {
        let assign = |live: &mut _| edit::assign_class(live, class);
        let why = Why::DefaultClass { class: class.clone() };
        let written = rewrite(cx, CLAIMS, claim.meta(), "", &why, assign).await;
        self.memory.metrics.assigned(written.is_ok());
        written.map(|()| Action::Done)
    }

    /// Asks the provisioner of the claim's class for a volume.
    async fn provision(&self, cx: &Context, claim: &PersistentVolumeClaimView) -> Result<Action, Error> {
        if !self.options.provisions {
            return Ok(Action::Done);
        }
        let failed = |text: String| send_event(cx, CLAIMS, claim.meta(), &Note::warning("ProvisioningFailed", text));
        let name = class::of_claim(claim);
        let Some(class) = self.class(name) else {
            failed(format!("storageclass.storage.k8s.io {name:?} not found"));
            return Ok(Action::Done);
        };
        let key = claim.meta().key();
        match plugin::provisioner(&class) {
            Err(why) => failed(why),
            Ok(Provisioner::External(provisioner)) => {
                self.memory.begin(&key, &provisioner, "provision", cx.clock.now_micros());
                self.ask(cx, claim, &provisioner).await.inspect_err(|error| {
                    failed(format!("Error saving claim: {error}"));
                    self.memory.fail(&key);
                })?;
                let text = format!(
                    "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually \
                     by the system administrator. If volume creation is delayed, please verify that the provisioner is \
                     running and correctly registered."
                );
                send_event(cx, CLAIMS, claim.meta(), &Note::normal("ExternalProvisioning", text));
            }
            Ok(Provisioner::HostPath) => {
                self.memory.begin(&key, plugin::HOST_PATH, "provision", cx.clock.now_micros());
                failed(refusal(claim, &class));
                self.memory.fail(&key);
            }
        }
        Ok(Action::Done)
    }

    async fn ask(&self, cx: &Context, claim: &PersistentVolumeClaimView, provisioner: &str) -> Result<(), Error> {
        let held = claim.meta().annotations.get(steersman_base::names::annotations::STORAGE_PROVISIONER);
        if held.is_some_and(|held| held == provisioner) {
            return Ok(());
        }
        let ask = |live: &mut _| edit::ask_provisioner(live, provisioner);
        let why = Why::Provision { provisioner: provisioner.to_owned() };
        rewrite(cx, CLAIMS, claim.meta(), "", &why, ask).await
    }
}

/// Returns why the host path plug-in provisions nothing: upstream's words for a plug-in that is not enabled.
fn refusal(claim: &PersistentVolumeClaimView, class: &StorageClassView) -> String {
    let plugin = plugin::HOST_PATH;
    if claim.spec.data_source.is_some() {
        return format!(
            "plugin {plugin:?} is not a CSI plugin. Only CSI plugin can provision a claim with a datasource"
        );
    }
    if !class.mount_options.is_empty() {
        let options: Vec<&str> = class.mount_options.iter().map(Istr::as_str).collect();
        return format!(
            "Mount options are not supported by the provisioner but StorageClass {:?} has mount options [{}]",
            class.meta().name.as_str(),
            options.join(" ")
        );
    }
    format!("Failed to create provisioner: provisioning in volume plugin {plugin:?} is disabled")
}
