//! Runs programs, and counts what that costs.

mod literals;
mod select;
mod track;

use crate::ast::ACCUMULATOR;
use crate::plan::{Attribute, Base, By, Call, Fold, Node, NodeKind, Qualifier};
use crate::value::{Key, Map, Value};
use select::{by_pattern, grow, lookup};
use track::Tracker;

/// The result of a program.
pub(crate) struct Outcome<'a> {
    pub(crate) value: Value<'a>,
    pub(crate) cost: u64,
    /// Whether it was stopped because it cost too much.
    pub(crate) exhausted: bool,
}

/// The program was stopped because it cost too much.
#[derive(Debug)]
struct Exhausted;

type Result<T> = std::result::Result<T, Exhausted>;

/// The variables of a policy, which are evaluated when they are asked for.
pub(crate) trait Composed<'a> {
    /// Returns the value of a variable, or the error that its evaluation is; none if it is not declared.
    fn value(&self, name: &str) -> Option<Value<'a>>;
}

struct Evaluator<'a, 'p> {
    variables: &'p [(&'p str, Value<'a>)],
    composed: Option<&'p dyn Composed<'a>>,
    frames: Vec<Frame<'a, 'p>>,
    tracker: Tracker,
}

/// A loop that is running.
struct Frame<'a, 'p> {
    fold: &'p Fold,
    accu: Option<Value<'a>>,
    first: Value<'a>,
    second: Value<'a>,
    /// Whether its variables are gone and only the result is left.
    finishing: bool,
    /// Whether it started with nothing, so that what it adds to is its own.
    growing: bool,
}

/// The result of selections from a value.
enum Selected<'a> {
    Plain(Value<'a>),
    Optional(Value<'a>),
}

/// Runs a program.
pub(crate) fn run<'a>(program: &Node, variables: &[(&str, Value<'a>)], cost_limit: u64) -> Outcome<'a> {
    run_composed(program, variables, None, cost_limit)
}

/// Runs a program that may use the variables of a policy.
pub(crate) fn run_composed<'a>(
    program: &Node,
    variables: &[(&str, Value<'a>)],
    composed: Option<&dyn Composed<'a>>,
    cost_limit: u64,
) -> Outcome<'a> {
    let mut evaluator = Evaluator { variables, composed, frames: Vec::new(), tracker: Tracker::new(cost_limit) };
    match evaluator.eval(program) {
        Ok(value) => Outcome { value, cost: evaluator.tracker.cost, exhausted: false },
        Err(Exhausted) => Outcome {
            value: Value::error("operation cancelled: actual cost limit exceeded"),
            cost: evaluator.tracker.cost,
            exhausted: true,
        },
    }
}

// === impl Evaluator ===

