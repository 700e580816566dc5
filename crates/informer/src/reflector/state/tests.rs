use super::*;

const SECOND: Duration = Duration::from_secs(1);
const ASKED: Option<Duration> = Some(Duration::from_secs(7));
const PAGES: State = State::paging(Streaming::Possible);
const PAGES_ONLY: State = State::paging(Streaming::Refused);
const ALL: State = State::Paging { pages: Pages::Whole, streaming: Streaming::Possible };
const WATCH: State = State::watching(Streaming::Possible);
const WATCH_AFTER_PAGES: State = State::watching(Streaming::Refused);
const SPOILED: State = State::Watching { spoiled: 1, streaming: Streaming::Possible };
const NOW: Wait = Wait::No;
const LATER: Wait = Wait::BackOff { at_least: None };
const LATER_AS_ASKED: Wait = Wait::BackOff { at_least: ASKED };
const BROKEN: Failure = Failure::Broken { retry_after: None };

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure, events: 0 }
}

fn check(rows: &[(State, Outcome, State, Wait)]) {
    for &(state, outcome, next, wait) in rows {
        assert_eq!(state.next(outcome), Step { next, wait }, "{state:?}, then {outcome:?}");
    }
}

#[test]
fn a_complete_list_is_followed_by_a_watch_at_once() {
    check(&[
        (State::Streaming, Outcome::Listed, WATCH, NOW),
        (PAGES, Outcome::Listed, WATCH, NOW),
        (PAGES_ONLY, Outcome::Listed, WATCH_AFTER_PAGES, NOW),
        (ALL, Outcome::Listed, WATCH, NOW),
    ]);
}

#[test]
fn a_graceful_end_is_not_an_error_but_a_very_short_watch_is() {
    let ended = |lived, events| Outcome::Ended { lived, events };
    check(&[
        (WATCH, ended(300 * SECOND, 0), WATCH, NOW),
        (WATCH, ended(300 * SECOND, 9), WATCH, NOW),
        (WATCH, ended(SECOND, 0), WATCH, NOW),
        (WATCH, ended(SECOND / 2, 1), WATCH, NOW),
        (WATCH, ended(SECOND / 2, 0), WATCH, LATER),
        (SPOILED, ended(300 * SECOND, 0), WATCH, NOW),
        (State::Streaming, ended(300 * SECOND, 9), PAGES, LATER),
    ]);
}

#[test]
fn a_stale_watch_goes_on_where_it_was_or_is_listed_in_pages() {
    check(&[
        (WATCH, Outcome::Stale(Restart::Watch), WATCH, NOW),
        (SPOILED, Outcome::Stale(Restart::Watch), WATCH, NOW),
        (WATCH, Outcome::Stale(Restart::List), PAGES, NOW),
        (WATCH_AFTER_PAGES, Outcome::Stale(Restart::List), PAGES_ONLY, NOW),
    ]);
}

#[test]
fn a_server_that_refuses_streaming_is_asked_for_pages_from_then_on() {
    check(&[
        (State::Streaming, failed(Failure::Refused), PAGES_ONLY, NOW),
        (PAGES_ONLY, Outcome::Listed, WATCH_AFTER_PAGES, NOW),
        (WATCH_AFTER_PAGES, failed(Failure::Expired), PAGES_ONLY, LATER),
        (PAGES_ONLY, failed(BROKEN), PAGES_ONLY, LATER),
    ]);
}

#[test]
fn an_expired_version_leads_to_a_list() {
    check(&[
        (WATCH, failed(Failure::Expired), State::Streaming, LATER),
        (State::Streaming, failed(Failure::Expired), PAGES, LATER),
        (PAGES, failed(Failure::Expired), ALL, NOW),
        (ALL, failed(Failure::Expired), State::Streaming, LATER),
    ]);
}

#[test]
fn a_version_too_large_backs_off_and_lists_consistently() {
    let too_large = failed(Failure::VersionTooLarge { retry_after: ASKED });
    check(&[
        (WATCH, too_large, State::Streaming, LATER_AS_ASKED),
        (State::Streaming, too_large, State::Streaming, LATER_AS_ASKED),
        (PAGES, too_large, State::Streaming, LATER_AS_ASKED),
    ]);
}

#[test]
fn a_busy_server_gets_the_time_it_asks_for() {
    let throttled = failed(Failure::Throttled { retry_after: ASKED });
    check(&[
        (State::Streaming, throttled, State::Streaming, LATER_AS_ASKED),
        (PAGES, throttled, PAGES, LATER_AS_ASKED),
        (ALL, throttled, ALL, LATER_AS_ASKED),
        (WATCH, throttled, WATCH, LATER_AS_ASKED),
    ]);
}

#[test]
fn a_broken_watch_goes_on_and_a_broken_list_tries_the_other_way() {
    check(&[
        (WATCH, failed(BROKEN), WATCH, LATER),
        (State::Streaming, failed(BROKEN), PAGES, LATER),
        (PAGES, failed(BROKEN), State::Streaming, LATER),
        (ALL, failed(BROKEN), State::Streaming, LATER),
        (WATCH, failed(Failure::Broken { retry_after: ASKED }), WATCH, LATER_AS_ASKED),
    ]);
}

#[test]
fn garbage_restarts_the_watch_and_then_the_list() {
    check(&[
        (WATCH, failed(Failure::Garbage), SPOILED, LATER),
        (SPOILED, failed(Failure::Garbage), State::Streaming, LATER),
        (SPOILED, Outcome::Failed { failure: Failure::Garbage, events: 3 }, SPOILED, LATER),
        (SPOILED, failed(BROKEN), WATCH, LATER),
        (State::Streaming, failed(Failure::Garbage), PAGES, LATER),
        (PAGES, failed(Failure::Garbage), State::Streaming, LATER),
    ]);
}

#[test]
fn what_is_forbidden_or_gone_is_asked_for_again_and_again() {
    check(&[
        (State::Streaming, failed(Failure::Denied), PAGES, NOW),
        (PAGES, failed(Failure::Denied), State::Streaming, LATER),
        (WATCH, failed(Failure::Denied), WATCH, LATER),
        (State::Streaming, failed(Failure::NotFound), State::Streaming, LATER),
        (PAGES, failed(Failure::NotFound), State::Streaming, LATER),
        (WATCH, failed(Failure::NotFound), State::Streaming, LATER),
    ]);
}

#[test]
fn another_encoding_is_tried_at_once() {
    check(&[
        (State::Streaming, failed(Failure::NotAcceptable), State::Streaming, NOW),
        (PAGES, failed(Failure::NotAcceptable), PAGES, NOW),
        (WATCH, failed(Failure::NotAcceptable), WATCH, NOW),
    ]);
}

#[test]
fn no_failure_is_retried_without_a_wait_for_ever() {
    // Two steps without a wait lead through two states at most; following any failure repeatedly must come to a wait.
    let failures = [
        Failure::Expired,
        Failure::VersionTooLarge { retry_after: None },
        Failure::Throttled { retry_after: None },
        Failure::Denied,
        Failure::NotFound,
        Failure::Refused,
        BROKEN,
        Failure::Garbage,
    ];
    for failure in failures {
        for start in [State::Streaming, PAGES, PAGES_ONLY, ALL, WATCH, WATCH_AFTER_PAGES, SPOILED] {
            let mut state = start;
            let waited = (0..3).any(|_| {
                let step = state.next(failed(failure));
                state = step.next;
                step.wait != Wait::No
            });
            assert!(waited, "{start:?} and {failure:?} again and again");
        }
    }
}
