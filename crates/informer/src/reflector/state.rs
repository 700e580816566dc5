//! The state machine of a reflector.
//!
//! Pure: (state, outcome) → next state and how long to wait. The shell in `reflector/run.rs` does what a state says,
//! reports the outcome, and waits; every rule of recovery is in this one function, and in the table that tests it.
//!
//! ```text
//!            ┌────────── refused, broken ─────────┐
//!            ▼                                    │
//!   Paging ──┴─ listed ─► Watching ◄─ synced ─ Streaming ◄── start
//!     ▲ │ 410 on continue:  │ ▲                 ▲   │
//!     └─┘ all at once       └─┘ ended, broken   │   └─ throttled, not found
//!                           └─── 410, too large, vanished, twice garbage, twice stale ───► back to the list
//! ```
//!
//! 1. A list, first or again, is always consistent: no state lists from a version.
//! 2. Only lost history is listed again: a watch that ends or breaks continues from the version it has reached.
//! 3. A server that refuses streaming lists, or answers with an ordinary watch, is not asked for one again; one that
//!    breaks while streaming is asked for pages next, and the other way round, so that neither way of listing can block
//!    the resource.
//! 4. A watch that ends at its timeout starts again at once. Everything else waits: at least the back-off, and at least
//!    what the server asked for.

use std::time::Duration;

use super::{Lists, Restart};

/// The state of a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// One request brings the state and stays open as the watch.
    Streaming,
    /// The state is requested page by page.
    Paging {
        pages: Pages,
        /// Whether the next list may stream.
        streaming: Streaming,
    },
    /// Changes are watched from the version reached.
    Watching {
        /// The number of times in a row that the watch brought only unreadable data.
        spoiled: u8,
        /// Whether the next list may stream.
        streaming: Streaming,
    },
}

/// The size of a list request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Pages of [`PAGE_ITEMS`].
    Limited,
    /// Everything in one answer, which cannot expire between pages. It is decoded as it arrives, so it costs no more
    /// memory.
    Whole,
}

/// Whether the server is known to refuse streaming lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    Possible,
    Refused,
}

/// The outcome of a state's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The list is complete; the store was replaced.
    Listed,
    /// The stream brings changes, but not the end of the list: the server does not support streaming lists.
    NoList,
    /// The watch ended without an error, or a stream fell silent before its list was complete.
    Ended { lived: Duration, events: u64 },
    /// The watch was ended here, because it does not show the server's state.
    Stale(Restart),
    /// Something failed, after `events` of a watch had been applied.
    Failed { failure: Failure, events: u64 },
}

/// The kind of a failure, as far as it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// 410: the version, or the continue token, is too old.
    Expired,
    /// The version is newer than the server's.
    VersionTooLarge { retry_after: Option<Duration> },
    /// 429.
    Throttled { retry_after: Option<Duration> },
    /// 401, 403.
    Denied,
    /// 404: the API does not exist, or no longer.
    NotFound,
    /// 400, 405, 422: the server does not understand the request.
    Refused,
    /// 406, 415: the server has none of the requested encodings.
    NotAcceptable,
    /// No connection, a broken one, silence, 5xx.
    Broken { retry_after: Option<Duration> },
    /// Malformed bytes.
    Garbage,
}

/// The wait before the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    No,
    /// The back-off, and no less than the server asked for.
    BackOff {
        at_least: Option<Duration>,
    },
}

/// The next state, and the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) next: State,
    pub(super) wait: Wait,
}

/// The size of a page, as in client-go's pager.
pub(super) const PAGE_ITEMS: u32 = 500;
/// A watch that ends this soon without an event is refused in effect (client-go: "very short watch").
pub(super) const SHORT_WATCH: Duration = Duration::from_secs(1);
/// The number of times an unreadable watch starts again from its version; then a list replaces it.
const SPOILED_MAX: u8 = 2;

// === impl State ===

impl State {
    /// Returns the first state.
    pub(super) const fn start(lists: Lists) -> Self {
        match lists {
            Lists::Streamed => Self::Streaming,
            Lists::Paged => Self::paging(Streaming::Refused),
        }
    }

