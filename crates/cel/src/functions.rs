//! What functions do, by overload, and how a call finds the one it means.
//!
//! In cel-go a function has either one implementation for all its overloads (operators, `size`, `matches`), which looks
//! at what its first argument can do, or one for each overload, which checks the types of its arguments.

mod arithmetic;
mod authorization;
mod format;
mod lists;
mod strings;
mod things;
mod time;

use crate::decls::{Function, Overload};
use crate::types::Type;
use crate::value::{Trait, Value};

pub(crate) use format::Misfit;
pub(crate) use format::check as check_format;

/// An implementation.
pub(crate) type Op = for<'a> fn(&[Value<'a>]) -> Value<'a>;

/// The implementation of a call.
#[derive(Clone, Copy)]
pub(crate) struct Callee {
    pub(crate) dispatch: Dispatch,
    /// Whether arguments after one that is an error are not looked at.
    pub(crate) stops_early: bool,
    /// Whether it takes errors as arguments.
    pub(crate) non_strict: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Dispatch {
    /// One implementation, if the first argument can do this.
    Any(Op, Option<Trait>),
    /// The implementation of an overload, whose types the arguments must have.
    One(&'static str, &'static Overload, Op),
    /// Whichever overload the arguments fit.
    Several(&'static Function),
    /// None: the call always fails.
    None,
}

/// The implementation for a call that was checked.
pub(crate) fn callee(function: &'static Function, overloads: &[&'static str], arg_count: usize) -> Callee {
    let non_strict = function.name == "@not_strictly_false";
    if let Some((op, of)) = arithmetic::singleton(function.name).or_else(|| lists::singleton(function.name)) {
        return Callee { dispatch: Dispatch::Any(op, of), stops_early: arg_count > 2, non_strict };
    }
    let bound = |overload: &&Overload| implementation(overload.id).is_some();
    let one = match overloads {
        [id] => function.overloads.iter().find(|overload| overload.id == *id).filter(|overload| bound(overload)),
        _ => None,
    };
    let mut all = function.overloads.iter().filter(bound);
    let only = match (all.next(), all.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    match one.or(only) {
        Some(overload) => {
            let op = implementation(overload.id).unwrap_or(|_| Value::no_such_overload());
            let stops_early = arg_count > 2 || overload.id == "string_format";
            Callee { dispatch: Dispatch::One(function.name, overload, op), stops_early, non_strict }
        }
        None if function.overloads.iter().any(|overload| bound(&overload)) => {
            Callee { dispatch: Dispatch::Several(function), stops_early: true, non_strict }
        }
        None => Callee { dispatch: Dispatch::None, stops_early: false, non_strict },
    }
}

impl Callee {
    /// Carries the call out.
    pub(crate) fn call<'a>(&self, name: &str, args: &[Value<'a>]) -> Value<'a> {
        match self.dispatch {
            Dispatch::Any(op, None) => op(args),
            Dispatch::Any(op, Some(of)) => match args.first() {
                Some(first) if first.has(of) => op(args),
                Some(first) if first.has(Trait::Receiver) => Value::no_such_overload(),
                _ => Value::error(format!("no such overload: {name}")),
            },
            Dispatch::One(name, overload, op) => {
                if is_unguarded(name) || self.non_strict || fits(overload, args) {
                    op(args)
                } else {
                    mismatch(name, args)
                }
            }
            Dispatch::Several(function) => {
                for overload in &function.overloads {
                    if let Some(op) = implementation(overload.id)
                        && overload.args.len() == args.len()
                        && (is_unguarded(function.name) || fits(overload, args))
                    {
                        return op(args);
                    }
                }
                mismatch(function.name, args)
            }
            Dispatch::None => match args.first() {
                Some(first) if first.has(Trait::Receiver) => Value::no_such_overload(),
                _ => Value::error(format!("no such overload: {name}")),
            },
        }
    }
}

/// Functions that look at their arguments' types themselves.
fn is_unguarded(name: &str) -> bool {
    matches!(name, "contains" | "startsWith" | "endsWith" | "flatten")
}

fn fits(overload: &Overload, args: &[Value<'_>]) -> bool {
    overload.args.len() == args.len()
        && overload.args.iter().zip(args).all(|(declared, arg)| !arg.is_error() && arg.fits(declared))
}

fn mismatch<'a>(name: &str, args: &[Value<'a>]) -> Value<'a> {
    if let Some(error) = args.iter().find(|arg| arg.is_error()) {
        return error.clone();
    }
    let types: Vec<String> = args.iter().map(Value::type_name).collect();
    Value::error(format!("no such overload: {name}({})", types.join(", ")))
}

fn implementation(overload: &str) -> Option<Op> {
    conversion(overload)
        .or_else(|| strings::overload(overload))
        .or_else(|| lists::overload(overload))
        .or_else(|| time::overload(overload))
        .or_else(|| things::overload(overload))
        .or_else(|| authorization::overload(overload))
}

/// Conversions by the type they make.
fn conversion(overload: &str) -> Option<Op> {
    macro_rules! to {
        ($of:expr) => {
            Some(|args| args[0].convert(&$of))
        };
    }
    match overload {
        "bool_to_bool" | "string_to_bool" => to!(Type::Bool),
        "bytes_to_bytes" | "string_to_bytes" => to!(Type::Bytes),
        "double_to_double" | "int64_to_double" | "string_to_double" | "uint64_to_double" => to!(Type::Double),
        "duration_to_duration" | "string_to_duration" => to!(Type::Duration),
        "int64_to_int64" | "double_to_int64" | "duration_to_int64" | "string_to_int64" | "timestamp_to_int64"
        | "uint64_to_int64" => to!(Type::Int),
        "string_to_string"
        | "bool_to_string"
        | "bytes_to_string"
        | "double_to_string"
        | "duration_to_string"
        | "int64_to_string"
        | "timestamp_to_string"
        | "uint64_to_string"
        | "ip_to_string"
        | "cidr_to_string" => {
            to!(Type::String)
        }
        "timestamp_to_timestamp" | "int64_to_timestamp" | "string_to_timestamp" => to!(Type::Timestamp),
        "uint64_to_uint64" | "double_to_uint64" | "int64_to_uint64" | "string_to_uint64" => to!(Type::Uint),
        "not_strictly_false" => Some(|args| match &args[0] {
            value @ Value::Bool(_) => value.clone(),
            _ => Value::Bool(true),
        }),
        _ => None,
    }
}

/// The value of a function that gives one or says why not.
fn value_or<'a, T>(result: Result<T, String>, make: impl FnOnce(T) -> Value<'a>) -> Value<'a> {
    result.map_or_else(Value::error, make)
}
