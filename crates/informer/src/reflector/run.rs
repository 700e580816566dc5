//! The shell: does what the state says, and reports the outcome.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use kube::Client;
use steersman_base::{ResourceVersion, watch};
use steersman_model::Encoded;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep};
use tracing::{debug, error, info, warn};

use super::backoff::Backoff;
use super::failure::{asks_for_json, classify, is_to_be_skipped, problem_kind};
use super::feed::{EventKind, Feed};
use super::state::{Failure, Outcome, PAGE_ITEMS, Pages, SHORT_WATCH, State, Wait};
use super::unreadable::Unreadable;
use super::{Core, ListKind, Phase, Problem, ProblemKind, ReflectorOptions, ReflectorState, Restart, WatchEnd};
use crate::PAST_FOR;
use crate::sink::Verdict;
use crate::target::Target;
use crate::wire::{
    Accept, Answer, BATCH_BYTES, Expected, ListDecoder, ListQuery, Peeked, RawEvent, WatchDecoder, WatchQuery,
    WireError, list_request, send, watch_request,
};

/// A running reflector.
pub(super) struct Run<'a> {
    client: &'a Client,
    target: &'a Target,
    options: &'a ReflectorOptions,
    state: &'a watch::Sender<ReflectorState>,
    restarts: watch::Receiver<Restart>,
    feed: Box<dyn Feed>,
    expected: Expected,
    accept: Accept,
    random: fastrand::Rng,
    started: Instant,
    backoff: Backoff,
    failures: u32,
    /// Whether the last failure was that of the connection, not of a server that responds.
    unreached: bool,
    /// The version that the sink has reached, from which a watch continues.
    version: ResourceVersion,
    /// Whether a list was completed before, so that the sink knows objects.
    listed: bool,
    /// The time since which lists are older than what was shown.
    past_since: Option<Instant>,
    /// The skipped objects, which cannot be decoded.
    unreadable: Unreadable,
    /// The watch that a streaming list has become.
    open: Option<OpenWatch>,
}

/// A watch with a response.
struct OpenWatch {
    answer: Answer,
    decoder: WatchDecoder,
    opened: Instant,
    timeout: Duration,
    events: u64,
}

/// The maximum time a streaming list may be without a byte, or continue after the first change that is not part of it:
/// its server may not support such lists, and pages are as good. client-go warns after the same time.
const STREAM_PATIENCE: Duration = Duration::from_secs(10);
/// The time after its timeout for which a watch may still be open: for the server's clock and for the last bytes.
const TIMEOUT_SLACK: Duration = Duration::from_secs(30);
/// The time within which a connection hands over what it has received: in HTTP/1.1 chunk by chunk, with the help of a task of its own.
const RECEIVED_WITHIN: Duration = Duration::from_millis(1);

// === impl Run ===

impl<'a> Run<'a> {
    pub(super) fn new(reflector: &'a Core, feed: Box<dyn Feed>, expected: Expected, accept: Accept) -> Self {
        Self {
            client: &reflector.client,
            target: &reflector.target,
            options: &reflector.options,
            state: &reflector.state,
            restarts: reflector.restarts.0.subscribe(),
            feed,
            expected,
            accept,
            random: reflector.options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            started: Instant::now(),
            backoff: Backoff::default(),
            failures: 0,
            unreached: false,
            version: ResourceVersion::default(),
            listed: false,
            past_since: None,
            unreadable: Unreadable::default(),
            open: None,
        }
    }

    /// Goes from state to state, for ever.
    pub(super) async fn drive(&mut self) -> Infallible {
        let mut state = State::start(self.options.lists);
        loop {
            let outcome = match state {
                State::Streaming => self.stream_list().await,
                State::Paging { pages, .. } => self.page_list(pages).await,
                State::Watching { .. } => self.watch().await,
            };
            let step = state.next(outcome);
            debug!(resource = %self.target, ?state, ?outcome, next = ?step.next, "reflector step");
            state = step.next;
            if let Wait::BackOff { at_least } = step.wait {
                let wait = self.backoff.next(self.started.elapsed(), self.random.f64(), at_least);
                self.enter(Phase::Waiting);
                self.wait_or_return(wait, outcome).await;
            }
        }
    }

    /// Waits; shorter, if it was for a server that is back.
    async fn wait_or_return(&mut self, wait: Duration, outcome: Outcome) {
        let unreached = self.unreached && matches!(outcome, Outcome::Failed { .. });
        let Some(reachability) = self.options.reachability.as_ref().filter(|_| unreached) else {
            return sleep(wait).await;
        };
        reachability.lost();
        let chance = self.random.f64();
        tokio::select! {
            biased;
            () = sleep(wait) => {}
            () = reachability.back(chance) => {}
        }
    }

