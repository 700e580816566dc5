//! Table tests of the pure functions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{MicroTime, Time};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::batch::{CronJobView, JobView};

use super::due::{self, Due, Impossible, Missed};
use super::plan::{self, Notice, Plan, Start};
use super::{active, history, map};
use crate::test_objects::{NOW, decode, merged, terminating};

/// Returns a CronJob that is due every hour, and was started for eleven o'clock.
fn cron_job(more: Value) -> CronJobView {
    let metadata = json!({
        "name": "report", "namespace": "default", "uid": "cron", "creationTimestamp": "2026-11-01T00:00:00Z",
    });
    let spec = json!({
        "schedule": "0 * * * *", "concurrencyPolicy": "Allow", "suspend": false,
        "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
        "jobTemplate": { "metadata": { "labels": { "a": "b" } }, "spec": { "template": {} } },
    });
    let status = json!({ "lastScheduleTime": "2026-11-15T11:00:00Z" });
    decode(merged(json!({ "metadata": metadata, "spec": spec, "status": status }), more))
}

/// Returns a running Job that the controller made.
fn job(name: &str, more: Value) -> Arc<JobView> {
    let stamp = json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-15T11:00:00Z" });
    let metadata = json!({ "name": name, "namespace": "default", "uid": name, "annotations": stamp });
    Arc::new(decode(merged(json!({ "metadata": metadata }), more)))
}

fn ended(condition: &str, start: &str) -> Value {
    let conditions = json!([{ "type": condition, "status": "True" }]);
    json!({ "status": { "conditions": conditions, "startTime": start, "completionTime": start } })
}

