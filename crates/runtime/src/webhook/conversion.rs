//! `ConversionReview` of `apiextensions.k8s.io/v1`: objects of a CRD in another version.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::review::{Malformed, envelope, open};
use crate::serving::{Request, Response};

/// A converter of objects. Every `Fn(Value, &str) -> Result<Value, String>` is one; [`Versions`] converts types.
pub trait Convert: Send + Sync + 'static {
    /// Returns the object in `api_version`, such as `example.com/v1`.
    ///
    /// # Errors
    /// The reason, for the client that wanted to read or write it. Avoid it: a stored object that cannot be converted
    /// can be neither listed nor repaired.
    fn convert(&self, object: Value, api_version: &str) -> Result<Value, String>;
}

/// The versions of a kind, each a type of its own, all converted through one of them: the hub.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use steersman_runtime::webhook::Versions;
/// # #[derive(Serialize, Deserialize)] struct SiteV1 { host: String }
/// # #[derive(Serialize, Deserialize)] struct SiteV2 { hosts: Vec<String> }
/// impl From<SiteV1> for SiteV2 {
///     fn from(site: SiteV1) -> Self {
///         Self { hosts: vec![site.host] }
///     }
/// }
/// impl TryFrom<SiteV2> for SiteV1 {
///     type Error = String;
///     fn try_from(site: SiteV2) -> Result<Self, String> {
///         site.hosts.into_iter().next().map(|host| Self { host }).ok_or_else(|| "a site needs a host".to_owned())
///     }
/// }
/// let versions = Versions::<SiteV2>::hub("example.com/v2").version::<SiteV1>("example.com/v1");
/// ```
#[must_use]
pub struct Versions<H> {
    versions: BTreeMap<String, Version<H>>,
}

/// The conversions of a version to the hub and back.
struct Version<H> {
    to_hub: fn(Value) -> Result<H, String>,
    from_hub: fn(H) -> Result<Value, String>,
}

#[derive(Debug, Deserialize)]
struct Question {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(default)]
    objects: Vec<Value>,
}

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Responds to a review.
pub(super) fn review(converter: &impl Convert, request: &Request) -> Result<Response, Malformed> {
    let Question { uid, desired_api_version, objects } = open(request.body(), API_VERSION, KIND)?;
    let converted = objects.into_iter().map(|object| one(converter, object, &desired_api_version));
    let response = match converted.collect::<Result<Vec<_>, _>>() {
        Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
        Err(reason) => json!({"uid": uid, "result": {"status": "Failure", "message": reason}}),
    };
    Ok(envelope(API_VERSION, KIND, &response))
}

fn one(converter: &impl Convert, object: Value, desired: &str) -> Result<Value, String> {
    if object["apiVersion"] == desired {
        return Ok(object);
    }
    let name = named(&object);
    let kind = object["kind"].clone();
    let metadata = object["metadata"].clone();
    let failed = |reason| format!("{name} cannot be converted to {desired}: {reason}");
    let mut converted = converter.convert(object, desired).map_err(failed)?;
    if !converted.is_object() {
        return Err(failed("the converter made something that is no object".to_owned()));
    }
    let metadata = kept(metadata, &converted["metadata"]);
    converted["apiVersion"] = json!(desired);
    converted["kind"] = kind;
    converted["metadata"] = metadata;
    Ok(converted)
}

/// Returns kind, name and version, for messages.
fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let metadata = &object["metadata"];
    let name = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", text(&metadata["name"])),
        None => text(&metadata["name"]),
    };
    format!("{} {name} of {}", text(&object["kind"]), text(&object["apiVersion"]))
}

/// Returns the old metadata with the new labels and annotations; a type without metadata changes nothing.
fn kept(mut metadata: Value, converted: &Value) -> Value {
    if !converted.is_object() || !metadata.is_object() {
        return metadata;
    }
    for name in ["labels", "annotations"] {
        match converted.get(name).filter(|value| !value.is_null()) {
            Some(value) => metadata[name] = value.clone(),
            None => {
                metadata.as_object_mut().map(|metadata| metadata.remove(name));
            }
        }
    }
    metadata
}

// === impl Convert ===

impl<F: Fn(Value, &str) -> Result<Value, String> + Send + Sync + 'static> Convert for F {
    fn convert(&self, object: Value, api_version: &str) -> Result<Value, String> {
        self(object, api_version)
    }
}

impl<H: 'static> Convert for Versions<H> {
    fn convert(&self, object: Value, api_version: &str) -> Result<Value, String> {
        let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let version = |name: &str| {
            let known = || self.versions.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            self.versions.get(name).ok_or_else(|| format!("{name:?} is none of the versions {}", known()))
        };
        let hub = (version(&from)?.to_hub)(object)?;
        (version(api_version)?.from_hub)(hub)
    }
}

// === impl Versions ===

impl<H: DeserializeOwned + Serialize + 'static> Versions<H> {
    /// Creates a converter with this hub, which should be able to represent every other version.
    pub fn hub(api_version: &str) -> Self {
        let hub = Version { to_hub: read, from_hub: |hub| write(&hub) };
        Self { versions: BTreeMap::from([(api_version.to_owned(), hub)]) }
    }

    /// Adds a version.
    pub fn version<V>(mut self, api_version: &str) -> Self
    where
        V: DeserializeOwned + Serialize + TryInto<H, Error: std::fmt::Display> + TryFrom<H, Error: std::fmt::Display>,
    {
        let to_hub =
            |object| read::<V>(object)?.try_into().map_err(|error: <V as TryInto<H>>::Error| error.to_string());
        let from_hub = |hub| write(&V::try_from(hub).map_err(|error| error.to_string())?);
        self.versions.insert(api_version.to_owned(), Version { to_hub, from_hub });
        self
    }
}

fn read<V: DeserializeOwned>(object: Value) -> Result<V, String> {
    serde_json::from_value(object).map_err(|error| format!("it is not as its version should be: {error}"))
}

fn write<V: Serialize>(object: &V) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|error| format!("it cannot be written: {error}"))
}
