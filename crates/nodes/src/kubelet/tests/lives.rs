//! The lives of pods.

use super::*;

#[test]
fn a_pod_whose_stages_take_no_time_is_ready_with_one_write() {
    let mut pod = Pod::new(&json!({ "nodeName": "node-0", "containers": [{ "name": "main", "image": "nginx" }] }));
    pod.after("1h");
    assert_eq!((pod.phase(), pod.is("Ready"), pod.writes, pod.wake), ("Running", true, 1, None));
    for condition in ["PodReadyToStartContainers", "Initialized", "ContainersReady", "PodScheduled"] {
        assert!(pod.is(condition), "{condition}: {}", pod.object["status"]);
    }
    let status = &pod.object["status"];
    assert_eq!(status["podIP"], "10.128.0.2");
    assert_eq!(status["startTime"], json!(START));
    assert_eq!(status["observedGeneration"], 1);
    let container = &status["containerStatuses"][0];
    assert_eq!((&container["started"], &container["image"]), (&json!(true), &json!("nginx")));
    assert!(container["containerID"].as_str().unwrap().starts_with("steersman://"));
}

/// Checks a pod after some time: phase, containers.
#[test]
fn how_pods_end() {
    for (command, policy, time, phase, containers) in [
        (&["true"][..], "Never", "1s", "Succeeded", "main ended: 0"),
        (&["false"], "Never", "1s", "Failed", "main ended: 1"),
        (&["sleep", "5"], "Never", "4s", "Running", "main runs, ready"),
        (&["sleep", "5"], "Never", "7s", "Succeeded", "main ended: 0"),
        (&["sh", "-c", "sleep 5; exit 7"], "Never", "7s", "Failed", "main ended: 7"),
        (&["true"], "OnFailure", "1s", "Succeeded", "main ended: 0"),
        (&["false"], "OnFailure", "1s", "Running", "main waits: CrashLoopBackOff, restarted 1"),
        (&["false"], "OnFailure", "12s", "Running", "main waits: CrashLoopBackOff, restarted 2"),
        (&["true"], "Always", "1s", "Running", "main waits: CrashLoopBackOff, restarted 1"),
        (&["sleep", "5"], "Always", "10s", "Running", "main runs, ready, restarted 1"),
        // 10 s, 20 s, 40 s, 80 s, 160 s, then every 300 s.
        (&["false"], "Always", "1h", "Running", "main waits: CrashLoopBackOff, restarted 16"),
    ] {
        let mut pod = Pod::running(command, policy);
        pod.after(time);
        assert_eq!(
            (pod.phase(), pod.containers().join("; ").as_str()),
            (phase, containers),
            "{command:?} {policy} {time}"
        );
        let is_ready = containers.contains("ready");
        assert_eq!((pod.is("Ready"), pod.is("ContainersReady")), (is_ready, is_ready), "{command:?} {policy} {time}");
    }
}

#[test]
fn a_back_off_says_how_long_and_the_last_end_stays_visible() {
    let mut pod = Pod::running(&["false"], "Always");
    pod.after("11s");
    let container = pod.object["status"]["containerStatuses"][0].clone();
    assert_eq!(container["restartCount"], 2);
    let message = "back-off 20s restarting failed container=main \
                   pod=web_default(6cd4b5f0-1111-4222-8333-444455556666)";
    assert_eq!(container["state"]["waiting"]["message"], message);
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(container["lastState"]["terminated"]["containerID"], container["containerID"]);
}

