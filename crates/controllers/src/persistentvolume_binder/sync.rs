//! The shells of both queues, and what they share: caches, live reads and writes.

mod bind;
mod claims;
mod recycle;
mod volumes;

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::{Istr, Meta, ObjectKey, Resource, ResourceVersion};
use steersman_informer::{Index, Lister};
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView, PodView};
use steersman_model::storage::StorageClassView;
use steersman_model::{Encoded, Kind};
use steersman_runtime::events::About;
use steersman_runtime::writer::Behalf;
use steersman_runtime::{Context, Error, Reason, WriteError, reasons};

use super::Options;
use super::memory::Memory;
use super::plan::Note;

pub(super) use claims::Claims;
pub(super) use volumes::Volumes;

const CLAIMS: &Resource = &PersistentVolumeClaimView::RESOURCE;
const VOLUMES: &Resource = &PersistentVolumeView::RESOURCE;
const PODS: &Resource = &PodView::RESOURCE;

/// The caches and the memory of both queues.
pub(super) struct Binder {
    pub(super) claims: Lister<PersistentVolumeClaimView>,
    pub(super) volumes: Lister<PersistentVolumeView>,
    pub(super) classes: Lister<StorageClassView>,
    pub(super) pods: Lister<PodView>,
    /// Volumes by the claim that they refer to.
    pub(super) volumes_by_claim: Index<ObjectKey, PersistentVolumeView>,
    /// Claims whose binding is complete, by the name of their volume.
    pub(super) claims_by_volume: Index<Istr, PersistentVolumeClaimView>,
    /// Pods by their claims.
    pub(super) pods_by_claim: Index<ObjectKey, PodView>,
    pub(super) memory: Arc<Memory>,
    /// The only namespace whose claims are seen; `None` if all are.
    pub(super) scope: Option<Istr>,
    pub(super) options: Options,
}

/// An object as the server has it: whole, and the fields that are read.
struct Live<V> {
    whole: Value,
    view: V,
}

reasons! {
    /// Why the binder writes.
    pub enum Why {
        /// A volume was chosen for a claim, or reserved for it.
        Bind { claim: Istr, volume: Istr } => "claim {claim} gets volume {volume}",
        /// A claim has no volume yet.
        Pending => "the claim has no volume",
        /// A claim has lost its volume.
        Lost { why: String } => "{why}",
        /// A claim names no class, and there is a default one by now.
        DefaultClass { class: Istr } => "the claim names no class, and gets {class}",
        /// A claim needs a new volume.
        Provision { provisioner: String } => "{provisioner} is asked for a volume",
        /// A volume or claim is one of a CSI driver that has taken over an in-tree plug-in, or is so no more.
        Migrated => "annotations and finalizers say who provisions and deletes",
        /// A volume has another phase.
        Phase { phase: &'static str } => "the volume is {phase}",
        /// The claim of a volume has another volume, or the volume was recycled.
        Unbind => "the volume belongs to no claim any more",
        /// A released volume is to be recycled.
        Recycle => "the content of the volume is to be deleted",
        /// A recycler has ended, or is not one of this process.
        EndRecycler => "the recycler is not needed any more",
    }
}

// === impl Binder ===

impl Binder {
    /// Whether the claim of a volume can be judged: whoever sees one namespace must not judge the claims of others.
    fn sees_claim_of(&self, volume: &PersistentVolumeView) -> bool {
        let namespace = volume.spec.claim_ref.as_ref().map(|claim| &claim.namespace);
        self.scope.is_none() || namespace.is_none() || namespace == self.scope.as_ref()
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClassView>> {
        if name.is_empty() { None } else { self.classes.get(&ObjectKey::cluster(name)) }
    }
}

/// Reads an object from the server; `None` if it is gone, or another one of its name is there.
async fn live<V: Kind>(cx: &Context, object: &Meta) -> Result<Option<Live<V>>, Error> {
    let Some(whole) = cx.live.get_json(&V::RESOURCE, &object.key()).await? else { return Ok(None) };
    let view = V::decode(Encoded::Json(whole.to_string().as_bytes()))?;
    Ok((view.meta().uid == object.uid).then_some(Live { whole, view }))
}

/// Writes an object that was read from the server, and notes its new version in it. `None` if it has changed meanwhile, or
/// is gone.
async fn put(
    write: Behalf<'_>,
    resource: &Resource,
    subresource: &str,
    whole: &mut Value,
    why: &dyn Reason,
) -> Result<Option<ResourceVersion>, Error> {
    let text = |field: &str| whole["metadata"][field].as_str().unwrap_or_default();
    let key = ObjectKey::new(text("namespace"), text("name"));
    let body = whole.to_string().into_bytes();
    match write.put_subresource(resource, &key, subresource, body, why).await {
        Ok(written) => {
            whole["metadata"]["resourceVersion"] = json!(written.resource_version);
            // The server knows better by now who manages which field.
            if let Some(metadata) = whole["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            Ok(Some(written.resource_version))
        }
        Err(WriteError::Conflict | WriteError::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Records an event.
fn send_event(cx: &Context, resource: &Resource, object: &Meta, note: &Note) {
    let about = About::new(resource, object);
    if note.is_warning {
        cx.events.warning(&about, note.reason, note.text.as_str());
    } else {
        cx.events.normal(&about, note.reason, note.text.as_str());
    }
}
