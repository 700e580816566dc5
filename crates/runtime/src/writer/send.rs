//! One request, sent once, and the meaning of its response.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use steersman_base::{ObjectKey, Resource};
use steersman_informer::__internal::consistency::Shown;

use super::error::{Failure, WriteError};
use super::{Writer, answer};
use crate::connection::exchange::{ANSWER_WITHIN, never_sent, retry_after};
use crate::lease::NotLeader;

/// One write, before it is sent.
pub(super) struct Call<'a> {
    pub(super) verb: Verb,
    pub(super) resource: &'a Resource,
    /// The key; the name may be unknown for a create, and is empty for a collection.
    pub(super) key: ObjectKey,
    /// The subresource; empty for the object itself.
    pub(super) subresource: &'a str,
    /// The query, with a question mark, or empty.
    pub(super) query: String,
    pub(super) content_type: &'static str,
    pub(super) accept: &'static str,
    pub(super) body: Bytes,
}

/// The verb of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Update,
    Patch,
    /// Of this object, in the version that the caller has seen.
    Delete(Shown),
    DeleteCollection,
}

/// A response has only the object's metadata; upstream bounds it well below this.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// A server that could not be reached may be back a moment later: it restarts, or another one responds.
const UNSENT_AGAIN_AFTER: Duration = Duration::from_millis(100);

// === impl Writer ===

impl Writer {
    /// Sends a write, and again only if it certainly did nothing.
    pub(super) async fn exchange(&self, call: &Call<'_>) -> Result<Bytes, Failure> {
        let mut sent = 0;
        loop {
            sent += 1;
            let failure = match self.attempt(call).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(wait) = failure.retriable.and_then(|asked| self.shared.retries.wait(sent, asked)) else {
                return Err(failure);
            };
            tracing::debug!(sent, ?wait, said = failure.said, "a write that did nothing is sent again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, call: &Call<'_>) -> Result<Bytes, Failure> {
        let request = self.request(call)?;
        let exchange = async {
            let sent = self.shared.leadership.send(&self.shared.client, request).await;
            let response = sent.map_err(|error| not_answered(&error))?;
            let (head, body) = response.into_parts();
            if head.status.is_success() && call.verb == Verb::DeleteCollection {
                read_past(body).await;
                return Ok(Bytes::new());
            }
            let body = http_body_util::Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| WriteError::unknown(error.to_string()))?.to_bytes();
            if head.status.is_success() {
                return Ok(body);
            }
            let wait = retry_after(&head.headers).map(|seconds| Duration::from_secs(seconds.into()));
            Err(answer::failure(head.status, wait, &body))
        };
        match tokio::time::timeout(ANSWER_WITHIN, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(WriteError::unknown(format!("no answer within {ANSWER_WITHIN:?}")).into()),
        }
    }

    /// Returns the request, if this process may send one. Leadership is checked once more when its bytes are sent.
    fn request(&self, call: &Call<'_>) -> Result<Request<Bytes>, Failure> {
        self.shared.leadership.check().map_err(|_| WriteError::NotLeader)?;
        let request = Request::builder()
            .method(call.method())
            .uri(call.path())
            .header(header::ACCEPT, call.accept)
            .header(header::CONTENT_TYPE, call.content_type)
            .body(call.body.clone())
            .map_err(|error| WriteError::Invalid(format!("{} cannot be asked for: {error}", call.path())))?;
        Ok(request)
    }
}

/// Reads an unneeded response, so that its connection can be reused. A collection's response lists all that was
/// deleted, and has no bound; its status is known already.
async fn read_past(mut body: kube::client::Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// A request whose body was held back, or that found no connection, was never sent; after any other failure the outcome
/// is unknown.
fn not_answered(error: &kube::Error) -> Failure {
    let mut said = error.to_string();
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        said = error.to_string();
        cause = error.source();
    }
    if NotLeader::cause_of(error).is_some() {
        return WriteError::NotLeader.into();
    }
    if never_sent(error) {
        let error = WriteError::Unreachable(said.clone());
        return Failure { error, said, retriable: Some(UNSENT_AGAIN_AFTER) };
    }
    Failure { error: WriteError::unknown(said.clone()), said, retriable: None }
}

// === impl Call ===

impl Call<'_> {
    fn method(&self) -> Method {
        match self.verb {
            Verb::Create => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete(_) | Verb::DeleteCollection => Method::DELETE,
        }
    }

    /// Whether a new object is created, not a subresource of an existing one.
    pub(super) fn is_create(&self) -> bool {
        self.verb == Verb::Create && self.subresource.is_empty()
    }

    fn path(&self) -> String {
        let is_of_collection =
            self.subresource.is_empty() && matches!(self.verb, Verb::Create | Verb::DeleteCollection);
        let mut path = if is_of_collection {
            self.resource.collection_path(Some(&self.key.namespace))
        } else {
            self.resource.object_path(&self.key)
        };
        if !self.subresource.is_empty() {
            path = format!("{path}/{}", self.subresource);
        }
        path + &self.query
    }

