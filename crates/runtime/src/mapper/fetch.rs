//! Discovery requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
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
    /// The document does not exist. One that may not be read is another case: it may exist.
    Absent,
    Other(String),
}

struct Document {
    is_aggregated: bool,
    body: Bytes,
    tag: Option<HeaderValue>,
}

/// An answer of a root.
enum Answer {
    /// It is what the tag was for.
    Unchanged,
    News(Document),
}

/// The resources of both roots, and the tags of their documents: what has not changed is neither sent nor read again.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The resources. If some are missing, there are no tags.
    pub(super) found: Discovered,
    core: Option<HeaderValue>,
    groups: Option<HeaderValue>,
}

/// The resources of one root.
#[derive(Default)]
struct Part {
    found: Discovered,
    tag: Option<HeaderValue>,
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

// === impl Known ===

impl Known {
    /// Returns the resources of one root.
    fn part(&self, is_core: bool) -> Part {
        let groups = self.found.groups.iter().filter(|group| group.name.is_empty() == is_core);
        let tag = if is_core { &self.core } else { &self.groups };
        let groups = Arc::new(groups.cloned().collect());
        Part { found: Discovered { groups, failures: Vec::new() }, tag: tag.clone() }
    }
}

/// Discovers all resources of a server. What has not changed since they were `known` is taken from there. `had_core`:
/// whether the server had the core group at some time.
///
/// # Errors
/// Nothing can be discovered.
pub(super) async fn everything(client: &kube::Client, known: &Known, had_core: bool) -> Result<Known, DiscoveryError> {
    let core = root(client, CORE, known.core.as_ref());
    let groups = root(client, GROUPS, known.groups.as_ref());
    let (core, groups) = futures::join!(core, groups);
    if let (Ok(None), Ok(None)) = (&core, &groups) {
        return Ok(known.clone());
    }
    let mut all = Known::default();
    let part = |part: Option<Part>, is_core: bool| part.unwrap_or_else(|| known.part(is_core));
    let core = core.map(|core| part(core, true));
    let groups = groups.map(|groups| part(groups, false));
    let mut found = Discovered::default();
    let all_groups = Arc::make_mut(&mut found.groups);
    match (core, groups) {
        (Err(Problem::Other(why)), Err(Problem::Other(_))) => return Err(DiscoveryError { what: CORE, why }),
        // A proxy that knows nothing of Kubernetes.
        (Err(Problem::Absent), Err(Problem::Absent)) => {
            return Err(DiscoveryError { what: CORE, why: "neither /api nor /apis is there".to_owned() });
        }
        (core, groups) => {
            for (what, outcome) in [(CORE, core), (GROUPS, groups)] {
                match outcome {
                    Ok(part) => {
                        all_groups.extend(Arc::unwrap_or_clone(part.found.groups));
                        found.failures.extend(part.found.failures);
                        let tag = if what == CORE { &mut all.core } else { &mut all.groups };
                        *tag = part.tag;
                    }
                    // A server of other groups only is valid. A server that had the core group still has it: a proxy has
                    // answered.
                    Err(Problem::Absent) if what == CORE && !had_core => {}
                    Err(Problem::Absent) => found.failures.push(Failure::new(what, "404: it is not there")),
                    Err(Problem::Other(why)) => found.failures.push(Failure { what: what.to_owned(), why }),
                }
            }
        }
    }
    // Nothing is kept of an answer that is not complete: the next one is asked for as a whole.
    if !found.failures.is_empty() {
        all = Known::default();
    }
    all.found = found;
    Ok(all)
}

/// Discovers the resources of one root; none if that has not changed since it had this tag.
async fn root(client: &kube::Client, path: &'static str, tag: Option<&HeaderValue>) -> Result<Option<Part>, Problem> {
    let document = match get(client, path, AGGREGATED, tag).await? {
        Answer::Unchanged => return Ok(None),
        Answer::News(document) => document,
    };
    if document.is_aggregated {
        let found = parse::<Aggregated>(&document.body)?.read();
        return Ok(Some(Part { found, tag: document.tag }));
    }
    let groups = if path == CORE {
        vec![(String::new(), parse::<CoreVersions>(&document.body)?.versions)]
    } else {
        parse::<GroupList>(&document.body)?.read()
    };
    Ok(Some(Part { found: one_by_one(client, groups).await, tag: None }))
}

/// Discovers unaggregated: a document per group and version.
async fn one_by_one(client: &kube::Client, groups: Vec<(String, Vec<String>)>) -> Discovered {
    let wanted = groups.into_iter().flat_map(|(group, versions)| {
        let group_of = move |version| (group.clone(), version);
        versions.into_iter().map(group_of)
    });
    let fetch = |(group, version): (String, String)| async move {
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let list = get(client, &path, PLAIN, None).await.and_then(|answer| match answer {
            Answer::News(document) => parse::<ResourceList>(&document.body),
            Answer::Unchanged => Err(Problem::Other("304 without a tag".to_owned())),
        });
        (list.map(|list| list.read(&group, &version)), group, version)
    };
    let mut found = Discovered::default();
    // In order, to keep the order of groups and versions.
    let mut answers = stream::iter(wanted).map(fetch).buffered(AT_ONCE);
    while let Some((outcome, group, version)) = answers.next().await {
        match outcome {
            Ok(version) => {
                let groups = Arc::make_mut(&mut found.groups);
                match groups.iter_mut().find(|held| held.name == group) {
                    Some(held) => held.versions.push(version),
                    None => groups.push(ApiGroup { name: group, versions: vec![version] }),
                }
            }
            Err(problem) => {
                let why = match problem {
                    Problem::Absent => "it is listed, but not there".to_owned(),
                    Problem::Other(why) => why,
                };
                found.failures.push(Failure { what: group_version(&group, &version), why });
            }
        }
    }
    found
}

async fn get(client: &kube::Client, path: &str, accept: &str, tag: Option<&HeaderValue>) -> Result<Answer, Problem> {
    let other = |error: &dyn std::error::Error| Problem::Other(error.to_string());
    let mut request = Request::get(path).header(ACCEPT, accept);
    if let Some(tag) = tag {
        request = request.header(IF_NONE_MATCH, tag);
    }
    let request = request.body(Body::empty()).map_err(|error| other(&error))?;
    let exchange = async {
        let response = client.send(request).await.map_err(|error| other(&error))?;
        let (head, body) = response.into_parts();
        let body = http_body_util::Limited::new(body, DOCUMENT_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Problem::Other(error.to_string()))?.to_bytes();
        match head.status {
            StatusCode::OK => {
                let content = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
                let is_aggregated = content.contains("as=APIGroupDiscoveryList");
                Ok(Answer::News(Document { is_aggregated, body, tag: head.headers.get(ETAG).cloned() }))
            }
            StatusCode::NOT_MODIFIED if tag.is_some() => Ok(Answer::Unchanged),
            StatusCode::NOT_FOUND => Err(Problem::Absent),
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
