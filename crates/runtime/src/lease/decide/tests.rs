use super::Decision::{Create, Lost, Renew, TakeOver, Wait};
use super::*;

/// What the wall clock shows, and what nothing depends on.
const WALL: MicroTime = MicroTime::from_unix_micros(1_794_780_247_000_042);
const EARLIER: MicroTime = MicroTime::from_unix_micros(1_000_000);

fn record(holder: &str, seconds: i32, transitions: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(holder.into()),
        lease_duration_seconds: Some(seconds),
        acquire_time: Some(EARLIER),
        renew_time: Some(EARLIER),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    }
}

fn renewed(record: LeaseSpec) -> LeaseSpec {
    LeaseSpec { renew_time: Some(WALL), lease_duration_seconds: Some(15), ..record }
}

fn taken(transitions: i32) -> LeaseSpec {
    LeaseSpec { acquire_time: Some(WALL), ..renewed(record("me", 15, transitions)) }
}

/// The time zero of a test, and seconds after it.
fn at(start: Instant, seconds: u64) -> Instant {
    start + Duration::from_secs(seconds)
}

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[test]
fn the_slow_path_is_client_gos_ladder() {
    use Role::{Leader, Standby};
    let coordinated = |record| LeaseSpec {
        strategy: Some("OldestEmulationVersion".into()),
        preferred_holder: Some("best".into()),
        ..record
    };
    let bare = LeaseSpec::default();
    let other = || Some(record("other", 15, 3));
    // What was seen at second 0, what is found after how many seconds, and what to do.
    for (name, role, seen, found, after, want) in [
        ("no lease", Standby, None, None, 0, Create(taken(0))),
        ("a lease that vanished", Leader, Some(record("me", 15, 3)), None, 2, Create(taken(0))),
        ("held, seen for the first time, however old it says it is", Standby, None, other(), 0, Wait),
        ("held, unchanged for less than its duration", Standby, other(), other(), 14, Wait),
        ("held, unchanged for its duration", Standby, other(), other(), 15, TakeOver(taken(4))),
        ("held, and renewed meanwhile", Standby, other(), Some(record("other", 15, 4)), 99, Wait),
        (
            "by the duration of its holder, not ours",
            Standby,
            Some(record("other", 60, 3)),
            Some(record("other", 60, 3)),
            59,
            Wait,
        ),
        ("released", Standby, other(), Some(record("", 1, 3)), 1, TakeOver(taken(4))),
        ("released, seen for the first time", Standby, None, Some(record("", 1, 3)), 0, TakeOver(taken(4))),
        ("made by hand, without a record", Standby, None, Some(bare.clone()), 0, TakeOver(taken(1))),
        (
            "held without a duration",
            Standby,
            None,
            Some(LeaseSpec { lease_duration_seconds: None, ..record("other", 15, 3) }),
            0,
            TakeOver(taken(4)),
        ),
        ("a negative duration", Standby, None, Some(record("other", -7, 3)), 0, TakeOver(taken(4))),
        ("ours from a former life", Standby, None, Some(record("me", 15, 3)), 0, Renew(renewed(record("me", 15, 3)))),
        (
            "ours, ended",
            Standby,
            Some(record("me", 15, 3)),
            Some(record("me", 15, 3)),
            99,
            Renew(renewed(record("me", 15, 3))),
        ),
        (
            "ours, made by hand, without times and transitions",
            Leader,
            None,
            Some(LeaseSpec { holder_identity: Some("me".into()), ..LeaseSpec::default() }),
            0,
            Renew(taken(0)),
        ),
        ("ours with other times", Leader, None, Some(record("me", 99, 3)), 0, Renew(renewed(record("me", 15, 3)))),
        ("stolen", Leader, Some(record("me", 15, 3)), Some(record("other", 15, 4)), 2, Lost),
        ("stolen and ended", Leader, Some(record("me", 15, 3)), Some(record("other", 0, 4)), 2, Lost),
        ("emptied", Leader, Some(record("me", 15, 3)), Some(record("", 1, 3)), 2, Lost),
        ("coordinated, held", Standby, None, Some(coordinated(record("other", 15, 3))), 0, Wait),
        (
            "coordinated, released",
            Standby,
            None,
            Some(coordinated(record("", 1, 3))),
            0,
            TakeOver(coordinated(taken(4))),
        ),
        (
            "coordinated, ours",
            Leader,
            None,
            Some(coordinated(record("me", 15, 3))),
            0,
            Renew(coordinated(renewed(record("me", 15, 3)))),
        ),
        ("counted to the end", Standby, None, Some(record("", 1, i32::MAX)), 0, TakeOver(taken(i32::MAX))),
    ] {
        let start = start();
        let mut candidate = Candidate::new("me".into(), 15);
        if let Some(seen) = seen {
            candidate.observe(seen, start);
        }
        let now = at(start, after);
        assert_eq!(candidate.look(found, role, (now, now), WALL), want, "{name}");
    }
}

