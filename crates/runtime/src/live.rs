//! Reads that bypass the caches, for decisions that must not be based on stale state.
//!
//! An object is absent if the API says so. A 404 that is no `Status` is an error: a proxy without a server behind it
//! knows no path, and a version that is no longer served has none; neither says anything about objects. (Upstream takes
//! it for absence, and deletes what depends on the object.)
//!
//! A reconcile has them as [`Context::live`](crate::Context), with its controller's account.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use steersman_base::{Meta, ObjectKey, Resource, ResourceVersion};
use steersman_informer::__internal::consistency::{LiveReads, Turn};
use steersman_informer::__internal::wire;
use steersman_informer::WireError;
use steersman_informer::{HasResource, Selection, Target};
use steersman_model::{DecodeError, Encoded, View};

use crate::connection::exchange::{ANSWER_WITHIN, JSON, JSON_METADATA, THROTTLED_MIN, retry_after};
use crate::reconcile::Freshness;

/// Reads from the server, with one account. Cheap to clone.
///
/// In passes whose caches lag behind the controller's writes, all reads of a manager are rate-limited together, so that
/// a stalled watch does not cause a flood of lists.
#[derive(Clone)]
pub struct Live {
    client: kube::Client,
    turns: Option<LiveReads>,
    is_in_turn: bool,
}

/// An error of a live read. The caller retries by its own policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveReadError {
    /// The server did not answer.
    #[error("cannot read {what}: {source}")]
    NoAnswer {
        /// The object.
        what: String,
        /// The cause.
        source: kube::Error,
    },
    /// The server refused.
    #[error("cannot read {what}: the server answered {code}: {message}")]
    Refused {
        /// The object.
        what: String,
        /// The status code.
        code: StatusCode,
        /// The beginning of the response.
        message: String,
    },
    /// The server is overloaded.
    #[error("cannot read {what}: the server asks to retry after {} s", wait.as_secs())]
    Throttled {
        /// The object.
        what: String,
        /// The time to wait.
        wait: Duration,
    },
    /// The server took the request, and has not answered it for longer than servers take.
    #[error("cannot read {what}: no answer within {} s", within.as_secs())]
    TooSlow {
        /// The object.
        what: String,
        /// The time that was waited.
        within: Duration,
    },
    /// The response cannot be decoded.
    #[error("cannot read {what}: {source}")]
    Decode {
        /// The object.
        what: String,
        /// The problem.
        source: DecodeError,
    },
}

/// A witness of absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Witness {
    /// The API, by a status: for objects.
    Api,
    /// Anybody: for paths that need not be served.
    Anybody,
}

/// A read of a path, with the limits of its answer.
#[derive(Clone, Copy)]
struct Read<'a> {
    path: &'a str,
    /// The accepted media type.
    accept: &'a str,
    /// The maximum size of the answer.
    bytes_max: usize,
    witness: Witness,
    /// The object, for errors.
    what: &'a (dyn Fn() -> String + Sync),
}

/// Upstream bounds objects at 1.5 MB by default.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The largest OpenAPI document of Kubernetes has 2 MB; custom resources of a group can make one larger.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// The bytes of a refusal that are shown.
const REFUSAL_SHOWN_MAX: usize = 200;
/// The maximum time a list may stall; the caller retries.
const PATIENCE: Duration = Duration::from_secs(30);

// === impl Live ===

