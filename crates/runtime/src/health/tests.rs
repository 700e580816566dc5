//! Texts as upstream's `healthz_test.go` has them, and what progress means.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::metrics::Exposition;

use super::progress::{Seen, Stuck};
use super::*;

/// A probe with a check that passes and one that fails, unless set otherwise.
fn health(checks: &[(&str, bool)]) -> Health {
    let health = Health::new();
    for (name, passes) in checks {
        let passes = *passes;
        health.add(&Probe::ALL, name, move || if passes { Ok(()) } else { Err(Unhealthy("it is ill".into())) });
    }
    health
}

/// A name, the checks and whether each passes, what is asked, and whether it passes with which text.
type Row = (&'static str, &'static [(&'static str, bool)], Ask, bool, &'static str);

fn ask(exclude: &[&str], verbose: bool) -> Ask {
    Ask { exclude: exclude.iter().map(|&name| name.to_owned()).collect(), verbose, reasons: Reasons::Withheld }
}

#[test]
fn texts_are_upstreams() {
    const FINE: &[(&str, bool)] = &[("good", true), ("better", true)];
    const ILL: &[(&str, bool)] = &[("good", true), ("bad", false)];
    let table: [Row; 9] = [
        ("nothing to check", &[], ask(&[], false), true, "ok"),
        ("nothing to check, verbose", &[], ask(&[], true), true, "[+]ping ok\nhealthz check passed\n"),
        ("fine", FINE, ask(&[], false), true, "ok"),
        ("fine, verbose", FINE, ask(&[], true), true, "[+]good ok\n[+]better ok\nhealthz check passed\n"),
        (
            "ill is always verbose",
            ILL,
            ask(&[], false),
            false,
            "[+]good ok\n[-]bad failed: reason withheld\nhealthz check failed\n",
        ),
        ("the ill one excluded", ILL, ask(&["bad"], false), true, "ok"),
        (
            "the ill one excluded, verbose",
            ILL,
            ask(&["bad"], true),
            true,
            "[+]good ok\n[+]bad excluded: ok\nhealthz check passed\n",
        ),
        (
            "excluding what is not there",
            FINE,
            ask(&["z", "a"], true),
            true,
            "[+]good ok\n[+]better ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"z\"\n\
             healthz check passed\n",
        ),
        ("excluding what is not there is no failure", FINE, ask(&["a"], false), true, "ok"),
    ];
    for (name, checks, ask, passed, text) in table {
        let want = Report { passed, text: text.to_owned() };
        assert_eq!(health(checks).report(Probe::Healthz, &ask), want, "{name}");
    }
}

#[test]
fn reasons_are_shown_to_authorized_users_only() {
    let health = health(&[("bad", false)]);
    let reported = Ask { reasons: Reasons::Shown, ..Ask::default() };
    assert_eq!(health.report(Probe::Livez, &reported).text, "[-]bad failed: it is ill\nlivez check failed\n");
    let one = health.report_one(Probe::Readyz, "bad").unwrap();
    assert_eq!(one, Report { passed: false, text: "internal server error: it is ill\n".into() });
    assert_eq!(health.report_one(Probe::Readyz, "other"), None);
}

#[test]
fn a_check_belongs_to_its_probes_and_a_name_is_replaced() {
    let health = Health::new();
    health.add(&[Probe::Readyz], "caches", || Err(Unhealthy("empty".into())));
    assert!(health.report(Probe::Livez, &Ask::default()).passed);
    assert!(!health.report(Probe::Readyz, &Ask::default()).passed);
    health.add(&[Probe::Readyz], "caches", || Ok(()));
    assert_eq!(health.names(Probe::Readyz), ["caches".into()]);
    assert!(health.report(Probe::Readyz, &Ask::default()).passed);
    health.remove("caches");
    assert_eq!(health.names(Probe::Readyz), ["ping".into()]);
}

#[test]
fn results_are_counted() {
    let health = health(&[("good", true), ("bad", false)]);
    let _ = health.report(Probe::Healthz, &Ask::default());
    let _ = health.report(Probe::Healthz, &Ask::default());
    let text = Exposition::of(health.results()).text();
    for line in [
        r#"kubernetes_healthcheck{name="bad",type="healthz"} 0"#,
        r#"kubernetes_healthcheck{name="good",type="healthz"} 1"#,
        r#"kubernetes_healthchecks_total{name="bad",status="error",type="healthz"} 2"#,
        r#"kubernetes_healthchecks_total{name="good",status="success",type="healthz"} 2"#,
    ] {
        assert!(text.lines().any(|each| each == line), "{line} is missing in:\n{text}");
    }
}

#[test]
fn stuck_means_all_workers_held_for_long_while_keys_wait() {
    let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
    let table = [
        ("nothing waits", Seen { waiting: 0, workers: 2, busy: 2, still_for: minutes(60) }, true),
        ("a worker is free", Seen { waiting: 5, workers: 2, busy: 1, still_for: minutes(60) }, true),
        ("not yet for long", Seen { waiting: 5, workers: 2, busy: 2, still_for: minutes(9) }, true),
        ("stuck", Seen { waiting: 5, workers: 2, busy: 2, still_for: minutes(10) }, false),
    ];
    for (name, seen, well) in table {
        assert_eq!(seen.judge(STUCK_AFTER).is_ok(), well, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn idling_does_not_count_as_standing_still() {
    let progress = Progress::new(1);
    let waiting = Arc::new(AtomicUsize::new(0));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    // After an idle hour one key is taken and one waits: that is no hour of hanging.
    progress.began();
    waiting.store(1, Ordering::Relaxed);
    let judge = || progress.seen(waiting.load(Ordering::Relaxed)).judge(STUCK_AFTER);
    assert_eq!(judge(), Ok(()));
    tokio::time::sleep(STUCK_AFTER).await;
    let stuck = judge().unwrap_err();
    assert_eq!(stuck, Stuck { waiting: 1, workers: 1, still_for: STUCK_AFTER });
    let sentence = "1 keys wait, and no reconcile has ended for 600 s: all 1 workers are held; \
                    see /debug/queues and /debug/decisions";
    assert_eq!(stuck.to_string(), sentence);
    progress.ended();
    progress.began();
    assert_eq!(judge(), Ok(()));
}

#[test]
fn a_process_that_ends_is_not_ready() {
    let health = Health::new();
    let stop = tokio_util::sync::CancellationToken::new();
    checks::shutdown(&health, &stop);
    assert!(health.report(Probe::Readyz, &Ask::default()).passed);
    stop.cancel();
    assert!(!health.report(Probe::Readyz, &Ask::default()).passed);
    assert!(health.report(Probe::Livez, &Ask::default()).passed);
}

#[tokio::test(start_paused = true)]
async fn a_process_without_an_election_is_healthy() {
    let health = Health::new();
    checks::leader_election(&health, &crate::lease::Leadership::always());
    assert_eq!(health.names(Probe::Healthz), ["leaderElection".into()]);
    assert!(health.report(Probe::Healthz, &Ask::default()).passed);
}