#[test]
fn an_observed_renewal_restarts_the_time_when_its_answer_arrives() {
    let start = start();
    let mut candidate = Candidate::new("me".into(), 15);
    let mut look = |found: LeaseSpec, asked: u64, seen: u64| {
        candidate.look(Some(found), Role::Standby, (at(start, asked), at(start, seen)), WALL)
    };
    assert_eq!(look(record("other", 15, 1), 0, 5), Wait);
    assert_eq!(look(record("other", 15, 1), 19, 19), Wait, "15 s after the answer, not after the question");
    let newer = LeaseSpec { renew_time: Some(WALL), ..record("other", 15, 1) };
    assert_eq!(look(newer.clone(), 19, 19), Wait);
    assert_eq!(look(newer.clone(), 33, 40), Wait, "an answer that took long does not age the lease");
    assert!(matches!(look(newer, 34, 34), TakeOver(_)));
}

#[test]
fn times_in_the_record_decide_nothing() {
    for renew_time in [None, Some(MicroTime::from_unix_micros(0)), Some(MicroTime::from_unix_micros(i64::MAX / 2))] {
        let start = start();
        let found = LeaseSpec { renew_time, acquire_time: renew_time, ..record("other", 15, 1) };
        let mut candidate = Candidate::new("me".into(), 15);
        for (after, waits) in [(0, true), (14, true), (15, false)] {
            let now = at(start, after);
            let decision = candidate.look(Some(found.clone()), Role::Standby, (now, now), WALL);
            assert_eq!(decision == Wait, waits, "{renew_time:?} after {after} s");
        }
    }
}

#[test]
fn the_fast_path_is_for_a_holder_whose_record_counts() {
    for (name, seen, after, want) in [
        ("nothing seen", None, 0, None),
        ("ours", Some(record("me", 15, 3)), 2, Some(renewed(record("me", 15, 3)))),
        ("ours, for a last time", Some(record("me", 15, 3)), 14, Some(renewed(record("me", 15, 3)))),
        ("ours, ended", Some(record("me", 15, 3)), 15, None),
        ("another's", Some(record("other", 15, 3)), 2, None),
        ("nobody's", Some(record("", 15, 3)), 2, None),
    ] {
        let start = start();
        let mut candidate = Candidate::new("me".into(), 15);
        if let Some(seen) = seen {
            candidate.observe(seen, start);
        }
        assert_eq!(candidate.renewal(at(start, after), WALL), want, "{name}");
    }
}

#[test]
fn only_the_holder_releases_the_lease() {
    let candidate = Candidate::new("me".into(), 15);
    let left = LeaseSpec { acquire_time: Some(WALL), renew_time: Some(WALL), ..record("", 1, 3) };
    assert_eq!(candidate.release(&record("me", 15, 3), WALL), Some(left));
    assert_eq!(candidate.release(&record("other", 15, 3), WALL), None);
    assert_eq!(candidate.release(&record("", 1, 3), WALL), None);
}

#[test]
fn the_end_of_anothers_lease_is_known_ahead() {
    let start = start();
    let mut candidate = Candidate::new("me".into(), 15);
    assert_eq!(candidate.ends(), None);
    candidate.observe(record("other", 20, 1), start);
    assert_eq!(candidate.ends(), Some(at(start, 20)));
    candidate.observe(record("other", 20, 1), at(start, 5));
    assert_eq!(candidate.ends(), Some(at(start, 20)), "seen again is no news");
    assert!(candidate.is_held(at(start, 19)));
    assert!(!candidate.is_held(at(start, 20)));
    candidate.observe(record("", 1, 1), at(start, 6));
    assert_eq!(candidate.ends(), None, "nobody's lease has no end");
    assert!(!candidate.is_held(at(start, 6)));
}
