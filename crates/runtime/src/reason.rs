//! Reasons of writes.
//!
//! 1. A reason is a sentence for people and a code for machines; the decision log and shadow mode show both.
//! 2. It also declares which Kubernetes event is sent for the write, and which one if the write failed: the writer
//!    sends them, so that no controller forgets.

use std::fmt;

/// The reason of a write: a sentence for people, a code for machines, and the events that `kubectl describe` shows.
///
/// A text is a reason without an event: `"the cake has no recipe"`. Reasons with events are declared with
/// [`reasons!`](crate::reasons).
pub trait Reason: fmt::Display + fmt::Debug + Send + Sync {
    /// Returns a stable name of this reason.
    fn code(&self) -> &'static str;

    /// Returns the reason of the event that is sent for the write, if there is one.
    fn event(&self) -> Option<&'static str> {
        None
    }

    /// Returns the message of that event. `object` is the name of the written object.
    fn note(&self, object: &str) -> String {
        let _ = object;
        self.to_string()
    }

    /// Returns the reason of the warning that is sent if the write failed, if there is one.
    fn failure_event(&self) -> Option<&'static str> {
        None
    }

    /// Returns the message of that warning. `error` is the server's message.
    fn failure_note(&self, error: &str) -> String {
        error.to_owned()
    }
}

/// A text as a reason: all texts have one code, and no event is sent.
impl Reason for str {
    fn code(&self) -> &'static str {
        "Text"
    }
}

impl<R: Reason + ?Sized> Reason for &R {
    fn code(&self) -> &'static str {
        (**self).code()
    }

    fn event(&self) -> Option<&'static str> {
        (**self).event()
    }

    fn note(&self, object: &str) -> String {
        (**self).note(object)
    }

    fn failure_event(&self) -> Option<&'static str> {
        (**self).failure_event()
    }

    fn failure_note(&self, error: &str) -> String {
        (**self).failure_note(error)
    }
}

/// Declares the reasons for which a controller writes.
///
/// After the sentence comes, if one is to be sent, the `event` for the write: its reason, and its message, in which the
/// name between the bars stands for the name of the written object. Without a message, it is the sentence. After `or`
/// comes the warning for a failed write; the name between the bars stands for the server's message, which is the
/// default. The fields of the reason can be used in every text.
///
/// ```
/// steersman_runtime::reasons! {
///     /// Why the bakery writes.
///     pub enum Why {
///         /// A cake was ordered and there is nothing to bake it in.
///         NeedsOven { cake: String } => "cake {cake} has no oven"
///             event "OvenCreated" |oven| "Created oven {oven} for {cake}"
///             or "OvenFailed" |error| "No oven for {cake}: {error}",
///         /// It is burnt.
///         Burnt { minutes: u32 } => "{minutes} minutes are too long" event "Burnt",
///         /// It cannot be paid for.
///         TooDear => "there is no money" or "Unpaid",
///         /// The order is through.
///         Finished => "nothing is left to bake",
///     }
/// }
/// use steersman_runtime::Reason;
///
/// let why = Why::NeedsOven { cake: "sponge".into() };
/// assert_eq!(why.to_string(), "cake sponge has no oven");
/// assert_eq!((why.code(), why.event()), ("NeedsOven", Some("OvenCreated")));
/// assert_eq!(why.note("hot-1"), "Created oven hot-1 for sponge");
/// assert_eq!(why.failure_event(), Some("OvenFailed"));
/// assert_eq!(why.failure_note("quota"), "No oven for sponge: quota");
///
/// let why = Why::Burnt { minutes: 90 };
/// assert_eq!((why.event(), why.note("x").as_str()), (Some("Burnt"), "90 minutes are too long"));
/// assert_eq!(why.failure_event(), None);
///
/// assert_eq!((Why::TooDear.event(), Why::TooDear.failure_event()), (None, Some("Unpaid")));
/// assert_eq!(Why::TooDear.failure_note("no credit"), "no credit");
/// assert_eq!((Why::Finished.code(), Why::Finished.event()), ("Finished", None));
/// ```
///
/// A text with an unknown name does not compile:
///
/// ```compile_fail
/// steersman_runtime::reasons! {
///     /// Why nothing works.
///     pub enum Why {
///         /// The name between the bars is another one.
///         Wrong => "wrong" event "Wrong" |oven| "Created {pod}",
///     }
/// }
/// ```
#[macro_export]
macro_rules! reasons {
    (
        $(#[$outer:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[$inner:meta])*
                $variant:ident $({ $($field:ident: $type:ty),* $(,)? })? => $text:literal
                    $(event $event:literal $(|$object:ident| $note:literal)?)?
                    $(or $failure:literal $(|$error:ident| $failure_note:literal)?)?
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
        #[allow(unused_variables, reason = "a text need not use every field")]
        impl $crate::Reason for $name {
            fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => stringify!($variant)),*
                }
            }
            fn event(&self) -> ::std::option::Option<&'static str> {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => $crate::reasons!(@name $($event)?)),*
                }
            }
            fn note(&self, object: &str) -> ::std::string::String {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        $crate::reasons!(@note object, self.to_string(), $($($object $note)?)?)
                    }),*
                }
            }
            fn failure_event(&self) -> ::std::option::Option<&'static str> {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => $crate::reasons!(@name $($failure)?)),*
                }
            }
            fn failure_note(&self, error: &str) -> ::std::string::String {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        $crate::reasons!(@note error, error.to_owned(), $($($error $failure_note)?)?)
                    }),*
                }
            }
        }
    };
    (@name) => { ::std::option::Option::None };
    (@name $event:literal) => { ::std::option::Option::Some($event) };
    (@note $value:expr, $otherwise:expr,) => { $otherwise };
    (@note $value:expr, $otherwise:expr, $bound:ident $note:literal) => {{
        let $bound = $value;
        format!($note)
    }};
}
