//! The replica calculator: upstream's cases, and the grouping of pods.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::MicroTime;
use steersman_model::core::PodView;
use steersman_testing::objects::merged;

use crate::horizontal_pod_autoscaler::calculator::{Pods, Proposal, Target, Tolerances, total};
use crate::horizontal_pod_autoscaler::readiness::{Grouped, Reading, Readings, Youth, grouped};
use crate::horizontal_pod_autoscaler::requests::requests;
use crate::test_objects::{self, now, terminating};

pub(super) const TENTH: Tolerances = Tolerances { down: 0.1, up: 0.1 };
const EXACT: Tolerances = Tolerances { down: 0.0, up: 0.0 };
const HUNDREDTH_UP: Tolerances = Tolerances { down: 0.1, up: 0.01 };

fn youth() -> Youth {
    Youth {
        cpu_initialization_period: Duration::from_secs(120),
        initial_readiness_delay: Duration::from_secs(10),
        now: MicroTime::from(now()),
    }
}

/// A pod by a letter: ready, unready (and never was ready), hot (started a moment ago), failed, deleted, pending.
fn pod(number: usize, letter: char, request: &str) -> Arc<PodView> {
    let ago = |seconds: i64| now().plus_seconds(-seconds);
    let phase = match letter {
        'f' => "Failed",
        'p' => "Pending",
        _ => "Running",
    };
    let ready = if "rhd".contains(letter) { "True" } else { "False" };
    let started = if letter == 'h' { ago(30) } else { ago(600) };
    let requests = if request.is_empty() { json!({}) } else { json!({ "requests": { "cpu": request } }) };
    let object = json!({
        "spec": { "containers": [{ "name": "main", "resources": requests }] },
        "status": {
            "phase": phase, "startTime": started,
            "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": started }],
        },
    });
    let object = if letter == 'd' { merged(object, terminating()) } else { object };
    test_objects::pod(&format!("pod-{number}"), object)
}

fn pods(letters: &str, requests: &[&str]) -> Vec<Arc<PodView>> {
    let request = |number: usize| requests.get(number).or(requests.last()).copied().unwrap_or("1");
    letters.chars().enumerate().map(|(number, letter)| pod(number, letter, request(number))).collect()
}

/// Readings of the first pods, taken in the minute before a hot pod was 30 seconds old.
fn readings(levels: &[i64]) -> Readings {
    let reading = |(number, value): (usize, &i64)| {
        let reading = Reading { value: *value, at: Some(now()), window: Duration::from_secs(60) };
        (format!("pod-{number}").as_str().into(), reading)
    };
    levels.iter().enumerate().map(reading).collect()
}

fn by_utilization(
    (current, letters): (i32, &str),
    requests_of: &[&str],
    levels: &[i64],
    percent: i32,
    tolerances: Tolerances,
) -> Result<Proposal, String> {
    let pods = pods(letters, requests_of);
    let of = Pods { current, pods: &pods, youth: youth(), tolerances };
    let target = || Ok(Target::Utilization { percent, requests: requests(&pods, None, "cpu", true)? });
    of.by_readings(readings(levels), "cpu", target)
}

