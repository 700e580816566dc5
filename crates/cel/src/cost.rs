//! What an expression may cost at most, from the sizes that its schema allows. Follows cel-go's `checker/cost.go`.

mod calls;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Comprehension, Expr, Id, Kind, Literal};
use crate::checker::Checked;
use crate::decl_type::{DeclType, Shape};
use crate::types::{Type, TypeKind};
use calls::Called;
pub(crate) use calls::is_constant_of_values;

/// A range of sizes or costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// Sizes of keys and values of a list or map.
#[derive(Clone, Copy, Debug)]
struct EntrySize {
    is_list: bool,
    key: Estimate,
    value: Estimate,
}

/// A variable of a loop.
struct Local {
    name: Arc<str>,
    path: Vec<String>,
    size: Option<Estimate>,
    entry: Option<EntrySize>,
}

/// An argument as functions' costs depend on it.
#[derive(Clone)]
struct Node<'e> {
    path: Vec<String>,
    of: Type,
    expr: Option<&'e Expr>,
    size: Option<Estimate>,
}

struct Coster<'c> {
    checked: &'c Checked,
    root: &'c DeclType,
    paths: HashMap<Id, Vec<String>>,
    sizes: HashMap<Id, Estimate>,
    entries: HashMap<Id, EntrySize>,
    locals: Vec<Local>,
}

