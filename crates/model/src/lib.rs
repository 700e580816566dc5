//! What caches hold of Kubernetes objects: compact **views** that decode only the fields controllers read.
//!
//! A pod of 7 KB of JSON has some 800 bytes worth knowing; a cache of 30,000 pods is then 25 MB and not 900. A [`View`] is
//! such a struct. [`view!`] declares it once and makes both its decoders, so that JSON and protobuf cannot drift apart.
//!
//! 1. **Only what is read is kept**; everything else is skipped without an allocation.
//! 2. **What repeats is kept once**: strings are interned, and what pods of one template share is one allocation.
//! 3. **Explicit `null` is absent**, absent is the default, and both encodings give equal views.
//! 4. **No input panics**; what is wrong is an error that says where.
//! 5. **Templates stay raw.** The spec of a [`Template`] is the bytes that came; a new pod gets those bytes behind metadata
//!    of our own, so that nothing is encoded again and fields newer than this crate survive.
//!
//! # Adding a field
//!
//! Find its number in Kubernetes' `generated.proto`, add a line to the struct's `view!`, and the test that sets every field
//! of every kind (`tests/decoding`) holds both decoders to it.

pub mod apps;
mod body;
mod conditions;
pub mod coordination;
pub mod core;
#[cfg(any(test, feature = "corpus"))]
pub mod corpus;
pub mod discovery;
mod macros;
mod memo;
mod meta;
pub mod shared;
mod split;
pub mod template;
mod view;
pub mod wire;

pub use self::core::{
    EndpointsView, NamespaceView, NodeView, PodView, ReplicationControllerView, ServiceAccountView, ServiceView,
};
pub use apps::{DeploymentView, ReplicaSetView};
pub use body::status_body;
pub use coordination::LeaseView;
pub use discovery::EndpointSliceView;
#[doc(hidden)]
pub use macros::private as __private;
pub use shared::{Shared, SharedList};
pub use template::{NewPodMeta, PodName, Template};
pub use view::{DecodeError, Encoded, Kind, Projection, View};
