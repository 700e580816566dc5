//! Logs on standard error, as Kubernetes' components write them.
//!
//! 1. `text` is klog's: `I1116 01:33:12.059535   15197 manager.rs:120] "message" key="value"`, in UTC; `json` has
//!    upstream's keys: `ts`, `caller`, `msg`, `v`. What a reconcile is about (`controller`, `key`) are fields of each of its lines.
//! 2. `-v` chooses the level, and [`Verbosity`] changes it while the program runs.
//! 3. A line is written at once and whole.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use steersman_base::{Clock, MicroTime};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::Record;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry, Scope};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
}

/// Changes how much is logged. Cheap to clone.
#[derive(Clone)]
pub(super) struct Verbosity(reload::Handle<Targets, Registry>);

/// Writes lines.
struct Lines {
    format: Format,
    clock: Clock,
    pid: u32,
}

/// Keeps the fields of spans as they are written.
struct Fields(Format);

/// The content of an event.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, FieldValue)>,
}

enum FieldValue {
    Text(String),
    /// A number or a switch, which stands without quotation marks.
    Plain(String),
}

/// The target that logs each write.
const WRITER: &str = "steersman_runtime::writer";
/// From which number on each write is logged; upstream's controllers log theirs at 2, too. The decision log has them always.
const WRITES: i64 = 2;

/// Starts logging; once in a process.
pub(super) fn start(format: Format, verbosity: i64) -> Verbosity {
    let (filter, handle) = reload::Layer::new(filter(verbosity));
    let lines = Lines { format, clock: Clock::system(), pid: std::process::id() };
    let writer = tracing_subscriber::fmt::layer().fmt_fields(Fields(format)).event_format(lines);
    let writer = writer.with_writer(std::io::stderr);
    // A second start, as tests in one process make, keeps the first one's.
    let _ = tracing_subscriber::registry().with(filter).with(writer).try_init();
    Verbosity(handle)
}

fn filter(verbosity: i64) -> Targets {
    let (ours, libraries) = levels(verbosity);
    let all = Targets::new().with_target("steersman", ours).with_default(libraries);
    if verbosity < WRITES { all.with_target(WRITER, LevelFilter::WARN) } else { all }
}

/// klog's numbers as levels, ours and those of libraries: what operators need to 3, each decision to 5, then everything;
/// from 8 on, what connections do; from 10 on, each frame.
fn levels(verbosity: i64) -> (LevelFilter, LevelFilter) {
    match verbosity {
        ..=3 => (LevelFilter::INFO, LevelFilter::WARN),
        4..=5 => (LevelFilter::DEBUG, LevelFilter::WARN),
        6..=7 => (LevelFilter::TRACE, LevelFilter::WARN),
        8..=9 => (LevelFilter::TRACE, LevelFilter::DEBUG),
        _ => (LevelFilter::TRACE, LevelFilter::TRACE),
    }
}

// === impl Verbosity ===

impl Verbosity {
    /// Logs this much from now on.
    pub(super) fn set(&self, verbosity: u32) -> Result<(), String> {
        self.0.modify(|now| *now = filter(verbosity.into())).map_err(|error| error.to_string())
    }
}

// === impl Lines ===

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, cx: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let mut spans: Vec<String> = Vec::new();
        for span in cx.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().filter(|fields| !fields.is_empty());
            spans.extend(fields.map(|fields| fields.fields.clone()));
        }
        let meta = event.metadata();
        let file = meta.file().unwrap_or("?").rsplit(['/', '\\']).next().unwrap_or("?");
        let place = format!("{file}:{}", meta.line().unwrap_or(0));
        let now = self.clock.now_micros();
        match self.format {
            Format::Text => out.write_str(&text_line(*meta.level(), now, self.pid, &place, &said, &spans)),
            Format::Json => out.write_str(&json_line(*meta.level(), now, &place, &said, &spans)),
        }
    }
}

