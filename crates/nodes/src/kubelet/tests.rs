//! Table tests of the pure functions.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::{Istr, MicroTime, ObjectKey, Time, Uid};
use steersman_model::{Encoded, View};

use super::command::Program;
use super::events::{Occurrence, budget, events};
use super::ipam::Addresses;
use super::status::{PodAddresses, patch};
use super::step::step;
use super::{Stages, backoff, ids};
use crate::view::SimPodView;

mod events;
mod lives;
mod logs;
mod stages;

/// When the pods of these tests are bound.
const START: Time = Time::from_unix(1_800_000_000);

/// A pod with a simulated time.
struct Pod {
    object: Value,
    stages: Stages,
    unready: bool,
    now: MicroTime,
    /// How often its status was written.
    writes: usize,
    /// The reasons and containers of its events.
    events: Vec<String>,
    /// Whether its kubelet deleted it.
    removed: bool,
    /// When it will be checked again.
    wake: Option<Duration>,
}

impl Pod {
    fn new(spec: &Value) -> Self {
        let object = json!({
            "metadata": {
                "name": "web", "namespace": "default", "uid": "6cd4b5f0-1111-4222-8333-444455556666", "generation": 1,
                "creationTimestamp": START,
            },
            "spec": spec,
            "status": { "phase": "Pending" },
        });
        Self {
            object,
            stages: Stages::default(),
            unready: false,
            now: START.into(),
            writes: 0,
            events: Vec::new(),
            removed: false,
            wake: None,
        }
    }

    /// Returns a pod with one container that runs this command.
    fn running(command: &[&str], restart_policy: &str) -> Self {
        let container = json!({ "name": "main", "image": "busybox:1", "command": command });
        Self::new(&json!({ "nodeName": "node-0", "restartPolicy": restart_policy, "containers": [container] }))
    }

    fn annotated(mut self, name: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][format!("nodes.steersman.dev/{name}")] = value.into();
        self
    }

    fn view(&self) -> SimPodView {
        SimPodView::decode(Encoded::Json(self.object.to_string().as_bytes())).unwrap()
    }

    /// One pass of the kubelet.
    fn pass(&mut self) {
        let view = self.view();
        let step = step(&view, &self.stages, self.unready, self.now);
        let addresses = PodAddresses { host_ip: "172.16.0.10".into(), pod_ip: "10.128.0.2".into() };
        if let Some(patch) = patch(&step.life, &addresses, self.now.to_seconds()) {
            self.writes += 1;
            for (name, value) in patch["status"].as_object().unwrap() {
                self.object["status"][name] = value.clone();
            }
        }
        self.events.extend(events(&step.life, &step.occurred).iter().map(|event| {
            let part = event.field_path.strip_prefix("spec.").unwrap_or_default();
            format!("{} {part}", event.reason).trim_end().to_owned()
        }));
        (self.wake, self.removed) = (step.wake, step.remove);
    }

    /// Advances the time, from pass to pass.
    fn after(&mut self, time: &str) -> &mut Self {
        let end = self.now + crate::duration::parse(time).unwrap();
        self.pass();
        while let Some(wake) = self.wake.filter(|wake| self.now + *wake <= end && !self.removed) {
            self.now = self.now + wake.max(Duration::from_micros(1));
            self.pass();
        }
        self.now = end;
        self
    }

    fn delete(&mut self, grace: i64) -> &mut Self {
        let meta = &mut self.object["metadata"];
        meta["deletionTimestamp"] = json!(self.now.to_seconds().plus_seconds(grace));
        meta["deletionGracePeriodSeconds"] = grace.into();
        self
    }

    fn phase(&self) -> &str {
        self.object["status"]["phase"].as_str().unwrap()
    }

    /// Whether the condition holds.
    fn is(&self, condition: &str) -> bool {
        let conditions = self.object["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|held| held["type"] == condition && held["status"] == "True")
    }

    /// Describes each container in a few words.
    fn containers(&self) -> Vec<String> {
        let status = &self.object["status"];
        let lists = ["initContainerStatuses", "containerStatuses"].map(|list| status[list].as_array());
        lists.into_iter().flatten().flatten().map(in_words).collect()
    }
}

fn in_words(container: &Value) -> String {
    let name = container["name"].as_str().unwrap();
    let state = &container["state"];
    let mut words = match (&state["waiting"], &state["running"], &state["terminated"]) {
        (waiting, Value::Null, Value::Null) => format!("{name} waits: {}", waiting["reason"].as_str().unwrap()),
        (Value::Null, _, Value::Null) => format!("{name} runs"),
        (Value::Null, Value::Null, ended) => format!("{name} ended: {}", ended["exitCode"]),
        _ => panic!("one state: {state}"),
    };
    if container["ready"] == true {
        words += ", ready";
    }
    if container["restartCount"] != 0 {
        words += &format!(", restarted {}", container["restartCount"]);
    }
    words
}