#[test]
fn utilization_is_brought_to_its_target() {
    let check = |name: &str, given: (i32, &str), levels: &[i64], percent: i32, want: (i32, i32, i64)| {
        let got = by_utilization(given, &[], levels, percent, TENTH);
        let (replicas, utilization, usage) = want;
        assert_eq!(got, Ok(Proposal { replicas, usage, utilization: Some(utilization) }), "{name}");
    };
    check("up", (3, "rrr"), &[300, 500, 700], 30, (5, 50, 500));
    check("up, less with an unready pod", (3, "urr"), &[300, 500, 700], 30, (4, 60, 600));
    check("up, less with a hot pod", (3, "hrr"), &[300, 500, 700], 30, (4, 60, 600));
    check("unready pods keep it from growing", (3, "ruu"), &[400, 500, 700], 30, (3, 40, 400));
    check("hot pods, too", (3, "rhh"), &[400, 500, 700], 30, (3, 40, 400));
    check("failed pods do not count", (2, "rrff"), &[500, 700], 30, (4, 60, 600));
    check("nor terminating ones", (2, "rrdd"), &[500, 700, 9000, 9000], 30, (4, 60, 600));
    check("down", (5, "rrrrr"), &[100, 300, 500, 250, 250], 50, (3, 28, 280));
    check("down, without unready pods", (5, "rrruu"), &[100, 300, 500, 250, 250], 50, (2, 30, 300));
    check("down, without pending pods", (5, "rpppp"), &[100], 50, (1, 10, 100));
    check("down, without hot pods", (5, "rrrhh"), &[100, 300, 500, 250, 250], 50, (2, 30, 300));
    check("down, without failed pods", (5, "rrrrrff"), &[100, 300, 500, 250, 250], 50, (3, 28, 280));
    check(
        "readings of other pods do not count",
        (4, "rrrr"),
        &[4000, 9500, 3000, 7000, 3200, 2000],
        100,
        (24, 587, 5875),
    );
    check("down with missing readings", (4, "rrrr"), &[400, 95], 100, (3, 24, 247));
    check("missing, at the target", (2, "rr"), &[1000], 100, (2, 100, 1000));
    check("missing, above the target", (2, "rr"), &[1900], 100, (2, 190, 1900));
    check("missing, below the target", (2, "rr"), &[600], 100, (2, 60, 600));
    check("unready and missing", (3, "urr"), &[100, 450], 50, (3, 45, 450));
    check("hot and missing", (3, "hrr"), &[100, 450], 50, (3, 45, 450));
    check("up, unready and missing", (3, "urr"), &[100, 2000], 50, (4, 200, 2000));
    check("down, unready and missing", (4, "urrr"), &[100, 100, 100], 50, (3, 10, 100));
    check("a surplus pod of a rolling update without a reading", (2, "rrr"), &[100, 100], 50, (2, 10, 100));
}

#[test]
fn small_deviations_are_left_alone_as_tolerances_say() {
    let mixed = ["900m", "1", "1100m"];
    let check = |levels: &[i64], tolerances: Tolerances, want: i32| {
        let got = by_utilization((3, "rrr"), &mixed, levels, 100, tolerances).unwrap();
        assert_eq!(got.replicas, want, "{levels:?} {tolerances:?}");
    };
    check(&[1010, 1030, 1020], TENTH, 3);
    check(&[909, 1010, 1111], EXACT, 4);
    check(&[889, 990, 1089], EXACT, 3);
    check(&[1010, 1030, 1020], HUNDREDTH_UP, 4);
    check(&[700, 800, 900], TENTH, 3);
    check(&[600, 700, 700], TENTH, 2);
}

#[test]
fn a_missing_reading_counts_as_the_target_if_that_is_above_the_request() {
    let got = by_utilization((4, "urrr"), &["1", "1", "2", "2"], &[200, 100, 100], 300, TENTH).unwrap();
    assert_eq!((got.replicas, got.utilization, got.usage), (2, Some(6), 100));
}

#[test]
fn without_readings_requests_or_pods_there_is_no_proposal() {
    let check = |name: &str, letters: &str, requests: &[&str], levels: &[i64], want: &str| {
        let error = by_utilization((1, letters), requests, levels, 100, TENTH).unwrap_err();
        assert_eq!(error, want, "{name}");
    };
    check("no pods", "", &[], &[100], "no pods returned by selector while calculating replica count");
    let unready = "did not receive metrics for targeted pods (pods might be unready)";
    check("all unready", "uu", &[], &[100, 100], unready);
    check("no readings", "rr", &[], &[], unready);
    check("no request", "r", &[""], &[100], "missing request for cpu in container main of Pod pod-0");
    check("requests of nothing", "r", &["0"], &[100], "no metrics returned matched known pods");
    let mut strange = readings(&[100]);
    let reading = strange.remove("pod-0").unwrap();
    strange.insert("older".into(), reading);
    let pods = pods("r", &[]);
    let of = Pods { current: 1, pods: &pods, youth: youth(), tolerances: TENTH };
    let target = || Ok(Target::Utilization { percent: 100, requests: requests(&pods, None, "cpu", true)? });
    let error = of.by_readings(strange, "cpu", target).unwrap_err();
    assert_eq!(error, "no metrics returned matched known pods");
}

