//! Where a field is, without memory of its own until somebody asks for the text.

use std::fmt;

/// A path to a field: a list of steps on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    /// The beginning of the path; may be empty.
    Root(&'a str),
    /// A field: `.name`, or `name` if it is the first step.
    Name(&'a str),
    /// A field that no property declares: `.name`, also if it is the first step.
    Extra(&'a str),
    /// An item: `[0]`
    Index(usize),
    /// An entry of a map: `[key]`
    Key(&'a str),
}

// === impl Path ===

impl<'a> Path<'a> {
    pub(crate) fn root(prefix: &'a str) -> Self {
        Self { parent: None, step: Step::Root(prefix) }
    }

    pub(crate) fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Name(name) }
    }

    pub(crate) fn extra<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Extra(name) }
    }

    pub(crate) fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    pub(crate) fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// Whether the text of the path is empty.
    pub(crate) fn is_root(&self) -> bool {
        self.parent.is_none() && matches!(self.step, Step::Root(""))
    }

    /// The path as field errors show it.
    pub(crate) fn field(&self) -> String {
        if self.is_root() { NO_PATH.to_owned() } else { self.to_string() }
    }
}

/// The text that upstream prints for the path of the object itself.
pub(crate) const NO_PATH: &str = "<nil>";

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Root(prefix) => f.write_str(prefix),
            Step::Name(name) if self.parent.is_none_or(Path::is_root) => f.write_str(name),
            Step::Name(name) | Step::Extra(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}