impl<'a, 'p> Evaluator<'a, 'p> {
    fn eval(&mut self, node: &'p Node) -> Result<Value<'a>> {
        let value = match &node.kind {
            NodeKind::Const(value) => {
                self.tracker.push(node.id)?;
                let value: Value<'a> = value.clone();
                return Ok(value);
            }
            NodeKind::Attr(attribute) => return self.attribute(attribute),
            NodeKind::Has(attribute) => return self.has(node, attribute),
            NodeKind::And(args) => self.logic(args, false)?,
            NodeKind::Or(args) => self.logic(args, true)?,
            NodeKind::Equal { args, negated } => return self.equal(node, args, *negated),
            NodeKind::Call(call) => return self.call(node, call),
            NodeKind::Member { arg, set } => {
                let value = self.eval(arg)?;
                let found = if value.is_error() { value } else { Value::Bool(set.contains(&Key::new(&value))) };
                self.tracker.push(node.id)?;
                return Ok(found);
            }
            NodeKind::OptionalOr { args, unwrap } => {
                let value = self.optional_or(args, *unwrap)?;
                self.tracker.push(node.id)?;
                return Ok(value);
            }
            NodeKind::List { items, optional } => {
                let value = self.list(items, optional)?;
                self.tracker.drop_args(items.iter().map(|item| item.id));
                self.tracker.cost += track::LIST;
                self.tracker.push(node.id)?;
                return Ok(value);
            }
            NodeKind::Map { entries, optional } => {
                let value = self.map(entries, optional)?;
                self.tracker.drop_args(entries.iter().flatten().map(|item| item.id));
                self.tracker.cost += track::MAP;
                self.tracker.push(node.id)?;
                return Ok(value);
            }
            NodeKind::Made { type_name, fields, optional } => {
                let value = self.made(type_name, fields, optional)?;
                self.tracker.drop_args(fields.iter().map(|(_, value)| value.id));
                self.tracker.cost += track::STRUCT;
                self.tracker.push(node.id)?;
                return Ok(value);
            }
            NodeKind::Fold(fold) => return self.fold(node, fold),
        };
        if let NodeKind::And(args) | NodeKind::Or(args) = &node.kind {
            self.tracker.drop(args[0].id);
            self.tracker.drop(args[1].id);
        }
        self.tracker.push(node.id)?;
        Ok(value)
    }

    /// `&&` and `||`: one side can decide even if the other is an error.
    fn logic(&mut self, args: &'p [Node; 2], decisive: bool) -> Result<Value<'a>> {
        let mut error = None;
        for arg in args {
            match self.eval(arg)? {
                Value::Bool(value) if value == decisive => return Ok(Value::Bool(decisive)),
                Value::Bool(_) => {}
                other => error = error.or_else(|| Some(other.or_no_such_overload())),
            }
        }
        Ok(error.unwrap_or(Value::Bool(!decisive)))
    }

    fn equal(&mut self, node: &'p Node, args: &'p [Node; 2], negated: bool) -> Result<Value<'a>> {
        let left = self.eval(&args[0])?;
        let right = self.eval(&args[1])?;
        let cost = track::equality(&left, &right, negated);
        let value = if left.is_error() {
            left
        } else if right.is_error() {
            right
        } else {
            let equal = left.equal(&right);
            if negated { Value::Bool(!equal.is_true()) } else { equal }
        };
        if self.tracker.drop_args(args.iter().map(|arg| arg.id)) {
            self.tracker.cost += cost;
        }
        self.tracker.push(node.id)?;
        Ok(value)
    }

    fn call(&mut self, node: &'p Node, call: &'p Call) -> Result<Value<'a>> {
        let mut args = Vec::with_capacity(call.args.len());
        let mut failed = None;
        let strict = !call.callee.non_strict;
        let stops_early = call.callee.stops_early || call.regex.is_some();
        for arg in &call.args {
            let value = self.eval(arg)?;
            if strict && value.is_error() && failed.is_none() {
                failed = Some(value.clone());
                if stops_early {
                    break;
                }
            }
            args.push(value);
        }
        let accumulates = failed.is_none() && self.releases_accumulator(call);
        let (value, cost) = match failed {
            Some(error) => {
                args.resize(call.args.len(), Value::Null);
                let cost = track::call(call, &args, &error);
                (error, cost)
            }
            // What a loop adds to is its own, and grows in place; it costs one whichever its size is.
            None if accumulates => (grow(args), 1),
            None => {
                let value = match &call.regex {
                    Some(regex) => by_pattern(call, regex, &args),
                    None => call.callee.call(call.function, &args),
                };
                let cost = track::call(call, &args, &value);
                (value, cost)
            }
        };
        if self.tracker.drop_args(call.args.iter().map(|arg| arg.id)) {
            self.tracker.cost = self.tracker.cost.saturating_add(cost);
        }
        self.tracker.push(node.id)?;
        Ok(value)
    }

    /// Lets go of what the innermost loop accumulates, if this call adds to it; then its argument is the only one.
    fn releases_accumulator(&mut self, call: &Call) -> bool {
        let adds = matches!(call.overload, "add_list" | "@mapInsert_map_key_value" | "@mapInsert_map_map");
        let to_accumulator = matches!(
            call.args.first(),
            Some(Node { kind: NodeKind::Attr(attribute), .. }) if attribute.is_accumulator()
        );
        match self.frames.last_mut() {
            Some(frame) if adds && to_accumulator && frame.growing => {
                frame.accu = None;
                true
            }
            _ => false,
        }
    }

