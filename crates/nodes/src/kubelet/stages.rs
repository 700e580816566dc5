//! The life of a pod as a table: the next event for each state, and its delay.
//!
//! The table is YAML. A stage has a state in which it applies (`on`), a filter of pods (`when`), a `delay`, and what
//! happens (`then`). For each state the first stage that matches is used; if none does, the state is final. The
//! built-in table is `stages.yaml`.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use steersman_base::{Meta, Selector};

use super::ids::stable_hash;
use super::life::Role;
use super::script;
use crate::{duration, metrics};

/// The next step in each state of a pod, and its time.
#[derive(Clone, Debug)]
pub struct Stages(Vec<Stage>);

/// Why a table of stages is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StagesError {
    /// It is not YAML, or has the wrong structure.
    #[error("the stages cannot be read: {0}")]
    Yaml(String),
    /// A stage is invalid.
    #[error("stage {stage:?}: {problem}")]
    Stage {
        /// The name of the stage.
        stage: String,
        /// The problem.
        problem: String,
    },
}

/// One stage.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    name: String,
    on: On,
    when: Matcher,
    delay: Delay,
    pub(super) then: Then,
    code: Option<i32>,
    code_from: Option<String>,
}

/// A state of a pod or of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum On {
    /// The pod is bound, and the kubelet has not accepted it yet.
    Bound,
    /// The container may start for the first time.
    Waiting,
    /// The container runs.
    Running,
    /// The container runs and is not ready.
    Unready,
    /// The container has ended, and is to be restarted.
    Ended,
    /// The pod is terminating, and containers run.
    Terminating,
    /// The pod is terminating, and no container runs.
    Stopped,
}

/// The effect of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Then {
    Accept,
    Start,
    /// The container ends.
    Exit,
    /// The container does what its command says.
    Obey,
    Ready,
    Restart,
    Stop,
    Remove,
    /// Nothing, forever.
    Stay,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Table {
    stages: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    name: String,
    on: On,
    #[serde(default)]
    when: When,
    #[serde(default)]
    delay: DelayRow,
    then: Then,
    code: Option<i32>,
    code_from: Option<String>,
}

/// The pods and containers to which a stage applies; all conditions must hold.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct When {
    namespace: Option<String>,
    /// A label selector, as for `kubectl -l`.
    labels: Option<String>,
    /// An annotation that must be present; without prefix, one of ours.
    annotation: Option<String>,
    container: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DelayRow {
    duration: Option<String>,
    /// A jitter up to this, derived from the pod's uid and therefore stable.
    jitter: Option<String>,
    /// An annotation that overrides it.
    from: Option<String>,
}

#[derive(Clone, Debug)]
struct Matcher {
    namespace: Option<String>,
    labels: Selector,
    annotation: Option<String>,
    container: Option<String>,
}

#[derive(Clone, Debug)]
struct Delay {
    duration: Duration,
    jitter: Duration,
    from: Option<String>,
}

/// The subject of a stage: a pod, or one of its containers.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) pod: &'a Meta,
    pub(super) container: Option<(&'a str, Role)>,
}

// === impl Stages ===

impl Stages {
    /// The text of the built-in table, as a template for custom ones.
    pub const BUILT_IN: &'static str = include_str!("stages.yaml");

    /// Parses a table.
    ///
    /// # Errors
    /// It is not YAML, or a stage is invalid; the error names it.
    pub fn parse(yaml: &str) -> Result<Self, StagesError> {
        let table: Table = serde_saphyr::from_str(yaml).map_err(|error| StagesError::Yaml(error.to_string()))?;
        table.stages.into_iter().map(Stage::try_from).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the stage for this state.
    pub(super) fn next(&self, on: On, subject: Subject<'_>) -> Option<&Stage> {
        self.0.iter().find(|stage| stage.on == on && stage.is_for(subject))
    }

    /// Returns the errors in the annotations that script a pod, each as a sentence.
    pub(super) fn complaints(&self, pod: &Meta) -> Vec<String> {
        script::all(pod).filter_map(|(name, value)| self.complaint(name, value)).collect()
    }

    fn complaint(&self, name: &str, value: &str) -> Option<String> {
        if let Some(usage) = metrics::is_usage(name, value) {
            return usage.err().map(|problem| format!("annotation {}{name}: {value:?} {problem}", script::PREFIX));
        }
        let what = name.split('.').next().unwrap_or(name);
        let is = |said: &Option<String>| said.as_deref().is_some_and(|said| script::is_called(said, what));
        let is_time = self.0.iter().any(|stage| is(&stage.delay.from));
        let is_code = self.0.iter().any(|stage| is(&stage.code_from));
        let problem = match (is_time, is_code) {
            (true, _) if duration::parse(value).is_none() => "is no duration; write one as 500ms, 2s or 1m30s",
            (_, true) if script::read_code(value).is_none() => "is no exit code; write a number from 0 to 255",
            (false, false) if !self.0.iter().any(|stage| is(&stage.when.annotation)) => {
                "means nothing: no stage reads it"
            }
            _ => return None,
        };
        Some(format!("annotation {}{name}: {value:?} {problem}", script::PREFIX))
    }
}

impl Default for Stages {
    /// Returns the built-in table.
    fn default() -> Self {
        // A test parses it, too. An empty table would leave pods pending forever, which would be obvious.
        Self::parse(Self::BUILT_IN).unwrap_or(Self(Vec::new()))
    }
}

// === impl Stage ===

impl Stage {
    /// Whether the stage applies to the subject. A required annotation counts if its value can be parsed.
    fn is_for(&self, subject: Subject<'_>) -> bool {
        let wanted = self.when.annotation.as_deref();
        let Subject { pod, container } = subject;
        let reads_time = wanted.is_some() && wanted == self.delay.from.as_deref();
        let reads_code = wanted.is_some() && wanted == self.code_from.as_deref();
        self.when.matches(subject)
            && wanted.is_none_or(|what| {
                (!reads_time || script::time(pod, what, container).is_some())
                    && (!reads_code || script::code(pod, what, container).is_some())
            })
    }

