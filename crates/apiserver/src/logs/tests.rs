//! Which lines a client gets, and in whose words it gets none.

use futures::StreamExt;
use serde_json::{Value, json};
use steersman_base::{Clock, MicroTime, Time};

use super::{Line, Log, LogOptions};
use crate::registry::query::Query;

fn options(query: &str) -> LogOptions {
    let clock = Clock::starting_at(Time::from_unix(100));
    LogOptions::read(&Query::parse(query), "p", &clock).expect("the options are good")
}

fn line(second: i64) -> Line {
    Line { time: MicroTime::from_unix_micros(second * 1_000_000), text: format!("line {second}") }
}

#[tokio::test(start_paused = true)]
async fn the_lines_are_those_that_were_asked_for() {
    for (query, want) in [
        ("", "line 80\nline 90\n"),
        ("tailLines=1", "line 90\n"),
        ("tailLines=0", ""),
        ("tailLines=7", "line 80\nline 90\n"),
        ("sinceSeconds=15", "line 90\n"),
        ("sinceTime=1970-01-01T00:01:30Z", "line 90\n"),
        ("limitBytes=10", "line 80\nli"),
        ("limitBytes=100", "line 80\nline 90\n"),
        ("follow=true", "line 80\nline 90\nline 95\n"),
        ("follow=true&tailLines=1", "line 90\nline 95\n"),
        ("follow=true&limitBytes=17", "line 80\nline 90\nl"),
        ("timestamps=true&tailLines=1", "1970-01-01T00:01:30.000000000Z line 90\n"),
    ] {
        let log = Log { lines: vec![line(80), line(90)], more: Some(futures::stream::iter([line(95)]).boxed()) };
        let pieces: Vec<_> = options(query).text(log).0.collect().await;
        assert_eq!(String::from_utf8_lossy(&pieces.concat()), want, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn bad_options_are_named() {
    for (query, want) in [
        ("tailLines=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "tailLines=-1",
            "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("limitBytes=0", "PodLogOptions \"p\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "PodLogOptions \"p\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("stream=Stdout", "PodLogOptions \"p\" is invalid: stream: Forbidden: may not be specified"),
    ] {
        let clock = Clock::starting_at(Time::from_unix(100));
        let refused = LogOptions::read(&Query::parse(query), "p", &clock).expect_err("the options are bad");
        assert_eq!(refused.message, want, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_must_be_one_and_must_have_begun() {
    let pod = |containers: &[&str], status: Value| {
        let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
        let spec = json!({"containers": containers, "initContainers": [{"name": "init"}], "nodeName": "n"});
        json!({"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": spec, "status": status})
    };
    let state =
        |state: Value, last: Value| json!({"containerStatuses": [{"name": "a", "state": state, "lastState": last}]});
    let ended = json!({"terminated": {"containerID": "c"}});
    let none = json!({});
    for (query, pod, want) in [
        ("", pod(&[], none.clone()), Err("a container name must be specified for pod p")),
        ("", pod(&["a", "b"], none.clone()), {
            Err("a container name must be specified for pod p, choose one of: [init a b]")
        }),
        ("container=z", pod(&["a"], none.clone()), Err("container z is not valid for pod p")),
        ("", pod(&["a"], none.clone()), Err("container \"a\" in pod \"p\" is not available")),
        ("", pod(&["a"], state(json!({"waiting": {"reason": "ContainerCreating"}}), none.clone())), {
            Err("container \"a\" in pod \"p\" is waiting to start: ContainerCreating")
        }),
        ("", pod(&["a"], state(json!({"waiting": {"reason": "ErrImagePull"}}), none.clone())), {
            Err("container \"a\" in pod \"p\" is waiting to start: image can't be pulled")
        }),
        ("", pod(&["a"], state(none.clone(), none.clone())), {
            Err("container \"a\" in pod \"p\" is waiting to start - no logs yet")
        }),
        ("", pod(&["a"], state(json!({"terminated": {}}), none.clone())), {
            Err("container \"a\" in pod \"p\" is terminated")
        }),
        ("", pod(&["a"], state(json!({"running": {}}), none.clone())), Ok("a")),
        ("", pod(&["a"], state(ended.clone(), none.clone())), Ok("a")),
        ("", pod(&["a"], state(json!({"waiting": {"reason": "CrashLoopBackOff"}}), ended.clone())), Ok("a")),
        ("previous=true", pod(&["a"], state(json!({"running": {}}), none)), {
            Err("previous terminated container \"a\" in pod \"p\" not found")
        }),
        ("previous=true", pod(&["a"], state(json!({"running": {}}), ended)), Ok("a")),
    ] {
        let options = options(query);
        let wanted = options.container(&pod).and_then(|container| options.wanted(&pod, container));
        match want {
            Ok(container) => assert_eq!(wanted.map(|wanted| wanted.container), Ok(container.to_owned()), "{pod}"),
            Err(message) => assert_eq!(wanted.expect_err("it has none").message, message, "{pod}"),
        }
    }
}
