//! Events of kubelets, and their number.

use steersman_runtime::events::EventType;

use super::super::life::Life;
use super::*;

/// The events of a pod, one row per change.
#[test]
fn what_happens_is_reported_in_upstreams_words_and_order() {
    let start = |list: &str, name: &str| {
        ["Pulled", "Created", "Started"].map(|reason| format!("{reason} {list}{{{name}}}")).to_vec()
    };
    let check = |pod: &mut Pod, want: &[Vec<String>], why: &str| {
        assert_eq!(std::mem::take(&mut pod.events), want.concat(), "{why}");
    };
    let event = |text: &str| vec![text.to_owned()];

    let mut web = Pod::running(&[], "Always");
    check(web.after("1m"), &[start("containers", "main")], "it starts");
    web.unready = true;
    check(web.after("1m"), &[event("Unhealthy containers{main}")], "a fault, reported once");
    web.unready = false;
    check(web.after("1m"), &[], "well again");
    check(web.delete(30).after("1m"), &[event("Killing containers{main}")], "deleted");

    let containers = json!({
        "nodeName": "node-0", "restartPolicy": "Never",
        "initContainers": [
            { "name": "prepare", "image": "x", "command": ["true"] },
            { "name": "side", "image": "x", "restartPolicy": "Always" },
        ],
        "containers": [{ "name": "main", "image": "x", "command": ["sleep", "5"] }],
    });
    let mut job = Pod::new(&containers);
    let starts = [start("initContainers", "prepare"), start("initContainers", "side"), start("containers", "main")];
    check(job.after("2s"), &starts, "in order");
    check(job.after("10s"), &[event("Killing initContainers{side}")], "who ends by itself is not killed");
    check(job.delete(30).after("1m"), &[], "nothing runs any more");

    let mut crash = Pod::running(&["false"], "Always");
    let again = [start("containers", "main"), start("containers", "main"), event("BackOff containers{main}")];
    check(crash.after("5s"), &again, "the first restart comes at once");

    let mut late = Pod::running(&[], "Always");
    late.object["spec"]["activeDeadlineSeconds"] = 10.into();
    late.after("5s").events.clear();
    check(late.after("10s"), &[event("DeadlineExceeded"), event("Killing containers{main}")], "too long");

    let mut never = Pod::running(&[], "Always").annotated("never-ready", "yes");
    never.object["spec"]["containers"][0]["readinessProbe"] = json!({ "initialDelaySeconds": 1 });
    check(never.after("1m"), &[start("containers", "main"), event("Unhealthy containers{main}")], "never ready");
}

#[test]
fn an_event_reads_as_a_kubelets() {
    let view = Pod::running(&["false"], "Always").view();
    let life = Life::read(&view);
    let texts = |reported: Occurrence| -> Vec<(EventType, String)> {
        events(&life, &[reported])
            .into_iter()
            .map(|event| (event.type_, format!("{}: {}", event.reason, event.note)))
            .collect()
    };
    let normal = |text: &str| (EventType::Normal, text.to_owned());
    assert_eq!(
        texts(Occurrence::Started(0)),
        [
            normal(r#"Pulled: Container image "busybox:1" already present on machine and can be accessed by the pod"#),
            normal("Created: Container created"),
            normal("Started: Container started"),
        ]
    );
    assert_eq!(texts(Occurrence::Killed(0)), [normal("Killing: Stopping container main")]);
    let whom = "web_default(6cd4b5f0-1111-4222-8333-444455556666)";
    let back_off = format!("BackOff: Back-off restarting failed container main in pod {whom}");
    assert_eq!(texts(Occurrence::BackedOff(0)), [(EventType::Warning, back_off)]);
}

#[test]
fn an_invalid_annotation_is_reported_and_ignored() {
    for (name, value, want) in [
        ("run-time", "soon", "\"soon\" is no duration; write one as 500ms, 2s or 1m30s"),
        ("ready-delay.main", "-1s", "\"-1s\" is no duration; write one as 500ms, 2s or 1m30s"),
        ("exit-code", "300", "\"300\" is no exit code; write a number from 0 to 255"),
        ("runtime", "5s", "\"5s\" means nothing: no stage reads it"),
        ("start-delay.main", "0", ""),
        ("cpu-usage", "much", "\"much\" is no quantity; write one as 42, 500m or 64Mi"),
        ("memory-usage.main", "64Mi", ""),
        ("metric.requests-per-second", "20", ""),
    ] {
        let mut pod = Pod::running(&[], "Always").annotated(name, value);
        let complaints = pod.stages.complaints(&pod.view().metadata);
        let want: Vec<_> =
            (!want.is_empty()).then(|| format!("annotation nodes.steersman.dev/{name}: {want}")).into_iter().collect();
        assert_eq!(complaints, want);
        pod.after("1m");
        assert_eq!(pod.containers(), ["main runs, ready"], "{name}");
        assert_eq!(pod.events.iter().filter(|reported| *reported == "InvalidAnnotation").count(), want.len(), "once");
    }
    let mut crash = Pod::running(&[], "Never").annotated("crash-after", "5s").annotated("exit-code", "none");
    crash.after("1m");
    assert_eq!(crash.phase(), "Failed", "what can be read counts");
}

#[test]
fn a_flood_is_not_sent_and_the_budget_recovers_with_time() {
    let start = MicroTime::from(START).since_epoch();
    let later = |millis: u64| start + Duration::from_millis(millis);
    let mut budget = budget(START.into());
    assert_eq!((0..1000).filter(|_| budget.try_take(3, start)).count(), 166, "whole pods only");
    assert!(budget.try_take(2, start) && !budget.try_take(1, start));
    assert!(!budget.try_take(3, later(59)) && budget.try_take(1, later(60)), "fifty a second");
    let hour = later(3_600_000);
    assert!(!budget.try_take(501, hour) && budget.try_take(500, hour), "and no more than at first");
    assert!(!budget.try_take(1, start), "a clock that goes back gives nothing");
}