#[test]
fn init_containers_run_one_by_one_and_sidecars_beside_the_others() {
    let init = |name: &str, command: &[&str]| json!({ "name": name, "image": "busybox", "command": command });
    let mut sidecar = init("side", &["sleep", "infinity"]);
    sidecar["restartPolicy"] = "Always".into();
    let mut pod = Pod::new(&json!({
        "nodeName": "node-0",
        "restartPolicy": "Never",
        "initContainers": [init("first", &["sleep", "5"]), sidecar, init("second", &["sleep", "5"])],
        "containers": [{ "name": "main", "image": "busybox", "command": ["sleep", "10"] }],
    }));
    for (time, phase, initialized, containers) in [
        (
            "1s",
            "Pending",
            false,
            "first runs; side waits: PodInitializing; second waits: PodInitializing; main waits: PodInitializing",
        ),
        ("6s", "Pending", false, "first ended: 0, ready; side runs, ready; second runs; main waits: PodInitializing"),
        ("6s", "Running", true, "first ended: 0, ready; side runs, ready; second ended: 0, ready; main runs, ready"),
        // The sidecar ends with the main containers.
        ("12s", "Succeeded", true, "first ended: 0, ready; side ended: 0; second ended: 0, ready; main ended: 0"),
    ] {
        pod.after(time);
        let words = pod.containers().join("; ");
        assert_eq!((pod.phase(), pod.is("Initialized"), words.as_str()), (phase, initialized, containers));
    }
    let message = |pod: &Pod, condition: &str| {
        let conditions = pod.object["status"]["conditions"].as_array().unwrap();
        let held = conditions.iter().find(|held| held["type"] == condition).unwrap();
        format!("{} {}", held["reason"].as_str().unwrap_or_default(), held["message"].as_str().unwrap_or_default())
    };
    assert_eq!(message(&pod, "Ready"), "PodCompleted ");

    let mut waiting = Pod::new(&json!({
        "nodeName": "node-0",
        "initContainers": [init("first", &["sleep", "infinity"]), init("second", &["true"])],
        "containers": [{ "name": "main", "image": "busybox" }],
    }));
    waiting.after("1s");
    assert_eq!(
        message(&waiting, "Initialized"),
        "ContainersNotInitialized containers with incomplete status: [first second]"
    );
    assert_eq!(message(&waiting, "Ready"), "ContainersNotReady containers with unready status: [main]");
}

#[test]
fn a_failed_init_container_fails_the_pod_or_is_tried_again() {
    for (policy, phase, containers) in [
        ("Never", "Failed", "init ended: 1; main waits: PodInitializing"),
        ("OnFailure", "Pending", "init waits: CrashLoopBackOff, restarted 1; main waits: PodInitializing"),
        ("Always", "Pending", "init waits: CrashLoopBackOff, restarted 1; main waits: PodInitializing"),
    ] {
        let mut pod = Pod::new(&json!({
            "nodeName": "node-0",
            "restartPolicy": policy,
            "initContainers": [{ "name": "init", "image": "busybox", "command": ["false"] }],
            "containers": [{ "name": "main", "image": "busybox" }],
        }));
        pod.after("1s");
        assert_eq!((pod.phase(), pod.containers().join("; ").as_str()), (phase, containers), "{policy}");
    }
}

#[test]
fn a_sidecar_is_started_again_whatever_the_policy() {
    let mut pod = Pod::new(&json!({
        "nodeName": "node-0",
        "restartPolicy": "Never",
        "initContainers": [
            { "name": "side", "image": "busybox", "command": ["sh", "-c", "sleep 5; exit 1"], "restartPolicy": "Always" },
        ],
        "containers": [{ "name": "main", "image": "busybox" }],
    }));
    pod.after("8s");
    assert_eq!(pod.containers(), ["side runs, ready, restarted 1", "main runs, ready"]);
    assert_eq!((pod.phase(), pod.is("Initialized")), ("Running", true));
}

#[test]
fn annotations_script_a_pod() {
    let forever = || Pod::running(&["sleep", "infinity"], "Never");
    for (annotations, time, phase, containers) in [
        (&[("start-delay", "10s")][..], "9s", "Pending", "main waits: ContainerCreating"),
        (&[("start-delay", "10s")], "12s", "Running", "main runs, ready"),
        (&[("ready-delay", "10s")], "9s", "Running", "main runs"),
        (&[("ready-delay", "10s")], "12s", "Running", "main runs, ready"),
        (&[("never-ready", "")], "1h", "Running", "main runs"),
        (&[("run-time", "30s")], "29s", "Running", "main runs, ready"),
        (&[("run-time", "30s")], "32s", "Succeeded", "main ended: 0"),
        (&[("run-time", "30s"), ("exit-code", "3")], "32s", "Failed", "main ended: 3"),
        (&[("crash-after", "30s")], "32s", "Failed", "main ended: 1"),
        (&[("exit-code", "4")], "1s", "Failed", "main ended: 4"),
        (&[("exit-code.other", "4")], "1s", "Running", "main runs, ready"),
        (&[("exit-code.main", "4")], "1s", "Failed", "main ended: 4"),
        // Invalid values are ignored.
        (&[("start-delay", "soon")], "1s", "Running", "main runs, ready"),
    ] {
        let mut pod = annotations.iter().fold(forever(), |pod, (name, value)| pod.annotated(name, value));
        pod.after(time);
        assert_eq!((pod.phase(), pod.containers().join("; ").as_str()), (phase, containers), "{annotations:?} {time}");
    }
}

