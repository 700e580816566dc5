//! `pods/log`: the log of a container, from the component that runs it.
//!
//! The server has no logs. A component that runs pods, such as simulated kubelets, provides a [`Logs`]
//! ([`Options::logs`](crate::Options::logs)), which returns lines and nothing else:
//!
//! 1. The requested container exists and has started; otherwise the response is 400 in the words of upstream's kubelet.
//! 2. `tailLines`, `sinceSeconds`, `sinceTime`, `timestamps` and `limitBytes` are applied here.
//! 3. With `follow`, lines are sent as they are written, until there are no more or the client disconnects.
//!
//! Follows `pkg/registry/core/pod/strategy.go` and `pkg/kubelet/kubelet_pods.go` of Kubernetes 1.37.

#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use serde_json::Value;
use steersman_base::{Clock, MicroTime, Time};

use crate::field::{FieldError, Path};
use crate::registry::query::Query;
use crate::status::{GroupResource, Status};

/// A source of container logs.
pub trait Logs: Send + Sync {
    /// Returns the log of a container.
    ///
    /// # Errors
    /// There is none; the message is shown to the client.
    fn open(&self, wanted: &Wanted) -> Result<Log, NoLog>;
}

/// The requested log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Uid of the pod: a name may be reused.
    pub uid: String,
    /// Node that the pod is on.
    pub node: String,
    /// The container.
    pub container: String,
    /// Whether the log of the previous run is requested.
    pub previous: bool,
    /// Whether later lines are requested, too: if not, [`Log::more`] is not read.
    pub follow: bool,
}

/// The log of a container.
pub struct Log {
    /// The lines so far, oldest first.
    pub lines: Vec<Line>,
    /// Later lines; the stream ends with the container.
    pub more: Option<BoxStream<'static, Line>>,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The time at which it was written.
    pub time: MicroTime,
    /// The text, without the newline.
    pub text: String,
}

/// Why there is no log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoLog(pub String);

/// `PodLogOptions`, except for the fields of [`Wanted`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogOptions {
    container: String,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since: Option<MicroTime>,
    tail_lines: Option<usize>,
    limit_bytes: Option<usize>,
}

/// The text of a log, piece by piece.
pub(crate) struct LogText(pub(crate) BoxStream<'static, Bytes>);

// === impl LogOptions ===

impl LogOptions {
    /// Parses them from a query.
    pub(crate) fn read(query: &Query, pod: &str, clock: &Clock) -> Result<Self, Status> {
        let number = |name: &str| match query.get(name) {
            "" => Ok(None),
            text => text
                .parse::<i64>()
                .map(Some)
                .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
        };
        let tail = number("tailLines")?;
        let limit = number("limitBytes")?;
        let seconds = number("sinceSeconds")?;
        let since = match query.get("sinceTime") {
            "" => None,
            text => Some(text.parse::<Time>().map_err(|error| Status::bad_request(error.to_string()))?),
        };
        let mut errors = Vec::new();
        if let Some(tail) = tail.filter(|tail| *tail < 0) {
            errors.push(FieldError::invalid(&Path::new("tailLines"), tail, "must be greater than or equal to 0"));
        }
        if let Some(limit) = limit.filter(|limit| *limit < 1) {
            errors.push(FieldError::invalid(&Path::new("limitBytes"), limit, "must be greater than 0"));
        }
        match (seconds, since) {
            (Some(_), Some(_)) => {
                let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                errors.push(FieldError::forbidden(&Path::new("[]"), detail));
            }
            (Some(seconds), None) if seconds < 1 => {
                errors.push(FieldError::invalid(&Path::new("sinceSeconds"), seconds, "must be greater than 0"));
            }
            _ => {}
        }
        if query.has("stream") {
            errors.push(FieldError::forbidden(&Path::new("stream"), "may not be specified"));
        }
        if !errors.is_empty() {
            return Err(Status::invalid(GroupResource { group: "", resource: "PodLogOptions" }, pod, &errors));
        }
        let ago = seconds.map(|seconds| clock.now().plus_seconds(-seconds));
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            container: query.get("container").to_owned(),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since: since.or(ago).map(MicroTime::from),
            tail_lines: tail.map(size),
            limit_bytes: limit.map(size),
        })
    }

    /// Returns the requested container.
    pub(crate) fn container(&self, pod: &Value) -> Result<String, Status> {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let of = |field: &str| pod["spec"][field].as_array().map_or(&[][..], Vec::as_slice);
        let all = ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(of);
        let all: Vec<&str> = all.filter_map(|container| container["name"].as_str()).collect();
        match (self.container.as_str(), of("containers")) {
            ("", []) => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
            ("", [only]) => Ok(only["name"].as_str().unwrap_or_default().to_owned()),
            ("", _) => Err(Status::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                all.join(" ")
            ))),
            (asked, _) if all.contains(&asked) => Ok(asked.to_owned()),
            (asked, _) => Err(Status::bad_request(format!("container {asked} is not valid for pod {name}"))),
        }
    }

    /// Returns the requested log, of a pod on a node.
    pub(crate) fn wanted(&self, pod: &Value, container: String) -> Result<Wanted, Status> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&pod["metadata"]["name"]);
        has_begun(pod, &name, &container, self.previous).map_err(Status::bad_request)?;
        Ok(Wanted {
            namespace: text(&pod["metadata"]["namespace"]),
            uid: text(&pod["metadata"]["uid"]),
            node: text(&pod["spec"]["nodeName"]),
            pod: name,
            container,
            previous: self.previous,
            follow: self.follow,
        })
    }

    /// Returns the requested lines, as text.
    pub(crate) fn text(&self, log: Log) -> LogText {
        let since = self.since;
        let is_new = move |line: &Line| since.is_none_or(|since| line.time >= since);
        let mut lines: Vec<Line> = log.lines.into_iter().filter(is_new).collect();
        if let Some(tail) = self.tail_lines {
            lines.drain(..lines.len().saturating_sub(tail));
        }
        let more = log.more.filter(|_| self.follow).unwrap_or_else(|| stream::empty().boxed());
        let more = more.filter(move |line| std::future::ready(is_new(line)));
        let timestamps = self.timestamps;
        let text = stream::iter(lines).chain(more).map(move |line| written(&line, timestamps));
        LogText(match self.limit_bytes {
            Some(limit) => limited(text, limit).boxed(),
            None => text.boxed(),
        })
    }
}