    /// Returns the step that follows from an outcome.
    pub(super) fn next(self, outcome: Outcome) -> Step {
        match (self, outcome) {
            (Self::Streaming, Outcome::Listed) => at_once(Self::watching(Streaming::Possible)),
            (Self::Paging { streaming, .. } | Self::Watching { streaming, .. }, Outcome::Listed) => {
                at_once(Self::watching(streaming))
            }
            (Self::Streaming, Outcome::NoList) => at_once(Self::paging(Streaming::Refused)),
            // Impossible: only a stream has this outcome.
            (Self::Paging { .. } | Self::Watching { .. }, Outcome::NoList) => back_off(self, None),
            // The stream ended before its list: the server does not support streaming lists, or is overloaded.
            (Self::Streaming, Outcome::Ended { .. }) => back_off(Self::paging(Streaming::Possible), None),
            // Impossible: a page is complete or an error.
            (Self::Paging { .. }, Outcome::Ended { .. }) => back_off(self, None),
            (Self::Watching { streaming, .. }, Outcome::Ended { lived, events }) => {
                let again = Self::watching(streaming);
                if events == 0 && lived < SHORT_WATCH { back_off(again, None) } else { at_once(again) }
            }
            (Self::Watching { streaming, .. }, Outcome::Stale(Restart::Watch)) => at_once(Self::watching(streaming)),
            (Self::Watching { streaming, .. }, Outcome::Stale(Restart::List)) => at_once(Self::paging(streaming)),
            // Impossible: only a watch has this outcome.
            (Self::Streaming | Self::Paging { .. }, Outcome::Stale(_)) => back_off(self, None),
            (Self::Streaming, Outcome::Failed { failure, .. }) => after_streaming(failure),
            (Self::Paging { pages, streaming }, Outcome::Failed { failure, .. }) => {
                after_paging(pages, streaming, failure)
            }
            (Self::Watching { spoiled, streaming }, Outcome::Failed { failure, events }) => {
                let spoiled = if events > 0 { 0 } else { spoiled };
                after_watching(spoiled, streaming, failure)
            }
        }
    }

    const fn paging(streaming: Streaming) -> Self {
        Self::Paging { pages: Pages::Limited, streaming }
    }

    const fn watching(streaming: Streaming) -> Self {
        Self::Watching { spoiled: 0, streaming }
    }

    /// Returns the first way of listing that the server may support.
    const fn listing(streaming: Streaming) -> Self {
        match streaming {
            Streaming::Possible => Self::Streaming,
            Streaming::Refused => Self::paging(Streaming::Refused),
        }
    }
}

fn after_streaming(failure: Failure) -> Step {
    match failure {
        Failure::Refused => at_once(State::paging(Streaming::Refused)),
        // Perhaps only the verb `watch` is denied: the pages will show.
        Failure::Denied => at_once(State::paging(Streaming::Possible)),
        Failure::NotAcceptable => at_once(State::Streaming),
        Failure::Throttled { retry_after } | Failure::VersionTooLarge { retry_after } => {
            back_off(State::Streaming, retry_after)
        }
        Failure::NotFound => back_off(State::Streaming, None),
        Failure::Broken { retry_after } => back_off(State::paging(Streaming::Possible), retry_after),
        Failure::Expired | Failure::Garbage => back_off(State::paging(Streaming::Possible), None),
    }
}

fn after_paging(pages: Pages, streaming: Streaming, failure: Failure) -> Step {
    let here = State::Paging { pages, streaming };
    match failure {
        // The pages took longer than the server keeps history: as client-go's pager, request everything at once.
        Failure::Expired if pages == Pages::Limited => at_once(State::Paging { pages: Pages::Whole, streaming }),
        Failure::NotAcceptable => at_once(here),
        Failure::Throttled { retry_after } => back_off(here, retry_after),
        Failure::VersionTooLarge { retry_after } | Failure::Broken { retry_after } => {
            back_off(State::listing(streaming), retry_after)
        }
        Failure::Expired | Failure::Denied | Failure::NotFound | Failure::Refused | Failure::Garbage => {
            back_off(State::listing(streaming), None)
        }
    }
}

fn after_watching(spoiled: u8, streaming: Streaming, failure: Failure) -> Step {
    let again = State::watching(streaming);
    match failure {
        // The wait spreads the lists of many reflectors whose versions expired together.
        Failure::Expired | Failure::NotFound | Failure::Refused => back_off(State::listing(streaming), None),
        Failure::VersionTooLarge { retry_after } => back_off(State::listing(streaming), retry_after),
        Failure::Garbage if spoiled + 1 >= SPOILED_MAX => back_off(State::listing(streaming), None),
        Failure::Garbage => back_off(State::Watching { spoiled: spoiled + 1, streaming }, None),
        Failure::NotAcceptable => at_once(again),
        Failure::Denied => back_off(again, None),
        Failure::Throttled { retry_after } | Failure::Broken { retry_after } => back_off(again, retry_after),
    }
}

const fn at_once(next: State) -> Step {
    Step { next, wait: Wait::No }
}

const fn back_off(next: State, at_least: Option<Duration>) -> Step {
    Step { next, wait: Wait::BackOff { at_least } }
}

#[cfg(test)]
mod tests;
