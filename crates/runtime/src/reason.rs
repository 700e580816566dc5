//! Why a controller writes.

use std::fmt;

/// The reason of a write: a sentence for people, a code for machines, and the event that `kubectl describe` shows.
///
/// Declare a controller's reasons with [`reasons!`](crate::reasons).
pub trait Reason: fmt::Display + fmt::Debug + Send + Sync {
    /// A stable name for this reason.
    fn code(&self) -> &'static str;

    /// The reason of the Kubernetes event that tells of the write, if upstream sends one.
    fn event(&self) -> Option<&'static str> {
        None
    }
}

/// Declares the reasons for which a controller writes.
///
/// ```
/// steersman_runtime::reasons! {
///     /// Why the bakery writes.
///     pub enum Why {
///         /// A cake was ordered and there is nothing to bake it in.
///         NeedsOven { cake: String } => "cake {cake} has no oven" event "OvenCreated",
///         /// The order is through.
///         Finished => "nothing is left to bake",
///     }
/// }
/// use steersman_runtime::Reason;
/// let why = Why::NeedsOven { cake: "sponge".into() };
/// assert_eq!(why.to_string(), "cake sponge has no oven");
/// assert_eq!((why.code(), why.event()), ("NeedsOven", Some("OvenCreated")));
/// assert_eq!((Why::Finished.code(), Why::Finished.event()), ("Finished", None));
/// ```
#[macro_export]
macro_rules! reasons {
    (
        $(#[$outer:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[$inner:meta])*
                $variant:ident $({ $($field:ident: $type:ty),* $(,)? })? => $text:literal $(event $event:literal)?
            ),* $(,)?
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Debug)]
        $vis enum $name {
            $($(#[$inner])* $variant $({ $(#[allow(missing_docs)] $field: $type),* })?),*
        }
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),* })? => write!(f, $text)),*
                }
            }
        }
        impl $crate::Reason for $name {
            fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => stringify!($variant)),*
                }
            }
            fn event(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => $crate::reasons!(@event $($event)?)),*
                }
            }
        }
    };
    (@event) => { None };
    (@event $event:literal) => { Some($event) };
}
