//! The trait of views.

use steersman_base::{Meta, Resource};

/// The part of an object that a cache holds: the fields controllers read, and no others.
///
/// Types of `k8s-openapi` and types that derive `kube::CustomResource` are not views themselves: caches hold them as
/// `steersman_informer::Typed<K>`, which dereferences to `K`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a cache holds",
    label = "neither a view nor a `Typed<…>`",
    note = "caches hold types of `k8s-openapi` and `kube::CustomResource` as `steersman::informer::Typed<{Self}>`: pass what the lister \
            returned (`&*cake`), and write functions that take `&Typed<Cake>`; it dereferences to `&Cake`"
)]
pub trait View: Send + Sync + Sized + 'static {
    /// The part of each object that the view requests from the server.
    const PROJECTION: Projection = Projection::Whole;
    /// Whether the view can be decoded from protobuf; if not, only JSON is requested.
    const PROTOBUF: bool = false;

    /// The object's metadata.
    fn meta(&self) -> &Meta;

    /// Reads one object.
    ///
    /// # Errors
    /// The body is invalid; the error names the field. A retry does not help: the bytes stay the same.
    fn decode(body: Encoded<'_>) -> Result<Self, DecodeError>;
}

/// Metadata of an object, whatever its view: for readers that need no more, such as `Change<dyn HasMeta>`.
pub trait HasMeta: Send + Sync {
    /// Returns the object's metadata.
    fn meta(&self) -> &Meta;
}

/// A view whose resource is known at compile time; for [`Meta`] and custom kinds it is known at run time.
pub trait Kind: View {
    /// The resource whose objects these are.
    const RESOURCE: Resource;
}

/// The part of each object that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Projection {
    /// The object as it is.
    Whole,
    /// `PartialObjectMetadata`: the metadata alone.
    Metadata,
}

/// One object as it came over the wire.
#[derive(Clone, Copy, Debug)]
pub enum Encoded<'a> {
    /// A JSON document.
    Json(&'a [u8]),
    /// A protobuf message, without the `k8s\0` envelope and its `Unknown` wrapper.
    Protobuf(&'a [u8]),
}

/// A body that is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not of the right shape.
    #[error("cannot read the object as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Not protobuf, or not of the right shape.
    #[error("cannot read the object as protobuf: {problem} at byte {offset}")]
    Protobuf {
        /// The offset at which reading stopped.
        offset: usize,
        /// The problem.
        problem: &'static str,
    },
    /// A view that reads only JSON was given protobuf.
    #[error("{kind} is read as JSON only, but the body is protobuf")]
    JsonOnly {
        /// The type that was being decoded.
        kind: &'static str,
    },
}

// === impl HasMeta ===

impl<V: View> HasMeta for V {
    fn meta(&self) -> &Meta {
        View::meta(self)
    }
}
