//! Checks of literals that types alone do not make: lists of one type, times, patterns, formats.
//!
//! Follows cel-go's `cel/validator.go` and `ext/formatting.go`, in the order in which Kubernetes runs them.

use super::Checked;
use crate::ast::{Expr, Id, Kind, Literal};
use crate::functions::{Misfit, check_format};
use crate::goregex;
use crate::gotime::{self, Timestamp};
use crate::source::{Issues, Source};
use crate::types::{Type, TypeKind};

struct Literals<'c> {
    checked: &'c Checked,
    source: &'c Source,
    offsets: &'c [u32],
    issues: &'c mut Issues,
}

/// Reports literals that are wrong in themselves.
pub(crate) fn check(checked: &Checked, source: &Source, offsets: &[u32], issues: &mut Issues) {
    let mut nodes = Vec::new();
    collect(&checked.expr, false, &mut nodes);
    let mut literals = Literals { checked, source, offsets, issues };
    for (expr, exempt) in &nodes {
        if let (Kind::List { .. }, false) = (&expr.kind, exempt) {
            literals.homogeneous_list(expr);
        }
    }
    for (expr, exempt) in &nodes {
        if let (Kind::Map { .. }, false) = (&expr.kind, exempt) {
            literals.homogeneous_map(expr);
        }
    }
    for function in ["duration", "timestamp", "matches"] {
        for (expr, _) in &nodes {
            literals.argument(expr, function);
        }
    }
    for (expr, _) in &nodes {
        literals.format(expr);
    }
}

/// All nodes, children first, and whether one of those above formats strings.
fn collect<'e>(expr: &'e Expr, exempt: bool, nodes: &mut Vec<(&'e Expr, bool)>) {
    let formats = matches!(&expr.kind, Kind::Call { function, .. } if &**function == "format");
    expr.children(&mut |child| collect(child, exempt || formats, nodes));
    nodes.push((expr, exempt));
}

// === impl Literals ===

impl Literals<'_> {
    fn report(&mut self, id: Id, message: String) {
        let location = self.source.location(self.offsets[id as usize] as usize);
        self.issues.report(location, message);
    }

    fn type_of(&self, expr: &Expr, optional: bool) -> Type {
        let of = self.checked.type_of(expr.id);
        if optional { of.optional_of().unwrap_or(of).clone() } else { of.clone() }
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn homogeneous_list(&mut self, expr: &Expr) {
        let Kind::List { elements } = &expr.kind else { return };
        let Some((first, rest)) = elements.split_first() else { return };
        let expected = self.type_of(&first.expr, first.optional);
        for element in rest {
            let found = self.type_of(&element.expr, element.optional);
            if !expected.is_equivalent(&found) {
                self.mismatch(element.expr.id, &expected, &found);
                return;
            }
        }
    }

    fn homogeneous_map(&mut self, expr: &Expr) {
        let Kind::Map { entries } = &expr.kind else { return };
        let Some((first, rest)) = entries.split_first() else { return };
        let key = self.type_of(&first.key, false);
        let value = self.type_of(&first.value, first.optional);
        for entry in rest {
            let found = self.type_of(&entry.key, false);
            if !key.is_equivalent(&found) {
                self.mismatch(entry.key.id, &key, &found);
            }
            let found = self.type_of(&entry.value, entry.optional);
            if !value.is_equivalent(&found) {
                self.mismatch(entry.value.id, &value, &found);
            }
        }
    }

    fn argument(&mut self, expr: &Expr, name: &str) {
        let Kind::Call { function, args, .. } = &expr.kind else { return };
        if &**function != name {
            return;
        }
        let Some(Expr { id, kind: Kind::Literal(literal) }) = args.first() else { return };
        let good = match literal {
            Literal::String(text) => match name {
                "duration" => gotime::parse_duration(text).is_some(),
                "timestamp" => Timestamp::parse(text).is_some_and(Timestamp::in_range),
                _ => goregex::compile(text).is_ok(),
            },
            Literal::Int(seconds) if name == "timestamp" => Timestamp::utc(*seconds, 0).in_range(),
            _ => true,
        };
        if !good {
            self.report(*id, format!("invalid {name} argument"));
        }
    }

    fn format(&mut self, expr: &Expr) {
        let Kind::Call { function, target: Some(target), args } = &expr.kind else { return };
        let (Kind::Literal(Literal::String(text)), [Expr { kind: Kind::List { elements }, .. }]) =
            (&target.kind, &**args)
        else {
            return;
        };
        if &**function != "format" || !self.checked.overloads(expr.id).contains(&"string_format") {
            return;
        }
        let checked = self.checked;
        let mut bad_id = None;
        let mut accepts = |clause: &str, at: usize| {
            let arg = &elements[at].expr;
            let refused =
                if clause == "string" { not_a_string(checked, arg) } else { not_one_of(checked, arg, clause) };
            refused.map_or(Ok(()), |id| {
                bad_id = Some(id);
                Err(checked.type_of(id).name().to_owned())
            })
        };
        match check_format(text, elements.len(), &mut accepts) {
            Ok(used) if elements.len() > used => self.report(
                expr.id,
                format!("too many arguments supplied to string.format (expected {used}, got {})", elements.len()),
            ),
            Ok(_) => {}
            Err(Misfit { message, arg }) => {
                let id = arg.and(bad_id).unwrap_or(expr.id);
                self.report(id, message);
            }
        }
    }
}

/// The identity of an argument that a clause other than `%s` refuses.
fn not_one_of(checked: &Checked, arg: &Expr, clause: &str) -> Option<Id> {
    let of = checked.type_of(arg.id);
    let kinds: &[TypeKind] = match clause {
        "decimal" | "octal" => &[TypeKind::Int, TypeKind::Uint],
        "fixed" | "scientific" => &[TypeKind::Double, TypeKind::String],
        "binary" => &[TypeKind::Int, TypeKind::Uint, TypeKind::Bool],
        _ => &[TypeKind::Int, TypeKind::Uint, TypeKind::String, TypeKind::Bytes],
    };
    (*of != Type::Dyn && !is_kind(of, kinds)).then_some(arg.id)
}

/// The identity of an argument, or of an item of it, that `%s` refuses.
fn not_a_string(checked: &Checked, arg: &Expr) -> Option<Id> {
    let of = checked.type_of(arg.id);
    let refused = [TypeKind::Any, TypeKind::Error, TypeKind::Param, TypeKind::Struct, TypeKind::Opaque];
    if *of != Type::Dyn && is_kind(of, &refused) {
        return Some(arg.id);
    }
    match &arg.kind {
        Kind::List { elements } => elements.iter().find_map(|element| not_a_string(checked, &element.expr)),
        Kind::Map { entries } => entries
            .iter()
            .find_map(|entry| not_a_string(checked, &entry.key).or_else(|| not_a_string(checked, &entry.value))),
        _ => None,
    }
}

fn is_kind(of: &Type, kinds: &[TypeKind]) -> bool {
    kinds.contains(&of.kind())
}
