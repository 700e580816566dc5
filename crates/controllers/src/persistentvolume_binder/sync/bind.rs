//! The binding of a claim and a volume: four writes, each of which may be the last before a crash.
//!
//! 1. The volume refers to the claim: from here on it is no other claim's.
//! 2. The volume is `Bound`. 3. The claim names the volume. 4. The claim is `Bound`.
//!
//! A pass that finds some of them done does the rest. Claim and volume are read from the server before the first write: a
//! stale cache binds nothing.

use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_runtime::{Action, Context, Error};

use super::{Binder, CLAIMS, Live, VOLUMES, Why, live, put};
use crate::persistentvolume_binder::{edit, plan};

impl Binder {
    /// Binds a claim to a volume, or completes that.
    pub(super) async fn bind(
        &self,
        cx: &Context,
        claim: &PersistentVolumeClaimView,
        volume: &PersistentVolumeView,
    ) -> Result<Action, Error> {
        if plan::is_complete(volume, claim) {
            return Ok(Action::Done);
        }
        let key = claim.meta().key();
        match self.write_binding(cx, claim, volume).await {
            Ok(true) => {
                self.memory.end(&key, cx.clock.now_micros());
                Ok(Action::Done)
            }
            // Others were faster: the caches will show it.
            Ok(false) => Ok(Action::Again),
            Err(error) => {
                self.memory.fail(&key);
                Err(error)
            }
        }
    }

    /// Returns whether the binding is complete.
    async fn write_binding(
        &self,
        cx: &Context,
        claim: &PersistentVolumeClaimView,
        volume: &PersistentVolumeView,
    ) -> Result<bool, Error> {
        let Some(live_claim) = live::<PersistentVolumeClaimView>(cx, claim.meta()).await? else { return Ok(true) };
        let Some(live_volume) = live::<PersistentVolumeView>(cx, volume.meta()).await? else { return Ok(false) };
        if !plan::may_bind(&live_volume.view, &live_claim.view) {
            return Ok(false);
        }
        let Live { whole: mut claim_whole, view: live_claim } = live_claim;
        let Live { whole: mut volume_whole, view: live_volume } = live_volume;
        let write = cx.writer.on_behalf_of(claim);
        let name = &volume.meta().name;
        let why = Why::Bind { claim: claim.meta().name.clone(), volume: name.clone() };
        if edit::refer_to_claim(&mut volume_whole, &live_claim) {
            let Some(version) = put(write, VOLUMES, "", &mut volume_whole, &why).await? else { return Ok(false) };
            self.memory.give(name, version);
        }
        if edit::set_phase(&mut volume_whole, "Bound", "")
            && put(write, VOLUMES, "status", &mut volume_whole, &why).await?.is_none()
        {
            return Ok(false);
        }
        if edit::refer_to_volume(&mut claim_whole, name)
            && put(write, CLAIMS, "", &mut claim_whole, &why).await?.is_none()
        {
            return Ok(false);
        }
        if edit::report_bound(&mut claim_whole, &live_volume)?
            && put(write, CLAIMS, "status", &mut claim_whole, &why).await?.is_none()
        {
            return Ok(false);
        }
        Ok(true)
    }
}
