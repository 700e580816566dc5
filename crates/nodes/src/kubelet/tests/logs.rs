//! The output of `kubectl logs`.

use super::*;
use crate::kubelet::logs::{LogError, LogQuery, text};

fn read(pod: &Pod, query: &LogQuery) -> Result<String, String> {
    text(&pod.view(), query, pod.now).map_err(|error: LogError| error.to_string())
}

#[test]
fn logs_are_what_was_printed_by_now() {
    let mut pod =
        Pod::running(&["sh", "-c", "echo one; sleep 10; echo two; sleep 10; echo three; exit 1"], "OnFailure");
    let all = LogQuery::default();
    assert_eq!(
        read(&pod, &all).unwrap_err(),
        "container \"main\" in pod \"web\" is waiting to start: ContainerCreating"
    );
    pod.after("5s");
    assert_eq!(read(&pod, &all).unwrap(), "one\n");
    let previous = LogQuery { previous: true, ..LogQuery::default() };
    assert_eq!(read(&pod, &previous).unwrap_err(), "previous terminated container \"main\" in pod \"web\" not found");
    pod.after("10s");
    assert_eq!(read(&pod, &all).unwrap(), "one\ntwo\n");
    for (query, want) in [
        (LogQuery { tail_lines: Some(1), ..LogQuery::default() }, "two\n"),
        (LogQuery { since: Some(Duration::from_secs(6)), ..LogQuery::default() }, "two\n"),
        (LogQuery { limit_bytes: Some(5), ..LogQuery::default() }, "one\nt"),
        (
            LogQuery { timestamps: true, tail_lines: Some(1), ..LogQuery::default() },
            "2027-01-15T08:00:10.000000Z two\n",
        ),
    ] {
        assert_eq!(read(&pod, &query).unwrap(), want, "{query:?}");
    }
    // It has ended, and was restarted.
    pod.after("10s");
    assert_eq!(read(&pod, &all).unwrap(), "one\n");
    assert_eq!(read(&pod, &previous).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn of_several_containers_one_must_be_named() {
    let containers = json!([{ "name": "a", "image": "x", "command": ["echo", "hi"] }, { "name": "b", "image": "x" }]);
    let mut pod = Pod::new(&json!({ "nodeName": "node-0", "restartPolicy": "Never", "containers": containers }));
    pod.after("1s");
    let error = read(&pod, &LogQuery::default()).unwrap_err();
    assert_eq!(error, "a container name must be specified for pod web, choose one of: [a b]");
    let of = |name: &str| LogQuery { container: Some(name.into()), ..LogQuery::default() };
    assert_eq!(read(&pod, &of("a")).unwrap(), "hi\n");
    assert_eq!(read(&pod, &of("b")).unwrap(), "");
    assert_eq!(read(&pod, &of("c")).unwrap_err(), "container c is not valid for pod web");
}
