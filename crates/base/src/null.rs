//! JSON's `null`, which Kubernetes takes for an absent field.

use serde::{Deserialize, Deserializer};

/// For `deserialize_with`: `null` is the default value.
pub(crate) fn as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
