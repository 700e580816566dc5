use serde_json::{Value, json};
use steersman_base::Time;

use super::*;

fn log(bytes_max: usize) -> Log {
    Log::with_bytes_max(Clock::starting_at(Time::from_unix(1_794_744_000)), bytes_max)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn create(fate: Fate) -> Decision {
    let write = Write { verb: "create", resource: "pods".into(), object: "default/web-x".into() };
    Decision { rule: "TooFew", why: "0 of 1 pods are active".into(), write: Some(write), fate }
}

#[tokio::test(start_paused = true)]
async fn a_pass_leaves_an_entry_only_if_it_did_refused_or_failed() {
    let check = |what: &str, act: &dyn Fn(&Pass), outcome: Outcome, want: usize| {
        let log = log(BYTES_MAX);
        let pass = log.begin("c", &key("a"), Istr::default());
        act(&pass);
        pass.end(outcome);
        assert_eq!(log.entries(&Filter::default()).len(), want, "{what}");
    };
    check("nothing to do", &|_| {}, Outcome::Done, 0);
    check("only looked", &|pass| pass.saw("pods", 3), Outcome::After(Duration::from_secs(1)), 0);
    check("wrote", &|pass| pass.note(create(Fate::Written("7".into()))), Outcome::Done, 1);
    check("would write", &|pass| pass.note(create(Fate::WouldWrite)), Outcome::Done, 1);
    check("refused", &|pass| pass.refused("Paused", "it is paused"), Outcome::Done, 1);
    check("failed", &|_| {}, Outcome::Failed("no".into()), 1);
    check("gave up", &|_| {}, Outcome::GaveUp("never".into()), 1);
    check("never came to an end", &|_| {}, Outcome::Abandoned, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_is_dropped_was_abandoned_and_one_that_ended_ended_once() {
    let log = log(BYTES_MAX);
    drop(log.begin("c", &key("dropped"), Istr::default()));
    let pass = log.begin("c", &key("ended"), Istr::default());
    pass.clone().end(Outcome::Failed("first".into()));
    pass.end(Outcome::Done);
    drop(pass);
    let entries = log.entries(&Filter::default());
    let seen: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.outcome.clone())).collect();
    assert_eq!(
        seen,
        [("default/dropped", Outcome::Abandoned), ("default/ended", Outcome::Failed("first".into()))],
        "oldest first"
    );
}

#[tokio::test(start_paused = true)]
async fn the_log_never_weighs_more_than_its_bound_and_the_oldest_go_first() {
    const BOUND: usize = 10_000;
    let log = log(BOUND);
    for at in 0..1_000 {
        let pass = log.begin("c", &key(&format!("web-{at}")), Istr::new("Pod default/x deleted"));
        pass.refused("Rule", "x".repeat(at % 300));
        pass.end(Outcome::Done);
        assert!(log.bytes() <= BOUND, "after {at}: {}", log.bytes());
    }
    let entries = log.entries(&Filter::default());
    assert!(entries.len() > 5, "{}", entries.len());
    assert_eq!(entries.last().unwrap().key, "default/web-999");
    assert_eq!(log.dropped() as usize + entries.len(), 1_000);
    let weighed: usize = entries.iter().map(|entry| entry.bytes()).sum();
    assert_eq!(weighed, log.bytes());
}

#[tokio::test(start_paused = true)]
async fn one_pass_cannot_fill_the_log() {
    let log = log(BYTES_MAX);
    let pass = log.begin("c", &key("a"), Istr::default());
    for _ in 0..500 {
        pass.note(create(Fate::Failed(cut("ä".repeat(10_000)))));
        pass.saw("page", "x".repeat(10_000));
    }
    pass.end(Outcome::Done);
    let entry = &log.entries(&Filter::default())[0];
    assert_eq!((entry.decisions.len(), entry.more_decisions), (DECISIONS_MAX, 500 - DECISIONS_MAX));
    assert!(entry.bytes() < 256 << 10, "{}", entry.bytes());
    let Fate::Failed(text) = &entry.decisions[0].fate else { panic!("{:?}", entry.decisions[0]) };
    assert!(text.len() <= TEXT_MAX + '…'.len_utf8() && text.ends_with('…'), "{}", text.len());
}

#[tokio::test(start_paused = true)]
async fn an_entry_larger_than_the_log_is_dropped_and_counted() {
    let log = log(64);
    log.begin("c", &key("a"), Istr::default()).end(Outcome::Failed("no".into()));
    assert_eq!((log.entries(&Filter::default()).len(), log.bytes(), log.dropped()), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_filter_shows_what_it_names() {
    let log = log(BYTES_MAX);
    for (controller, name, outcome) in [
        ("replicaset", "a", Outcome::Done),
        ("replicaset", "b", Outcome::Failed("no".into())),
        ("job", "a", Outcome::Done),
        ("replicaset", "a", Outcome::Done),
    ] {
        let pass = log.begin(controller, &key(name), Istr::default());
        pass.refused("Rule", "why");
        pass.end(outcome);
    }
    let passes = |filter: Filter| log.entries(&filter).iter().map(|entry| entry.pass).collect::<Vec<_>>();
    assert_eq!(passes(Filter::default()), [1, 2, 3, 4]);
    assert_eq!(passes(Filter { controller: Some("replicaset".into()), ..Filter::default() }), [1, 2, 4]);
    assert_eq!(passes(Filter { key: Some("default/a".into()), ..Filter::default() }), [1, 3, 4]);
    assert_eq!(passes(Filter { failed_only: true, ..Filter::default() }), [2]);
    assert_eq!(passes(Filter { newest: Some(2), ..Filter::default() }), [3, 4]);
    let of_key: Vec<_> = log.for_key("replicaset", &key("a")).iter().map(|entry| entry.pass).collect();
    assert_eq!(of_key, [1, 4]);
}

#[tokio::test(start_paused = true)]
async fn people_and_machines_can_read_an_entry() {
    let log = log(BYTES_MAX);
    let pass = log.begin("replicaset-controller", &key("web"), Istr::new("Pod default/web-1 deleted"));
    pass.saw("active", 0);
    pass.note(create(Fate::Written("12".into())));
    pass.note(create(Fate::Failed("quota".into())));
    tokio::time::sleep(Duration::from_millis(250)).await;
    pass.end(Outcome::After(Duration::from_secs(5)));
    let entry = &log.entries(&Filter::default())[0];
    let want = "2026-11-15T12:00:00.000000Z replicaset-controller default/web #1 (Pod default/web-1 deleted)
  saw active: 0
  TooFew: 0 of 1 pods are active → create pods default/web-x: written at 12
  TooFew: 0 of 1 pods are active → create pods default/web-x: quota
  again in 5s after 250ms";
    assert_eq!(entry.to_string(), want);
    let write = json!({"verb": "create", "resource": "pods", "object": "default/web-x"});
    let rule = |fate: &str, detail: &str| json!({"rule": "TooFew", "why": "0 of 1 pods are active", "write": write, "fate": fate, "detail": detail});
    let want: Value = json!({
        "pass": 1, "time": "2026-11-15T12:00:00.000000Z", "controller": "replicaset-controller", "key": "default/web",
        "trigger": "Pod default/web-1 deleted", "seen": [{"what": "active", "value": "0"}],
        "decisions": [rule("written", "12"), rule("failed", "quota")],
        "seconds": 0.25, "outcome": {"after": 5.0},
    });
    assert_eq!(serde_json::to_value(entry).unwrap(), want);
}
