//! A controller as a row of the table that the binary starts from.

use crate::{BuildContext, Controller};

/// What the binary knows of a controller before it is built.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Name, as in `--controllers` and in upstream's documentation.
    pub name: &'static str,
    /// Older names that `--controllers` takes too.
    pub aliases: &'static [&'static str],
    /// How many keys are worked on at once, unless a flag says otherwise.
    pub workers: usize,
    /// Declares informers, indexes and handlers; nothing runs yet.
    pub build: fn(&BuildContext, workers: usize) -> Controller,
}

// === impl Descriptor ===

impl Descriptor {
    /// Whether the controller goes by this name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}