/// The cost of an expression about an object of this type.
pub(crate) fn estimate(checked: &Checked, root: &DeclType) -> Estimate {
    let mut coster = Coster {
        checked,
        root,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    coster.cost(&checked.expr)
}

// === impl Estimate ===

impl Estimate {
    const ZERO: Self = Self::fixed(0);
    const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    const fn fixed(value: u64) -> Self {
        Self { min: value, max: value }
    }

    fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn multiply(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    fn scale(self, factor: f64) -> Self {
        let scale = |value: u64| {
            let scaled = (value as f64 * factor).ceil();
            if scaled >= 18_446_744_073_709_551_616.0 { u64::MAX } else { scaled as u64 }
        };
        Self { min: scale(self.min), max: scale(self.max) }
    }

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

// === impl EntrySize ===

impl EntrySize {
    fn union(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

// === impl Coster ===

impl<'c> Coster<'c> {
    fn cost(&mut self, expr: &'c Expr) -> Estimate {
        match &expr.kind {
            Kind::Unspecified | Kind::Literal(_) => Estimate::ZERO,
            Kind::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.to_string()], |local| local.path.clone());
                self.paths.insert(expr.id, path);
                Estimate::fixed(1)
            }
            Kind::Select { operand, field, test_only } => {
                let sum = self.cost(operand);
                if *test_only {
                    return sum;
                }
                let mut path = self.path(operand);
                path.push(field.to_string());
                self.paths.insert(expr.id, path);
                let selects = matches!(
                    self.checked.type_of(operand.id).kind(),
                    TypeKind::Map | TypeKind::Struct | TypeKind::Param
                );
                if selects { sum.add(Estimate::fixed(1)) } else { sum }
            }
            Kind::Call { function, target, args } => self.cost_call(expr, function, target.as_deref(), args),
            Kind::List { elements } => {
                let mut sum = Estimate::ZERO;
                let mut item = if elements.is_empty() { Estimate::ZERO } else { Estimate { min: u64::MAX, max: 0 } };
                for element in elements {
                    sum = sum.add(self.cost(&element.expr));
                    item = item.union(self.size_or_unknown(&element.expr));
                }
                self.entries.insert(expr.id, EntrySize { is_list: true, key: Estimate::fixed(1), value: item });
                sum.add(Estimate::fixed(10))
            }
            Kind::Map { entries } => {
                let mut sum = Estimate::ZERO;
                let none = if entries.is_empty() { Estimate::ZERO } else { Estimate { min: u64::MAX, max: 0 } };
                let mut size = EntrySize { is_list: false, key: none, value: none };
                for entry in entries {
                    sum = sum.add(self.cost(&entry.key)).add(self.cost(&entry.value));
                    size.key = size.key.union(self.size_or_unknown(&entry.key));
                    size.value = size.value.union(self.size_or_unknown(&entry.value));
                }
                self.entries.insert(expr.id, size);
                sum.add(Estimate::fixed(30))
            }
            Kind::Struct { fields, .. } => {
                let sum = fields.iter().fold(Estimate::ZERO, |sum, field| sum.add(self.cost(&field.value)));
                sum.add(Estimate::fixed(40))
            }
            Kind::Comprehension(fold) if is_bind(fold) => self.cost_bind(expr, fold),
            Kind::Comprehension(fold) => self.cost_fold(expr, fold),
        }
    }

    fn cost_call(&mut self, expr: &'c Expr, function: &str, target: Option<&'c Expr>, args: &'c [Expr]) -> Estimate {
        if function == "dyn"
            && let [arg] = args
        {
            let cost = self.cost(arg);
            self.copy_sizes(expr.id, arg);
            return cost.add(Estimate::fixed(1));
        }
        let arg_costs: Vec<Estimate> = args.iter().map(|arg| self.cost(arg)).collect();
        let arg_nodes: Vec<Node<'c>> = args.iter().map(|arg| self.node(arg)).collect();
        let overloads = self.checked.overloads(expr.id);
        if overloads.is_empty() {
            return Estimate::ZERO;
        }
        let mut sum = Estimate::ZERO;
        let mut target_node = None;
        if let Some(target) = target {
            sum = self.cost(target);
            target_node = Some(self.node(target));
        }
        let mut cost = Estimate { min: u64::MAX, max: 0 };
        let mut result_size: Option<Estimate> = None;
        for overload in overloads {
            let called =
                Called { function, overload, target: target_node.as_ref(), args: &arg_nodes, costs: &arg_costs };
            let estimated = self.function_cost(expr, &called);
            cost = cost.union(estimated.cost);
            if let Some(size) = estimated.size {
                result_size = Some(result_size.map_or(size, |before| before.union(size)));
            }
            let step = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(first)) = (step, args.first()) {
                result_size = self.entry_size(first).map(|entry| entry.value);
                let mut path = self.path(first);
                path.push(step.to_owned());
                self.paths.insert(expr.id, path);
            }
            if result_size.is_none() {
                result_size = self.size(expr);
            }
        }
        if let Some(size) = result_size {
            self.sizes.insert(expr.id, size);
        }
        sum.add(cost)
    }

    fn cost_fold(&mut self, expr: &'c Expr, fold: &'c Comprehension) -> Estimate {
        let mut sum = self.cost(&fold.range);
        sum = sum.add(self.cost(&fold.init));
        self.push_bound(fold);
        let entry = self.entry_size(&fold.range);
        let is_list =
            entry.map_or_else(|| self.checked.type_of(fold.range.id).kind() == TypeKind::List, |entry| entry.is_list);
        let path = self.path(&fold.range);
        let local = |name: &Arc<str>, step: &str, size: Option<Estimate>| {
            let mut path = path.clone();
            path.push(step.to_owned());
            Local { name: name.clone(), path, size, entry: None }
        };
        let key = entry.map(|entry| entry.key);
        let value = entry.map(|entry| entry.value);
        let outside = self.locals.len();
        if let Some(second) = &fold.var2 {
            self.locals.push(local(&fold.var, if is_list { "@indices" } else { "@keys" }, key));
            self.locals.push(local(second, if is_list { "@items" } else { "@values" }, value));
        } else if is_list {
            self.locals.push(local(&fold.var, "@items", value));
        } else {
            self.locals.push(local(&fold.var, "@keys", key));
        }
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.locals.truncate(outside);
        sum = sum.add(self.cost(&fold.result));
        self.locals.pop();
        let count = self.size_or_unknown(&fold.range);
        sum = sum.add(count.multiply(step.add(condition)));
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Kind::List { .. } | Kind::Map { .. } => {
                self.sizes.insert(expr.id, count);
                if let Some(entry) = self.entry_size(&fold.step) {
                    self.entries.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn cost_bind(&mut self, expr: &'c Expr, fold: &'c Comprehension) -> Estimate {
        let mut sum = self.cost(&fold.range);
        sum = sum.add(self.cost(&fold.init));
        self.push_bound(fold);
        sum = sum.add(self.cost(&fold.result));
        self.locals.pop();
        self.copy_sizes(expr.id, &fold.result);
        sum
    }

    /// Adds the variable that stands for what a loop starts with.
    fn push_bound(&mut self, fold: &'c Comprehension) {
        let path = self.path(&fold.init);
        let size = self.size(&fold.init);
        let entry = self.entry_size(&fold.init);
        self.locals.push(Local { name: fold.accu.clone(), path, size, entry });
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    fn path(&self, expr: &Expr) -> Vec<String> {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn node(&mut self, expr: &'c Expr) -> Node<'c> {
        let mut path = self.path(expr);
        if path.first().is_some_and(|first| first == crate::ast::ACCUMULATOR || first == crate::ast::OLD_ACCUMULATOR) {
            path.clear();
        }
        Node { path, of: self.checked.type_of(expr.id).clone(), expr: Some(expr), size: self.size(expr) }
    }

    /// The size that the schema allows at a place.
    fn size_at(&self, path: &[String]) -> Option<Estimate> {
        let (_, steps) = path.split_first()?;
        let mut at = self.root;
        for (number, step) in steps.iter().enumerate() {
            if step == "@keys" {
                // Keys are strings of which no length is known.
                let is_map = matches!(at.shape, Shape::Map(_));
                return (is_map && number + 1 == steps.len()).then_some(Estimate::ZERO);
            }
            at = at.step(step)?;
        }
        Some(Estimate { min: 0, max: at.max_elements as u64 })
    }

    fn size(&mut self, expr: &Expr) -> Option<Estimate> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(Estimate::fixed(size));
        }
        if let Some(size) = self.size_at(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr.id)) {
            return Some(Estimate::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Estimate {
        self.size(expr).unwrap_or(Estimate::UNKNOWN)
    }

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        self.entries.get(&expr.id).copied().or_else(|| match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        })
    }

    fn copy_sizes(&mut self, id: Id, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(id, size);
        }
        if let Some(entry) = self.entry_size(from) {
            self.entries.insert(id, entry);
        }
    }
}

/// Whether a loop only names a value.
fn is_bind(fold: &Comprehension) -> bool {
    matches!(&fold.range.kind, Kind::List { elements } if elements.is_empty())
        && matches!(&fold.condition.kind, Kind::Literal(Literal::Bool(false)))
        && &*fold.accu != crate::ast::OLD_ACCUMULATOR
}

fn literal_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count() as u64,
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(_) => 1,
        Kind::List { elements } => elements.len() as u64,
        Kind::Map { entries } => entries.len() as u64,
        _ => return None,
    })
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        of => of.optional_of().is_some_and(is_scalar),
    }
}
