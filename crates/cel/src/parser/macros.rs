//! Macros: calls that stand for loops. Follows cel-go's `parser/macro.go`, `ext/comprehensions.go`, `ext/lists.go` and
//! the optional library.

use std::sync::Arc;

use super::{NODES_MAX, Parser, Result};
use crate::ast::{ACCUMULATOR, Comprehension, Element, Entry, Expr, Field, Id, Kind, Literal, OLD_ACCUMULATOR};

/// A macro was used wrongly: where, and in which way.
struct Misuse {
    id: Id,
    message: String,
}

type Expansion = std::result::Result<Expr, Misuse>;

/// The parts of a loop but for its range.
struct Loop {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

/// Variables over which a macro loops.
enum Vars {
    One(Arc<str>),
    Two(Arc<str>, Arc<str>),
}

/// Makes nodes at the place of the macro's call.
struct Maker<'p, 's> {
    parser: &'p mut Parser<'s>,
    offset: usize,
}

impl Parser<'_> {
    /// A call, expanded if it is one of a macro.
    pub(super) fn call_or_macro(
        &mut self,
        id: Id,
        function: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Result<Expr> {
        let plain = |target: Option<Expr>, args| {
            Expr::new(id, Kind::Call { function: function.into(), target: target.map(Box::new), args })
        };
        let mut make = Maker { offset: self.offsets[id as usize] as usize, parser: self };
        let expansion = match (function, args.len(), target) {
            ("has", 1, None) => make.has(args),
            ("all" | "exists" | "exists_one", 2, Some(target)) => make.quantifier(function, target, args),
            ("map", 2 | 3, Some(target)) => make.map(target, args),
            ("filter", 2, Some(target)) => make.filter(target, args),
            ("optMap" | "optFlatMap", 2, Some(target)) => make.opt_map(function, target, args),
            ("all" | "exists" | "exists_one" | "existsOne", 3, Some(target)) => {
                make.quantifier_two(function, target, args)
            }
            ("transformList" | "transformMap" | "transformMapEntry", 3 | 4, Some(target)) => {
                make.transform(function, target, args)
            }
            ("sortBy", 2, Some(target)) => make.sort_by(target, args),
            (_, _, target) => return Ok(plain(target, args)),
        };
        if self.offsets.len() as u32 > NODES_MAX {
            return self.stop("expression is too large after macros are expanded");
        }
        Ok(expansion.unwrap_or_else(|misuse| {
            let location = self.location(misuse.id);
            self.issues.report(location, misuse.message);
            Expr::new(misuse.id, Kind::Unspecified)
        }))
    }
}

fn misuse(id: Id, message: impl Into<String>) -> Misuse {
    Misuse { id, message: message.into() }
}

fn ident(expr: &Expr) -> Option<Arc<str>> {
    match &expr.kind {
        Kind::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

/// The name of a loop's variable.
fn variable(expr: &Expr, message: &str) -> std::result::Result<Arc<str>, Misuse> {
    let name = ident(expr).ok_or_else(|| misuse(expr.id, message))?;
    if [ACCUMULATOR, OLD_ACCUMULATOR].contains(&&*name) {
        return Err(misuse(expr.id, "iteration variable overwrites accumulator variable"));
    }
    Ok(name)
}

// === impl Maker ===

impl Maker<'_, '_> {
    fn node(&mut self, kind: Kind) -> Expr {
        let id = self.parser.id_at(self.offset);
        Expr::new(id, kind)
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(Kind::Literal(literal))
    }

    fn ident(&mut self, name: Arc<str>) -> Expr {
        self.node(Kind::Ident(name))
    }

    fn accu(&mut self) -> Expr {
        self.ident(ACCUMULATOR.into())
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        let elements = elements.into_iter().map(|expr| Element { expr, optional: false }).collect();
        self.node(Kind::List { elements })
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call { function: function.into(), target: None, args })
    }

    fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call { function: function.into(), target: Some(Box::new(target)), args })
    }

    fn fold(&mut self, range: Expr, vars: Vars, accu: Arc<str>, parts: Loop) -> Expr {
        let Loop { init, condition, step, result } = parts;
        let (var, var2) = match vars {
            Vars::One(var) => (var, None),
            Vars::Two(var, var2) => (var, Some(var2)),
        };
        let fold = Comprehension { range, var, var2, accu, init, condition, step, result };
        self.node(Kind::Comprehension(Box::new(fold)))
    }

