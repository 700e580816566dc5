//! Owners of `spec.replicas`, seen through the `scale` subresource.
//!
//! A `Scale` has managers of its own while it is written; they are made from those of the scaled object, and put back.
//! Follows `managedfields/scalehandler.go` of apimachinery v0.37: managers that come back from a scale have no time.

use serde_json::Value;

use crate::managed::{Entry, Managed, ManagedError};
use crate::path::Path;
use crate::set::FieldSet;

/// The API version of `Scale`.
const SCALE_VERSION: &str = "autoscaling/v1";

/// The path of the replicas in each API version of the scaled kind; `None` for a version without scale.
pub type ReplicasPaths<'a> = &'a [(&'a str, Option<Path>)];

/// The managers of a scaled object, on their way to its `Scale` and back.
pub struct ScaleManagers<'a> {
    /// Those of the scaled object.
    parent: Managed,
    /// The version of the scaled object.
    api_version: &'a str,
    paths: ReplicasPaths<'a>,
}

impl<'a> ScaleManagers<'a> {
    /// Reads the managers of the scaled object.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn new(
        managed_fields: Option<&Value>,
        api_version: &'a str,
        paths: ReplicasPaths<'a>,
    ) -> Result<Self, ManagedError> {
        Ok(Self { parent: Managed::decode(managed_fields)?, api_version, paths })
    }

    fn path(&self, api_version: &str) -> Option<&Option<Path>> {
        self.paths.iter().find(|(version, _)| *version == api_version).map(|(_, path)| path)
    }

    /// The managers of the `Scale`: those that own the replicas.
    pub fn to_scale(&self) -> Option<Value> {
        let mut managed = Managed::default();
        for (id, entry) in &self.parent.entries {
            if let Some(Some(path)) = self.path(&entry.api_version)
                && entry.fields.contains(path)
            {
                let entry =
                    Entry { api_version: SCALE_VERSION.to_owned(), fields: in_scale(), time: entry.time.clone() };
                managed.entries.insert(id.clone(), entry);
            }
        }
        managed.encode()
    }

    /// The managers of the scaled object after its `Scale` was written.
    ///
    /// # Errors
    ///
    /// The managers of the scale cannot be read.
    pub fn to_parent(&self, scale: Option<&Value>) -> Result<Option<Value>, ManagedError> {
        let mut scale = Managed::decode(scale)?;
        let mut managed = Managed::default();
        for (id, entry) in &self.parent.entries {
            // Versions that are gone are forgotten.
            let Some(path) = self.path(&entry.api_version) else {
                continue;
            };
            let owned = path.as_ref().filter(|path| entry.fields.contains(path));
            let mut entry = entry.clone();
            // Whoever owned the replicas and does not own them in the scale has lost them.
            if let Some(path) = owned
                && scale.entries.remove(id).is_none()
            {
                entry.fields = entry.fields.difference(&FieldSet::from_paths([path.clone()]));
            }
            if !entry.fields.is_empty() {
                managed.entries.insert(id.clone(), entry);
            }
        }
        let path = self.path(self.api_version).cloned().flatten().unwrap_or_default();
        for (id, entry) in scale.entries {
            if entry.fields.contains(&Path::of_fields(["spec", "replicas"])) {
                let fields = FieldSet::from_paths([path.clone()]);
                let time = self.parent.entries.get(&id).and_then(|entry| entry.time.clone());
                let entry = Entry { api_version: self.api_version.to_owned(), fields, time };
                managed.entries.insert(id, entry);
            }
        }
        Ok(managed.encode())
    }
}

fn in_scale() -> FieldSet {
    FieldSet::from_paths([Path::of_fields(["spec", "replicas"])])
}
