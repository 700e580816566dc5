//! Which types fit where, and what the type variables stand for. Follows cel-go's `checker/types.go`.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::types::{Type, TypeKind};

/// The known types of type variables.
#[derive(Default)]
pub(super) struct Mapping {
    known: HashMap<Arc<str>, Type>,
    /// The previous types, to take back steps that led nowhere.
    journal: Vec<(Arc<str>, Option<Type>)>,
    /// Steps taken so far.
    steps: Cell<u32>,
}

/// The maximum number of steps of inference. `{x: x}` in a loop doubles its type, so short expressions can have types
/// that fill any memory; cel-go has no such bound.
const STEPS_MAX: u32 = 3_000_000;

enum Fit {
    Yes,
    /// No, and the variable is bound already.
    No,
    /// No, because the variable would stand for something with itself inside.
    Circular,
}

impl Mapping {
    /// Whether a value of the second type fits where the first is wanted; if so, what that says of variables is kept.
    pub(super) fn assign(&mut self, wanted: &Type, given: &Type) -> bool {
        self.journal.clear();
        let fits = self.fits(wanted, given);
        self.settle(fits)
    }

    pub(super) fn assign_all(&mut self, left: &[Type], right: &[Type]) -> bool {
        self.journal.clear();
        let fits = left.len() == right.len() && left.iter().zip(right).all(|(left, right)| self.fits(left, right));
        self.settle(fits)
    }

    fn settle(&mut self, fits: bool) -> bool {
        if !fits {
            while let Some((name, before)) = self.journal.pop() {
                match before {
                    Some(before) => self.known.insert(name, before),
                    None => self.known.remove(&name),
                };
            }
        }
        fits
    }

    fn bind(&mut self, name: &Arc<str>, of: Type) {
        let before = self.known.insert(name.clone(), of);
        self.journal.push((name.clone(), before));
    }

    /// Whether inference took more steps than it may.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.get() >= STEPS_MAX
    }

    fn step(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        !self.is_exhausted()
    }

    fn fits(&mut self, left: &Type, right: &Type) -> bool {
        if !self.step() {
            return true;
        }
        if let Type::Param(name) = right {
            match self.substitution(left, name, right) {
                Fit::Yes => return true,
                Fit::No => return false,
                Fit::Circular => {}
            }
        }
        if let Type::Param(name) = left {
            return matches!(self.substitution(right, name, left), Fit::Yes);
        }
        if left.is_dyn_or_error() || right.is_dyn_or_error() {
            return true;
        }
        match (left, right) {
            (Type::Null, other) | (other, Type::Null) => takes_null(other),
            (Type::Type(_), right) => right.kind() == TypeKind::Type,
            (Type::List(left), Type::List(right)) => self.fits(left, right),
            (Type::Map(left_key, left), Type::Map(right_key, right)) => {
                self.fits(left_key, right_key) && self.fits(left, right)
            }
            (Type::Opaque(left, left_params), Type::Opaque(right, right_params)) => {
                left == right
                    && left_params.len() == right_params.len()
                    && left_params.iter().zip(right_params.iter()).all(|(left, right)| self.fits(left, right))
            }
            (Type::List(_) | Type::Map(..) | Type::Opaque(..), _) => false,
            (left, right) => right.is_assignable_from(left),
        }
    }

    /// Whether a variable can stand for a type.
    fn substitution(&mut self, of: &Type, name: &Arc<str>, variable: &Type) -> Fit {
        if of == variable {
            return Fit::Yes;
        }
        if let Some(known) = self.known.get(name).cloned() {
            if *of == known {
                return Fit::Yes;
            }
            if self.fits(of, &known) {
                let general = most_general(of.clone(), known);
                if !self.refers(variable, &general) {
                    self.bind(name, general);
                }
                return Fit::Yes;
            }
            return Fit::No;
        }
        if self.refers(variable, of) {
            return Fit::Circular;
        }
        self.bind(name, of.clone());
        Fit::Yes
    }

    /// Whether a variable occurs within a type.
    fn refers(&self, variable: &Type, within: &Type) -> bool {
        if variable == within {
            return true;
        }
        if !self.step() {
            return false;
        }
        match within {
            Type::Param(name) => self.known.get(name).is_some_and(|known| self.refers(variable, known)),
            Type::Opaque(..) | Type::List(_) | Type::Map(..) | Type::Type(_) => {
                within.params().into_iter().any(|param| self.refers(variable, param))
            }
            _ => false,
        }
    }

    /// The type with what is known put in place of variables; those not known are `dyn` if asked.
    pub(super) fn substitute(&self, of: &Type, unknown_to_dyn: bool) -> Type {
        if !self.step() {
            return Type::Dyn;
        }
        let inner = |of: &Type| Arc::new(self.substitute(of, unknown_to_dyn));
        match of {
            Type::Param(name) => match self.known.get(name) {
                Some(known) => self.substitute(known, unknown_to_dyn),
                None if unknown_to_dyn => Type::Dyn,
                None => of.clone(),
            },
            Type::List(item) => Type::List(inner(item)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            Type::Type(Some(of)) => Type::Type(Some(inner(of))),
            Type::Opaque(name, params) => {
                Type::Opaque(name.clone(), params.iter().map(|param| self.substitute(param, unknown_to_dyn)).collect())
            }
            _ => of.clone(),
        }
    }
}

/// A declared type with its parameters replaced.
pub(super) fn instantiate(of: &Type, fresh: &[(Arc<str>, Type)]) -> Type {
    if fresh.is_empty() {
        return of.clone();
    }
    let inner = |of: &Type| Arc::new(instantiate(of, fresh));
    match of {
        Type::Param(name) => {
            fresh.iter().find(|(param, _)| param == name).map_or_else(|| of.clone(), |(_, var)| var.clone())
        }
        Type::List(item) => Type::List(inner(item)),
        Type::Map(key, value) => Type::Map(inner(key), inner(value)),
        Type::Type(Some(of)) => Type::Type(Some(inner(of))),
        Type::Opaque(name, params) => {
            Type::Opaque(name.clone(), params.iter().map(|param| instantiate(param, fresh)).collect())
        }
        _ => of.clone(),
    }
}

/// Types that take `null` though they are not declared to.
fn takes_null(of: &Type) -> bool {
    matches!(of, Type::Null | Type::Opaque(..) | Type::Struct(_) | Type::Any | Type::Duration | Type::Timestamp)
}

pub(super) fn most_general(left: Type, right: Type) -> Type {
    if is_equal_or_less_specific(&left, &right) { left } else { right }
}

fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    if left.is_dyn() || left.kind() == TypeKind::Param {
        return true;
    }
    if right.is_dyn() || right.kind() == TypeKind::Param || left.kind() != right.kind() {
        return false;
    }
    match left.kind() {
        TypeKind::Type => true,
        TypeKind::Opaque | TypeKind::List | TypeKind::Map => {
            let ours = left.params();
            let theirs = right.params();
            left.name() == right.name()
                && ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| is_equal_or_less_specific(ours, theirs))
        }
        _ => left == right,
    }
}