    fn has(&mut self, mut args: Vec<Expr>) -> Expansion {
        let arg = args.remove(0);
        let id = arg.id;
        match arg.kind {
            Kind::Select { operand, field, .. } => Ok(self.node(Kind::Select { operand, field, test_only: true })),
            _ => Err(misuse(id, "invalid argument to has() macro")),
        }
    }

    /// The parts of `all`, `exists` and `exists_one`.
    fn quantifier_parts(&mut self, kind: &str, predicate: Expr) -> Loop {
        match kind {
            "all" => {
                let init = self.literal(Literal::Bool(true));
                let accu = self.accu();
                let condition = self.call("@not_strictly_false", vec![accu]);
                let accu = self.accu();
                let step = self.call("_&&_", vec![accu, predicate]);
                Loop { init, condition, step, result: self.accu() }
            }
            "exists" => {
                let init = self.literal(Literal::Bool(false));
                let accu = self.accu();
                let not = self.call("!_", vec![accu]);
                let condition = self.call("@not_strictly_false", vec![not]);
                let accu = self.accu();
                let step = self.call("_||_", vec![accu, predicate]);
                Loop { init, condition, step, result: self.accu() }
            }
            _ => {
                let init = self.literal(Literal::Int(0));
                let condition = self.literal(Literal::Bool(true));
                let counted = vec![self.accu(), self.literal(Literal::Int(1))];
                let counted = self.call("_+_", counted);
                let accu = self.accu();
                let step = self.call("_?_:_", vec![predicate, counted, accu]);
                let one = vec![self.accu(), self.literal(Literal::Int(1))];
                Loop { init, condition, step, result: self.call("_==_", one) }
            }
        }
    }

    fn quantifier(&mut self, kind: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let var = variable(&args[0], "argument must be a simple name")?;
        let parts = self.quantifier_parts(kind, args.remove(1));
        Ok(self.fold(target, Vars::One(var), ACCUMULATOR.into(), parts))
    }

    fn quantifier_two(&mut self, kind: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let vars = two_variables(&args)?;
        let parts = self.quantifier_parts(kind, args.remove(2));
        Ok(self.fold(target, vars, ACCUMULATOR.into(), parts))
    }

    /// The parts of a loop that adds to a list or map, only for some items if there is a filter.
    fn collecting(&mut self, init: Expr, step: Expr, filter: Option<Expr>) -> Loop {
        let condition = self.literal(Literal::Bool(true));
        let step = match filter {
            Some(filter) => {
                let accu = self.accu();
                self.call("_?_:_", vec![filter, step, accu])
            }
            None => step,
        };
        Loop { init, condition, step, result: self.accu() }
    }

    fn appending(&mut self, item: Expr) -> Expr {
        let accu = self.accu();
        let item = self.list(vec![item]);
        self.call("_+_", vec![accu, item])
    }

    fn map(&mut self, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let var = variable(&args[0], "argument is not an identifier")?;
        let transform = args.remove(args.len() - 1);
        let filter = (args.len() == 2).then(|| args.remove(1));
        let init = self.list(Vec::new());
        let step = self.appending(transform);
        let parts = self.collecting(init, step, filter);
        Ok(self.fold(target, Vars::One(var), ACCUMULATOR.into(), parts))
    }

    fn filter(&mut self, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let var = variable(&args[0], "argument is not an identifier")?;
        let filter = args.remove(1);
        let init = self.list(Vec::new());
        let step = self.appending(args.remove(0));
        let parts = self.collecting(init, step, Some(filter));
        Ok(self.fold(target, Vars::One(var), ACCUMULATOR.into(), parts))
    }

    fn transform(&mut self, kind: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let vars = two_variables(&args)?;
        let transform = args.remove(args.len() - 1);
        let filter = (args.len() == 3).then(|| args.remove(2));
        let (init, step) = if kind == "transformList" {
            (self.list(Vec::new()), self.appending(transform))
        } else {
            let mut inserted = vec![self.accu()];
            if let ("transformMap", Vars::Two(key, _)) = (kind, &vars) {
                inserted.push(self.ident(key.clone()));
            }
            inserted.push(transform);
            let step = self.call("cel.@mapInsert", inserted);
            (self.node(Kind::Map { entries: Vec::new() }), step)
        };
        let parts = self.collecting(init, step, filter);
        Ok(self.fold(target, vars, ACCUMULATOR.into(), parts))
    }

