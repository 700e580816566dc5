//! The shell: observe → check the use → write the finalizer.

use std::time::Duration;

use steersman_base::names::finalizers::VAC_PROTECTION;
use steersman_base::{Istr, ObjectKey, Resource};
use steersman_informer::{Index, Lister, Selection};
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::VolumeAttributesClassView;
use steersman_model::{Kind, View};
use steersman_runtime::{Action, Context, Error, Reconciler, reasons};

use super::map::{classes_of_claim, classes_of_volume};
use crate::protection::{self, Step};
use crate::rewrite::rewrite;

const CLASSES: &Resource = &VolumeAttributesClassView::RESOURCE;

/// The delay before a class is reconciled again that the server names and the caches do not: if the object that names it is
/// deleted before a cache has shown it, there is no event.
const UNSEEN_PAUSE: Duration = Duration::from_secs(30);

/// The controller's shell: the caches that it reads from.
pub(super) struct ClassProtection {
    pub(super) classes: Lister<VolumeAttributesClassView>,
    /// Claims by the classes that they name.
    pub(super) claims: Index<Istr, PersistentVolumeClaimView>,
    /// Volumes by the class that they name.
    pub(super) volumes: Index<Istr, PersistentVolumeView>,
}

reasons! {
    /// Why the class protection controller writes.
    pub enum Why {
        /// A class lacks the finalizer: it was created without the server's admission.
        Unprotected => "a class must not be deleted while a volume or a claim names it",
        /// A class is terminating, and nothing names it.
        Released => "the class is being deleted, and no volume or claim names it",
    }
}

// === impl ClassProtection ===

impl Reconciler for ClassProtection {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(class) = self.classes.get(key) else { return Ok(Action::Done) };
        match protection::step(class.meta(), VAC_PROTECTION) {
            Step::Nothing => {}
            Step::Add => {
                let add = |live: &mut _| protection::add(live, VAC_PROTECTION);
                rewrite(cx, CLASSES, class.meta(), "", &Why::Unprotected, add).await?;
            }
            Step::Release if self.is_named(&key.name) => {}
            Step::Release if is_named_on_server(cx, &key.name).await? => return Ok(Action::After(UNSEEN_PAUSE)),
            Step::Release => {
                let remove = |live: &mut _| protection::remove(live, VAC_PROTECTION);
                rewrite(cx, CLASSES, class.meta(), "", &Why::Released, remove).await?;
            }
        }
        Ok(Action::Done)
    }
}

impl ClassProtection {
    /// Whether the caches show a volume or a claim that names the class.
    fn is_named(&self, class: &Istr) -> bool {
        self.volumes.count(class) > 0 || self.claims.count(class) > 0
    }
}

/// Whether the server has a volume or a claim that names the class: a new one may not be in the caches yet.
async fn is_named_on_server(cx: &Context, class: &Istr) -> Result<bool, Error> {
    let volumes = cx.live.list::<PersistentVolumeView>(Selection::everything()).await?;
    if volumes.iter().any(|volume| classes_of_volume(volume).contains(class)) {
        return Ok(true);
    }
    let claims = cx.live.list::<PersistentVolumeClaimView>(Selection::everything()).await?;
    Ok(claims.iter().any(|claim| classes_of_claim(claim).contains(class)))
}