    /// Returns the delay.
    pub(super) fn delay(&self, subject: Subject<'_>) -> Duration {
        let scripted = self.delay.from.as_deref().and_then(|from| script::time(subject.pod, from, subject.container));
        scripted.unwrap_or_else(|| self.delay.duration + self.jitter(subject))
    }

    /// Returns the exit code; `None` if it is not defined.
    pub(super) fn code(&self, subject: Subject<'_>) -> Option<i32> {
        let scripted = self.code_from.as_deref().and_then(|from| script::code(subject.pod, from, subject.container));
        scripted.or(self.code)
    }

    fn jitter(&self, subject: Subject<'_>) -> Duration {
        let most = u64::try_from(self.delay.jitter.as_millis()).unwrap_or(u64::MAX);
        if most == 0 {
            return Duration::ZERO;
        }
        let container = subject.container.map_or("", |(name, _)| name);
        Duration::from_millis(stable_hash(&[&subject.pod.uid.to_string(), container, &self.name], 0) % (most + 1))
    }
}

impl TryFrom<Row> for Stage {
    type Error = StagesError;
    fn try_from(row: Row) -> Result<Self, StagesError> {
        let wrong = |problem: String| StagesError::Stage { stage: row.name.clone(), problem };
        let time = |what: &str, text: &Option<String>| match text {
            None => Ok(Duration::ZERO),
            Some(text) => duration::parse(text)
                .ok_or_else(|| wrong(format!("{what} {text:?} is no duration; write one as 500ms, 2s or 1m30s"))),
        };
        let happenings = row.on.happenings();
        if row.then != Then::Stay && !happenings.contains(&row.then) {
            let words: Vec<_> = happenings.iter().map(word).collect();
            return Err(wrong(format!("on {} what can happen is {} or stay", word(row.on), words.join(", "))));
        }
        if row.code.is_some_and(|code| !(0..=255).contains(&code)) {
            return Err(wrong("an exit code is from 0 to 255".to_owned()));
        }
        let labels = row.when.labels.as_deref().unwrap_or_default();
        let labels = labels.parse::<Selector>().map_err(|error| wrong(format!("labels {labels:?}: {error}")))?;
        let delay = Delay {
            duration: time("duration", &row.delay.duration)?,
            jitter: time("jitter", &row.delay.jitter)?,
            from: row.delay.from.clone(),
        };
        let When { namespace, annotation, container, .. } = row.when;
        let when = Matcher { namespace, labels, annotation, container };
        Ok(Self { name: row.name, on: row.on, when, delay, then: row.then, code: row.code, code_from: row.code_from })
    }
}

/// Formats as in the table: all of these are single words.
fn word(of: impl fmt::Debug) -> String {
    format!("{of:?}").to_lowercase()
}

// === impl On ===

impl On {
    /// Lists what can happen in this state; it can always stay as it is.
    fn happenings(self) -> &'static [Then] {
        match self {
            Self::Bound => &[Then::Accept],
            Self::Waiting => &[Then::Start],
            Self::Running => &[Then::Exit, Then::Obey],
            Self::Unready => &[Then::Ready],
            Self::Ended => &[Then::Restart],
            Self::Terminating => &[Then::Stop],
            Self::Stopped => &[Then::Remove],
        }
    }
}

// === impl Matcher ===

impl Matcher {
    fn matches(&self, subject: Subject<'_>) -> bool {
        let Subject { pod, container } = subject;
        self.namespace.as_ref().is_none_or(|namespace| pod.namespace == namespace.as_str())
            && self.labels.matches(&pod.labels)
            && self.annotation.as_ref().is_none_or(|what| script::text(pod, what, container).is_some())
            && self.container.as_ref().is_none_or(|wanted| container.is_some_and(|(name, _)| name == wanted))
    }
}