    fn optional_or(&mut self, args: &'p [Node; 2], unwrap: bool) -> Result<Value<'a>> {
        let left = self.eval(&args[0])?;
        match left {
            Value::Optional(Some(value)) if unwrap => Ok((*value).clone()),
            Value::Error(_) | Value::Optional(Some(_)) => Ok(left),
            Value::Optional(None) => self.eval(&args[1]),
            _ => Ok(Value::no_such_overload()),
        }
    }

    fn attribute(&mut self, attribute: &'p Attribute) -> Result<Value<'a>> {
        let value = self.resolve(attribute)?;
        if let Base::Conditional { condition, truthy, falsy, .. } = &attribute.base {
            for id in [falsy.id(), truthy.id(), condition.id] {
                self.tracker.drop(id);
            }
        } else {
            self.tracker.drop(attribute.id());
            self.tracker.cost += 1;
        }
        self.tracker.push(attribute.id())?;
        Ok(value)
    }

    fn has(&mut self, node: &'p Node, attribute: &'p Attribute) -> Result<Value<'a>> {
        let value = match self.resolve(attribute)? {
            Value::Optional(value) => Value::Bool(value.is_some()),
            value => value,
        };
        // That it is there costs nothing by itself; the way to it does.
        if let Base::Conditional { condition, truthy, falsy, .. } = &attribute.base {
            for id in [falsy.id(), truthy.id(), condition.id] {
                self.tracker.drop(id);
            }
            self.tracker.cost = self.tracker.cost.wrapping_sub(1);
        } else {
            self.tracker.drop(attribute.id());
        }
        self.tracker.push(node.id)?;
        Ok(value)
    }

    /// The value of an attribute, without the cost of asking for it.
    fn resolve(&mut self, attribute: &'p Attribute) -> Result<Value<'a>> {
        match &attribute.base {
            Base::Variable { name, global, qualifiers, .. } => {
                let Some(value) = self.variable(name, *global)? else {
                    return Ok(Value::error(format!("no such attribute(s): {name}")));
                };
                self.qualified(value, qualifiers)
            }
            Base::Value { node, qualifiers, .. } => {
                let value = self.eval(node)?;
                self.qualified(value, qualifiers)
            }
            Base::Conditional { condition, truthy, falsy, .. } => match self.eval(condition)? {
                Value::Bool(true) => self.resolve(truthy),
                Value::Bool(false) => self.resolve(falsy),
                other => Ok(other.or_no_such_overload()),
            },
        }
    }

    /// The value of a variable: of the innermost loop that has it, or of the program.
    fn variable(&mut self, name: &str, global: bool) -> Result<Option<Value<'a>>> {
        for at in (0..self.frames.len()).rev().take_while(|_| !global) {
            let frame = &self.frames[at];
            if *name == *frame.fold.accu {
                return self.accumulator(at).map(Some);
            }
            if !frame.finishing {
                if *name == *frame.fold.var {
                    return Ok(Some(frame.first.clone()));
                }
                if frame.fold.var2.as_deref() == Some(name) {
                    return Ok(Some(frame.second.clone()));
                }
            }
        }
        Ok(self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()))
    }

