//! What caches hold of Kubernetes objects: compact **views** that decode only the fields controllers read.

mod view;

pub use view::{DecodeError, Encoded, Kind, Projection, View};
