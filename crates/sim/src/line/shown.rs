//! What a process has been shown: per stream of events, up to which revision.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use steersman_base::{Istr, Time};
use tokio::time::Instant;

use super::about;
use crate::faults::About;
use crate::record::Shown;
use crate::world::PASS_SECONDS;

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
    /// Up to which revision each resource has been shown.
    revisions: BTreeMap<Istr, u64>,
    /// The same, for as long as a pass may take: since when, oldest first.
    past: BTreeMap<Istr, VecDeque<(Instant, u64)>>,
}

/// Changes of what was shown that are closer to each other count as one.
const STEP: Duration = Duration::from_secs(1);

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
        let before = self.revisions.insert(stream.resource.clone(), reached);
        if before == Some(reached) {
            return;
        }
        let past = self.past.entry(stream.resource.clone()).or_default();
        let now = Instant::now();
        match past.back_mut() {
            // The lowest one counts.
            Some((at, lowest)) if now < *at + STEP => *lowest = (*lowest).min(reached),
            _ => past.push_back((now, reached)),
        }
        forget(past, now);
    }

    /// What has been shown so far, to whoever sends a request at this time.
    pub(super) fn now(&mut self, sent: Time) -> Arc<Shown> {
        let now = Instant::now();
        let since = self.past.iter_mut().filter_map(|(resource, past)| {
            forget(past, now);
            Some((resource.clone(), past.iter().map(|(_, revision)| *revision).min()?))
        });
        let since = since.collect();
        Arc::new(Shown { revisions: self.revisions.clone(), since, hidden: BTreeMap::new(), sent: Some(sent) })
    }
}

/// Forgets what was no longer the newest when a pass that ends now can have begun.
fn forget(past: &mut VecDeque<(Instant, u64)>, now: Instant) {
    let pass = Duration::from_secs(PASS_SECONDS.unsigned_abs()) + STEP;
    while past.get(1).is_some_and(|(at, _)| *at + pass < now) {
        past.pop_front();
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