    /// A variable for the value of an expression, as a loop over nothing.
    fn bind(&mut self, name: Arc<str>, value: Expr, var: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let parts = Loop { init: value, condition, step: var, result };
        self.fold(range, Vars::One("#unused".into()), name, parts)
    }

    fn opt_map(&mut self, kind: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let name = ident(&args[0])
            .ok_or_else(|| misuse(args[0].id, format!("{kind}() variable name must be a simple identifier")))?;
        let copy = self.copy(&target);
        let has_value = self.member_call("hasValue", target, Vec::new());
        let value = self.member_call("value", copy, Vec::new());
        let var = self.ident(name.clone());
        let mut mapped = self.bind(name, value, var, args.remove(1));
        if kind == "optMap" {
            mapped = self.call("optional.of", vec![mapped]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call("_?_:_", vec![has_value, mapped, none]))
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Expansion {
        let name: Arc<str> = "@__sortBy_input__".into();
        let fits = matches!(
            target.kind,
            Kind::List { .. } | Kind::Select { .. } | Kind::Ident(_) | Kind::Comprehension(_) | Kind::Call { .. }
        );
        if !fits {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(misuse(target.id, message));
        }
        let var = self.ident(name.clone());
        let range = self.ident(name.clone());
        let keys = self.map(range, args)?;
        let list = self.ident(name.clone());
        let sorted = self.member_call("@sortByAssociatedKeys", list, vec![keys]);
        Ok(self.bind(name, target, var, sorted))
    }

    /// The same tree with other identities, at the same places.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let offset = self.parser.offsets[expr.id as usize] as usize;
        let id = self.parser.id_at(offset);
        if id > NODES_MAX {
            return Expr::new(id, Kind::Unspecified);
        }
        let kind = match &expr.kind {
            Kind::Unspecified => Kind::Unspecified,
            Kind::Literal(literal) => Kind::Literal(literal.clone()),
            Kind::Ident(name) => Kind::Ident(name.clone()),
            Kind::Select { operand, field, test_only } => {
                Kind::Select { operand: Box::new(self.copy(operand)), field: field.clone(), test_only: *test_only }
            }
            Kind::Call { function, target, args } => Kind::Call {
                function: function.clone(),
                args: args.iter().map(|arg| self.copy(arg)).collect(),
                target: target.as_ref().map(|target| Box::new(self.copy(target))),
            },
            Kind::List { elements } => Kind::List {
                elements: elements
                    .iter()
                    .map(|element| Element { expr: self.copy(&element.expr), optional: element.optional })
                    .collect(),
            },
            Kind::Map { entries } => Kind::Map {
                entries: entries
                    .iter()
                    .map(|entry| Entry {
                        key: self.copy(&entry.key),
                        value: self.copy(&entry.value),
                        optional: entry.optional,
                    })
                    .collect(),
            },
            Kind::Struct { type_name, fields } => Kind::Struct {
                type_name: type_name.clone(),
                fields: fields.iter().map(|field| self.copy_field(field)).collect(),
            },
            Kind::Comprehension(fold) => Kind::Comprehension(Box::new(Comprehension {
                range: self.copy(&fold.range),
                init: self.copy(&fold.init),
                condition: self.copy(&fold.condition),
                step: self.copy(&fold.step),
                result: self.copy(&fold.result),
                var: fold.var.clone(),
                var2: fold.var2.clone(),
                accu: fold.accu.clone(),
            })),
        };
        Expr::new(id, kind)
    }

    fn copy_field(&mut self, field: &Field) -> Field {
        let id = self.parser.id_at(self.offset);
        Field { id, name: field.name.clone(), value: self.copy(&field.value), optional: field.optional }
    }
}

fn two_variables(args: &[Expr]) -> std::result::Result<Vars, Misuse> {
    let message = "argument must be a simple name";
    let name = |arg: &Expr| ident(arg).ok_or_else(|| misuse(arg.id, message));
    let first = name(&args[0])?;
    let second = name(&args[1])?;
    if first == second {
        return Err(misuse(args[1].id, format!("duplicate variable name: {first}")));
    }
    variable(&args[0], message)?;
    variable(&args[1], message)?;
    Ok(Vars::Two(first, second))
}
