//! Tables of the time to live.

#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::MicroTime;
use steersman_informer::Change;
use steersman_model::batch::JobView;
use steersman_testing::objects;

use super::plan::{Due, NoFinishTime, delay, due};
use crate::test_objects::{merged, now, view};

fn at(micros: i64) -> MicroTime {
    MicroTime::from_unix_micros(now().unix() * 1_000_000 + micros)
}

/// Returns a Job that has ended this many seconds ago, and is kept for this time.
fn job(ttl: Value, condition: &str, ago: i64, more: Value) -> JobView {
    let time = now().plus_seconds(-ago);
    let end = json!([
        { "type": "Suspended", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z" },
        { "type": condition, "status": "True", "lastTransitionTime": time },
    ]);
    let finished = json!({ "spec": { "ttlSecondsAfterFinished": ttl }, "status": { "conditions": end } });
    view(&objects::job("sums"), merged(finished, more))
}

fn wait(micros: u64, is_skewed: bool) -> Result<Due, NoFinishTime> {
    Ok(Due::In { wait: Duration::from_micros(micros), is_skewed })
}

#[test]
fn a_finished_job_expires_after_its_time_to_live() {
    let check = |name: &str, job: JobView, now_micros: i64, want: Result<Due, NoFinishTime>| {
        assert_eq!(due(&job, at(now_micros)), want, "{name}");
    };
    let none = || json!({});
    let since = |ago: i64| Ok(Due::Since(now().plus_seconds(-ago)));
    check("no time to live", job(Value::Null, "Complete", 100, none()), 0, Ok(Due::Kept));
    check("it runs", job(json!(10), "SuccessCriteriaMet", 100, none()), 0, Ok(Due::Kept));
    check("it is about to fail", job(json!(10), "FailureTarget", 100, none()), 0, Ok(Due::Kept));
    check("complete", job(json!(10), "Complete", 100, none()), 0, since(90));
    check("failed", job(json!(10), "Failed", 10, none()), 0, since(0));
    check("zero", job(json!(0), "Failed", 0, none()), 0, since(0));
    check("not yet", job(json!(10), "Complete", 9, none()), 0, wait(1_000_000, false));
    check("nearly", job(json!(10), "Complete", 10, none()), -1, wait(1, false));
    check("in the future", job(json!(10), "Complete", -3600, none()), 0, wait(3_610_000_000, true));
    check("in the future, zero", job(json!(0), "Complete", -5, none()), 0, wait(5_000_000, true));
    let years = u64::try_from(i32::MAX).unwrap() * 1_000_000;
    check("for ever", job(json!(i32::MAX), "Complete", 0, none()), 0, wait(years, false));
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-11-15T12:00:00Z" } });
    check("it is being deleted", job(json!(0), "Complete", 1, deleted), 0, Ok(Due::Kept));
    let not_true = json!({ "status": { "conditions": [{ "type": "Complete", "status": "False" }] } });
    check("not complete", job(json!(0), "Complete", 1, not_true), 0, Ok(Due::Kept));
    let no_time = json!({ "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    check("nobody knows when", job(json!(0), "Complete", 1, no_time), 0, Err(NoFinishTime));
}

#[test]
fn a_changed_job_is_looked_at_when_it_expires() {
    let old = Arc::new(job(json!(10), "SuccessCriteriaMet", 0, json!({})));
    let new = Arc::new(job(json!(10), "Complete", 3, json!({})));
    let updated = |new: &Arc<JobView>| Change::Updated { old: Arc::clone(&old), new: Arc::clone(new) };
    assert_eq!(delay(&updated(&new), at(0)), Some(Duration::from_secs(7)));
    assert_eq!(delay(&updated(&new), at(8_000_000)), Some(Duration::ZERO));
    assert_eq!(delay(&updated(&old), at(0)), None, "it has not finished");
    assert_eq!(delay(&Change::Added { new, initial: true }, at(0)), Some(Duration::from_secs(7)));
}
