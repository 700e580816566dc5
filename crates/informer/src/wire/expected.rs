//! The requested kind.

use std::panic::{AssertUnwindSafe, catch_unwind};

use steersman_base::Resource;
use steersman_model::{DecodeError, Encoded, Projection, View};

use super::{UnreadableObject, WireError, identify};

/// The requested kind of object. Kind and apiVersion are checked where a response has them: items of a typed list do
/// not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    kind: String,
    api_version: String,
    metadata: bool,
}

const METADATA_KIND: &str = "PartialObjectMetadata";
const METADATA_VERSION: &str = "meta.k8s.io/v1";
const PANICKED: &str = "its type panicked";

// === impl Expected ===

impl Expected {
    /// Expects objects of this resource, whole or their metadata.
    #[must_use]
    pub fn new(resource: &Resource, projection: Projection) -> Self {
        Self {
            kind: resource.kind.clone().into_owned(),
            api_version: resource.api_version().into_owned(),
            metadata: projection == Projection::Metadata,
        }
    }

    /// Checks the kind of an object. A request for metadata may get whole objects, from a server that cannot cut them.
    pub(super) fn check_object(&self, kind: Option<&str>, api_version: Option<&str>) -> Result<(), WireError> {
        let is = |want_kind: &str, want_version: &str| {
            kind.is_none_or(|kind| kind == want_kind) && api_version.is_none_or(|version| version == want_version)
        };
        if is(&self.kind, &self.api_version) || (self.metadata && is(METADATA_KIND, METADATA_VERSION)) {
            return Ok(());
        }
        Err(self.mismatch("", kind, api_version))
    }

    /// Checks the kind of a list. A custom resource may choose the name of its list, so only the ending counts.
    pub(super) fn check_list(&self, kind: Option<&str>, api_version: Option<&str>) -> Result<(), WireError> {
        let version_fits = api_version
            .is_none_or(|version| version == self.api_version || (self.metadata && version == METADATA_VERSION));
        if kind.is_none_or(|kind| kind.ends_with("List")) && version_fits {
            return Ok(());
        }
        Err(self.mismatch("List", kind, api_version))
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// [`WireError::Object`], which names the object as far as possible.
    pub fn decode<V: View>(&self, object: Encoded<'_>) -> Result<V, WireError> {
        decode_guarded(object).map_err(|source| {
            let unreadable = UnreadableObject { kind: self.kind.clone(), identity: identify(object), source };
            WireError::Object(Box::new(unreadable))
        })
    }

    fn mismatch(&self, suffix: &str, kind: Option<&str>, api_version: Option<&str>) -> WireError {
        WireError::WrongKind {
            expected: format!("{}{suffix} of {}", self.kind, self.api_version),
            found: format!("{} of {}", kind.unwrap_or("an object"), api_version.unwrap_or("no version")),
        }
    }
}

/// Decodes an object. A type that panics on an object cannot read it: the object is skipped like any other that cannot be
/// decoded, and the reflector, which runs this code, continues.
pub(super) fn decode_guarded<V: View>(object: Encoded<'_>) -> Result<V, DecodeError> {
    catch_unwind(AssertUnwindSafe(|| V::decode(object))).unwrap_or_else(|_| {
        Err(match object {
            Encoded::Json(_) => DecodeError::Json(serde::de::Error::custom(PANICKED)),
            Encoded::Protobuf(_) => DecodeError::Protobuf { offset: 0, problem: PANICKED },
        })
    })
}
