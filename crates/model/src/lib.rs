//! The part of Kubernetes objects that caches hold: compact **views** that decode only the fields controllers read.
//!
//! A pod is 7 KB of JSON, and 58 KB of memory once it is decoded into structs of everything. Controllers read a tenth of
//! it. So a cache holds a [`PodView`]: about 700 bytes, decoded five times faster from JSON and twelve times faster from
//! protobuf (`cargo bench -p steersman-model`).
//!
//! ```
//! use steersman_model::{Encoded, PodView, View};
//!
//! let body = br#"{"metadata":{"name":"web-0"},"spec":{"nodeName":"n1","containers":[{"name":"web","image":"web:1"}]},
//!     "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"podIP":"10.0.0.7"}}"#;
//! let pod = PodView::decode(Encoded::Json(body))?;
//! assert!(pod.is_ready() && pod.status.phase == "Running");
//! assert_eq!(pod.spec.containers[0].name, "web");
//! # Ok::<(), steersman_model::DecodeError>(())
//! ```
//!
//! # Views
//!
//! A view is a struct, declared once with [`view!`], which generates both decoders: they cannot drift apart.
//!
//! 1. **Only what is read is kept**; everything else is skipped without an allocation.
//! 2. **What repeats is kept once**: strings are interned, and what pods of one template share is one allocation.
//! 3. **Explicit `null` is absent**, absent is the default, and both encodings give equal views.
//! 4. **Text that is not UTF-8 is read**, with U+FFFD in its place: API servers store such text in annotations and owner
//!    references.
//! 5. **No input panics**; what is wrong is an error that says where.
//! 6. **Templates stay raw**: a new pod gets the bytes of its spec as they came.
//!
//! | kind | view | held |
//! |---|---|---|
//! | any | [`Meta`](steersman_base::Meta) | metadata, but for `managedFields` and the prefix of the name |
//! | Pod | [`PodView`] | what controllers read; of the annotations four |
//! | Node, Service, ServiceAccount | [`NodeView`], [`ServiceView`], [`ServiceAccountView`] | what controllers read |
//! | ConfigMap, Secret of an account | [`ConfigMapView`](core::ConfigMapView), [`TokenSecretView`](core::TokenSecretView) | what controllers read of those that they watch |
//! | ReplicaSet, Deployment, ReplicationController | [`ReplicaSetView`], [`DeploymentView`], [`ReplicationControllerView`] | whole, `template.spec` as raw JSON |
//! | StatefulSet, DaemonSet, ControllerRevision | [`StatefulSetView`](apps::StatefulSetView), [`DaemonSetView`](apps::DaemonSetView), [`ControllerRevisionView`](apps::ControllerRevisionView) | whole; templates and data as raw JSON |
//! | Job, CronJob | [`JobView`], [`CronJobView`] | what controllers read of the spec, templates as raw JSON; the status whole |
//! | HorizontalPodAutoscaler | [`HorizontalPodAutoscalerView`] | whole |
//! | PersistentVolumeClaim, PersistentVolume, VolumeAttributesClass, ClusterRole | [`core`], [`storage`], [`rbac`] | what controllers read |
//! | VolumeAttachment, CSIDriver | [`storage`] | what controllers read |
//! | ResourceClaim, DeviceClass, ResourceSlice, DeviceTaintRule, ResourcePoolStatusRequest | [`resource`] | what controllers read |
//! | ResourceClaimTemplate | [`resource`] | metadata and the claims' spec as raw JSON |
//! | PodGroup, Workload | [`scheduling`] | what controllers read; the templates of a Workload as raw JSON |
//! | StorageVersionMigration | [`storagemigration`] | whole |
//! | ValidatingAdmissionPolicy | [`admissionregistration`] | spec as raw JSON, observed generation |
//! | StorageVersion | [`apiserverinternal`] | the API servers that it names |
//! | ServiceCIDR, IPAddress | [`networking`] | what controllers read |
//! | ResourceQuota, PodDisruptionBudget | [`core`], [`policy`] | whole |
//! | Namespace, Endpoints, EndpointSlice, Lease | [`NamespaceView`], [`EndpointsView`], [`EndpointSliceView`], [`LeaseView`] | whole |
//! | Lease of a node | [`NodeLeaseView`] | identity and renewal |
//!
//! Kinds that are held whole are [`Serialize`](serde::Serialize): they can be changed and PUT, and nothing is lost but
//! `managedFields`, which the server keeps. A status is PUT with [`status_body`].
//!
//! # Size and speed
//!
//! 1. Strings of up to 15 bytes are held in place, longer ones are shared if they repeat ([`Istr`](steersman_base::Istr)).
//! 2. What siblings of one template share is one allocation ([`Shared`], [`SharedList`]): owners, the keys of labels, a
//!    pod's spec but for a few fields, its volumes, its container statuses, and its conditions but for their times.
//! 3. Those parts are not even decoded twice: what was made of which bytes is remembered.
//! 4. JSON that nobody reads is skipped 64 bytes at a time. Whatever is unusual is read by `serde_json`.
//!
//! # Why templates are raw
//!
//! Whoever makes pods from a template copies its spec and looks at none of it. [`Template`] keeps the bytes, and
//! [`Template::pod_body`] puts them, untouched, behind metadata of our own: nothing is encoded again, and fields that are
//! newer than this program survive. Writes are JSON, so kinds with a template are read as JSON only.
//!
//! # Adding a field
//!
//! 1. Add a line to the struct's [`view!`]: `name: Type = number`. Numbers are in Kubernetes' `generated.proto`, and
//!    for all messages that a view reads in `data/protobuf-fields.tsv`.
//! 2. If siblings of one template differ in it, it belongs to the pod's own part, not to the shared one.
//! 3. Add a row to `tests/decoding`: objects in which *every* field is set are made from the table, encoded both ways, and
//!    compared with what the views have.

pub mod admissionregistration;
pub mod apiserverinternal;
pub mod apps;
pub mod autoscaling;
pub mod batch;
mod body;
pub mod certificates;
mod conditions;
pub mod coordination;
pub mod core;
#[cfg(any(test, feature = "corpus"))]
pub mod corpus;
pub mod discovery;
mod macros;
mod memo;
mod meta;
pub mod networking;
pub mod policy;
pub mod rbac;
pub mod resource;
pub mod scheduling;
pub mod shared;
mod split;
pub mod storage;
pub mod storagemigration;
pub mod template;
mod view;
pub mod wire;

pub use apps::{DeploymentView, ReplicaSetView};
pub use autoscaling::HorizontalPodAutoscalerView;
pub use batch::{CronJobView, JobView};
pub use body::{object_body, status_body};
pub use coordination::{LeaseView, NodeLeaseView};
pub use discovery::EndpointSliceView;
#[doc(hidden)]
pub use macros::private as __private;
pub use shared::{Shared, SharedList};
pub use template::{NewPodMeta, PodName, Template};
pub use view::{DecodeError, Encoded, HasMeta, Kind, Projection, View};

pub use self::core::{
    EndpointsView, NamespaceView, NodeView, PodView, ReplicationControllerView, ServiceAccountView, ServiceView,
};
