//! Descriptors of controllers: a row of facts and three functions, before anything is built.
//!
//! ```
//! use steersman_model::Kind;
//! use steersman_model::core::NamespaceView;
//! use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Flags, Row};
//! use steersman_runtime::{Action, Context, Descriptor, Error, Reconciler};
//! use steersman_base::ObjectKey;
//!
//! const GREETER: Descriptor = Descriptor::built_in(
//!     Row::new,
//!     &BuiltIn {
//!         name: "greeter-controller",
//!         needs: const { &[NamespaceView::RESOURCE] }, // absent from the server: disabled, with the reason
//!         options: Options::from_flags,       // typed, read once
//!         build,                              // declares informers and indexes; nothing runs yet
//!     },
//! );
//!
//! #[derive(Clone, Copy)]
//! struct Options { greet: bool }
//!
//! impl Options {
//!     fn from_flags(flags: &Flags<'_>) -> Self {
//!         Self { greet: flags.is_on("greet", true) }
//!     }
//! }
//!
//! fn build(cx: &ControllerContext, options: Options) -> Built {
//!     cx.controller(&cx.informer::<NamespaceView>()).reconcile(Greeter(options))
//! }
//!
//! struct Greeter(Options);
//!
//! impl Reconciler for Greeter {
//!     async fn reconcile(&self, _cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
//!         if self.0.greet {
//!             println!("hello {key}");
//!         }
//!         Ok(Action::Done)
//!     }
//! }
//! # assert_eq!(GREETER.row().component, "greeter-controller");
//! ```

mod flags;
mod row;
#[cfg(test)]
mod tests;

use std::fmt;

use steersman_base::Resource;

pub use crate::controller::built::Built;
pub use crate::controller::of_row::ControllerContext;
pub use flags::{ApiServers, Asked, AskedFor, FlagFile, FlagSource, FlagValue, Flags};
pub use row::{Enabled, Limiter, Row, Stage, Workers};

use crate::Manager;

/// A controller before it is built, such as the built-in ones.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// The name, as in `--controllers` and in upstream's documentation.
    pub name: &'static str,
    /// The required resources: if the API server does not serve one of them, the controller is disabled.
    pub needs: &'static [Resource],
    row: fn(&'static str) -> Row,
    controller: &'static dyn AnyBuiltIn,
    prepare: Option<fn(&Manager)>,
}

/// The functions of a controller, with its own type of options.
///
/// The facts are in the [`Row`] of the same name.
pub struct BuiltIn<O, B = Built> {
    /// The name, which is that of its row.
    pub name: &'static str,
    /// The required resources, written `const { &[…] }`, because a [`Resource`] has a destructor.
    pub needs: &'static [Resource],
    /// Reads the options from flags and feature gates.
    pub options: fn(&Flags<'_>) -> O,
    /// Declares informers, indexes and handlers, and returns the controller: [`Built`], or `Result<Built, Disabled>` if
    /// there may be nothing to do. Nothing runs yet.
    pub build: fn(&ControllerContext, O) -> B,
}

/// The reason for which a controller has nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disabled(pub String);

/// The result of building a controller.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Build {
    /// The controller runs when the manager runs.
    Enabled,
    /// The controller has nothing to do, for this reason.
    Disabled(String),
}

/// A result of a `build` function.
pub trait IntoBuilt {
    /// Returns the controller, or why there is none.
    ///
    /// # Errors
    /// The controller has nothing to do.
    fn into_built(self) -> Result<Built, Disabled>;
}

/// A [`BuiltIn`] of any type of options.
pub(crate) trait AnyBuiltIn: Send + Sync {
    /// Reads the options, to collect their problems.
    fn ask(&self, flags: &Flags<'_>);

    fn build(&self, cx: &ControllerContext) -> Result<Built, Disabled>;
}

// === impl Descriptor ===

impl Descriptor {
    /// Creates the descriptor of a controller whose facts are in a table.
    #[doc(hidden)]
    #[must_use]
    pub const fn built_in<O, B>(row: fn(&'static str) -> Row, controller: &'static BuiltIn<O, B>) -> Self
    where
        O: Clone + Send + Sync + 'static,
        B: IntoBuilt + 'static,
    {
        Self { name: controller.name, needs: controller.needs, row, controller, prepare: None }
    }

    /// Adds a preparation of the manager before the controller is built, such as [setting
    /// options](Manager::set_options) in a test.
    #[doc(hidden)]
    #[must_use]
    pub const fn prepared_by(self, prepare: fn(&Manager)) -> Self {
        Self { prepare: Some(prepare), ..self }
    }

    /// Returns the facts.
    #[doc(hidden)]
    #[must_use]
    pub fn row(&self) -> Row {
        (self.row)(self.name)
    }

    /// Whether the controller has this name or alias.
    #[doc(hidden)]
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.row().is_called(name)
    }

    /// Reads the options from flags without building anything: `flags` then has the questions and the problems.
    #[doc(hidden)]
    pub fn ask(&self, flags: &Flags<'_>) {
        self.controller.ask(flags);
    }

    pub(crate) fn build(&self, cx: &ControllerContext) -> Result<Built, Disabled> {
        self.controller.build(cx)
    }

    pub(crate) fn prepare(&self, manager: &Manager) {
        if let Some(prepare) = self.prepare {
            prepare(manager);
        }
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Descriptor").field("name", &self.name).finish_non_exhaustive()
    }
}

// === impl BuiltIn ===

impl<O: Clone + Send + Sync + 'static, B: IntoBuilt + 'static> AnyBuiltIn for BuiltIn<O, B> {
    fn ask(&self, flags: &Flags<'_>) {
        drop((self.options)(flags));
    }

    fn build(&self, cx: &ControllerContext) -> Result<Built, Disabled> {
        let options = cx.read_options(self.options)?;
        (self.build)(cx, options).into_built()
    }
}

impl<O, B> fmt::Debug for BuiltIn<O, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltIn").field("name", &self.name).finish_non_exhaustive()
    }
}

// === impl IntoBuilt ===

impl IntoBuilt for Built {
    fn into_built(self) -> Result<Built, Disabled> {
        Ok(self)
    }
}

impl IntoBuilt for Result<Built, Disabled> {
    fn into_built(self) -> Self {
        self
    }
}

// === impl Disabled ===

impl Disabled {
    /// Creates the result of a controller with nothing to do.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl From<crate::metrics::FamilyError> for Disabled {
    fn from(error: crate::metrics::FamilyError) -> Self {
        Self(error.to_string())
    }
}