impl Live {
    /// Creates reads with this client.
    #[doc(hidden)]
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self { client, turns: None, is_in_turn: false }
    }

    /// Creates reads of a manager, whose live passes are rate-limited together.
    pub(crate) fn in_turn(client: kube::Client, turns: LiveReads) -> Self {
        Self { client, turns: Some(turns), is_in_turn: false }
    }

    pub(crate) fn of_pass(&self, freshness: Freshness) -> Self {
        Self { is_in_turn: freshness == Freshness::ReadLive, ..self.clone() }
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn get<V: HasResource>(&self, key: &ObjectKey) -> Result<Option<V>, LiveReadError> {
        let _turn = self.turn().await;
        get(&self.client, key).await
    }

    /// Reads the metadata of an object; `None` if it does not exist.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn get_meta(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Meta>, LiveReadError> {
        let _turn = self.turn().await;
        get_meta(&self.client, resource, key).await
    }

    /// Reads an object with every field, known or not; `None` if it does not exist.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn get_json(
        &self,
        resource: &Resource,
        key: &ObjectKey,
    ) -> Result<Option<serde_json::Value>, LiveReadError> {
        let _turn = self.turn().await;
        get_json(&self.client, resource, key).await
    }

    /// Reads a subresource of an object, such as `scale`; `None` if the object or the subresource does not exist.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn get_subresource_json(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<Option<serde_json::Value>, LiveReadError> {
        let _turn = self.turn().await;
        let path = resource.subresource_path(key, subresource);
        let what = || format!("{resource} {key}");
        let witness = Witness::Anybody;
        let read = Read { path: &path, accept: JSON, bytes_max: ANSWER_BYTES_MAX, witness, what: &what };
        decoded(read.send(&self.client).await?, resource, key, |body| Ok(serde_json::from_slice(body)?))
    }

    /// Lists the objects of a kind, consistently. As in a cache, an object that cannot be decoded is left out, with a
    /// warning.
    ///
    /// # Errors
    /// See [`WireError`].
    pub async fn list<V: HasResource>(&self, selection: Selection) -> Result<Vec<Arc<V>>, WireError> {
        let _turn = self.turn().await;
        list(&self.client, selection).await
    }

    /// As [`list`](Self::list), for a resource chosen at run time.
    ///
    /// # Errors
    /// See [`WireError`].
    pub async fn list_of<V: View>(&self, target: &Target) -> Result<Vec<Arc<V>>, WireError> {
        let _turn = self.turn().await;
        list_of(&self.client, target).await
    }

    /// Reads a document that is no object, such as one of `/openapi/v3`; `None` if it does not exist.
    ///
    /// # Errors
    /// See [`LiveReadError`].
    pub async fn get_document(&self, path: &str) -> Result<Option<serde_json::Value>, LiveReadError> {
        let _turn = self.turn().await;
        let what = || path.to_owned();
        let witness = Witness::Anybody;
        let read = Read { path, accept: JSON, bytes_max: DOCUMENT_BYTES_MAX, witness, what: &what };
        let refused = |source| LiveReadError::Decode { what: path.to_owned(), source };
        read.send(&self.client).await?.map(|body| Ok(serde_json::from_slice(&body)?)).transpose().map_err(refused)
    }

    /// Returns the current version of a resource, by a consistent list of one item.
    ///
    /// # Errors
    /// See [`WireError`].
    pub async fn latest_version(&self, target: &Target) -> Result<ResourceVersion, WireError> {
        let _turn = self.turn().await;
        wire::latest_version(&self.client, target, PATIENCE).await
    }

    async fn turn(&self) -> Option<Turn> {
        match self.turns.as_ref().filter(|_| self.is_in_turn) {
            Some(turns) => Some(turns.turn().await),
            None => None,
        }
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

/// Reads the metadata of an object; `None` if it does not exist.
///
/// # Errors
/// See [`LiveReadError`].
async fn get_meta(client: &kube::Client, resource: &Resource, key: &ObjectKey) -> Result<Option<Meta>, LiveReadError> {
    decoded(fetch(client, resource, key, JSON_METADATA).await?, resource, key, |body| Meta::decode(Encoded::Json(body)))
}

/// Reads an object; `None` if it does not exist.
///
/// # Errors
/// See [`LiveReadError`].
async fn get<V: HasResource>(client: &kube::Client, key: &ObjectKey) -> Result<Option<V>, LiveReadError> {
    let resource = V::resource();
    decoded(fetch(client, &resource, key, JSON).await?, &resource, key, |body| V::decode(Encoded::Json(body)))
}

/// Reads an object with every field, known or not: to change a part of it and PUT it back. `None` if it does not exist.
///
/// # Errors
/// See [`LiveReadError`].
pub(crate) async fn get_json(
    client: &kube::Client,
    resource: &Resource,
    key: &ObjectKey,
) -> Result<Option<serde_json::Value>, LiveReadError> {
    decoded(fetch(client, resource, key, JSON).await?, resource, key, |body| Ok(serde_json::from_slice(body)?))
}

fn decoded<T>(
    body: Option<Bytes>,
    resource: &Resource,
    key: &ObjectKey,
    decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
) -> Result<Option<T>, LiveReadError> {
    let refused = |source| LiveReadError::Decode { what: format!("{resource} {key}"), source };
    body.map(|body| decode(&body)).transpose().map_err(refused)
}

async fn fetch(
    client: &kube::Client,
    resource: &Resource,
    key: &ObjectKey,
    accept: &str,
) -> Result<Option<Bytes>, LiveReadError> {
    let what = || format!("{resource} {key}");
    let path = resource.object_path(key);
    let read = Read { path: &path, accept, bytes_max: ANSWER_BYTES_MAX, witness: Witness::Api, what: &what };
    read.send(client).await
}

// === impl Read ===

impl Read<'_> {
    /// Returns the answer; `None` for a 404 of a witness. A proxy may answer the pings of a connection and never a request, so the
    /// time is limited.
    async fn send(self, client: &kube::Client) -> Result<Option<Bytes>, LiveReadError> {
        let too_slow = |_| LiveReadError::TooSlow { what: (self.what)(), within: ANSWER_WITHIN };
        tokio::time::timeout(ANSWER_WITHIN, self.exchange(client)).await.map_err(too_slow)?
    }

    async fn exchange(self, client: &kube::Client) -> Result<Option<Bytes>, LiveReadError> {
        let Self { path, accept, bytes_max, witness, what } = self;
        let request = Request::get(path)
            .header(header::ACCEPT, accept)
            .body(Body::empty())
            .map_err(|error| LiveReadError::NoAnswer { what: what(), source: kube::Error::HttpError(error) })?;
        let no_answer = |source| LiveReadError::NoAnswer { what: what(), source };
        let response = client.send(request).await.map_err(no_answer)?;
        let code = response.status();
        if code == StatusCode::NOT_FOUND && witness == Witness::Anybody {
            return Ok(None);
        }
        if code == StatusCode::TOO_MANY_REQUESTS {
            let asked = retry_after(response.headers()).map(|seconds| Duration::from_secs(seconds.into()));
            let wait = asked.unwrap_or(THROTTLED_MIN);
            return Err(LiveReadError::Throttled { what: what(), wait });
        }
        let body = http_body_util::Limited::new(response.into_body(), bytes_max).collect().await;
        let body = body.map_err(|error| no_answer(kube::Error::Service(error)))?.to_bytes();
        if code == StatusCode::NOT_FOUND && is_status(&body) {
            return Ok(None);
        }
        if !code.is_success() {
            let message = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_SHOWN_MAX)]).into_owned();
            return Err(LiveReadError::Refused { what: what(), code, message });
        }
        Ok(Some(body))
    }
}

