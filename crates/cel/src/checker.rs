//! The type checker. Follows cel-go's `checker/checker.go` and prints its errors.

mod aggregates;
mod infer;
pub(crate) mod literals;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Comprehension, Expr, Id, Kind, Literal};
use crate::decl_type::StructTypes;
use crate::decls::{self, Environment, Function};
use crate::parser::{self, Parsed};
use crate::source::{Issues, NOWHERE, Source};
use crate::types::Type;
use infer::Mapping;

/// The variables and types that an expression may use.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) environment: Environment,
    pub(crate) variables: Vec<(Arc<str>, Type)>,
    pub(crate) structs: Arc<StructTypes>,
}

/// A checked expression.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) expr: Expr,
    types: Vec<Option<Type>>,
    references: HashMap<Id, Reference>,
}

/// The declaration to which a node refers.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable, or a type.
    Ident(Arc<str>),
    /// Overloads of a function.
    Function(Vec<&'static str>),
}

struct Checker<'c> {
    scope: &'c Scope,
    source: &'c Source,
    offsets: &'c [u32],
    issues: Issues,
    types: Vec<Option<Type>>,
    references: HashMap<Id, Reference>,
    mapping: Mapping,
    /// Variables of the loops around.
    locals: Vec<(Arc<str>, Type)>,
    vars: usize,
}

/// Parses and checks an expression, or says what is wrong with it as cel-go does.
pub(crate) fn compile(text: &str, scope: &Scope) -> Result<Checked, String> {
    let Parsed { source, mut expr, offsets } = parser::parse(text)?;
    let mut checker = Checker {
        scope,
        source: &source,
        offsets: &offsets,
        issues: Issues::default(),
        types: vec![None; offsets.len()],
        references: HashMap::new(),
        mapping: Mapping::default(),
        locals: Vec::new(),
        vars: 0,
    };
    checker.check(&mut expr);
    let Checker { mut issues, mut types, references, mapping, .. } = checker;
    if mapping.is_exhausted() {
        issues.report(NOWHERE, "expression is too complex to infer its type");
    }
    if !issues.is_empty() {
        return Err(issues.display(&source));
    }
    for found in types.iter_mut().flatten() {
        *found = mapping.substitute(found, true);
    }
    let checked = Checked { expr, types, references };
    literals::check(&checked, &source, &offsets, &mut issues);
    if issues.is_empty() { Ok(checked) } else { Err(issues.display(&source)) }
}

// === impl Checked ===

impl Checked {
    pub(crate) fn type_of(&self, id: Id) -> &Type {
        self.types.get(id as usize).and_then(Option::as_ref).unwrap_or(&Type::Error)
    }

    pub(crate) fn reference(&self, id: Id) -> Option<&Reference> {
        self.references.get(&id)
    }

    pub(crate) fn overloads(&self, id: Id) -> &[&'static str] {
        match self.references.get(&id) {
            Some(Reference::Function(overloads)) => overloads,
            _ => &[],
        }
    }

    /// Whether the expression uses a variable of this name.
    pub(crate) fn uses(&self, name: &str) -> bool {
        self.references.values().any(|found| matches!(found, Reference::Ident(found) if &**found == name))
    }
}

// === impl Checker ===