#[test]
fn commands_are_obeyed_or_run_on() {
    let secs = Duration::from_secs;
    let ends = |time: u64, code: i32| Some((secs(time), code));
    for (words, end, printed) in [
        (&["true"][..], ends(0, 0), ""),
        (&["/bin/false"], ends(0, 1), ""),
        (&["sleep", "5"], ends(5, 0), ""),
        (&["sleep", "1m", "5s"], ends(65, 0), ""),
        (&["sleep", "infinity"], None, ""),
        (&["sleep", "soon"], None, ""),
        (&["sleep"], None, ""),
        (&["echo", "hello", "world"], ends(0, 0), "hello world\n"),
        (&["echo", "-n", "a"], ends(0, 0), "a"),
        (&["nginx", "-g", "daemon off;"], None, ""),
        (&["sh"], None, ""),
        (&["sh", "-c", "exit 3"], ends(0, 3), ""),
        (&["sh", "-c", "exit 256"], ends(0, 0), ""),
        (&["sh", "-c", "false; exit"], ends(0, 1), ""),
        (&["sh", "-c", ""], ends(0, 0), ""),
        (&["/bin/bash", "-c", "echo a; sleep 2 && echo 'b  c'; exit 4"], ends(2, 4), "a\nb  c\n"),
        (&["sh", "-c", "false && echo no || echo yes"], ends(0, 0), "yes\n"),
        (&["sh", "-c", "true || exit 1; sleep 1"], ends(1, 0), ""),
        (&["sh", "-c", "false; echo on"], ends(0, 0), "on\n"),
        (&["sh", "-ec", "false; echo on"], ends(0, 1), ""),
        (&["sh", "-ec", "false || true; echo on"], ends(0, 0), "on\n"),
        (&["sh", "-c", "echo a # what\nexit 1"], ends(0, 1), "a\n"),
        (&["sh", "-c", "echo \"a \\\"b\\\"\""], ends(0, 0), "a \"b\"\n"),
        (&["sh", "-c", "sleep infinity; exit 1"], None, ""),
        (&["sh", "-c", "echo a; sleep infinity"], None, "a\n"),
        // A command that is not fully understood runs on, whatever precedes it.
        (&["sh", "-c", "echo a; make world"], None, ""),
        (&["sh", "-c", "while true; do echo a; sleep 1; done"], None, ""),
        (&["sh", "-c", "echo a | grep a"], None, ""),
        (&["sh", "-c", "sleep 5 &"], None, ""),
        (&["sh", "-c", "echo a > /tmp/a"], None, ""),
        (&["sh", "-c", "echo 'a"], None, ""),
        (&["sh", "-c", "&& true"], None, ""),
        (&["sh", "-c", "true &&"], None, ""),
        (&["sh", "script.sh"], None, ""),
    ] {
        let program = Program::of(words);
        let text: String = program.printed.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!((program.end, text.as_str()), (end, printed), "{words:?}");
    }
}

#[test]
fn restarts_wait_longer_each_time_up_to_five_minutes() {
    let wait = |restarts| backoff::wait(restarts, Duration::ZERO).as_secs();
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 1000].map(wait), [0, 10, 20, 40, 80, 160, 300, 300, 300]);
    assert_eq!(backoff::wait(7, Duration::from_secs(601)), Duration::ZERO, "who ran long is forgiven");
}

#[test]
fn ids_are_made_up_the_same_way_again() {
    let pod = Uid::new("6cd4b5f0-1111-4222-8333-444455556666");
    let id = ids::container_id(&pod, "main", 0);
    assert_eq!(id, ids::container_id(&pod, "main", 0));
    assert_ne!(id, ids::container_id(&pod, "main", 1));
    assert_ne!(id, ids::container_id(&pod, "side", 0));
    assert_eq!(id.len(), "steersman://".len() + 64, "{id}");
    for (image, name) in [
        ("nginx", "nginx@sha256:"),
        ("nginx:1.29", "nginx@sha256:"),
        ("registry:5000/a/b", "registry:5000/a/b@sha256:"),
        ("registry:5000/a/b:2", "registry:5000/a/b@sha256:"),
        ("a/b@sha256:0123", "a/b@sha256:"),
    ] {
        assert!(ids::image_id(image).starts_with(name), "{image}: {}", ids::image_id(image));
    }
}

#[test]
fn every_pod_has_an_address_of_its_own_and_freed_ones_rest() {
    let node = Istr::new("node-0");
    let mut addresses = Addresses::default();
    let key = |name: &str| ObjectKey::new("default", name);
    let uid = |number: u8| Uid::from_bytes([number; 16]);
    assert_eq!(addresses.address(&key("a"), &uid(1), &node), None, "no range yet");
    assert!(addresses.set_range(&node, "10.0.0.0/29".parse().unwrap()));
    addresses.claim(&key("old"), &uid(9), &node, "10.0.0.3");
    let mut take = |name: &str, number| addresses.address(&key(name), &uid(number), &node);
    assert_eq!(take("a", 1).as_deref(), Some("10.0.0.2"));
    assert_eq!(take("a", 1).as_deref(), Some("10.0.0.2"), "the same again");
    assert_eq!(take("b", 2).as_deref(), Some("10.0.0.4"), "one is taken already");
    assert_eq!(take("a", 3).as_deref(), Some("10.0.0.5"), "another pod of the same name");
    assert_eq!(take("c", 4).as_deref(), Some("10.0.0.6"));
    assert_eq!(take("d", 5).as_deref(), Some("10.0.0.2"), "the first one is free again, and all others are taken");
    assert_eq!(take("e", 6), None);
    addresses.release(&key("b"));
    assert_eq!(addresses.address(&key("e"), &uid(6), &node).as_deref(), Some("10.0.0.4"));
    assert!(!addresses.set_range(&node, "10.0.0.0/29".parse().unwrap()), "the same range as before");
    assert!(addresses.set_range(&node, "10.0.0.8/29".parse().unwrap()));
    assert_eq!(addresses.address(&key("e"), &uid(6), &node).as_deref(), Some("10.0.0.10"), "of the new range");
}