    async fn stream_list(&mut self) -> Outcome {
        self.enter(Phase::Listing);
        let begun = Instant::now();
        match self.try_stream_list(begun).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.options.metrics.list_failed(ListKind::Streamed);
                self.failed(&error, 0)
            }
        }
    }

    async fn try_stream_list(&mut self, begun: Instant) -> Result<Outcome, WireError> {
        self.feed.list_begins();
        self.unreadable.list_begins();
        let mut open = self.open_watch(None).await?;
        // Set when a change has come before the end of the list, so that this may be an ordinary watch: the deadline of
        // the end.
        let mut until: Option<Instant> = None;
        loop {
            while let Some(event) = open.decoder.next_event()? {
                match event {
                    RawEvent::Added(object) => self.list_item(object)?,
                    RawEvent::Modified(object) => {
                        until.get_or_insert_with(|| Instant::now() + STREAM_PATIENCE);
                        self.list_item(object)?;
                    }
                    RawEvent::Deleted(object) => {
                        until.get_or_insert_with(|| Instant::now() + STREAM_PATIENCE);
                        if let Err(error) = self.feed.deleted_item(object) {
                            let object = self.skipped(error)?;
                            self.feed.skipped_deleted_item(&object);
                        }
                    }
                    RawEvent::Bookmark(bookmark) if bookmark.initial_events_end => {
                        self.complete(ListKind::Streamed, bookmark.version, begun)?;
                        self.open = Some(open);
                        return Ok(Outcome::Listed);
                    }
                    RawEvent::Bookmark(_) => {
                        until.get_or_insert_with(|| Instant::now() + STREAM_PATIENCE);
                    }
                    RawEvent::Error(status) => return Err(WireError::Status(Box::new(status))),
                }
                open.events += 1;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Outcome::NoList);
            }
            let left = until.map_or(STREAM_PATIENCE, |until| until - Instant::now());
            match open.answer.chunk(left.min(self.options.list_patience)).await {
                Ok(Some(chunk)) => open.decoder.feed(&chunk),
                Err(WireError::Silent(_)) if until.is_some() => return Ok(Outcome::NoList),
                Err(WireError::Silent(_)) => {
                    return Ok(Outcome::Ended { lived: open.opened.elapsed(), events: open.events });
                }
                Err(error) => return Err(error),
                Ok(None) => {
                    open.decoder.finish()?;
                    return Ok(Outcome::Ended { lived: open.opened.elapsed(), events: open.events });
                }
            }
            consume_budget().await;
        }
    }

    async fn page_list(&mut self, pages: Pages) -> Outcome {
        self.enter(Phase::Listing);
        match self.try_page_list(pages, Instant::now()).await {
            Ok(()) => Outcome::Listed,
            Err(error) => {
                self.options.metrics.list_failed(ListKind::Paged);
                self.failed(&error, 0)
            }
        }
    }

    async fn try_page_list(&mut self, pages: Pages, begun: Instant) -> Result<(), WireError> {
        self.feed.list_begins();
        self.unreadable.list_begins();
        let limit = (pages == Pages::Limited).then_some(PAGE_ITEMS);
        let patience = self.options.list_patience;
        let mut token = String::new();
        let mut version = None;
        loop {
            let request = list_request(self.target, ListQuery { limit, continue_token: &token }, self.accept)?;
            let mut answer = send(self.client, request, patience).await?;
            let mut decoder = ListDecoder::new(answer.format, self.expected.clone());
            while let Some(chunk) = answer.chunk(patience).await? {
                decoder.feed(&chunk);
                if decoder.buffered() >= BATCH_BYTES {
                    self.read_items(&mut decoder)?;
                }
                consume_budget().await;
            }
            self.read_items(&mut decoder)?;
            let meta = decoder.finish()?;
            // All pages are of one version; the first has it.
            let version = version.get_or_insert(meta.resource_version);
            token = meta.continue_token;
            if token.is_empty() {
                let version = std::mem::take(version);
                return self.complete(ListKind::Paged, version, begun);
            }
        }
    }

    /// Reads the received part of a list. On a relist most of it is known, and need not be decoded.
    fn read_items(&mut self, decoder: &mut ListDecoder) -> Result<(), WireError> {
        if self.listed {
            while let Some(item) = decoder.next_item()? {
                self.list_item(item)?;
            }
            return Ok(());
        }
        while let Err(error) = self.feed.items(decoder) {
            self.skip_item(error)?;
        }
        Ok(())
    }

    /// Refuses a list from the past, for a while: a decision by it would repeat what was done. A server whose store was
    /// restored from a backup never gets back to that version, and is accepted then.
    fn check_not_past(&mut self, version: &ResourceVersion) -> Result<(), WireError> {
        if !self.listed || !self.version.is_newer_than(version) {
            self.past_since = None;
            return Ok(());
        }
        let since = *self.past_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PAST_FOR {
            let listed = version.to_string();
            let reached = self.version.to_string();
            return Err(WireError::Past { listed, reached });
        }
        warn!(resource = %self.target, %version, before = %self.version, "the server went back in time; its list counts");
        self.past_since = None;
        Ok(())
    }

    /// Hands a whole list to the sink.
    fn complete(&mut self, kind: ListKind, version: ResourceVersion, begun: Instant) -> Result<(), WireError> {
        if version.is_empty() {
            let problem = "it has no resourceVersion, so no watch can follow it".to_owned();
            return Err(WireError::Malformed { what: "a list", problem, offset: 0 });
        }
        self.check_not_past(&version)?;
        let items = self.feed.listed();
        debug!(resource = %self.target, items, %version, ?kind, "listed");
        self.options.metrics.listed(kind, items, begun.elapsed());
        self.options.metrics.reached(&version);
        self.version = version.clone();
        self.listed = true;
        self.unreadable.list_is_complete();
        self.feed.list_ends(version);
        self.works(Phase::Watching);
        Ok(())
    }

    /// Adds an item to the list that is being read.
    fn list_item(&mut self, object: Encoded<'_>) -> Result<(), WireError> {
        let taken = if self.listed { self.feed.relisted_item(object) } else { self.feed.item(object) };
        taken.or_else(|error| self.skip_item(error))
    }

    /// Skips an item of a list that cannot be decoded: its known state stays, so that it does not count as deleted.
    fn skip_item(&mut self, error: WireError) -> Result<(), WireError> {
        let object = self.skipped(error)?;
        self.feed.skipped_item(&object);
        Ok(())
    }

    /// Notes the verdict of the sink on an event.
    fn judged(&mut self, object: Peeked, verdict: Verdict, is_known_now: bool) {
        let Peeked { key, uid, resource_version: version } = object;
        if verdict == Verdict::Stale {
            self.options.metrics.stale_event();
            debug!(resource = %self.target, object = %key, %version, "stale event dropped");
            return;
        }
        if is_known_now {
            self.unreadable.forget(key, uid);
        }
        if !version.is_empty() && !self.version.is_newer_than(&version) {
            self.version = version;
        }
    }

    /// Returns the identity of an object that is skipped because it cannot be decoded; it is counted, and logged once.
    ///
    /// # Errors
    /// The object must not be skipped: see [`is_to_be_skipped`].
    fn skipped(&mut self, error: WireError) -> Result<Peeked, WireError> {
        let unreadable = match error {
            WireError::Object(object) if is_to_be_skipped(&object, self.accept.without_protobuf().is_some()) => object,
            error => return Err(error),
        };
        let reason = &unreadable.source;
        let Some(object) = &unreadable.identity else { return Err(WireError::Object(unreadable)) };
        self.options.metrics.unreadable_object(&self.target.resource);
        let key = &object.key;
        let uid = &object.uid;
        let version = &object.resource_version;
        if self.unreadable.note(object) {
            error!(
                resource = %self.target, object = %key, %uid, %version, %reason,
                "an object cannot be read and is left as it was known before; mend or delete it"
            );
        } else {
            debug!(resource = %self.target, object = %key, %uid, %version, %reason, "an object cannot be read");
        }
        Ok(object.clone())
    }

    async fn watch(&mut self) -> Outcome {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let from = self.version.clone();
                match self.open_watch(Some(&from)).await {
                    Ok(open) => open,
                    Err(error) => return self.failed(&error, 0),
                }
            }
        };
        self.works(Phase::Watching);
        let mut restarts = self.restarts.clone();
        restarts.mark_unchanged();
        let result = tokio::select! {
            biased;
            result = self.follow(&mut open) => result,
            Ok(()) = restarts.changed() => {
                self.options.metrics.watch_ended(WatchEnd::Stale, open.events, open.opened.elapsed());
                return Outcome::Stale(*restarts.borrow());
            }
        };
        let lived = open.opened.elapsed();
        let events = open.events;
        let end = match &result {
            Ok(()) if events == 0 && lived < SHORT_WATCH => WatchEnd::Short,
            Ok(()) => WatchEnd::Graceful,
            Err(_) => WatchEnd::Failed,
        };
        self.options.metrics.watch_ended(end, events, lived);
        match result {
            Ok(()) => Outcome::Ended { lived, events },
            Err(error) => self.failed(&error, events),
        }
    }

    async fn open_watch(&mut self, from: Option<&ResourceVersion>) -> Result<OpenWatch, WireError> {
        let shortest = self.options.watch_timeout.start().as_secs();
        let longest = self.options.watch_timeout.end().as_secs();
        let seconds = u32::try_from(self.random.u64(shortest..=longest.max(shortest))).unwrap_or(u32::MAX);
        let request = watch_request(self.target, WatchQuery { from, timeout_seconds: seconds }, self.accept)?;
        let opened = Instant::now();
        self.options.metrics.watch_started();
        let answer = send(self.client, request, self.options.list_patience).await?;
        let decoder = WatchDecoder::new(answer.format, self.expected.clone());
        Ok(OpenWatch { answer, decoder, opened, timeout: Duration::from_secs(u64::from(seconds)), events: 0 })
    }

    /// Hands events to the sink until the watch ends.
    async fn follow(&mut self, open: &mut OpenWatch) -> Result<(), WireError> {
        let patience = self.options.watch_patience.unwrap_or(open.timeout + TIMEOUT_SLACK);
        loop {
            while let Some(event) = open.decoder.next_event()? {
                self.take(event)?;
                open.events += 1;
            }
            self.options.metrics.reached(&self.version);
            match next_chunk(&mut open.answer, patience, self.options.gather).await? {
                Some(chunk) => open.decoder.feed(&chunk),
                None => return open.decoder.finish(),
            }
            consume_budget().await;
        }
    }

    /// Hands one event to the sink.
    fn take(&mut self, event: RawEvent<'_>) -> Result<(), WireError> {
        let (kind, object) = match event {
            RawEvent::Added(object) => (EventKind::Added, object),
            RawEvent::Modified(object) => (EventKind::Modified, object),
            RawEvent::Deleted(object) => (EventKind::Deleted, object),
            RawEvent::Bookmark(bookmark) => {
                // A bookmark of a server that lags behind the one before says nothing.
                if !self.version.is_newer_than(&bookmark.version) {
                    self.version = bookmark.version.clone();
                    self.feed.reached(bookmark.version);
                }
                return Ok(());
            }
            RawEvent::Error(status) => return Err(WireError::Status(Box::new(status))),
        };
        match self.feed.event(kind, object) {
            Ok((object, verdict)) => self.judged(object, verdict, true),
            // The watch continues, and the store reaches the version, or everything that waits for a later one would
            // wait for this object.
            Err(error) => {
                let object = self.skipped(error)?;
                let deleted = kind == EventKind::Deleted;
                let verdict = self.feed.skipped_event(object.clone(), deleted);
                self.judged(object, verdict, deleted);
            }
        }
        Ok(())
    }

    /// Returns the outcome of a failure, and reports it. The first failure of its kind is logged as a warning, further
    /// ones are noise.
    fn failed(&mut self, error: &WireError, events: u64) -> Outcome {
        let mut failure = classify(error);
        if failure == Failure::NotAcceptable {
            match self.accept.fall_back() {
                Some(plain) => self.accept = plain,
                None => failure = Failure::Refused,
            }
        }
        if asks_for_json(error)
            && let Some(json) = self.accept.without_protobuf()
        {
            info!(resource = %self.target, %error, "the resource is read as JSON from now on");
            self.accept = json;
            failure = Failure::NotAcceptable;
        }
        self.failures += 1;
        self.unreached = matches!(error, WireError::Connection(_) | WireError::Silent(_));
        let kind = problem_kind(error);
        let is_logged = self.state.borrow().problem.as_ref().is_some_and(|problem| problem.kind == kind);
        match kind {
            _ if is_logged => debug!(resource = %self.target, %error, "list or watch failed again"),
            ProblemKind::Expired => info!(resource = %self.target, %error, "list or watch expired"),
            _ => warn!(resource = %self.target, %error, "list or watch failed"),
        }
        let problem = Problem { kind, message: error.to_string().into(), failures: self.failures };
        self.state.send_modify(|state| state.problem = Some(problem));
        Outcome::Failed { failure, events }
    }

    fn works(&mut self, phase: Phase) {
        self.failures = 0;
        self.state.send_if_modified(|state| {
            let next = ReflectorState { phase, problem: None };
            let changed = *state != next;
            *state = next;
            changed
        });
    }

    fn enter(&self, phase: Phase) {
        self.state.send_if_modified(|state| std::mem::replace(&mut state.phase, phase) != phase);
    }
}

/// Returns the next bytes of a watch. Those that have not come yet are gathered first, if that is wanted.
async fn next_chunk(answer: &mut Answer, patience: Duration, gather: Duration) -> Result<Option<Bytes>, WireError> {
    if !gather.is_zero() {
        match answer.chunk(RECEIVED_WITHIN).await {
            Err(WireError::Silent(_)) => sleep(gather).await,
            received => return received,
        }
    }
    answer.chunk(patience).await
}
