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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    resource: Istr,
    /// Whether it is about a part of the resource.
    is_part: bool,
    form: Istr,
}

/// What a process has been shown. It changes with every event, and every write takes a copy: so the copies share what has
/// not changed, and nothing is computed from all resources.
#[derive(Debug, Default)]
pub(super) struct Sight {
    resources: BTreeMap<Istr, Reached>,
    /// Up to which revision each resource has been shown.
    revisions: Arc<BTreeMap<Istr, u64>>,
    /// The lowest of these for as long as a pass may take.
    since: Arc<BTreeMap<Istr, u64>>,
}

/// What has been shown of a resource.
#[derive(Debug, Default)]
struct Reached {
    /// Up to which revision each stream has shown it.
    streams: Vec<(Stream, u64)>,
    /// The revision of all of them, for as long as a pass may take: since when, oldest first.
    past: VecDeque<(Instant, u64)>,
}

/// Changes of what was shown that are closer to each other count as one.
const STEP: Duration = Duration::from_secs(1);

// === impl Sight ===

impl Sight {
    /// A stream has shown an event of a revision, or a bookmark, and all before it. One that comes again says nothing.
    pub(super) fn reached(&mut self, stream: &Stream, revision: u64) {
        let known = self.resources.get(&stream.resource).and_then(|reached| reached.of(stream));
        if known.is_none_or(|known| known < revision) {
            self.listed(stream, revision);
        }
    }

    /// A stream has shown the state at a revision. A list from the past goes back.
    pub(super) fn listed(&mut self, stream: &Stream, revision: u64) {
        let resource = &stream.resource;
        if !self.resources.contains_key(resource) {
            self.resources.insert(resource.clone(), Reached::default());
        }
        let Some(of_resource) = self.resources.get_mut(resource) else { return };
        let reached = of_resource.reach(stream, revision);
        if self.revisions.get(resource) == Some(&reached) {
            return;
        }
        set(&mut self.revisions, resource, reached);
        let past = &mut of_resource.past;
        let now = Instant::now();
        match past.back_mut() {
            // The lowest one counts.
            Some((at, lowest)) if now < *at + STEP => *lowest = (*lowest).min(reached),
            _ => past.push_back((now, reached)),
        }
        forget(past, now);
        lowest(&mut self.since, resource, past);
    }

    /// What has been shown so far, to whoever sends a request at this time.
    pub(super) fn now(&mut self, sent: Time) -> Arc<Shown> {
        let now = Instant::now();
        for (resource, Reached { past, .. }) in &mut self.resources {
            if forget(past, now) {
                lowest(&mut self.since, resource, past);
            }
        }
        let revisions = Arc::clone(&self.revisions);
        let since = Arc::clone(&self.since);
        Arc::new(Shown { revisions, since, hidden: BTreeMap::new(), sent: Some(sent) })
    }
}

// === impl Reached ===

impl Reached {
    fn of(&self, stream: &Stream) -> Option<u64> {
        self.streams.iter().find(|(known, _)| known == stream).map(|(_, revision)| *revision)
    }

    /// A stream has reached a revision. Returns that of all of them.
    fn reach(&mut self, stream: &Stream, revision: u64) -> u64 {
        match self.streams.iter_mut().find(|(known, _)| known == stream) {
            Some((_, reached)) => *reached = revision,
            None => self.streams.push((stream.clone(), revision)),
        }
        let those = |is_part| {
            let streams = self.streams.iter().filter(move |(other, _)| other.is_part == is_part);
            streams.map(|(_, revision)| *revision)
        };
        // Those who see a part hear nothing of the rest, so they count only where nobody sees all of it.
        those(false).min().or_else(|| those(true).max()).unwrap_or(revision)
    }
}

/// Keeps the lowest revision of the past of a resource.
fn lowest(since: &mut Arc<BTreeMap<Istr, u64>>, resource: &Istr, past: &VecDeque<(Instant, u64)>) {
    let Some(lowest) = past.iter().map(|(_, revision)| *revision).min() else { return };
    if since.get(resource) != Some(&lowest) {
        set(since, resource, lowest);
    }
}

fn set(revisions: &mut Arc<BTreeMap<Istr, u64>>, resource: &Istr, revision: u64) {
    let revisions = Arc::make_mut(revisions);
    match revisions.get_mut(resource) {
        Some(held) => *held = revision,
        None => drop(revisions.insert(resource.clone(), revision)),
    }
}

/// Forgets what was no longer the newest when a pass that ends now can have begun. Returns whether there was any.
fn forget(past: &mut VecDeque<(Instant, u64)>, now: Instant) -> bool {
    let pass = Duration::from_secs(PASS_SECONDS.unsigned_abs()) + STEP;
    let before = past.len();
    while past.get(1).is_some_and(|(at, _)| *at + pass < now) {
        past.pop_front();
    }
    past.len() < before
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
    Stream {
        resource: Istr::interned(&resource),
        is_part,
        form: Istr::from(format!("{path} {} {kind}", selectors.join("&"))),
    }
}

/// The stream of a list, as far as can be told: lists in pages are rare, and are of whole resources.
pub(super) fn stream_of_list(about: &About) -> Stream {
    Stream { resource: Istr::interned(&about.resource), is_part: true, form: "list".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(is_part: bool, form: &str) -> Stream {
        Stream { resource: "pods".into(), is_part, form: form.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_is_shown_up_to_its_slowest_whole_stream_and_remembered_for_a_pass() {
        let mut sight = Sight::default();
        let sent = Time::from_unix(0);
        let pods = Istr::from("pods");
        sight.reached(&stream(true, "part"), 9);
        assert_eq!(sight.now(sent).revisions.get(&pods), Some(&9), "nobody sees all");
        sight.listed(&stream(false, "whole"), 3);
        sight.listed(&stream(false, "metadata"), 5);
        let before = sight.now(sent);
        assert_eq!((before.revisions.get(&pods), before.since.get(&pods)), (Some(&3), Some(&3)));
        sight.reached(&stream(false, "whole"), 2);
        assert_eq!(sight.now(sent), before, "an event that comes again shows nothing");

        tokio::time::sleep(Duration::from_secs(10)).await;
        sight.reached(&stream(false, "whole"), 7);
        let after = sight.now(sent);
        assert_eq!((after.revisions.get(&pods), after.since.get(&pods)), (Some(&5), Some(&3)));
        assert_eq!(before.revisions.get(&pods), Some(&3), "what was shown before stays as it was");
        tokio::time::sleep(Duration::from_secs(PASS_SECONDS.unsigned_abs() + 2)).await;
        assert_eq!(sight.now(sent).since.get(&pods), Some(&5), "no pass that began before can still write");
    }
}