    /// Returns the accumulator of a loop; it starts when it is first asked for.
    fn accumulator(&mut self, at: usize) -> Result<Value<'a>> {
        if let Some(value) = &self.frames[at].accu {
            return Ok(value.clone());
        }
        let fold = self.frames[at].fold;
        let inner = self.frames.split_off(at);
        let started = self.eval(&fold.init);
        self.frames.extend(inner);
        let value = started?;
        let is_empty = match &value {
            Value::List(list) => list.len() == 0,
            Value::Map(map) => map.len() == 0,
            _ => false,
        };
        self.frames[at].growing = is_empty && &*fold.accu == ACCUMULATOR;
        self.frames[at].accu = Some(value.clone());
        Ok(value)
    }

    fn qualified(&mut self, value: Value<'a>, qualifiers: &'p [Qualifier]) -> Result<Value<'a>> {
        if value.is_error() {
            return Ok(value);
        }
        Ok(match self.select(value, qualifiers)? {
            Selected::Optional(value) => Value::some(value),
            Selected::Plain(value) => value,
        })
    }

    fn select(&mut self, value: Value<'a>, qualifiers: &'p [Qualifier]) -> Result<Selected<'a>> {
        let (mut value, mut optional) = match value {
            Value::Optional(None) => return Ok(Selected::Plain(value)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            value => (value, false),
        };
        for qualifier in qualifiers {
            optional = optional || qualifier.optional;
            let key = match &qualifier.by {
                By::Const(key) => {
                    let key: Value<'a> = key.clone();
                    key
                }
                By::Attr(attribute) => self.resolve(attribute)?,
                By::Node(node) => self.eval(node)?,
            };
            let found = match (&key, &value) {
                (Value::Error(_), _) => Err(key.clone()),
                (Value::String(name), Value::Map(Map::Composed)) => {
                    self.composed_variable(name.as_str(), optional || qualifier.test_only)
                }
                _ => lookup(&value, &key, optional || qualifier.test_only),
            };
            if let (By::Node(_), _) = (&qualifier.by, &found) {
                self.tracker.drop(qualifier.id);
            }
            match found {
                Err(error) => {
                    self.tracker.cost += 1;
                    self.tracker.push(qualifier.id)?;
                    return Ok(Selected::Plain(error));
                }
                Ok(found) if qualifier.test_only && !optional => {
                    value = Value::Bool(found.is_some());
                    self.tracker.cost += 1;
                    self.tracker.push(qualifier.id)?;
                }
                Ok(None) => return Ok(Selected::Plain(Value::Optional(None))),
                Ok(Some(found)) => {
                    self.tracker.cost += 1;
                    self.tracker.push(qualifier.id)?;
                    if found.is_error() {
                        return Ok(Selected::Plain(found));
                    }
                    value = found;
                }
            }
        }
        Ok(if optional { Selected::Optional(value) } else { Selected::Plain(value) })
    }

    /// The value of a variable of the policy.
    fn composed_variable(&self, name: &str, may_be_absent: bool) -> std::result::Result<Option<Value<'a>>, Value<'a>> {
        match self.composed.and_then(|composed| composed.value(name)) {
            Some(error @ Value::Error(_)) => Err(error),
            None if !may_be_absent => Err(Value::error(format!("no such key: {name}"))),
            found => Ok(found),
        }
    }

    fn fold(&mut self, node: &'p Node, fold: &'p Fold) -> Result<Value<'a>> {
        let range = self.eval(&fold.range)?;
        let value = match self.items(&range, fold) {
            Ok(items) => self.run_fold(fold, items)?,
            Err(error) => error,
        };
        self.tracker.drop(fold.range.id);
        self.tracker.push(node.id)?;
        Ok(value)
    }

    /// Returns the items that a loop goes over, in pairs if it has two variables.
    fn items(&self, range: &Value<'a>, fold: &Fold) -> std::result::Result<Vec<(Value<'a>, Value<'a>)>, Value<'a>> {
        match (range, &fold.var2) {
            (Value::Error(_), _) => Err(range.clone()),
            (Value::List(list), None) => Ok(list.values().into_iter().map(|item| (item, Value::Null)).collect()),
            (Value::Map(map), None) => Ok(map.keys().into_iter().map(|key| (key, Value::Null)).collect()),
            (Value::List(list), Some(_)) => {
                Ok(list.values().into_iter().enumerate().map(|(at, item)| (Value::Int(at as i64), item)).collect())
            }
            (Value::Map(map), Some(_)) => Ok(map.entries()),
            (other, Some(_)) => Err(Value::error(format!("unsupported comprehension range type: {}", other.go_type()))),
            (other, None) => Err(Value::error(format!("got '{}', expected iterable type", other.go_type()))),
        }
    }

    fn run_fold(&mut self, fold: &'p Fold, items: Vec<(Value<'a>, Value<'a>)>) -> Result<Value<'a>> {
        self.frames.push(Frame {
            fold,
            accu: None,
            first: Value::Null,
            second: Value::Null,
            finishing: false,
            growing: false,
        });
        let at = self.frames.len() - 1;
        for (first, second) in items {
            self.frames[at].first = first;
            self.frames[at].second = second;
            if self.eval(&fold.condition)?.is_false() {
                break;
            }
            let next = self.eval(&fold.step)?;
            self.frames[at].accu = Some(next);
        }
        self.frames[at].finishing = true;
        let result = self.eval(&fold.result)?;
        self.frames.pop();
        Ok(result)
    }
}