/// Whether a container has a log, by the pod's status.
fn has_begun(pod: &Value, name: &str, container: &str, previous: bool) -> Result<(), String> {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut statuses = lists.into_iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    let Some(status) = statuses.find(|status| status["name"] == container) else {
        return Err(format!("container {container:?} in pod {name:?} is not available"));
    };
    let state = &status["state"];
    let last = &status["lastState"]["terminated"];
    let has_id = |run: &Value| run["containerID"].as_str().is_some_and(|id| !id.is_empty());
    if previous {
        let missing = || format!("previous terminated container {container:?} in pod {name:?} not found");
        return if has_id(last) { Ok(()) } else { Err(missing()) };
    }
    if state["running"].is_object() {
        return Ok(());
    }
    let ended = &state["terminated"];
    if ended.is_object() || last.is_object() {
        let terminated = || format!("container {container:?} in pod {name:?} is terminated");
        return if has_id(ended) || has_id(last) { Ok(()) } else { Err(terminated()) };
    }
    let why = match state["waiting"]["reason"].as_str() {
        _ if !state["waiting"].is_object() => {
            return Err(format!("container {container:?} in pod {name:?} is waiting to start - no logs yet"));
        }
        Some("ErrImagePull") => "image can't be pulled",
        Some("ImagePullBackOff") => "trying and failing to pull image",
        reason => reason.unwrap_or_default(),
    };
    Err(format!("container {container:?} in pod {name:?} is waiting to start: {why}"))
}

fn written(line: &Line, timestamps: bool) -> Bytes {
    let Line { time, text } = line;
    if !timestamps {
        return format!("{text}\n").into();
    }
    // Upstream writes nanoseconds, all nine digits.
    let time = time.to_string();
    format!("{}000Z {text}\n", time.trim_end_matches('Z')).into()
}

/// The first bytes of a text, to the byte.
fn limited(text: impl Stream<Item = Bytes> + Send + 'static, limit: usize) -> impl Stream<Item = Bytes> + Send {
    text.scan(limit, |left, mut piece| {
        piece.truncate(*left);
        *left -= piece.len();
        std::future::ready(Some(piece).filter(|piece| !piece.is_empty()))
    })
}

// === impl Log ===

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("lines", &self.lines).field("more", &self.more.is_some()).finish()
    }
}

// === impl LogText ===

impl fmt::Debug for LogText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogText(..)")
    }
}
