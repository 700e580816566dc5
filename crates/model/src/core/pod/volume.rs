//! The fields of a pod's volumes that are read.

mod inline;

pub use inline::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, Fc, FlexVolume, GcePersistentDisk, Iscsi, Portworx,
    VsphereVolume,
};
use steersman_base::{Istr, LabelSelector, StringMap};

use super::container::{InlinedReference, LocalReference, Resources};
use crate::shared::pooled;
use crate::view;
use crate::wire::{Adapt, Pick, Picked};

/// A volume of a pod of which something is read. Others, such as empty directories and ConfigMaps, are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Volume {
    /// Its name within the pod.
    pub name: Istr,
    /// The source of its content.
    pub source: VolumeSource,
    /// Names of the secrets it is made of, or opened with.
    pub secret_names: Box<[Istr]>,
}
pooled!(lists of Volume);

/// The source of a volume, as far as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the types say it")]
pub enum VolumeSource {
    /// A source that is not read; only the names of its secrets are kept.
    #[default]
    Other,
    PersistentVolumeClaim(ClaimSource),
    /// A claim that is made for the pod, with the template for it.
    Ephemeral(Box<ClaimTemplate>),
    Fc(Box<Fc>),
    Iscsi(Box<Iscsi>),
    FlexVolume(Box<FlexVolume>),
    GcePersistentDisk(Box<GcePersistentDisk>),
    AwsElasticBlockStore(Box<AwsElasticBlockStore>),
    AzureDisk(Box<AzureDisk>),
    AzureFile(Box<AzureFile>),
    Cinder(Box<Cinder>),
    VsphereVolume(Box<VsphereVolume>),
    Portworx(Box<Portworx>),
}

view! {
    /// A claim of the pod's namespace.
    #[derive(Eq, Hash)]
    pub struct ClaimSource {
        /// Its name. It differs over the pods of a StatefulSet.
        claim_name: Istr = 1,
        /// Whether it is mounted for reading only.
        read_only: bool = 2,
    }
}

view! {
    /// The claim that is made for a pod's ephemeral volume.
    #[derive(Eq, Hash)]
    pub struct ClaimTemplate: Serialize {
        /// Labels and annotations it gets.
        metadata: ClaimTemplateMeta = 1,
        /// The claim.
        spec: ClaimSpec = 2,
    }
}

view! {
    /// Labels and annotations of a claim that is to be made; no others are allowed there.
    #[derive(Eq, Hash)]
    pub struct ClaimTemplateMeta: Serialize {
        /// Labels.
        labels: StringMap = 11,
        /// Annotations.
        annotations: StringMap = 12,
    }
}

view! {
    /// The spec of a claim, whole.
    #[derive(Eq, Hash)]
    pub struct ClaimSpec: Serialize {
        /// The access modes.
        access_modes: Box<[Istr]> = 1,
        /// The requests and limits.
        resources: Resources = 2,
        /// A volume by name.
        volume_name: Istr = 3,
        /// Volumes by label.
        selector: Option<LabelSelector> = 4,
        /// The class; absent is the default class, and empty is none.
        storage_class_name: Option<Istr> = 5,
        /// `Filesystem` or `Block`.
        volume_mode: Option<Istr> = 6,
        /// The data source.
        data_source: Option<Box<TypedReference>> = 7,
        /// The data source of any kind.
        data_source_ref: Option<Box<TypedReference>> = 8,
        /// The class of its attributes.
        volume_attributes_class_name: Option<Istr> = 9,
    }
}

view! {
    /// An object of any kind.
    #[derive(Eq, Hash)]
    pub struct TypedReference: Serialize {
        /// Its API group.
        api_group: Option<Istr> = 1,
        /// Its kind.
        kind: Istr = 2,
        /// Its name.
        name: Istr = 3,
        /// Its namespace; absent is the same one.
        namespace: Option<Istr> = 4,
    }
}

view! {
    /// A volume as received.
    pub(super) struct VolumeFields {
        name: Istr = 1,
        ..source: SourceFields = 2,
    }
}