#[test]
fn averages_of_pods_are_brought_to_their_target() {
    let check = |name: &str, (current, letters): (i32, &str), levels: &[i64], target: i64, by: Tolerances, want| {
        let pods = pods(letters, &[""]);
        let of = Pods { current, pods: &pods, youth: youth(), tolerances: by };
        let got = of.by_readings(readings(levels), "", || Ok(Target::Average(target))).unwrap();
        assert_eq!((got.replicas, got.usage, got.utilization), want, "{name}");
    };
    check("up", (3, "rrr"), &[20_000, 10_000, 30_000], 15_000, TENTH, (4, 20_000, None));
    check("readiness counts for cpu only", (3, "rru"), &[50_000, 10_000, 30_000], 15_000, TENTH, (6, 30_000, None));
    check("nor does youth", (3, "hrh"), &[50_000, 15_000, 30_000], 15_000, TENTH, (7, 31_666, None));
    check("down", (5, "rrrrr"), &[12_000; 5], 20_000, TENTH, (3, 12_000, None));
    check("within the tolerance", (3, "rrr"), &[20_000, 21_000, 21_000], 20_000, TENTH, (3, 20_666, None));
    check("beyond a smaller one", (3, "rrr"), &[20_000, 21_000, 21_000], 20_000, HUNDREDTH_UP, (4, 20_666, None));
    check("missing readings", (5, "rrrrr"), &[20_000, 19_000, 21_000], 20_000, TENTH, (5, 20_000, None));
    check("a surplus pod without a reading", (2, "rrr"), &[10_000, 10_000], 17_000, TENTH, (2, 10_000, None));
}

#[test]
fn a_value_of_an_object_is_shared_by_the_ready_pods() {
    let check = |name: &str, (current, letters): (i32, &str), usage: i64, target: i64, by: Tolerances, want: i32| {
        let pods = pods(letters, &[]);
        let of = Pods { current, pods: &pods, youth: youth(), tolerances: by };
        let want = Proposal { replicas: want, usage, utilization: None };
        assert_eq!(of.by_value(usage, target), Ok(want), "{name}");
    };
    check("up", (3, "rrr"), 20_000, 15_000, TENTH, 4);
    check("far up", (3, "rrr"), i64::MAX, 1, TENTH, i32::MAX);
    check("unready pods do not count", (3, "uru"), 50_000, 10_000, TENTH, 5);
    check("so that it goes down", (3, "uru"), 8_600, 4_400, TENTH, 2);
    check("down", (5, "rrrrr"), 12_000, 20_000, TENTH, 3);
    check("within the tolerance", (3, "rrr"), 20_666, 20_000, TENTH, 3);
    check("beyond a smaller one", (3, "rrr"), 20_666, 20_000, HUNDREDTH_UP, 4);
    check("from zero", (0, ""), 2_500, 1_000, TENTH, 3);
    check("from zero, with nothing to do", (0, ""), 0, 1_000, TENTH, 0);
    check("to zero", (1, "r"), 0, 1_000, TENTH, 0);
    let nobody = Pods { current: 1, pods: &[], youth: youth(), tolerances: TENTH };
    let error = nobody.by_value(9_000, 1_000).unwrap_err();
    let want = "unable to calculate ready pods: no pods returned by selector while calculating replica count";
    assert_eq!(error, want);
}

#[test]
fn a_value_per_pod_is_divided_by_the_counted_pods() {
    let check = |name: &str, counted: i32, usage: i64, target: i64, by: Tolerances, want: (i32, i64)| {
        let of = Pods { current: counted, pods: &[], youth: youth(), tolerances: by };
        let got = of.by_share(usage, target, counted);
        assert_eq!((got.replicas, got.usage), want, "{name}");
    };
    check("up", 3, 8_600, 2_150, TENTH, (4, 2_867));
    check("down", 5, 8_600, 2_867, TENTH, (3, 1_720));
    check("within the tolerance", 3, 8_600, 2_900, TENTH, (3, 2_867));
    check("beyond a smaller one", 3, 8_600, 2_800, HUNDREDTH_UP, (4, 2_867));
    check("object, up", 3, 20_000, 5_000, TENTH, (4, 6_667));
    check("object, within", 4, 20_166, 5_000, TENTH, (4, 5_042));
    check("object, beyond", 4, 20_208, 5_000, HUNDREDTH_UP, (5, 5_052));
    check("as many as there can be", 1, i64::MAX, 1, TENTH, (i32::MAX, i64::MAX));
    check("a huge target", 1, i64::MAX, i64::MAX, TENTH, (1, i64::MAX));
    check("from zero", 0, 2_500, 1_000, TENTH, (3, 2_500));
    check("nothing at zero", 0, 0, 1_000, TENTH, (0, 0));
    check("less than nothing", 2, -4_000, 1_000, TENTH, (-4, -2_000));
    assert_eq!(total(&[i64::MAX / 2 + 1, i64::MAX / 2 + 1]), i64::MAX);
    assert_eq!(total(&[1, 2, -4]), -1);
}

