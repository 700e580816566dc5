//! What a test's own thread logs.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Warnings and errors, from now on until it is dropped.
pub(crate) struct Logged {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

struct Notes(Arc<Mutex<Vec<String>>>);

struct Text(String);

// === impl Logged ===

impl Logged {
    pub(crate) fn from_now_on() -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let guard = tracing::subscriber::set_default(Notes(Arc::clone(&lines)));
        Self { lines, _guard: guard }
    }

    /// The lines that have all of these texts in them.
    pub(crate) fn with(&self, texts: &[&str]) -> Vec<String> {
        let lines = self.lines.lock();
        lines.iter().filter(|line| texts.iter().all(|text| line.contains(text))).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.with(&[])
    }
}

// === impl Notes ===

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

// === impl Text ===

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // A String takes everything.
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}
