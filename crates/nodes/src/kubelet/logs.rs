//! The output of `kubectl logs`: what the `echo` commands of a container have printed so far. It is not stored; it
//! follows from the command and the start time of the container.

use std::fmt::Write;
use std::time::Duration;

use steersman_base::{MicroTime, Time};

use super::command::Program;
use super::life::{ContainerLife, Life, State};
use super::step::program;
use crate::view::SimPodView;

/// A log query: the parameters of `pods/log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The container; may be omitted if there is only one.
    pub container: Option<String>,
    /// Whether the run before the last restart is meant.
    pub previous: bool,
    /// Whether each line has a timestamp.
    pub timestamps: bool,
    /// Only lines of this period.
    pub since: Option<Duration>,
    /// Only this many of the last lines.
    pub tail_lines: Option<usize>,
    /// Only this many bytes.
    pub limit_bytes: Option<usize>,
}

/// Why there is no log, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// There is no such pod.
    #[error("pods {0:?} not found")]
    NoPod(String),
    /// There are several containers, and none was named.
    #[error("a container name must be specified for pod {pod}, choose one of: [{names}]")]
    WhichContainer {
        /// The pod.
        pod: String,
        /// Its containers.
        names: String,
    },
    /// There is no such container.
    #[error("container {container} is not valid for pod {pod}")]
    NoContainer {
        /// The pod.
        pod: String,
        /// The requested container.
        container: String,
    },
    /// The container was never restarted.
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
    },
    /// The container has not started.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    Waiting {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// The reason.
        reason: String,
    },
}

/// The output of one run of a container so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The lines, each with its time and newline; the last one may be incomplete.
    pub lines: Vec<(MicroTime, String)>,
    /// The time at which the run began; a later run has another time.
    pub started: Time,
    /// Whether the output is complete.
    pub is_over: bool,
}

/// The time span of a run.
struct Run {
    since: Time,
    until: Option<Time>,
}

/// Returns the output so far.
pub(crate) fn text(pod: &SimPodView, query: &LogQuery, now: MicroTime) -> Result<String, LogError> {
    let since = query.since.map(|since| MicroTime::from_unix_micros(now.unix_micros() - micros(since)));
    let Log { lines, .. } = log(pod, query, now)?;
    let lines: Vec<_> = lines.into_iter().filter(|(at, _)| since.is_none_or(|since| *at >= since)).collect();
    let skipped = query.tail_lines.map_or(0, |tail| lines.len().saturating_sub(tail));
    let mut text = String::new();
    for (at, line) in &lines[skipped..] {
        if query.timestamps {
            let _ = write!(text, "{at} ");
        }
        text += line;
    }
    if let Some(limit) = query.limit_bytes {
        let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    Ok(text)
}

/// Returns the output of a run so far; only container and run of the query are used.
pub(crate) fn log(pod: &SimPodView, query: &LogQuery, now: MicroTime) -> Result<Log, LogError> {
    let life = Life::read(pod);
    let container = container(&life, query)?;
    let run = run(pod, container, query.previous)?;
    let lines = printed(&program(container.spec), &run, now);
    Ok(Log { lines, started: run.since, is_over: run.until.is_some() })
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn container<'a, 'b>(life: &'b Life<'a>, query: &LogQuery) -> Result<&'b ContainerLife<'a>, LogError> {
    let pod = || life.pod.metadata.name.to_string();
    let Some(asked) = &query.container else {
        // As upstream: the main containers count, and init containers are listed, too.
        return match &life.containers[..] {
            [one] => Ok(one),
            all => {
                let names: Vec<_> = all.iter().map(|container| container.spec.name.as_str()).collect();
                Err(LogError::WhichContainer { pod: pod(), names: names.join(" ") })
            }
        };
    };
    let found = life.containers.iter().find(|container| container.spec.name == asked.as_str());
    found.ok_or_else(|| LogError::NoContainer { pod: pod(), container: asked.clone() })
}

fn run(pod: &SimPodView, container: &ContainerLife<'_>, previous: bool) -> Result<Run, LogError> {
    let pod = pod.metadata.name.to_string();
    let name = container.spec.name.to_string();
    let ended =
        |end: &super::life::Ending| Run { since: end.started.unwrap_or(end.finished), until: Some(end.finished) };
    let last = container.last.as_ref().map(ended);
    match &container.state {
        _ if previous => last.ok_or(LogError::NoPrevious { pod, container: name }),
        State::Running { since } => Ok(Run { since: *since, until: None }),
        State::Ended(end) => Ok(ended(end)),
        State::Waiting { reason, .. } => {
            last.ok_or_else(|| LogError::Waiting { pod, container: name, reason: reason.to_string() })
        }
    }
}

/// Splits the output into lines with times.
fn printed(program: &Program, run: &Run, now: MicroTime) -> Vec<(MicroTime, String)> {
    // The end is known to the second; output of that second was printed before it.
    let end = run.until.map_or(now, |until| MicroTime::from(until) + Duration::from_secs(1));
    let mut lines: Vec<(MicroTime, String)> = Vec::new();
    for (after, text) in &program.printed {
        let at = MicroTime::from(run.since) + *after;
        if at > end {
            break;
        }
        for piece in text.split_inclusive('\n') {
            match lines.last_mut() {
                Some((_, open)) if !open.ends_with('\n') => open.push_str(piece),
                _ => lines.push((at, piece.to_owned())),
            }
        }
    }
    lines
}