view! {
    /// A volume's source as received: usually one of these.
    pub(super) struct SourceFields {
        gce_persistent_disk: Option<Box<GcePersistentDisk>> = 3,
        aws_elastic_block_store: Option<Box<AwsElasticBlockStore>> = 4,
        secret: SecretSource = 6,
        iscsi: Option<Box<Iscsi>> = 8,
        persistent_volume_claim: Option<ClaimSource> = 10,
        rbd: SecretOf7 = 11,
        flex_volume: Option<Box<FlexVolume>> = 12,
        cinder: Option<Box<Cinder>> = 13,
        cephfs: SecretOf5 = 14,
        fc: Option<Box<Fc>> = 17,
        azure_file: Option<Box<AzureFile>> = 18,
        vsphere_volume: Option<Box<VsphereVolume>> = 20,
        azure_disk: Option<Box<AzureDisk>> = 22,
        portworx_volume: Option<Box<Portworx>> = 24,
        scale_io "scaleIO": SecretOf3 = 25,
        projected: Projected = 26,
        storageos: SecretOf5 = 27,
        csi: Csi = 28,
        ephemeral: Option<Ephemeral> = 29,
    }
}

view! {
    pub(super) struct SecretSource {
        secret_name: Istr = 1,
    }
}

/// A source of which only `secretRef` is read; it has another number in each.
macro_rules! secret_of {
    ($($name:ident = $number:literal),*) => {$(
        view! {
            pub(super) struct $name {
                secret_ref: LocalReference = $number,
            }
        }
    )*};
}
secret_of!(SecretOf3 = 3, SecretOf5 = 5, SecretOf7 = 7);

view! {
    pub(super) struct Csi {
        node_publish_secret_ref: LocalReference = 5,
    }
}

view! {
    pub(super) struct Projected {
        sources: Vec<Istr> as Picked<Projection> = 1,
    }
}

view! {
    struct Projection {
        secret: InlinedReference = 1,
    }
}

view! {
    pub(super) struct Ephemeral {
        volume_claim_template: Box<ClaimTemplate> = 1,
    }
}

// === impl Volume ===

impl Pick for VolumeFields {
    type Kept = Volume;

    /// The volume, if it has anything that is read.
    fn pick(self) -> Option<Volume> {
        let secret_names = self.source.secret_names();
        let source = self.source.adapt();
        let is_kept = !secret_names.is_empty() || !matches!(source, VolumeSource::Other);
        is_kept.then_some(Volume { name: self.name, source, secret_names })
    }
}

// === impl VolumeSource ===

impl SourceFields {
    fn secret_names(&self) -> Box<[Istr]> {
        let single = [
            &self.secret.secret_name,
            &self.rbd.secret_ref.name,
            &self.cephfs.secret_ref.name,
            &self.scale_io.secret_ref.name,
            &self.storageos.secret_ref.name,
            &self.csi.node_publish_secret_ref.name,
        ];
        let whole = [
            self.iscsi.as_ref().map(|source| &source.secret_ref),
            self.flex_volume.as_ref().map(|source| &source.secret_ref),
            self.cinder.as_ref().map(|source| &source.secret_ref),
            self.azure_file.as_ref().map(|source| &source.secret_name),
        ];
        let names = single.into_iter().chain(whole.into_iter().flatten()).chain(&self.projected.sources);
        names.filter(|name| !name.is_empty()).cloned().collect()
    }
}

impl Adapt<VolumeSource> for SourceFields {
    fn adapt(self) -> VolumeSource {
        None.or(self.persistent_volume_claim.map(VolumeSource::PersistentVolumeClaim))
            .or(self.ephemeral.map(|source| VolumeSource::Ephemeral(source.volume_claim_template)))
            .or(self.fc.map(VolumeSource::Fc))
            .or(self.iscsi.map(VolumeSource::Iscsi))
            .or(self.flex_volume.map(VolumeSource::FlexVolume))
            .or(self.gce_persistent_disk.map(VolumeSource::GcePersistentDisk))
            .or(self.aws_elastic_block_store.map(VolumeSource::AwsElasticBlockStore))
            .or(self.azure_disk.map(VolumeSource::AzureDisk))
            .or(self.azure_file.map(VolumeSource::AzureFile))
            .or(self.cinder.map(VolumeSource::Cinder))
            .or(self.vsphere_volume.map(VolumeSource::VsphereVolume))
            .or(self.portworx_volume.map(VolumeSource::Portworx))
            .unwrap_or_default()
    }
}

impl Pick for Projection {
    type Kept = Istr;
    fn pick(self) -> Option<Istr> {
        Some(self.secret.reference.name).filter(|name| !name.is_empty())
    }
}

impl Adapt<Istr> for LocalReference {
    fn adapt(self) -> Istr {
        self.name
    }
}