#[test]
fn a_probe_is_asked_when_its_time_has_come() {
    let container = json!({ "name": "main", "image": "nginx", "readinessProbe": { "initialDelaySeconds": 5 } });
    let mut pod = Pod::new(&json!({ "nodeName": "node-0", "containers": [container] }));
    pod.after("4s");
    assert!(!pod.is("Ready"));
    pod.after("3s");
    assert!(pod.is("Ready"));
}

#[test]
fn others_have_a_word_in_readiness_with_gates() {
    let mut pod = Pod::new(&json!({
        "nodeName": "node-0",
        "containers": [{ "name": "main", "image": "nginx" }],
        "readinessGates": [{ "conditionType": "example.dev/open" }],
    }));
    pod.after("1s");
    assert!(pod.is("ContainersReady") && !pod.is("Ready"));
    let conditions = pod.object["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({ "type": "example.dev/open", "status": "True" }));
    pod.after("1s");
    assert!(pod.is("Ready"));
}

#[test]
fn a_deleted_pod_stops_within_its_grace_period_and_goes() {
    let mut pod = Pod::running(&["nginx"], "Always");
    pod.after("10s").delete(30).after("0s");
    assert!(pod.removed, "a server ends when it is stopped");

    let mut slow = Pod::running(&["nginx"], "Always").annotated("stop-delay", "10s");
    slow.after("10s").delete(30).after("9s");
    assert_eq!((slow.removed, slow.containers()), (false, vec!["main runs, ready".to_owned()]));
    slow.after("3s");
    assert!(slow.removed);

    let mut stubborn = Pod::running(&["nginx"], "Always").annotated("stop-delay", "1h");
    stubborn.after("10s").delete(30).after("29s");
    assert!(!stubborn.removed);
    stubborn.after("2s");
    assert!(stubborn.removed, "no longer than the grace period");
}

#[test]
fn what_finalizers_keep_says_how_it_ended_and_is_let_go_once() {
    for (command, phase, containers) in
        [(&["nginx"][..], "Succeeded", "main ended: 0"), (&["sleep", "1h"], "Failed", "main ended: 137")]
    {
        let mut pod = Pod::running(command, "Always");
        pod.object["metadata"]["finalizers"] = json!(["example.dev/keep"]);
        pod.after("10s").delete(30).after("0s");
        assert_eq!((pod.phase(), pod.containers().join("; ").as_str()), (phase, containers), "{command:?}");
        assert!(pod.removed);
        // The server has recorded it.
        pod.object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        let writes = pod.writes;
        pod.after("1h");
        assert_eq!((pod.removed, pod.writes, pod.phase()), (false, writes, phase), "{command:?}");
    }
}

/// A client that dies during a DELETE without grace period can leave the object behind, with its deletion stored: a
/// kubelet completes it.
#[test]
fn a_deletion_without_grace_that_was_cut_short_is_ended() {
    let mut running = Pod::running(&["nginx"], "Always");
    running.after("10s").delete(0).after("0s");
    assert!(running.removed, "nothing holds it");
    let mut waiting = Pod::running(&["nginx"], "Always").annotated("start-delay", "1h");
    waiting.after("10s").delete(0).after("0s");
    assert!(waiting.removed, "it never ran");
    let mut ended = Pod::running(&["true"], "Never");
    ended.after("10s").delete(0).after("0s");
    assert!(ended.removed, "it has ended before");
    let mut held = Pod::running(&["true"], "Never");
    held.object["metadata"]["finalizers"] = json!(["example.dev/keep"]);
    held.after("10s").delete(0).after("1h");
    assert!(!held.removed, "finalizers hold it, and the server knows that no time is left");
}

/// The Job controller counts a pod when its phase says that it ended, and only then takes its finalizer off.
#[test]
fn a_pod_that_is_deleted_by_force_before_it_started_fails_and_is_let_go_once() {
    let mut pod = Pod::running(&["nginx"], "Always").annotated("start-delay", "1h");
    pod.object["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    pod.after("10s").delete(0).after("0s");
    assert_eq!((pod.phase(), pod.removed), ("Failed", true));
    let writes = pod.writes;
    pod.after("1h");
    assert_eq!((pod.phase(), pod.removed, pod.writes), ("Failed", false, writes));
}

#[test]
fn a_pod_that_is_deleted_before_it_started_fails() {
    let mut pod = Pod::running(&["nginx"], "Always").annotated("start-delay", "1h");
    pod.object["metadata"]["finalizers"] = json!(["example.dev/keep"]);
    pod.after("10s").delete(30).after("0s");
    assert_eq!((pod.phase(), pod.containers()), ("Failed", vec!["main ended: 137".to_owned()]));
}

#[test]
fn a_pod_past_its_deadline_fails() {
    let mut pod = Pod::running(&["nginx"], "Always");
    pod.object["spec"]["activeDeadlineSeconds"] = 60.into();
    pod.after("59s");
    assert_eq!(pod.phase(), "Running");
    pod.after("2s");
    assert_eq!((pod.phase(), pod.containers()), ("Failed", vec!["main ended: 137".to_owned()]));
    assert_eq!(pod.object["status"]["reason"], "DeadlineExceeded");
    let writes = pod.writes;
    pod.after("1h");
    assert_eq!((pod.phase(), pod.writes, pod.wake), ("Failed", writes, None), "what is over stays over");
}

#[test]
fn what_others_declared_over_stays_over() {
    let mut pod = Pod::running(&["nginx"], "Always");
    pod.after("10s");
    pod.object["status"]["phase"] = "Failed".into();
    pod.after("10s");
    assert_eq!((pod.phase(), pod.containers()), ("Failed", vec!["main ended: 0".to_owned()]));
    assert!(!pod.is("Ready"));
}

#[test]
fn a_fault_makes_a_pod_unready_and_its_end_ready_again() {
    let mut pod = Pod::running(&["nginx"], "Always");
    pod.after("10s");
    pod.unready = true;
    pod.after("1h");
    assert_eq!((pod.phase(), pod.is("Ready"), pod.containers()), ("Running", false, vec!["main runs".to_owned()]));
    pod.unready = false;
    pod.after("1s");
    assert!(pod.is("Ready"));
}

#[test]
fn conditions_keep_the_time_of_their_last_change() {
    let mut pod = Pod::running(&["sleep", "5"], "Never");
    pod.after("10s");
    let since = |type_: &str| {
        let conditions = pod.object["status"]["conditions"].as_array().unwrap();
        let held = conditions.iter().find(|held| held["type"] == type_).unwrap();
        held["lastTransitionTime"].as_str().unwrap().parse::<Time>().unwrap().since(START).as_secs()
    };
    assert_eq!((since("Initialized"), since("PodScheduled"), since("Ready")), (0, 0, 6));
}

#[test]
fn a_status_says_what_containers_have_and_follows_a_resize() {
    let mut web = Pod::running(&[], "Always");
    let resources = |cpu: &str| json!({ "requests": { "cpu": cpu }, "limits": { "memory": "1Gi" } });
    for (generation, cpu) in [(1, "250m"), (2, "1")] {
        web.object["metadata"]["generation"] = generation.into();
        web.object["spec"]["containers"][0]["resources"] = resources(cpu);
        web.after("1s");
        let status = &web.object["status"]["containerStatuses"][0];
        assert_eq!((&status["resources"], &status["allocatedResources"]), (&resources(cpu), &json!({ "cpu": cpu })));
        assert_eq!(status["restartCount"], 0);
    }
    assert_eq!(web.writes, 2);
    let mut plain = Pod::running(&[], "Always");
    plain.after("1s");
    let status = &plain.object["status"]["containerStatuses"][0];
    assert_eq!((&status["resources"], &status["allocatedResources"]), (&json!({}), &Value::Null));
}