fn text_line(level: Level, now: MicroTime, pid: u32, place: &str, said: &Said, spans: &[String]) -> String {
    let letter = match level {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    // 2026-11-16T01:33:12.059535Z
    let time = now.to_string();
    let part = |range: std::ops::Range<usize>| time.get(range).unwrap_or_default();
    let mut line =
        format!("{letter}{}{} {} {pid:>7} {place}] {:?}", part(5..7), part(8..10), part(11..26), said.message);
    for field in said.fields.iter().map(text_field).chain(spans.iter().cloned()) {
        line.push(' ');
        line.push_str(&field);
    }
    line.push('\n');
    line
}

fn text_field((name, value): &(&'static str, FieldValue)) -> String {
    match value {
        FieldValue::Text(text) => format!("{name}={text:?}"),
        FieldValue::Plain(text) => format!("{name}={text}"),
    }
}

fn json_field((name, value): &(&'static str, FieldValue)) -> String {
    let name = json_text(name);
    match value {
        FieldValue::Text(text) => format!("{name}:{}", json_text(text)),
        FieldValue::Plain(text) => format!("{name}:{text}"),
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn json_line(level: Level, now: MicroTime, place: &str, said: &Said, spans: &[String]) -> String {
    let micros = now.unix_micros();
    let mut line = format!("{{\"ts\":{}.{:03},\"caller\":{}", micros / 1000, micros % 1000, json_text(place));
    // As upstream: errors have no verbosity.
    let level = match level {
        Level::ERROR => String::new(),
        Level::WARN | Level::INFO => ",\"v\":0".to_owned(),
        Level::DEBUG => ",\"v\":4".to_owned(),
        Level::TRACE => ",\"v\":6".to_owned(),
    };
    // Writing to a string does not fail.
    let _ = write!(line, ",\"msg\":{}{level}", json_text(&said.message));
    for field in &said.fields {
        let _ = write!(line, ",{}", json_field(field));
    }
    // No key twice: those of the line win, then those of the innermost span.
    let mut seen: BTreeSet<String> = said.fields.iter().map(|(name, _)| (*name).to_owned()).collect();
    for span in spans.iter().rev() {
        let fields: serde_json::Map<_, _> = serde_json::from_str(&format!("{{{span}}}")).unwrap_or_default();
        for (name, value) in fields {
            if seen.insert(name.clone()) {
                let _ = write!(line, ",{}:{value}", json_text(&name));
            }
        }
    }
    line.push_str("}\n");
    line
}

// === impl Fields ===

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut said = Said::default();
        fields.record(&mut said);
        let fields = said.fields.iter();
        writer.write_str(&match self.0 {
            Format::Text => fields.map(text_field).collect::<Vec<_>>().join(" "),
            Format::Json => fields.map(json_field).collect::<Vec<_>>().join(","),
        })
    }

    fn add_fields(&self, current: &'writer mut FormattedFields<Self>, fields: &Record<'_>) -> fmt::Result {
        let before = std::mem::take(&mut current.fields);
        self.format_fields(current.as_writer(), fields)?;
        if !before.is_empty() {
            let comma = if self.0 == Format::Json { "," } else { " " };
            let gap = if current.fields.is_empty() { "" } else { comma };
            current.fields = format!("{before}{gap}{}", current.fields);
        }
        Ok(())
    }
}

// === impl Said ===

impl Said {
    fn record(&mut self, field: &Field, value: FieldValue) {
        match (field.name(), value) {
            ("message", FieldValue::Text(text) | FieldValue::Plain(text)) => self.message = text,
            // As upstream's structured logs call it.
            ("error", value) => self.fields.push(("err", value)),
            (name, value) => self.fields.push((name, value)),
        }
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field, FieldValue::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, FieldValue::Text(value.to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record(field, FieldValue::Plain(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record(field, FieldValue::Plain(value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record(field, FieldValue::Plain(value.to_string()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record(field, FieldValue::Text(value.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> Said {
        let fields =
            vec![("key", FieldValue::Text("default/web \"x\"".into())), ("count", FieldValue::Plain("3".into()))];
        Said { message: "a message".into(), fields }
    }

    #[test]
    fn text_lines_are_klogs() {
        let now = MicroTime::from_unix_micros(1_794_792_792_059_535);
        assert_eq!(
            text_line(Level::WARN, now, 15197, "manager.rs:12", &said(), &["controller=\"a\"".to_owned()]),
            "W1116 01:33:12.059535   15197 manager.rs:12] \"a message\" key=\"default/web \\\"x\\\"\" count=3 \
             controller=\"a\"\n"
        );
    }

    #[test]
    fn json_lines_are_json_with_upstreams_keys() {
        let now = MicroTime::from_unix_micros(1_794_792_792_059_535);
        let spans = ["\"controller\":\"a\",\"try\":1", "\"key\":\"b\",\"try\":2"].map(str::to_owned);
        let line = json_line(Level::INFO, now, "manager.rs:12", &said(), &spans);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["ts"], 1_794_792_792_059.535);
        assert_eq!(value["caller"], "manager.rs:12");
        assert_eq!((&value["msg"], &value["v"]), (&"a message".into(), &0.into()));
        assert_eq!((&value["key"], &value["count"]), (&"default/web \"x\"".into(), &3.into()));
        assert_eq!((&value["controller"], &value["try"]), (&"a".into(), &2.into()));
        assert_eq!((line.matches("\"try\"").count(), line.matches("\"key\"").count()), (1, 1), "{line}");
        assert!(!json_line(Level::ERROR, now, "a:1", &said(), &[]).contains("\"v\""));
    }

    #[test]
    fn the_fields_of_spans_are_fields_of_lines() {
        #[derive(Clone, Default)]
        struct Page(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl std::io::Write for Page {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let lines_of = |format: Format| {
            let page = Page::default();
            let written = page.clone();
            let lines = Lines { format, clock: Clock::system(), pid: 1 };
            let layer = tracing_subscriber::fmt::layer().fmt_fields(Fields(format)).event_format(lines);
            let subscriber = tracing_subscriber::registry().with(layer.with_writer(move || page.clone()));
            tracing::subscriber::with_default(subscriber, || {
                let key = "default/web";
                let span = tracing::info_span!("reconcile", controller = "a", %key, late = tracing::field::Empty);
                span.record("late", 7);
                span.in_scope(|| tracing::info!(count = 3, "a message"));
            });
            let bytes = written.0.lock().unwrap().clone();
            String::from_utf8(bytes).unwrap()
        };
        let text = lines_of(Format::Text);
        assert!(text.ends_with("] \"a message\" count=3 controller=\"a\" key=\"default/web\" late=7\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&lines_of(Format::Json)).unwrap();
        assert_eq!((&json["controller"], &json["key"]), (&"a".into(), &"default/web".into()), "{json}");
        assert_eq!((&json["late"], &json["count"]), (&7.into(), &3.into()), "{json}");
    }

    #[test]
    fn verbosity_is_klogs_numbers() {
        let ours = [0, 3, 4, 5, 6, 10].map(|verbosity| levels(verbosity).0);
        let info = LevelFilter::INFO;
        let debug = LevelFilter::DEBUG;
        let trace = LevelFilter::TRACE;
        assert_eq!(ours, [info, info, debug, debug, trace, trace]);
        let chatter = |verbosity| filter(verbosity).would_enable("hyper_util::client", &Level::DEBUG);
        assert_eq!([0, 7, 8, 10].map(chatter), [false, false, true, true]);
        assert!(filter(4).would_enable("steersman_runtime::manager", &Level::DEBUG));
    }
}
