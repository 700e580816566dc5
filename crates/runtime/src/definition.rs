//! Installing CustomResourceDefinitions.

use std::time::Duration;

use http::{Request, header};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::{Value, json};

/// An error of an installation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The definition cannot be encoded, or has no name.
    #[error("the definition cannot be sent: {0}")]
    Invalid(String),
    /// The server refused it, or could not be reached.
    #[error("the definition of {name} was not taken: {source}")]
    Refused {
        /// Name of the definition, such as `cakes.bakery.example.dev`.
        name: String,
        /// The error of the client or the server.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server accepted it, and did not serve it in time.
    #[error("{name} is not served after {waited:?}; its conditions: {conditions}")]
    NotServed {
        /// Name of the definition.
        name: String,
        /// The time that was waited.
        waited: Duration,
        /// The last conditions of the definition, as JSON.
        conditions: String,
    },
}

/// The time that [`install`] waits for the server. A server needs less than a second; a loaded one a few.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(50);
const COLLECTION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Creates or updates a CustomResourceDefinition, and waits until its stored version is served.
///
/// For tests, examples and small operators. In production a definition usually comes with the manifests of a release, because
/// an operator that may write definitions may do more than it needs.
///
/// ```no_run
/// # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// # use steersman_runtime::definition::{self, InstallError};
/// # async fn example(client: kube::Client, cake: CustomResourceDefinition) -> Result<(), InstallError> {
/// definition::install(&client, &cake).await?; // `cake` is `Cake::crd()` of a type that derives `kube::CustomResource`
/// # Ok(()) }
/// ```
///
/// # Errors
/// See [`InstallError`].
pub async fn install(client: &Client, definition: &CustomResourceDefinition) -> Result<(), InstallError> {
    let value = serde_json::to_value(definition).map_err(|error| InstallError::Invalid(error.to_string()))?;
    install_value(client, &value).await
}

/// As [`install`], with the definition as JSON.
///
/// # Errors
/// See [`InstallError`].
pub async fn install_value(client: &Client, definition: &Value) -> Result<(), InstallError> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(InstallError::Invalid("metadata.name is missing".to_owned()));
    }
    let refused = |source| InstallError::Refused { name: name.clone(), source: Box::new(source) };
    match send(client, "POST", COLLECTION, "application/json", definition).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            let patch = json!({ "spec": definition["spec"] });
            let path = format!("{COLLECTION}/{name}");
            send(client, "PATCH", &path, "application/merge-patch+json", &patch).await.map_err(&refused)?;
        }
        created => drop(created.map_err(&refused)?),
    }
    await_served(client, definition, &name).await
}

/// Requests the new resource until the server serves it. The condition `Established` is not enough: a server with
/// several replicas, or a loaded one, sets it before it serves.
async fn await_served(client: &Client, definition: &Value, name: &str) -> Result<(), InstallError> {
    let path = list_path(definition).ok_or_else(|| InstallError::Invalid("no version is stored and served".into()))?;
    let deadline = tokio::time::Instant::now() + SERVED_WITHIN;
    loop {
        match send(client, "GET", &path, "application/json", &Value::Null).await {
            Ok(_) => return Ok(()),
            // 404: not known yet. 429 and 503: known, and not ready.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429 | 503) => {}
            Err(source) => return Err(InstallError::Refused { name: name.to_owned(), source: Box::new(source) }),
        }
        if tokio::time::Instant::now() >= deadline {
            let path = format!("{COLLECTION}/{name}");
            let seen = send(client, "GET", &path, "application/json", &Value::Null).await;
            let conditions = seen.map(|seen| seen["status"]["conditions"].to_string()).unwrap_or_default();
            return Err(InstallError::NotServed { name: name.to_owned(), waited: SERVED_WITHIN, conditions });
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Returns the path of a short list of the version that is stored, or of the first that is served.
fn list_path(definition: &Value) -> Option<String> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array()?;
    let is = |version: &&Value, what: &str| version[what].as_bool() == Some(true);
    let served = || versions.iter().filter(|version| is(version, "served"));
    let version = served().find(|version| is(version, "storage")).or_else(|| served().next())?;
    let group = spec["group"].as_str()?;
    let plural = spec["names"]["plural"].as_str()?;
    Some(format!("/apis/{group}/{}/{plural}?limit=1", version["name"].as_str()?))
}

async fn send(client: &Client, method: &str, path: &str, kind: &str, body: &Value) -> Result<Value, kube::Error> {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, kind).body(bytes);
    client.request(request.map_err(kube::Error::HttpError)?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_version_is_waited_for_and_else_one_that_is_served() {
        let definition = |versions: Value| json!({ "spec": { "group": "g.dev", "names": { "plural": "cakes" }, "versions": versions } });
        let check = |versions: Value, want: Option<&str>| {
            assert_eq!(list_path(&definition(versions)).as_deref(), want);
        };
        let version =
            |name: &str, served: bool, storage: bool| json!({ "name": name, "served": served, "storage": storage });
        check(json!([version("v1", true, false), version("v2", true, true)]), Some("/apis/g.dev/v2/cakes?limit=1"));
        check(json!([version("v1", true, false), version("v2", false, true)]), Some("/apis/g.dev/v1/cakes?limit=1"));
        check(json!([version("v1", false, true)]), None);
        assert_eq!(list_path(&json!({})), None);
    }
}
