//! The functions, macros' helpers and types that Kubernetes declares: `apiserver/pkg/cel/environment/base.go` of 1.37.
//!
//! `declarations.txt` was printed by upstream's environment: name, `g`lobal or `m`ember, overload, result, arguments.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::types::Type;

/// The kind of expressions that an environment is for.
///
/// A server must be able to go back by one version, so expressions that come anew may use only what the version before
/// knows; those that are stored already may use everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Expressions in an object that is being created, or changed ones in an update.
    New,
    /// Expressions that have been stored before.
    Stored,
}

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// Names of type parameters.
    pub(crate) params: Vec<Arc<str>>,
}

/// A function and its overloads.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(read);

/// The function of this name.
pub(crate) fn function(name: &str, environment: Environment) -> Option<&'static Function> {
    if name == "includes" && environment == Environment::New {
        return None;
    }
    FUNCTIONS.get(name)
}

/// The type that a name stands for.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        // The short names are known to the checker only; a program that uses them cannot be built.
        "google.protobuf.Duration" | "duration" => Type::Duration,
        "google.protobuf.Timestamp" | "timestamp" => Type::Timestamp,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "string" => Type::String,
        "type" => Type::Type(None),
        "uint" => Type::Uint,
        "optional_type" => Type::optional(Type::Dyn),
        "net.IP" | "net.CIDR" => Type::Opaque(name.into(), Arc::new([])),
        _ => return None,
    })
}

fn read() -> HashMap<&'static str, Function> {
    let mut functions = HashMap::new();
    for line in include_str!("declarations.txt").lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let name = word();
        let member = word() == "m";
        let id = word();
        let result = Type::parse(word());
        let args: Vec<Type> = words.map(Type::parse).collect();
        let mut params = Vec::new();
        args.iter().chain([&result]).for_each(|declared| collect_params(declared, &mut params));
        let function = functions.entry(name).or_insert_with(|| Function { name, overloads: Vec::new() });
        function.overloads.push(Overload { id, member, args, result, params });
    }
    functions
}

fn collect_params(declared: &Type, params: &mut Vec<Arc<str>>) {
    match declared {
        Type::Param(name) if !params.contains(name) => params.push(name.clone()),
        _ => declared.params().into_iter().for_each(|param| collect_params(param, params)),
    }
}
