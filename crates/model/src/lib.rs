//! What caches hold of Kubernetes objects: compact **views** that decode only the fields controllers read.

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
