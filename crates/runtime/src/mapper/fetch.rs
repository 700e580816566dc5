//! Discovery requests.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::de::DeserializeOwned;

use super::discovered::{ApiGroup, CORE, Discovered, Failure, GROUPS, group_version};
use super::document::{Aggregated, CoreVersions, GroupList, ResourceList};

/// Discovery failed altogether. It is not retried here.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot ask the server which kinds it has: {what}: {why}")]
#[non_exhaustive]
pub struct DiscoveryError {
    what: &'static str,
    why: String,
}

impl DiscoveryError {
    /// The error of a root that could not be asked.
    pub(super) fn of_root((what, why): (&'static str, &str)) -> Self {
        Self { what, why: why.to_owned() }
    }
}

/// The failure of one document.
enum Problem {
    /// The document does not exist, or may not be read.
    Absent,
    Other(String),
}

struct Document {
    is_aggregated: bool,
    body: Bytes,
}

/// The aggregated form is requested first; a server without it sends the unaggregated one.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
const PLAIN: &str = "application/json";
/// The maximum time of one document: an aggregated API server that hangs must not delay the others for long.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// A server with a thousand kinds sends about a megabyte.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// The number of concurrent requests of unaggregated documents: client-go's default burst of 300 is a load.
const AT_ONCE: usize = 16;
/// The bytes of a refusal that are shown.
const REFUSAL_SHOWN_MAX: usize = 200;

/// Discovers all resources of a server.
///
/// # Errors
/// Nothing can be discovered.
pub(super) async fn everything(client: &kube::Client) -> Result<Discovered, DiscoveryError> {
    let (core, groups) = futures::join!(root(client, CORE), root(client, GROUPS));
    let mut found = Discovered::default();
    match (core, groups) {
        (Err(Problem::Other(why)), Err(Problem::Other(_))) => return Err(DiscoveryError { what: CORE, why }),
        // A server with only one of the two roots is valid; one with neither is a proxy that knows nothing of
        // Kubernetes.
        (Err(Problem::Absent), Err(Problem::Absent)) => {
            return Err(DiscoveryError {
                what: CORE,
                why: "neither /api nor /apis is there, or not for us".to_owned(),
            });
        }
        (core, groups) => {
            for (what, outcome) in [(CORE, core), (GROUPS, groups)] {
                match outcome {
                    Ok(part) => {
                        found.groups.extend(part.groups);
                        found.failures.extend(part.failures);
                    }
                    Err(Problem::Absent) => {}
                    Err(Problem::Other(why)) => found.failures.push(Failure { what: what.to_owned(), why }),
                }
            }
        }
    }
    Ok(found)
}

async fn root(client: &kube::Client, path: &'static str) -> Result<Discovered, Problem> {
    let document = get(client, path, AGGREGATED).await?;
    if document.is_aggregated {
        return parse::<Aggregated>(&document.body).map(Aggregated::read);
    }
    let groups = if path == CORE {
        vec![(String::new(), parse::<CoreVersions>(&document.body)?.versions)]
    } else {
        parse::<GroupList>(&document.body)?.read()
    };
    Ok(one_by_one(client, groups).await)
}

/// Discovers unaggregated: a document per group and version.
async fn one_by_one(client: &kube::Client, groups: Vec<(String, Vec<String>)>) -> Discovered {
    let wanted = groups.into_iter().flat_map(|(group, versions)| {
        let group_of = move |version| (group.clone(), version);
        versions.into_iter().map(group_of)
    });
    let fetch = |(group, version): (String, String)| async move {
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let list = get(client, &path, PLAIN).await.and_then(|document| parse::<ResourceList>(&document.body));
        (list.map(|list| list.read(&group, &version)), group, version)
    };
    let mut found = Discovered::default();
    // In order, to keep the order of groups and versions.
    let mut answers = stream::iter(wanted).map(fetch).buffered(AT_ONCE);
    while let Some((outcome, group, version)) = answers.next().await {
        match outcome {
            Ok(version) => match found.groups.iter_mut().find(|held| held.name == group) {
                Some(held) => held.versions.push(version),
                None => found.groups.push(ApiGroup { name: group, versions: vec![version] }),
            },
            Err(problem) => {
                let why = match problem {
                    Problem::Absent => "it is listed, but not there, or not for us".to_owned(),
                    Problem::Other(why) => why,
                };
                found.failures.push(Failure { what: group_version(&group, &version), why });
            }
        }
    }
    found
}

async fn get(client: &kube::Client, path: &str, accept: &str) -> Result<Document, Problem> {
    let other = |error: &dyn std::error::Error| Problem::Other(error.to_string());
    let request = Request::get(path).header(ACCEPT, accept).body(Body::empty()).map_err(|error| other(&error))?;
    let exchange = async {
        let response = client.send(request).await.map_err(|error| other(&error))?;
        let (head, body) = response.into_parts();
        let body = http_body_util::Limited::new(body, DOCUMENT_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Problem::Other(error.to_string()))?.to_bytes();
        match head.status {
            StatusCode::OK => {
                let content = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
                Ok(Document { is_aggregated: content.contains("as=APIGroupDiscoveryList"), body })
            }
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => Err(Problem::Absent),
            code => {
                let text = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_SHOWN_MAX)]).into_owned();
                Err(Problem::Other(format!("{code}: {text}")))
            }
        }
    };
    let late = |_| Problem::Other(format!("no answer within {ANSWER_WITHIN:?}"));
    tokio::time::timeout(ANSWER_WITHIN, exchange).await.map_err(late)?
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::Other(format!("the answer cannot be read: {error}")))
}