    /// `default/web`; for a create the name in the body, or `default/web-?????` for one that the server generates; for
    /// a collection `default/*`.
    pub(super) fn object_text(&self) -> String {
        match (&self.verb, &*self.key.name) {
            (Verb::Create, "") => answer::as_if_written(&self.key, &self.body).key().to_string(),
            (Verb::DeleteCollection, _) => format!("{}/*", self.key.namespace),
            _ => self.key.to_string(),
        }
    }

    /// `pods`, `replicasets.apps/status`.
    pub(super) fn resource_text(&self) -> String {
        let resource = self.resource.group_resource();
        if self.subresource.is_empty() { resource.into_owned() } else { format!("{resource}/{}", self.subresource) }
    }
}

// === impl Verb ===

impl Verb {
    /// The verb, as in RBAC.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete(_) => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

#[cfg(test)]
mod tests {
    use steersman_base::Meta;
    use steersman_informer::__internal::consistency::Book;
    use steersman_informer::InformerFactory;

    use super::*;
    use crate::connection::exchange::JSON;
    use crate::connection::{self, Options};
    use crate::writer::Retries;

    crate::reasons! {
        enum Why {
            Test => "it is a test",
        }
    }

    /// On a real socket, and so on the real clock.
    #[tokio::test]
    async fn a_server_that_is_not_there_is_unreachable_and_nothing_was_sent() {
        // Bound and dropped: nothing listens there now.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Some(format!("http://127.0.0.1:{port}"));
        let client = connection::connect(Options { server, ..Options::default() }).await.unwrap();
        let book = Book::new(&InformerFactory::new(client.clone()));
        let retries = Retries { max: 1, ..Retries::default() };
        let writer = Writer::new(client, book.clone()).retrying(retries);
        let owner = Meta { namespace: "ns".into(), name: "a".into(), uid: "u".into(), ..Meta::default() };
        let pods = Resource::namespaced("", "v1", "pods", "Pod");
        let made = writer.on_behalf_of(&owner).create(&pods, b"{}".to_vec(), &Why::Test).await;
        assert!(matches!(made, Err(WriteError::Unreachable(_))), "{made:?}");
        assert!(book.is_empty(), "nobody waits for what was never sent");
    }

    #[test]
    fn each_write_has_its_method_and_path() {
        let pods = Resource::namespaced("", "v1", "pods", "Pod");
        let nodes = Resource::cluster("", "v1", "nodes", "Node");
        let check = |verb: Verb, resource: &Resource, namespace: &str, name: &str, subresource: &str, want: &str| {
            let call = Call {
                verb,
                resource,
                key: ObjectKey::new(namespace, name),
                subresource,
                query: String::new(),
                content_type: JSON,
                accept: JSON,
                body: Bytes::new(),
            };
            assert_eq!(format!("{} {}", call.method(), call.path()), want);
        };
        check(Verb::Create, &pods, "ns", "", "", "POST /api/v1/namespaces/ns/pods");
        check(Verb::Create, &pods, "ns", "a", "", "POST /api/v1/namespaces/ns/pods");
        check(Verb::Create, &nodes, "", "n", "", "POST /api/v1/nodes");
        check(Verb::Create, &pods, "ns", "a", "binding", "POST /api/v1/namespaces/ns/pods/a/binding");
        check(Verb::Update, &nodes, "", "n", "status", "PUT /api/v1/nodes/n/status");
        check(Verb::Patch, &pods, "ns", "a", "", "PATCH /api/v1/namespaces/ns/pods/a");
        check(Verb::Delete((&Meta::default()).into()), &pods, "ns", "a", "", "DELETE /api/v1/namespaces/ns/pods/a");
        check(Verb::DeleteCollection, &pods, "ns", "", "", "DELETE /api/v1/namespaces/ns/pods");
    }

    #[test]
    fn the_log_names_what_is_written() {
        let pods = Resource::namespaced("", "v1", "pods", "Pod");
        let check = |verb: Verb, name: &str, body: &'static str, want: &str| {
            let key = ObjectKey::new("ns", name);
            let query = String::new();
            let body = Bytes::from_static(body.as_bytes());
            let resource = &pods;
            let subresource = "";
            let call = Call { verb, resource, key, subresource, query, content_type: JSON, accept: JSON, body };
            assert_eq!(call.object_text(), want);
        };
        check(Verb::Create, "", r#"{"metadata":{"name":"a"}}"#, "ns/a");
        check(Verb::Create, "", r#"{"metadata":{"generateName":"web-"}}"#, "ns/web-?????");
        check(Verb::Patch, "b", r#"{"metadata":{"name":"a"}}"#, "ns/b");
        check(Verb::DeleteCollection, "", "{}", "ns/*");
    }
}
