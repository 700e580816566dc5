//! What `kubectl logs` shows: what a container's `echo`s have printed by now. Nothing is kept for it; it follows from the
//! command, and from when the container started.

use std::fmt::Write;
use std::time::Duration;

use steersman_base::{MicroTime, Time};

use super::command::Program;
use super::life::{ContainerLife, Life, State};
use super::step::program;
use crate::view::SimPodView;

/// What is asked for: the parameters of `pods/log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Which container; may be left out if there is one.
    pub container: Option<String>,
    /// Of the container before the last restart.
    pub previous: bool,
    /// With the time before each line.
    pub timestamps: bool,
    /// Only what was printed in this time.
    pub since: Option<Duration>,
    /// Only so many of the last lines.
    pub tail_lines: Option<usize>,
    /// Only so many bytes.
    pub limit_bytes: Option<usize>,
}

/// Why there is no log: upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// There is no such pod.
    #[error("pods {0:?} not found")]
    NoPod(String),
    /// There are several containers.
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
        /// What was asked for.
        container: String,
    },
    /// The container was never started again.
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
        /// Why.
        reason: String,
    },
}

/// What one run of a container has printed by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its lines, each with its time and the end of the line; the last one may still be open.
    pub lines: Vec<(MicroTime, String)>,
    /// When the run began: another one begins later.
    pub started: Time,
    /// Whether nothing more will come.
    pub is_over: bool,
}

/// A container's time: from when to when it ran.
struct Run {
    since: Time,
    until: Option<Time>,
}

/// What was printed by now.
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

/// What a run of a container has printed by now; of the query, container and run count.
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
        // As upstream: the main containers count, and init containers are named along.
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
    let (pod, name) = (pod.metadata.name.to_string(), container.spec.name.to_string());
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

/// What is printed in lines, each with its time.
fn printed(program: &Program, run: &Run, now: MicroTime) -> Vec<(MicroTime, String)> {
    // An end is known by the second; what is printed in it was printed before.
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