fn listed(names: &[&str]) -> Value {
    let entry = |name: &&str| json!({ "kind": "Job", "namespace": "default", "name": name, "uid": name });
    json!({ "status": { "active": names.iter().map(entry).collect::<Vec<_>>() } })
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

fn at(text: &str) -> MicroTime {
    time(text).into()
}

#[test]
fn the_last_missed_time_is_due() {
    let check = |name: &str, more: Value, now: &str, want: Result<Option<(&str, Missed)>, Impossible>| {
        let job = cron_job(more);
        let schedule = due::schedule(&job).unwrap();
        let got = due::due(&job, &schedule, time(now));
        assert_eq!(got, want.map(|due| due.map(|(at, missed)| Due { time: time(at), missed })), "{name}");
    };
    let noon = "2026-11-15T12:00:00Z";
    check("before the next time", json!({}), "2026-11-15T11:59:59Z", Ok(None));
    check("at the next time", json!({}), noon, Ok(Some((noon, Missed::None))));
    check("after it", json!({}), "2026-11-15T12:30:00Z", Ok(Some((noon, Missed::None))));
    check("several", json!({}), "2026-11-15T15:30:00Z", Ok(Some(("2026-11-15T15:00:00Z", Missed::Few))));
    check("very many", json!({}), "2026-11-25T15:30:00Z", Ok(Some(("2026-11-25T15:00:00Z", Missed::Many))));
    let new = json!({ "status": { "lastScheduleTime": null } });
    check("since it was created", new, "2026-11-01T00:30:00Z", Ok(None));
    let deadline = json!({ "spec": { "startingDeadlineSeconds": 7200 } });
    check("a deadline bounds it", deadline, "2026-11-25T15:30:00Z", Ok(Some(("2026-11-25T15:00:00Z", Missed::Few))));
    let every = json!({ "spec": { "schedule": "@every 1h30m" } });
    check(
        "an interval counts from the last",
        every,
        "2026-11-15T15:00:00Z",
        Ok(Some(("2026-11-15T14:00:00Z", Missed::Few))),
    );
    let never = json!({ "spec": { "schedule": "30 2 30 2 *" } });
    check("never", never, noon, Err(Impossible));
    let long_ago =
        json!({ "spec": { "schedule": "* * * * *" }, "status": { "lastScheduleTime": "1970-01-01T00:00:00Z" } });
    check("half a century of minutes", long_ago, noon, Ok(Some((noon, Missed::Many))));
    let uneven = json!({ "spec": { "schedule": "30 6-16/4 * * 1-5" }, "status": { "lastScheduleTime": "2026-11-13T14:30:00Z" } });
    check("uneven intervals", uneven, "2026-11-17T11:00:00Z", Ok(Some(("2026-11-17T10:30:00Z", Missed::Few))));
    let dense =
        json!({ "spec": { "schedule": "* * * 1 *" }, "status": { "lastScheduleTime": "2026-01-31T23:58:00Z" } });
    check(
        "a month of minutes after a gap",
        dense,
        "2027-01-20T00:00:30Z",
        Ok(Some(("2027-01-20T00:00:00Z", Missed::Few))),
    );
}

/// A clock that was wrong, or a manager that was away: bounded work, and never a time twice.
#[test]
fn a_clock_that_jumps_starts_one_job_at_most() {
    let minutes = |last: &str| json!({ "spec": { "schedule": "* * * * *" }, "status": { "lastScheduleTime": last } });
    let start = |more: Value, now: &str| {
        let job = cron_job(more);
        let plan = plan::plan(&job, &job.status, at(now));
        (plan.start.map(|start| start.time), plan.notices.len(), plan.again_in)
    };
    // A hundred thousand minutes were missed: the last one is started, and one warning sent.
    let (time_of, notices, wait) = start(minutes("2026-09-07T05:20:00Z"), "2026-11-15T12:00:30Z");
    assert_eq!((time_of, notices), (Some(time("2026-11-15T12:00:00Z")), 1));
    assert_eq!(wait.map(|wait| wait.as_secs()), Some(30));
    // Half a million seconds, counted from the last one.
    let every =
        json!({ "spec": { "schedule": "@every 1s" }, "status": { "lastScheduleTime": "2026-11-10T00:00:00Z" } });
    assert_eq!(start(every, "2026-11-15T12:00:30Z").0, Some(time("2026-11-15T12:00:30Z")));
    // The clock was set back by a day: nothing is started until it is there again, and nothing is reported.
    let (time_of, notices, wait) = start(minutes("2026-11-16T12:00:00Z"), "2026-11-15T12:00:30Z");
    assert_eq!((time_of, notices), (None, 0));
    assert_eq!(wait.map(|wait| wait.as_secs()), Some(24 * 3600 + 30));
    // It went ahead by ten years: one Job, for the last minute.
    let (time_of, notices, _) = start(minutes("2026-11-15T12:00:00Z"), "2036-11-15T12:00:30Z");
    assert_eq!((time_of, notices), (Some(time("2036-11-15T12:00:00Z")), 1));
}

#[test]
fn the_next_pass_comes_a_moment_after_the_next_time() {
    let wait = |more: Value, now: MicroTime| {
        let job = cron_job(more);
        due::next_in(&job, &due::schedule(&job).unwrap(), now)
    };
    let half = MicroTime::from_unix_micros(at("2026-11-15T11:59:58Z").unix_micros() + 500_000);
    assert_eq!(wait(json!({}), half), Some(Duration::from_millis(1600)));
    assert_eq!(wait(json!({}), at("2026-11-15T15:30:00Z")), Some(Duration::from_millis(30 * 60_000 + 100)));
    assert_eq!(wait(json!({ "spec": { "schedule": "30 2 30 2 *" } }), half), None);
}

fn planned(more: Value, now: &str) -> Plan {
    let job = cron_job(more);
    plan::plan(&job, &job.status, at(now))
}

#[test]
fn a_job_is_started_when_it_is_due_and_nothing_is_against_it() {
    let check = |name: &str, more: Value, want: Option<bool>, notices: &[&str]| {
        let plan = planned(more, "2026-11-15T12:00:05Z");
        let start = want.map(|is_replacement| Start { time: time("2026-11-15T12:00:00Z"), is_replacement });
        assert_eq!(plan.start, start, "{name}");
        let reasons: Vec<&str> = plan
            .notices
            .iter()
            .map(|notice| match notice {
                Notice::Normal(reason, _) | Notice::Warning(reason, _) => *reason,
            })
            .collect();
        assert_eq!(reasons, notices, "{name}");
    };
    let spec = |spec: Value| json!({ "spec": spec });
    check("it is due", json!({}), Some(false), &[]);
    check("another one runs", listed(&["report-1"]), Some(false), &[]);
    let forbid = spec(json!({ "concurrencyPolicy": "Forbid" }));
    check("forbidden, and none runs", forbid.clone(), Some(false), &[]);
    check("forbidden", merged(forbid, listed(&["report-1"])), None, &["JobAlreadyActive"]);
    check("replaced", spec(json!({ "concurrencyPolicy": "Replace" })), Some(true), &[]);
    check("suspended", spec(json!({ "suspend": true })), None, &[]);
    check("terminating", terminating(), None, &[]);
    check("started before", json!({ "status": { "lastScheduleTime": "2026-11-15T12:00:00Z" } }), None, &[]);
    check("listed before", listed(&["report-29912400"]), None, &[]);
    check("in time", spec(json!({ "startingDeadlineSeconds": 6 })), Some(false), &[]);
    check("an unknown zone", spec(json!({ "timeZone": "Mars/Base" })), None, &["UnknownTimeZone"]);
    check("no schedule", spec(json!({ "schedule": "x" })), None, &["UnparseableSchedule"]);
    check("an impossible one", spec(json!({ "schedule": "30 2 30 2 *" })), None, &["InvalidSchedule"]);
    check("a zone in it", spec(json!({ "schedule": "TZ=UTC 0 * * * *" })), Some(false), &["UnsupportedSchedule"]);
    let forgotten = json!({ "status": { "lastScheduleTime": "2026-11-01T00:00:00Z" } });
    check("very many were missed", forgotten, Some(false), &["TooManyMissedTimes"]);
}

#[test]
fn what_is_reported_is_in_upstreams_words() {
    let notices = |more: Value, now: &str| planned(more, now).notices;
    let spec = |spec: Value| json!({ "spec": spec });
    let zone = notices(spec(json!({ "timeZone": "Mars/Base" })), NOW);
    let text = "invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base";
    assert_eq!(zone, [Notice::Warning("UnknownTimeZone", text.to_owned())]);
    let text = "unparseable schedule: \"x\" : expected exactly 5 fields, found 1: [x]";
    assert_eq!(
        notices(spec(json!({ "schedule": "x" })), NOW),
        [Notice::Warning("UnparseableSchedule", text.to_owned())]
    );
    let text = "invalid schedule: 30 2 30 2 * : time difference between two schedules is less than 1 second";
    let impossible = notices(spec(json!({ "schedule": "30 2 30 2 *" })), NOW);
    assert_eq!(impossible, [Notice::Warning("InvalidSchedule", text.to_owned())]);
}

/// A deadline of no time at all cannot be met: the next time is waited for.
#[test]
fn a_deadline_of_zero_starts_nothing() {
    let late = MicroTime::from_unix_micros(at("2026-11-15T12:00:00Z").unix_micros() + 300_000);
    let job = cron_job(json!({ "spec": { "startingDeadlineSeconds": 0, "schedule": "0 12 * * *" },
        "status": { "lastScheduleTime": "2026-11-14T12:00:00Z" } }));
    let plan = plan::plan(&job, &job.status, late);
    assert_eq!(plan.start, None);
    let wait = plan.again_in.unwrap();
    assert!(wait > Duration::from_secs(23 * 3600), "{wait:?}");
}

#[test]
fn a_schedule_is_in_the_zone_of_the_cron_job() {
    let berlin = json!({ "spec": { "schedule": "30 13 * * *", "timeZone": "Europe/Berlin" },
        "status": { "lastScheduleTime": "2026-11-14T12:30:00Z" } });
    let plan = planned(berlin.clone(), "2026-11-15T12:30:01Z");
    assert_eq!(plan.start.map(|start| start.time), Some(time("2026-11-15T12:30:00Z")));
    assert_eq!(planned(berlin, "2026-11-15T12:29:59Z").start, None);
}

#[test]
fn a_job_is_the_template_with_a_name_and_a_time() {
    let body = |more: Value| -> Value {
        let job = cron_job(more);
        serde_json::from_slice(&plan::job_body(&job, time("2026-11-15T12:00:00Z"))).unwrap()
    };
    let made = body(json!({}));
    assert_eq!((&made["apiVersion"], &made["kind"]), (&json!("batch/v1"), &json!("Job")));
    assert_eq!(made["metadata"]["name"], "report-29912400");
    assert_eq!(made["metadata"]["labels"], json!({ "a": "b" }));
    assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "CronJob");
    assert_eq!(made["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(made["spec"], json!({ "template": {} }));
    let stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    assert_eq!(made["metadata"]["annotations"][stamp], "2026-11-15T12:00:00Z");
    let annotated = json!({ "spec": { "timeZone": "Asia/Kolkata",
        "jobTemplate": { "metadata": { "annotations": { "x": "y" } } } } });
    let made = body(annotated);
    assert_eq!(made["metadata"]["annotations"], json!({ "x": "y", stamp: "2026-11-15T17:30:00+05:30" }));
}

#[test]
fn the_list_of_running_jobs_is_kept_and_repaired() {
    let check = |name: &str, more: Value, jobs: &[Arc<JobView>], active: &[&str], notices: usize, unseen: usize| {
        let seen = active::look(&cron_job(more), jobs);
        let listed: Vec<&str> = seen.status.active.iter().map(|entry| &*entry.name).collect();
        assert_eq!((listed.as_slice(), seen.notices.len(), seen.unseen.len()), (active, notices, unseen), "{name}");
    };
    let running = [job("a", json!({}))];
    check("as it should be", listed(&["a"]), &running, &["a"], 0, 0);
    check("it was not noted", json!({}), &running, &["a"], 1, 0);
    let manual = json!({ "metadata": { "annotations": { "cronjob.kubernetes.io/instantiate": "manual" } } });
    check("somebody made it", json!({}), &[job("a", manual)], &[], 1, 0);
    let foreign = json!({ "metadata": { "annotations": null } });
    check("nobody knows who made it", json!({}), &[job("a", foreign)], &[], 1, 0);
    let over = [job("a", ended("Failed", NOW))];
    check("it has finished", listed(&["a", "b"]), &over, &["b"], 1, 1);
    check("it was not listed", json!({}), &over, &[], 0, 0);
    check("it is not there", listed(&["gone"]), &[], &["gone"], 0, 1);
}

#[test]
fn a_start_that_was_not_noted_is_found_by_its_job_and_not_made_again() {
    let noon = "2026-11-15T12:00:00Z";
    let stamped = |time: &str, more: Value| {
        let stamp = json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": time });
        merged(json!({ "metadata": { "annotations": stamp } }), more)
    };
    let check = |name: &str, jobs: &[Arc<JobView>], want: &str| {
        let cron_job = cron_job(json!({}));
        let seen = active::look(&cron_job, jobs).status;
        assert_eq!(seen.last_schedule_time, Some(time(want)), "{name}");
        let starts = plan::plan(&cron_job, &seen, at("2026-11-15T12:00:30Z")).start.is_some();
        assert_eq!(starts, want != noon, "{name}");
    };
    let before = "2026-11-15T11:00:00Z";
    check("no Job", &[], before);
    check("it has finished", &[job("report-29912400", stamped(noon, ended("Complete", noon)))], noon);
    check("it is terminating", &[job("report-29912400", stamped(noon, terminating()))], noon);
    check("in another zone", &[job("report-29912400", stamped("2026-11-15T17:30:00+05:30", json!({})))], noon);
    check("somebody copied the annotation", &[job("copy", stamped(noon, ended("Complete", noon)))], before);
    check("no time", &[job("report-29912400", stamped("noon", ended("Complete", noon)))], before);
}

#[test]
fn a_name_that_was_free_before_it_was_looked_up_is_tried_again() {
    let cron_job = cron_job(json!({}));
    let of = |uid: &str| {
        let owner =
            json!({ "apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": uid, "controller": true });
        job("report-1", json!({ "metadata": { "ownerReferences": [owner] } })).meta().clone()
    };
    let ours = of("cron");
    assert_eq!(active::holder(&cron_job, Some(ours.clone())), active::Holder::Ours(ours));
    assert_eq!(active::holder(&cron_job, Some(of("an older one"))), active::Holder::Another);
    assert_eq!(active::holder(&cron_job, None), active::Holder::Nobody);
}

#[test]
fn the_last_success_is_the_latest() {
    let check = |before: Value, jobs: &[Arc<JobView>], want: Option<&str>| {
        let job = cron_job(json!({ "status": { "lastSuccessfulTime": before } }));
        assert_eq!(active::look(&job, jobs).status.last_successful_time, want.map(time));
    };
    let early = "2026-11-15T10:00:00Z";
    let late = "2026-11-15T11:00:00Z";
    check(json!(null), &[], None);
    check(json!(null), &[job("a", ended("Complete", late)), job("b", ended("Complete", early))], Some(late));
    check(json!(late), &[job("b", ended("Complete", early))], Some(late));
    check(json!(early), &[job("b", ended("Failed", late))], Some(early));
}

#[test]
fn the_oldest_finished_jobs_go() {
    let hours = ["08", "05", "07", "06", "09"];
    let start = |hour: &str| format!("2026-11-15T{hour}:00:00Z");
    let mut jobs: Vec<_> = hours.iter().map(|hour| job(hour, ended("Complete", &start(hour)))).collect();
    jobs.push(job("bad-1", ended("Failed", &start("01"))));
    jobs.push(job("bad-2", ended("Failed", &start("02"))));
    jobs.push(job("runs", json!({})));
    let check = |more: Value, want: &[&str]| {
        let surplus = history::surplus(&cron_job(more), &jobs);
        let names: Vec<&str> = surplus.iter().map(|job| &*job.meta().name).collect();
        assert_eq!(names, want);
    };
    let limits = |good: Value, bad: Value| json!({ "spec": { "successfulJobsHistoryLimit": good, "failedJobsHistoryLimit": bad } });
    check(json!({}), &["05", "06", "bad-1"]);
    check(limits(json!(0), json!(0)), &["05", "06", "07", "08", "09", "bad-1", "bad-2"]);
    check(limits(json!(9), json!(9)), &[]);
    check(limits(json!(null), json!(1)), &["bad-1"]);
}

#[test]
fn a_new_schedule_takes_effect_at_its_next_time() {
    let now = at("2026-11-15T11:30:00Z");
    let delay = |old: Value, new: Value| {
        let change = Change::Updated { old: Arc::new(cron_job(old)), new: Arc::new(cron_job(new)) };
        map::delay(&change, now)
    };
    let daily = || json!({ "spec": { "schedule": "0 9 * * *" } });
    assert_eq!(delay(json!({}), json!({ "spec": { "suspend": true } })), Duration::ZERO);
    assert_eq!(delay(json!({}), daily()), Duration::from_millis((21 * 3600 + 1800) * 1000 + 100));
    let zone = merged(daily(), json!({ "spec": { "timeZone": "Asia/Tokyo" } }));
    assert_eq!(delay(daily(), zone), Duration::from_millis((12 * 3600 + 1800) * 1000 + 100));
    assert_eq!(delay(json!({}), json!({ "spec": { "schedule": "x" } })), Duration::ZERO, "the pass reports it");
}

#[test]
fn a_change_of_a_job_concerns_its_cron_job() {
    let owner = |uid: &str| {
        let owner =
            json!([{ "apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": uid, "controller": true }]);
        json!({ "metadata": { "ownerReferences": owner } })
    };
    let owners = |more: Value| {
        let change = Change::Added { new: job("a", more), initial: false };
        map::owners(&change, |_| Some("cron".into())).len()
    };
    assert_eq!([owners(owner("cron")), owners(owner("other")), owners(json!({}))], [1, 0, 0]);
}

#[test]
fn what_a_running_job_counts_concerns_no_cron_job() {
    let owner =
        json!({ "apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": "cron", "controller": true });
    let owned = |more: Value| job("a", merged(json!({ "metadata": { "ownerReferences": [owner.clone()] } }), more));
    let is_concerned = |old: Value, new: Value| {
        let change = Change::Updated { old: owned(old), new: owned(new) };
        !map::owners(&change, |_| Some("cron".into())).is_empty()
    };
    let version = json!({ "metadata": { "resourceVersion": "8" } });
    let runs = json!({ "status": { "startTime": "2026-11-15T12:00:00Z", "active": 1, "ready": 1 } });
    let ends = json!({ "type": "SuccessCriteriaMet", "status": "True" });
    let ending = json!({ "status": { "succeeded": 1, "conditions": [ends] } });
    let complete = |time: &str| {
        let done = json!([ends, { "type": "Complete", "status": "True" }]);
        json!({ "status": { "succeeded": 1, "conditions": done, "completionTime": time } })
    };
    for (old, new) in [(json!({}), version), (json!({}), runs.clone()), (runs.clone(), ending.clone())] {
        assert!(!is_concerned(old.clone(), new.clone()), "{old} {new}");
    }
    for (old, new) in [
        (ending, complete("2026-11-15T12:00:05Z")),
        (complete("2026-11-15T12:00:05Z"), complete("2026-11-15T12:00:06Z")),
        (complete("2026-11-15T12:00:05Z"), runs.clone()),
        (runs.clone(), merged(runs.clone(), json!({ "metadata": { "deletionTimestamp": "2026-11-15T12:00:01Z" } }))),
        (runs.clone(), merged(runs.clone(), json!({ "metadata": { "annotations": { "a": "b" } } }))),
        (runs.clone(), merged(runs.clone(), json!({ "metadata": { "ownerReferences": [] } }))),
        (runs.clone(), merged(runs, json!({ "metadata": { "uid": "another" } }))),
    ] {
        assert!(is_concerned(old.clone(), new.clone()), "{old} {new}");
    }
}
