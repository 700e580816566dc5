//! Table tests of the pure functions.

use std::time::Duration;

use steersman_base::{Meta, Time};

use super::plan::is_over;

/// Upstream's `TestPCRCleaner`.
#[test]
fn requests_are_kept_for_a_quarter_of_an_hour() {
    let now: Time = "2026-11-17T12:00:00Z".parse().unwrap();
    let check = |seconds: i64, want: bool| {
        let created = Some(now.plus_seconds(-seconds));
        let meta = Meta { creation_timestamp: created, ..Meta::default() };
        assert_eq!(is_over(&meta, Duration::from_secs(15 * 60), now), want, "{seconds}");
    };
    check(0, false);
    check(15 * 60 - 1, false);
    check(15 * 60, true);
    check(100 * 60, true);
    // Of a server whose clock is ahead.
    check(-3600, false);
}