/// Whether this is an answer of the API to a request that failed.
fn is_status(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Answer {
        kind: String,
    }
    serde_json::from_slice::<Answer>(body).is_ok_and(|answer| answer.kind == "Status")
}

/// Lists the objects of a kind, consistently. As in a cache, an object that cannot be decoded is left out, with a
/// warning; a protobuf object is first tried as JSON.
///
/// # Errors
/// See [`WireError`]; also if objects change so fast that the list expires between two pages.
async fn list<V: HasResource>(client: &kube::Client, selection: Selection) -> Result<Vec<Arc<V>>, WireError> {
    list_of::<V>(client, &Target { resource: V::resource(), selection }).await
}

/// As [`list`], for a resource chosen at run time.
///
/// # Errors
/// See [`list`].
pub(crate) async fn list_of<V: View>(client: &kube::Client, target: &Target) -> Result<Vec<Arc<V>>, WireError> {
    Ok(wire::read_list(client, target, PATIENCE).await?.0)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::json;
    use steersman_model::Kind;
    use steersman_model::core::PodView;

    use super::*;
    use crate::test_server::TestServer;

    /// A client whose requests are taken and never answered, as by a proxy whose server hangs.
    fn unanswered() -> kube::Client {
        let silence = |_: Request<Body>| std::future::pending::<Result<http::Response<Body>, std::io::Error>>();
        kube::Client::new(tower::service_fn(silence), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_never_answered_ends_and_gives_back_its_turn() {
        let turns = LiveReads::default();
        let live = Live::in_turn(unanswered(), turns.clone()).of_pass(Freshness::ReadLive);
        let key = ObjectKey::new("ns", "a");
        // More than may read at once.
        let reads = (0..20).map(|_| live.get::<PodView>(&key));
        let reads = tokio::time::timeout(Duration::from_secs(600), futures::future::join_all(reads)).await;
        let reads = reads.expect("every read ends");
        let is_slow = |read: &Result<_, _>| matches!(read, Err(LiveReadError::TooSlow { .. }));
        assert!(reads.iter().all(is_slow), "{reads:?}");
        assert!(turns.turn().now_or_never().is_some(), "all turns are back");
        let document = tokio::time::timeout(Duration::from_secs(600), live.get_document("/openapi/v3")).await;
        assert!(matches!(document, Ok(Err(LiveReadError::TooSlow { .. }))), "{document:?}");
    }

    /// A proxy without a server behind it would make every owner absent.
    #[tokio::test]
    async fn only_the_api_says_that_an_object_does_not_exist() {
        let server = TestServer::default();
        let live = Live::new(server.client());
        let key = ObjectKey::new("ns", "a");
        let not_found = json!({ "kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404 });
        for (name, body, is_absent) in [
            ("the API", not_found, true),
            ("a server that does not serve the path", json!("404 page not found"), false),
            ("a proxy", json!({ "error": "no backend" }), false),
            ("something else", json!({ "kind": "Pod" }), false),
        ] {
            server.answer(404, &body);
            let pod = live.get::<PodView>(&key).await;
            let meta = live.get_meta(&PodView::RESOURCE, &key).await;
            let json = live.get_json(&PodView::RESOURCE, &key).await;
            let says_absent = [matches!(pod, Ok(None)), matches!(meta, Ok(None)), matches!(json, Ok(None))];
            assert_eq!(says_absent, [is_absent; 3], "{name}");
            assert_eq!((pod.is_err(), meta.is_err(), json.is_err()), (!is_absent, !is_absent, !is_absent), "{name}");
            let scale = live.get_subresource_json(&PodView::RESOURCE, &key, "scale").await;
            assert!(matches!(scale, Ok(None)), "{name}: a subresource need not be served");
            assert!(matches!(live.get_document("/openapi/v3").await, Ok(None)), "{name}");
        }
    }
}