impl Checker<'_> {
    fn report(&mut self, id: Id, message: String) {
        let location = self.source.location(self.offsets[id as usize] as usize);
        self.issues.report(location, message);
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set(id, Type::Error);
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn set(&mut self, id: Id, of: Type) {
        self.types[id as usize] = Some(of);
    }

    fn get(&self, id: Id) -> Type {
        self.types[id as usize].clone().unwrap_or(Type::Error)
    }

    fn check(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            Kind::Unspecified => self.set(expr.id, Type::Error),
            Kind::Literal(literal) => {
                let of = literal_type(literal);
                self.set(expr.id, of);
            }
            Kind::Ident(_) => self.check_ident(expr),
            Kind::Select { .. } => self.check_select(expr),
            Kind::Call { .. } => self.check_call(expr),
            Kind::List { elements } => self.check_list(expr.id, elements),
            Kind::Map { entries } => self.check_map(expr.id, entries),
            Kind::Struct { type_name, fields } => {
                let name = type_name.clone();
                self.check_struct(expr.id, &name, fields);
            }
            Kind::Comprehension(fold) => self.check_comprehension(expr.id, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        self.locals.iter().rev().find(|(local, _)| &**local == name).map(|(_, of)| of)
    }

    fn global(&self, name: &str) -> Option<Type> {
        if let Some((_, of)) = self.scope.variables.iter().find(|(variable, _)| &**variable == name) {
            return Some(of.clone());
        }
        let of_type = |of| Type::Type(Some(Arc::new(of)));
        let structs = || self.scope.structs.contains(name).then(|| of_type(Type::Struct(name.into())));
        decls::type_named(name).map(of_type).or_else(structs)
    }

    /// The type of a name, and the name under which it is found when it runs.
    fn resolve(&self, name: &str) -> Option<(Arc<str>, Type)> {
        let local = self.local(name);
        if let Some(of) = local.filter(|_| !name.starts_with('.')) {
            return Some((name.into(), of.clone()));
        }
        let bare = name.strip_prefix('.').unwrap_or(name);
        let of = self.global(bare)?;
        Some((if local.is_some() { format!(".{bare}").into() } else { bare.into() }, of))
    }

    fn check_ident(&mut self, expr: &mut Expr) {
        let Kind::Ident(name) = &expr.kind else { return };
        let name = name.clone();
        match self.resolve(&name) {
            Some((name, of)) => self.refer(expr, name, of),
            None => self.undeclared(expr.id, &name),
        }
    }

    fn refer(&mut self, expr: &mut Expr, name: Arc<str>, of: Type) {
        self.set(expr.id, of);
        self.references.insert(expr.id, Reference::Ident(name.clone()));
        expr.kind = Kind::Ident(name);
    }

    fn check_select(&mut self, expr: &mut Expr) {
        if let Some((name, of)) = self.qualified(expr) {
            return self.refer(expr, name, of);
        }
        let id = expr.id;
        let Kind::Select { operand, field, test_only } = &mut expr.kind else { return };
        let found = self.select_field(id, operand, field, false);
        let found = if *test_only { Type::Bool } else { found };
        let found = self.mapping.substitute(&found, false);
        self.set(id, found);
    }

    /// A chain of selections that is the name of a variable or type.
    fn qualified(&self, expr: &Expr) -> Option<(Arc<str>, Type)> {
        let name = expr.qualified_name()?;
        let bare = name.strip_prefix('.').unwrap_or(&name);
        let first = bare.split('.').next().unwrap_or_default();
        if self.local(first).is_some() && !name.starts_with('.') {
            return None;
        }
        let of = self.global(bare)?;
        Some((bare.into(), of))
    }

    fn select_field(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.mapping.substitute(&self.get(operand.id), false);
        let unwrapped = operand_type.optional_of();
        let target = unwrapped.unwrap_or(&operand_type);
        let found = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(name) => self.lookup_field(id, name, field),
            Type::Param(_) => {
                let target = target.clone();
                self.mapping.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            target => {
                if !target.is_dyn_or_error() {
                    let message = format!("type '{target}' does not support field selection");
                    self.report(id, message);
                }
                Type::Dyn
            }
        };
        if unwrapped.is_some() || optional { Type::optional(found) } else { found }
    }

    fn lookup_field(&mut self, id: Id, name: &str, field: &str) -> Type {
        if !self.scope.structs.contains(name) {
            self.report(id, format!("unexpected failed resolution of '{name}'"));
            return Type::Error;
        }
        let found = self.scope.structs.field(name, field).cloned();
        found.unwrap_or_else(|| {
            self.report(id, format!("undefined field '{field}'"));
            Type::Error
        })
    }

    fn check_call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let Kind::Call { function, target, args } = &mut expr.kind else { return };
        if &**function == "_?._" {
            return self.check_optional_select(id, args);
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        let environment = self.scope.environment;
        let has_patches = self.scope.structs.has_patches();
        let find = |name: &str| {
            let found = decls::function(name.strip_prefix('.').unwrap_or(name), environment);
            found.filter(|found| has_patches || found.name != "jsonpatch.escapeKey")
        };
        let Some(receiver) = target else {
            let Some(found) = find(function) else {
                let name = function.clone();
                return self.undeclared(id, &name);
            };
            *function = found.name.into();
            return self.resolve_call(id, found, None, args);
        };
        if let Some(prefix) = receiver.qualified_name()
            && let Some(found) = find(&format!("{prefix}.{function}"))
        {
            *target = None;
            *function = found.name.into();
            return self.resolve_call(id, found, None, args);
        }
        self.check(receiver);
        match find(function) {
            Some(found) => self.resolve_call(id, found, Some(receiver), args),
            None => {
                let name = function.clone();
                self.undeclared(id, &name);
            }
        }
    }

    fn check_optional_select(&mut self, id: Id, args: &mut [Expr]) {
        let [operand, field] = args else { return };
        let Kind::Literal(Literal::String(field)) = &field.kind else { return };
        let field = field.clone();
        let found = self.select_field(id, operand, &field, true);
        let found = self.mapping.substitute(&found, false);
        self.set(id, found);
        self.references.insert(id, Reference::Function(vec!["select_optional_field"]));
    }

    fn resolve_call(&mut self, id: Id, function: &'static Function, target: Option<&Expr>, args: &[Expr]) {
        let ids: Vec<Id> = target.into_iter().chain(args).map(|arg| arg.id).collect();
        let arg_types: Vec<Type> = ids.iter().map(|id| self.get(*id)).collect();
        if matches!(function.name, "_&&_" | "_||_") {
            return self.resolve_logic(id, function, &ids, &arg_types);
        }
        let mut result: Option<Type> = None;
        let mut matching = Vec::new();
        for overload in function.overloads.iter().filter(|overload| overload.member == target.is_some()) {
            let fresh: Vec<(Arc<str>, Type)> =
                overload.params.iter().map(|param| (param.clone(), self.new_var())).collect();
            let candidates: Vec<Type> = overload.args.iter().map(|arg| infer::instantiate(arg, &fresh)).collect();
            if !self.mapping.assign_all(&arg_types, &candidates) {
                continue;
            }
            matching.push(overload.id);
            let found = self.mapping.substitute(&infer::instantiate(&overload.result, &fresh), false);
            result = Some(match result {
                None => found,
                Some(before) if !before.is_dyn() && before != found => Type::Dyn,
                Some(before) => before,
            });
        }
        match result {
            Some(result) => {
                self.set(id, result);
                self.references.insert(id, Reference::Function(matching));
            }
            None => self.no_overload(id, function, target.is_some(), &arg_types),
        }
    }

    fn resolve_logic(&mut self, id: Id, function: &'static Function, ids: &[Id], arg_types: &[Type]) {
        let mut fits = true;
        for (arg, of) in ids.iter().zip(arg_types) {
            if !self.mapping.assign(of, &Type::Bool) {
                self.mismatch(*arg, &Type::Bool, of);
                fits = false;
            }
        }
        if fits {
            self.set(id, Type::Bool);
            let overloads = function.overloads.iter().map(|overload| overload.id).collect();
            self.references.insert(id, Reference::Function(overloads));
        } else {
            self.set(id, Type::Error);
        }
    }

    fn no_overload(&mut self, id: Id, function: &Function, member: bool, arg_types: &[Type]) {
        let mut args: Vec<String> = arg_types.iter().map(|of| self.mapping.substitute(of, true).to_string()).collect();
        let target = if member { format!("{}.", args.remove(0)) } else { String::new() };
        let signature = format!("{target}({})", args.join(", "));
        self.report(id, format!("found no matching overload for '{}' applied to '{signature}'", function.name));
        self.set(id, Type::Error);
    }

    fn new_var(&mut self) -> Type {
        self.vars += 1;
        Type::Param(format!("_var{}", self.vars - 1).into())
    }

    fn check_comprehension(&mut self, id: Id, fold: &mut Comprehension) {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.mapping.substitute(&self.get(fold.range.id), false);
        let accu = self.get(fold.init.id);
        self.locals.push((fold.accu.clone(), accu.clone()));
        let (first, second) = match &range {
            Type::List(item) => match fold.var2 {
                Some(_) => (Type::Int, (**item).clone()),
                None => ((**item).clone(), Type::Error),
            },
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let outside = self.locals.len();
        self.locals.push((fold.var.clone(), first));
        self.locals.extend(fold.var2.clone().map(|var| (var, second)));
        self.check(&mut fold.condition);
        self.assert(fold.condition.id, &Type::Bool);
        self.check(&mut fold.step);
        self.assert(fold.step.id, &accu);
        self.locals.truncate(outside);
        self.check(&mut fold.result);
        self.locals.pop();
        let result = self.mapping.substitute(&self.get(fold.result.id), false);
        self.set(id, result);
    }

    fn assert(&mut self, id: Id, expected: &Type) {
        let found = self.get(id);
        if !self.mapping.assign(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
