//! Tables of stages.

use super::*;

#[test]
fn the_built_in_table_can_be_read() {
    Stages::parse(Stages::BUILT_IN).unwrap();
}

#[test]
fn a_table_that_makes_no_sense_is_refused_with_the_reason() {
    for (yaml, want) in [
        ("stages: [{name: a, on: nowhere, then: start}]", "nowhere"),
        ("stages: [{name: a, on: waiting, then: start, often: true}]", "often"),
        ("stages: [{name: a, on: waiting, then: remove}]", "stage \"a\": on waiting what can happen is start or stay"),
        ("stages: [{name: a, on: running, then: exit, code: 300}]", "from 0 to 255"),
        ("stages: [{name: a, on: waiting, then: start, delay: {duration: soon}}]", "\"soon\" is no duration"),
        ("stages: [{name: a, on: waiting, then: start, when: {labels: '='}}]", "labels"),
        ("just text", "cannot be read"),
    ] {
        let error = Stages::parse(yaml).unwrap_err().to_string();
        assert!(error.contains(want), "{yaml}: {error}");
    }
}

#[test]
fn without_a_stage_nothing_happens() {
    let mut pod = Pod::running(&["sleep", "infinity"], "Always");
    pod.stages = Stages::parse("stages: [{name: a, on: bound, then: accept}]").unwrap();
    pod.after("1h");
    assert_eq!(pod.containers(), ["main waits: ContainerCreating"]);
    assert_eq!((pod.phase(), pod.wake), ("Pending", None));
}

#[test]
fn a_stage_is_for_the_pods_it_matches() {
    let yaml = "
stages:
  - {name: accept, on: bound, then: accept}
  - {name: slow, on: waiting, then: start, when: {labels: 'tier in (slow)', namespace: default}, delay: {duration: 30s}}
  - {name: start, on: waiting, then: start, when: {container: main}}
";
    let mut pod = Pod::running(&["sleep", "infinity"], "Always");
    pod.stages = Stages::parse(yaml).unwrap();
    pod.after("0s");
    assert_eq!(pod.containers(), ["main runs"]);

    let mut slow = Pod::running(&["sleep", "infinity"], "Always");
    slow.object["metadata"]["labels"] = json!({ "tier": "slow" });
    slow.stages = Stages::parse(yaml).unwrap();
    slow.after("29s");
    assert_eq!(slow.containers(), ["main waits: ContainerCreating"]);
    slow.after("3s");
    assert_eq!(slow.containers(), ["main runs"]);
}

#[test]
fn jitter_is_the_same_whenever_it_is_asked() {
    let yaml = "
stages:
  - {name: accept, on: bound, then: accept}
  - {name: start, on: waiting, then: start, delay: {duration: 10s, jitter: 10s}}
";
    let wake = |uid: &str| {
        let mut pod = Pod::running(&["sleep", "infinity"], "Always");
        pod.object["metadata"]["uid"] = uid.into();
        pod.stages = Stages::parse(yaml).unwrap();
        pod.pass();
        pod.wake.unwrap()
    };
    let wakes: Vec<_> = (0..20).map(|number| wake(&format!("uid-{number}"))).collect();
    assert!(wakes.iter().all(|wake| (10..=21).contains(&wake.as_secs())), "{wakes:?}");
    assert!(wakes.iter().any(|wake| *wake != wakes[0]), "{wakes:?}");
    assert_eq!(wake("uid-7"), wakes[7]);
}

#[test]
fn the_table_in_the_documentation_can_be_read() {
    let page = include_str!("../../../../../docs/nodes.md");
    let table = page.split("```yaml").nth(1).and_then(|rest| rest.split("```").next()).expect("a table");
    Stages::parse(table).unwrap();
}

#[test]
fn stages_in_a_circle_end_a_step() {
    let yaml = "
stages:
  - {name: accept, on: bound, then: accept}
  - {name: start, on: waiting, then: start}
  - {name: end, on: running, then: exit}
  - {name: restart, on: ended, then: restart}
";
    let mut pod = Pod::running(&["sleep", "infinity"], "Always");
    pod.stages = Stages::parse(yaml).unwrap();
    pod.after("5s");
    assert_eq!(pod.containers(), ["main waits: CrashLoopBackOff, restarted 1"], "back-off breaks the circle");
}
