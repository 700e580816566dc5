//! When keys are woken, watches restarted and lists believed: each time, to the second.

use super::*;
use crate::consistency::state::Shows;

/// Stores that show no write.
struct NothingShown;

impl Shows for NothingShown {
    fn shows(&self, _: &Resource, _: &Debt) -> bool {
        false
    }

    fn have_reached(&self, _: &Resource, _: &ResourceVersion) -> bool {
        false
    }

    fn differences(&self, _: &Resource, _: &ObjectKey, _: &Snapshot, _: Instant) -> Vec<Debt> {
        Vec::new()
    }
}

/// Lets this time pass, and returns how many keys were woken meanwhile.
async fn wakes_within(desk: &Desk, time: Duration) -> usize {
    sleep(time).await;
    desk.wakes().await
}

/// A desk whose key `rs` waits for version 12 and has just been woken to read live.
async fn desk_with_an_old_write() -> Desk {
    let desk = Desk::open().await;
    desk.book.wrote(&"rs".into(), &things(), "12".into());
    assert_eq!(desk.check("rs"), Verdict::Parked);
    assert_eq!(wakes_within(&desk, WAIT_MAX).await, 1);
    desk
}

#[tokio::test(start_paused = true)]
async fn newer_writes_do_not_restart_the_waiting_time_of_an_older_one() {
    let desk = Desk::open().await;
    for version in ["12", "13", "14", "15"] {
        assert_eq!(desk.restarts(), 0, "before {version}");
        desk.book.wrote(&"rs".into(), &things(), version.into());
        sleep(Duration::from_secs(9)).await;
    }
    assert_eq!(desk.restarts(), 1, "the store has lacked a write for 36 seconds");
}

#[tokio::test(start_paused = true)]
async fn writes_of_two_owners_have_waiting_times_of_their_own() {
    let desk = Desk::open().await;
    desk.book.wrote(&"one".into(), &things(), "12".into());
    sleep(Duration::from_secs(20)).await;
    desk.book.wrote(&"two".into(), &things(), "13".into());
    sleep(Duration::from_secs(11)).await;
    assert_eq!(desk.restarts(), 1, "for the first owner");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(desk.restarts(), 1, "for the second");
}

#[tokio::test(start_paused = true)]
async fn the_second_live_read_waits_a_second_and_the_first_is_not_followed_by_the_timer() {
    let mut desk = desk_with_an_old_write().await;
    assert_eq!(desk.check("rs"), Verdict::LiveRead);
    assert_eq!(wakes_within(&desk, Duration::from_secs(20)).await, 0, "a pass that read live waits for the store only");
    assert_eq!(desk.check("rs"), Verdict::LiveRead);
    assert_eq!(desk.check("rs"), Verdict::Parked);
    let nearly = LIVE_READ_EVERY - Duration::from_millis(50);
    assert_eq!(wakes_within(&desk, nearly).await, 0);
    assert_eq!(desk.check("rs"), Verdict::Parked, "it is not a second yet");
    assert_eq!(wakes_within(&desk, Duration::from_millis(200)).await, 1);
    assert_eq!(desk.check("rs"), Verdict::LiveRead);
    desk.sink.reached("12".into());
    assert_eq!(desk.wakes().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_live_read_that_begins_before_the_timer_is_not_woken_by_it() {
    let mut state = State::default();
    let rs = Uid::from("rs");
    let start = Instant::now();
    let due = start + WAIT_MAX;
    state.add(&rs, &things(), Debt::Written { version: "12".into(), at: start, since: start }, &NothingShown);
    assert_eq!(state.check(&rs, start, true, &NothingShown), Found::Wait { until: Some(due) });
    // An event has enqueued the key just when its time came, and the timer has not run yet.
    assert_eq!(state.check(&rs, due, true, &NothingShown), Found::ReadLive);
    state.park(&rs, Box::new(|| {}));
    assert_eq!(state.due(due).wakes.len(), 0, "the pass has begun already");
    assert_eq!(state.next_due(due), Some(due + WAIT_MAX), "only the report is due again");
}

#[tokio::test(start_paused = true)]
async fn a_stale_watch_is_reported_once_per_wait_however_often_the_timer_runs() {
    let desk = desk_with_an_old_write().await;
    assert_eq!(desk.restarts(), 1);
    for pass in 0..24 {
        assert_eq!((desk.check("rs"), desk.check("rs")), (Verdict::LiveRead, Verdict::Parked), "pass {pass}");
        assert_eq!(wakes_within(&desk, Duration::from_millis(1_150)).await, 1, "pass {pass}: the timer runs");
    }
    assert_eq!(desk.restarts(), 0, "28 seconds after the first restart");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(desk.restarts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_requested_before_a_write_is_not_the_first_that_lacks_it() {
    let mut desk = Desk::open().await;
    desk.book.wrote(&"other".into(), &things(), "14".into());
    sleep(Duration::from_secs(1)).await;
    desk.sink.listing();
    sleep(Duration::from_secs(1)).await;
    for owner in ["rs", "other"] {
        desk.book.wrote(&owner.into(), &things(), "20".into());
    }
    desk.sink.replace(objects(&["a#1@5"]), "15".into());
    sleep(PAST_FOR).await;
    assert_eq!(list(&mut desk, "16").await, 0);
    for owner in ["rs", "other"] {
        assert_ne!(desk.check(owner), Verdict::Clear, "{owner}: only one list was requested after the write");
    }
    sleep(PAST_FOR).await;
    list(&mut desk, "17").await;
    assert_eq!((desk.check("rs"), desk.check("other")), (Verdict::Clear, Verdict::Clear), "now there are two");
}
