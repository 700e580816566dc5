//! The writes of the controllers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Watches a collection.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// The verb.
    pub verb: Verb,
    /// The resource: plural name, and the subresource behind a slash.
    pub resource: String,
    /// The path.
    pub path: String,
    /// The code of the answer; `None` if there is none (yet).
    pub code: Option<StatusCode>,
}

/// The writes of a cluster's controllers: their number, and the last ones.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    count: u64,
    last: VecDeque<Write>,
    /// The number of requests that the server has done.
    done: BTreeMap<About, u64>,
}

/// The verb and resource of a request, from its method and path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct About {
    pub(crate) verb: Verb,
    pub(crate) resource: String,
}

/// Enough to see what led to a failure.
const LAST_MAX: usize = 20;

// === impl Journal ===

impl Journal {
    /// Records a request; returns the number of the write, if it is one that is kept.
    pub(crate) fn note(&self, about: &About, uri: &Uri) -> Option<u64> {
        let is_write = !matches!(about.verb, Verb::Get | Verb::List | Verb::Watch);
        // Heartbeats never end.
        if !is_write || matches!(about.resource.as_str(), "leases" | "nodes/status") {
            return None;
        }
        let mut entries = self.0.lock();
        entries.count += 1;
        if entries.last.len() == LAST_MAX {
            entries.last.pop_front();
        }
        entries.last.push_back(Write {
            verb: about.verb,
            resource: about.resource.clone(),
            path: uri.path().to_owned(),
            code: None,
        });
        Some(entries.count)
    }

    /// Records the answer to the write with this number, unless it was dropped already.
    pub(crate) fn answered(&self, number: u64, code: StatusCode) {
        let mut entries = self.0.lock();
        let behind = usize::try_from(entries.count - number).unwrap_or(usize::MAX);
        let at = entries.last.len().checked_sub(behind + 1);
        if let Some(write) = at.and_then(|at| entries.last.get_mut(at)) {
            write.code = Some(code);
        }
    }

    /// Records that the server has done a request, whatever happened to its answer.
    pub(crate) fn done(&self, about: About) {
        *self.0.lock().done.entry(about).or_default() += 1;
    }

    pub(crate) fn done_count(&self, about: &About) -> u64 {
        self.0.lock().done.get(about).copied().unwrap_or_default()
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.lock().count
    }

    pub(crate) fn last(&self) -> Vec<Write> {
        self.0.lock().last.iter().cloned().collect()
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}: ", self.verb, self.path)?;
        match self.code {
            Some(code) => write!(f, "{}", code.as_u16()),
            None => f.write_str("no answer"),
        }
    }
}

// === impl About ===

impl About {
    /// `None` for paths without a resource, such as discovery.
    pub(crate) fn request(method: &Method, uri: &Uri) -> Option<Self> {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        match parts.next()? {
            "api" => drop(parts.next()?),
            "apis" => drop((parts.next()?, parts.next()?)),
            _ => return None,
        }
        let mut rest: Vec<&str> = parts.collect();
        // `namespaces/x/pods` is about pods; `namespaces/x` and its two subresources are about the namespace.
        if rest.len() > 2 && rest[0] == "namespaces" && !matches!(rest[2], "status" | "finalize") {
            rest.drain(..2);
        }
        let plural = rest.first()?;
        let name = rest.get(1);
        let subresource = rest.get(2);
        let watches =
            uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"));
        let verb = match (method, name) {
            (&Method::GET, None) if watches => Verb::Watch,
            (&Method::GET, None) => Verb::List,
            (&Method::GET, Some(_)) => Verb::Get,
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, None) => Verb::DeleteCollection,
            (&Method::DELETE, Some(_)) => Verb::Delete,
            _ => return None,
        };
        let resource = subresource.map_or_else(|| (*plural).to_owned(), |sub| format!("{plural}/{sub}"));
        Some(Self { verb, resource })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_shown_with_the_code_of_its_answer() {
        let journal = Journal::default();
        let about = About { verb: Verb::Patch, resource: "pods".into() };
        let note = |name: &str| journal.note(&about, &format!("/api/v1/namespaces/a/pods/{name}").parse().unwrap());
        let first = note("x").unwrap();
        let second = note("y").unwrap();
        journal.answered(first, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let shown = |journal: &Journal| journal.last().iter().map(ToString::to_string).collect::<Vec<_>>();
        let want = ["Patch /api/v1/namespaces/a/pods/x: 415", "Patch /api/v1/namespaces/a/pods/y: no answer"];
        assert_eq!(shown(&journal), want);
        for _ in 0..LAST_MAX {
            note("z");
        }
        journal.answered(second, StatusCode::OK);
        assert!(!shown(&journal).iter().any(|line| line.ends_with("200")), "it is forgotten");
        let lease = About { resource: "leases".into(), ..about };
        assert_eq!(journal.note(&lease, &"/apis/coordination.k8s.io/v1/leases".parse().unwrap()), None);
    }

    #[test]
    fn a_request_shows_its_target() {
        let check = |method: Method, uri: &str, want: Option<(Verb, &str)>| {
            let got = About::request(&method, &uri.parse().unwrap());
            assert_eq!(got, want.map(|(verb, resource)| About { verb, resource: resource.into() }), "{method} {uri}");
        };
        check(Method::GET, "/api/v1/pods?watch=true", Some((Verb::Watch, "pods")));
        check(Method::GET, "/api/v1/namespaces/a/pods?limit=5", Some((Verb::List, "pods")));
        check(Method::GET, "/api/v1/namespaces/a", Some((Verb::Get, "namespaces")));
        check(Method::PUT, "/api/v1/namespaces/a/finalize", Some((Verb::Update, "namespaces/finalize")));
        check(Method::POST, "/api/v1/namespaces/a/pods/b/binding", Some((Verb::Create, "pods/binding")));
        check(
            Method::PUT,
            "/apis/apps/v1/namespaces/a/replicasets/b/status",
            Some((Verb::Update, "replicasets/status")),
        );
        check(Method::DELETE, "/apis/apps/v1/namespaces/a/replicasets", Some((Verb::DeleteCollection, "replicasets")));
        check(Method::PATCH, "/api/v1/nodes/n", Some((Verb::Patch, "nodes")));
        check(Method::GET, "/apis", None);
        check(Method::GET, "/version", None);
    }
}
