//! A controller as a row of the table that the binary starts from.

use steersman_base::Resource;

use crate::BuildContext;

/// What the binary knows of a controller before it is built.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Name, as in `--controllers` and in upstream's documentation.
    pub name: &'static str,
    /// Older names that `--controllers` takes too.
    pub aliases: &'static [&'static str],
    /// Its service account in `kube-system`, and the end of its user agent.
    pub account: &'static str,
    /// Whether it runs unless told otherwise.
    pub default: Enabled,
    /// Feature gates without which it does not run.
    pub gates: &'static [&'static str],
    /// What it cannot work without; where an API server does not serve one of these, the controller is disabled.
    pub needs: &'static [Resource],
    /// How many keys are worked on at once.
    pub workers: Workers,
    /// When it is built.
    pub stage: Stage,
    /// Declares informers, indexes and handlers; nothing runs yet. The number is that of workers.
    pub build: fn(&BuildContext, workers: usize) -> Build,
}

/// Whether a controller runs unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// It does, with `*`.
    Yes,
    /// It is named, or it does not run.
    No,
}

/// How many keys are worked on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// The flag that says so, if there is one, without dashes.
    pub flag: Option<&'static str>,
    /// How many, if nobody says.
    pub default: usize,
}

/// When a controller is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before all others and with the manager's own account: it makes the accounts of the others work.
    First,
    /// With all others.
    Normal,
}

/// What came of building a controller.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Build {
    /// It runs when the manager does.
    Enabled,
    /// It has nothing to do here, for this reason.
    Disabled(String),
}

// === impl Descriptor ===

impl Descriptor {
    /// The row of a controller of one's own: it runs by default, with one worker, and needs nothing special.
    #[must_use]
    pub const fn new(name: &'static str, build: fn(&BuildContext, workers: usize) -> Build) -> Self {
        Self {
            name,
            aliases: &[],
            account: name,
            default: Enabled::Yes,
            gates: &[],
            needs: &[],
            workers: Workers::fixed(1),
            stage: Stage::Normal,
            build,
        }
    }

    /// Whether the controller goes by this name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

// === impl Workers ===

impl Workers {
    /// A number that a flag sets.
    #[must_use]
    pub const fn flag(flag: &'static str, default: usize) -> Self {
        Self { flag: Some(flag), default }
    }

    /// A number that no flag sets.
    #[must_use]
    pub const fn fixed(workers: usize) -> Self {
        Self { flag: None, default: workers }
    }
}