#[test]
fn young_pods_count_by_their_readiness_and_the_time_of_the_reading() {
    let ago = |seconds: i64| now().plus_seconds(-seconds);
    let check =
        |name: &str, started: Option<i64>, ready: &str, changed: i64, read: (i64, u64), resource: &str, want| {
            let conditions = match ready {
                "" => json!([]),
                ready => json!([{ "type": "Ready", "status": ready, "lastTransitionTime": ago(changed) }]),
            };
            let pod = test_objects::pod(
                "a",
                json!({ "status": { "phase": "Running", "startTime": started.map(ago), "conditions": conditions } }),
            );
            let (at, window) = read;
            let reading = Reading { value: 1, at: Some(ago(at)), window: Duration::from_secs(window) };
            let readings = Readings::from([("a".into(), reading)]);
            let got = grouped(&[pod], &readings, resource, &youth());
            let unready = Grouped { unready: ["a".into()].into(), ..Grouped::default() };
            let ready = Grouped { ready: 1, ..Grouped::default() };
            assert_eq!(got, if want { ready } else { unready }, "{name}");
        };
    check("old and ready", Some(600), "True", 590, (10, 60), "cpu", true);
    check("old and unready since its start", Some(600), "False", 595, (10, 60), "cpu", false);
    check("old, and unready after it was ready", Some(600), "False", 300, (10, 60), "cpu", true);
    check("old, unready right at the delay", Some(600), "False", 590, (10, 60), "cpu", true);
    check("young and unready", Some(60), "False", 10, (5, 1), "cpu", false);
    check("young, ready for longer than the window", Some(60), "True", 50, (10, 30), "cpu", true);
    check("young, ready for exactly the window", Some(60), "True", 40, (10, 30), "cpu", true);
    check("young, ready for less than the window", Some(60), "True", 30, (10, 30), "cpu", false);
    check("unknown readiness is not unreadiness", Some(600), "Unknown", 595, (10, 60), "cpu", true);
    check("no condition", Some(600), "", 0, (10, 60), "cpu", false);
    check("no start", None, "True", 590, (10, 60), "cpu", false);
    check("other resources do not care", None, "", 0, (10, 60), "memory", true);
}

#[test]
fn requests_are_those_of_the_pod_else_of_its_containers_and_sidecars() {
    let container = |name: &str, cpu: &str| match cpu {
        "" => json!({ "name": name }),
        cpu => json!({ "name": name, "resources": { "requests": { "cpu": cpu } } }),
    };
    let with = |mut container: Value, restart: &str| {
        container["restartPolicy"] = json!(restart);
        container
    };
    let check = |name: &str, spec: Value, container: Option<&str>, pod_level: bool, want: Result<i64, &str>| {
        let pod = test_objects::pod("p", json!({ "spec": spec }));
        let got = requests(&[pod], container, "cpu", pod_level).map(|requests| requests["p"]);
        assert_eq!(got, want.map_err(str::to_owned), "{name}");
    };
    let two = json!({ "containers": [container("a", "100m"), container("b", "1")] });
    check("the sum", two.clone(), None, true, Ok(1100));
    check("of one", two.clone(), Some("b"), true, Ok(1000));
    check("of nobody", two, Some("c"), true, Err("container c not found in Pod p"));
    let one_without = json!({ "containers": [container("a", "100m"), container("b", "")] });
    check("one has none", one_without.clone(), None, true, Err("missing request for cpu in container b of Pod p"));
    check("another one has", one_without, Some("a"), true, Ok(100));
    let init = json!({
        "containers": [container("a", "100m")],
        "initContainers": [with(container("side", "50m"), "Always"), container("init", "5")],
    });
    check("sidecars count, init containers do not", init.clone(), None, true, Ok(150));
    check("a sidecar alone", init.clone(), Some("side"), true, Ok(50));
    let pod_level = |requests: Value| merged(init.clone(), json!({ "resources": { "requests": requests } }));
    check("at pod level", pod_level(json!({ "cpu": "2" })), None, true, Ok(2000));
    check("a container goes before", pod_level(json!({ "cpu": "2" })), Some("a"), true, Ok(100));
    check("the gate is off", pod_level(json!({ "cpu": "2" })), None, false, Ok(150));
    check("another resource at pod level", pod_level(json!({ "memory": "1Gi" })), None, true, Ok(5050));
    let overhead = merged(pod_level(json!({ "cpu": "2" })), json!({ "overhead": { "cpu": "250m" } }));
    check("with overhead", overhead, None, true, Ok(2250));
    let nothing = json!({ "containers": [container("a", "")], "resources": { "requests": { "memory": "1Gi" } } });
    check("nowhere", nothing, None, true, Err("missing pod-level request for cpu in Pod p"));
}
