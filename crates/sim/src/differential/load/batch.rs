//! Jobs and CronJobs.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Act, Step, delete_with, of, path, pick};

fn job(ns: &str, name: &str, command: &[&str], mut spec: Value) -> Act {
    spec["template"] = json!({
        "metadata": { "labels": { "app": name } },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "main", "image": "work:1", "command": command }],
        },
    });
    of("batch/v1", "Job", ns, name, json!({ "spec": spec }))
}

/// Jobs that succeed, fail, run out of time, and go away after a time.
pub(super) fn jobs(random: &mut Rng, ns: &str) -> Vec<Step> {
    let completions = random.usize(2..6);
    vec![
        vec![
            job(ns, "simple", &["sleep", "1"], json!({ "completions": completions, "parallelism": 2 })),
            job(
                ns,
                "indexed",
                &["sleep", "1"],
                json!({ "completionMode": "Indexed", "completions": completions, "parallelism": 3 }),
            ),
            job(ns, "failing", &["false"], json!({ "backoffLimit": 0 })),
            job(ns, "again", &["false"], json!({ "backoffLimit": 1 })),
            job(ns, "brief", &["sleep", "1"], json!({ "ttlSecondsAfterFinished": 2 })),
            job(ns, "late", &["sleep", "3600"], json!({ "activeDeadlineSeconds": 4, "parallelism": 2 })),
        ],
        vec![job(
            ns,
            "elastic",
            &["sleep", "3600"],
            json!({ "completionMode": "Indexed", "completions": 3, "parallelism": 3 }),
        )],
        vec![Act::Patch(
            path("batch/v1", ns, "jobs", "elastic"),
            json!({ "spec": { "completions": 2, "parallelism": 2 } }),
        )],
        vec![delete_with(path("batch/v1", ns, "jobs", "elastic"), pick(random, &["Foreground", "Background"]))],
        vec![delete_with(path("batch/v1", ns, "jobs", "simple"), pick(random, &["Orphan", "Background"]))],
    ]
}

/// Policies for failures and for success, limits per index.
pub(super) fn policies(random: &mut Rng, ns: &str) -> Vec<Step> {
    let policy = |action: &str| {
        json!({ "rules": [
        { "action": action, "onExitCodes": { "containerName": "main", "operator": "In", "values": [3] } },
    ] })
    };
    let action = pick(random, &["FailJob", "FailIndex"]);
    vec![
        vec![
            job(
                ns,
                "judged",
                &["sh", "-c", "exit 3"],
                json!({
                    "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1,
                    "podFailurePolicy": policy(action),
                }),
            ),
            job(
                ns,
                "few-losses",
                &["false"],
                json!({
                    "completionMode": "Indexed", "completions": 4, "parallelism": 1, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1,
                }),
            ),
            job(
                ns,
                "early",
                &["sleep", "1"],
                json!({
                    "completionMode": "Indexed", "completions": 4, "parallelism": 4,
                    // Fewer would depend on which of them end first.
                "successPolicy": { "rules": [{ "succeededIndexes": "0-3" }] },
                }),
            ),
        ],
        vec![job(ns, "foreign", &["true"], json!({ "managedBy": "example.com/other" }))],
        vec![job(ns, "replaced", &["sleep", "3600"], json!({ "podReplacementPolicy": "Failed", "parallelism": 2 }))],
        vec![Act::DeletePods { namespace: ns.to_owned(), selector: "app=replaced", count: 1 }],
    ]
}

/// Jobs that are suspended and resumed.
pub(super) fn suspended(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("batch/v1", ns, "jobs", name);
    let suspend = |name: &str, is: bool| Act::Patch(at(name), json!({ "spec": { "suspend": is } }));
    vec![
        vec![
            job(
                ns,
                "asleep",
                &["sleep", "2"],
                json!({ "suspend": true, "completions": 2, "parallelism": random.usize(1..3) }),
            ),
            job(ns, "awake", &["sleep", "3600"], json!({ "parallelism": 2, "completions": 2 })),
        ],
        vec![suspend("asleep", false), suspend("awake", true)],
        vec![suspend("awake", false)],
        vec![Act::Patch(at("awake"), json!({ "spec": { "parallelism": random.usize(..4) } }))],
    ]
}

/// Schedules of one minute with each policy, and some that never fire.
pub(super) fn cron_jobs(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("batch/v1", ns, "cronjobs", name);
    let made = |name: &str, schedule: &str, policy: &str, more: Value| {
        let mut spec = json!({
            "schedule": schedule, "concurrencyPolicy": policy, "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
            "jobTemplate": { "metadata": { "labels": { "from": name } }, "spec": { "backoffLimit": 0, "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "restartPolicy": "Never", "containers": [
                    { "name": "main", "image": "work:1", "command": ["sleep", "1"] },
                ] },
            } } },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        of("batch/v1", "CronJob", ns, name, json!({ "spec": spec }))
    };
    vec![
        vec![
            made(
                "minutely",
                "* * * * *",
                pick(random, &["Allow", "Forbid", "Replace"]),
                json!({ "startingDeadlineSeconds": 120 }),
            ),
            made("leaper", "0 0 30 2 *", "Allow", json!({})),
            made("zoned", "@yearly", "Allow", json!({ "timeZone": "Europe/Paris" })),
            made("asleep", "* * * * *", "Allow", json!({ "suspend": true })),
        ],
        vec![],
        vec![Act::Patch(at("asleep"), json!({ "spec": { "schedule": "0 0 1 1 *", "suspend": false } }))],
        vec![delete_with(at("minutely"), "Background")],
    ]
}
