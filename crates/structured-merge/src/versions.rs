//! One kind in several API versions.

use serde_json::Value;

use crate::schema::Schema;

/// The versions in which a kind is served.
pub trait Versions {
    /// The schema of the kind in a version; `None` if there is no such version. Fields that were owned in it are given up.
    fn schema(&self, api_version: &str) -> Option<&Schema>;

    /// The object in another version that has a schema.
    ///
    /// # Errors
    ///
    /// Why the object cannot be converted; the write fails with it.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
}

/// A kind that is served in one version only.
#[derive(Clone, Debug)]
pub struct OneVersion {
    /// `apps/v1`
    pub api_version: String,
    /// Its schema.
    pub schema: Schema,
}

impl Versions for OneVersion {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        (api_version == self.api_version).then_some(&self.schema)
    }

    fn convert(&self, object: &Value, _api_version: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}
