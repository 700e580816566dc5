//! What a process has been shown: per stream of events, up to which revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Request;
use kube::client::Body;
use steersman_base::Istr;

use super::about;
use crate::faults::About;
use crate::record::Shown;

/// What fills one cache: a path with its selectors, in one form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stream {
    resource: Istr,
    /// Whether it is about a part of the resource.
    is_part: bool,
    form: String,
}

/// What a process has been shown.
#[derive(Debug, Default)]
pub(super) struct Sight {
    streams: BTreeMap<Stream, u64>,
    now: Arc<Shown>,
}

// === impl Sight ===

impl Sight {
    /// A stream has shown an event of a revision, or a bookmark, and all before it. One that comes again says nothing.
    pub(super) fn reached(&mut self, stream: &Stream, revision: u64) {
        if self.streams.get(stream).is_none_or(|reached| *reached < revision) {
            self.listed(stream, revision);
        }
    }

    /// A stream has shown the state at a revision. A list from the past goes back.
    pub(super) fn listed(&mut self, stream: &Stream, revision: u64) {
        self.streams.insert(stream.clone(), revision);
        let of_resource = |is_part| {
            let streams = self.streams.iter();
            streams.filter(move |(other, _)| other.resource == stream.resource && other.is_part == is_part)
        };
        // Those who see a part hear nothing of the rest, so they count only where nobody sees all of it.
        let reached = of_resource(false).map(|(_, revision)| *revision).min();
        let reached = reached.or_else(|| of_resource(true).map(|(_, revision)| *revision).max()).unwrap_or(revision);
        if self.now.revisions.get(&stream.resource) == Some(&reached) {
            return;
        }
        Arc::make_mut(&mut self.now).revisions.insert(stream.resource.clone(), reached);
    }

    /// What has been shown so far.
    pub(super) fn now(&self) -> Arc<Shown> {
        Arc::clone(&self.now)
    }
}

/// The stream that a watch is.
pub(super) fn stream_of(request: &Request<Body>) -> Stream {
    let (_, resource) = about(request.method(), request.uri());
    let query = request.uri().query().unwrap_or_default();
    let selects = |pair: &&str| pair.starts_with("labelSelector=") || pair.starts_with("fieldSelector=");
    let selectors: Vec<&str> = query.split('&').filter(selects).collect();
    let path = request.uri().path();
    let is_part = !selectors.is_empty() || path.contains("/namespaces/");
    let accept = request.headers().get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = if accept.contains("PartialObjectMetadata") { "metadata" } else { "whole" };
    Stream { resource: Istr::interned(&resource), is_part, form: format!("{path} {} {kind}", selectors.join("&")) }
}

/// The stream of a list, as far as can be told: lists in pages are rare, and are of whole resources.
pub(super) fn stream_of_list(about: &About) -> Stream {
    Stream { resource: Istr::interned(&about.resource), is_part: true, form: "list".to_owned() }
}
