//! Programs: checked expressions made ready to run.
//!
//! Follows the shape of cel-go's planner, because what running costs is counted by that shape: chains of selections are
//! one attribute with qualifiers, constant lists and conversions are computed now, membership in a constant list is a
//! lookup.

use std::collections::HashSet;
use std::sync::Arc;

use regex::Regex;

use crate::ast::{ACCUMULATOR, Comprehension, Element, Entry, Expr, Field, Id, Kind, Literal};
use crate::checker::{Checked, Reference};
use crate::decls::{self, Environment};
use crate::functions::{self, Callee};
use crate::goregex;
use crate::made;
use crate::types::Type;
use crate::value::{Key, Value};

/// A step of a program.
pub(crate) struct Node {
    pub(crate) id: Id,
    pub(crate) kind: NodeKind,
}

pub(crate) enum NodeKind {
    Const(Value<'static>),
    Attr(Box<Attribute>),
    /// Whether the last qualifier of an attribute is there.
    Has(Box<Attribute>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal {
        args: Box<[Node; 2]>,
        negated: bool,
    },
    Call(Box<Call>),
    /// Membership in a list of constants.
    Member {
        arg: Box<Node>,
        set: HashSet<Key>,
    },
    OptionalOr {
        args: Box<[Node; 2]>,
        unwrap: bool,
    },
    List {
        items: Vec<Node>,
        optional: Vec<bool>,
    },
    Map {
        entries: Vec<[Node; 2]>,
        optional: Vec<bool>,
    },
    /// A value of a type of patches.
    Made {
        type_name: Arc<str>,
        fields: Vec<(Arc<str>, Node)>,
        optional: Vec<bool>,
    },
    Fold(Box<Fold>),
}

/// A variable or value, and selections from it.
pub(crate) struct Attribute {
    pub(crate) base: Base,
}

pub(crate) enum Base {
    Variable { id: Id, name: Arc<str>, global: bool, qualifiers: Vec<Qualifier> },
    Value { id: Id, node: Node, qualifiers: Vec<Qualifier> },
    Conditional { id: Id, condition: Node, truthy: Box<Attribute>, falsy: Box<Attribute> },
}

/// A selection.
#[derive(Clone)]
pub(crate) struct Qualifier {
    pub(crate) id: Id,
    pub(crate) optional: bool,
    /// Whether it only asks whether there is something.
    pub(crate) test_only: bool,
    pub(crate) by: By,
}

#[derive(Clone)]
pub(crate) enum By {
    Const(Value<'static>),
    /// Another attribute, whose own value costs nothing.
    Attr(Arc<Attribute>),
    Node(Arc<Node>),
}

pub(crate) struct Call {
    pub(crate) function: &'static str,
    /// The overload, if there is only one it can be.
    pub(crate) overload: &'static str,
    pub(crate) args: Vec<Node>,
    pub(crate) callee: Callee,
    /// The pattern, if it is a constant.
    pub(crate) regex: Option<Regex>,
}

pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) var: Arc<str>,
    pub(crate) var2: Option<Arc<str>>,
    pub(crate) accu: Arc<str>,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

struct Planner<'c> {
    checked: &'c Checked,
}

type Result<T> = std::result::Result<T, String>;

/// Makes a program of a checked expression, or says why that cannot be.
pub(crate) fn plan(checked: &Checked) -> Result<Node> {
    Planner { checked }.plan(&checked.expr)
}

// === impl Planner ===

impl Planner<'_> {
    fn plan(&self, expr: &Expr) -> Result<Node> {
        let id = expr.id;
        let kind = match &expr.kind {
            Kind::Unspecified => return Err("unsupported expr".to_owned()),
            Kind::Literal(literal) => NodeKind::Const(constant(literal)),
            Kind::Ident(name) => self.ident(id, name)?,
            Kind::Select { operand, field, test_only } => return self.select(id, operand, field, *test_only),
            Kind::Call { function, target, args } => return self.call(id, function, target.as_deref(), args),
            Kind::List { elements } => self.list(elements)?,
            Kind::Map { entries } => self.map(entries)?,
            Kind::Struct { type_name, fields } => self.made(type_name, fields)?,
            Kind::Comprehension(fold) => self.fold(fold)?,
        };
        Ok(Node { id, kind })
    }

    fn ident(&self, id: Id, name: &Arc<str>) -> Result<NodeKind> {
        let name = match self.checked.reference(id) {
            Some(Reference::Ident(name)) => name.clone(),
            _ => name.clone(),
        };
        if let Type::Type(_) = self.checked.type_of(id) {
            let known = decls::type_named(&name).filter(|_| !matches!(&*name, "duration" | "timestamp"));
            // A variable may hold a type, too.
            if let Some(of) = known {
                return Ok(NodeKind::Const(Value::Type(Arc::new(of))));
            }
            let of_struct = matches!(self.checked.type_of(id), Type::Type(Some(of)) if matches!(&**of, Type::Struct(of) if *of == name));
            if matches!(&*name, "duration" | "timestamp") || of_struct {
                return Err(format!("reference to undefined type: {name}"));
            }
        }
        let bare = name.strip_prefix('.');
        let base = Base::Variable {
            id,
            name: bare.map_or_else(|| name.clone(), Into::into),
            global: bare.is_some(),
            qualifiers: Vec::new(),
        };
        Ok(NodeKind::Attr(Box::new(Attribute { base })))
    }

    /// The attribute of a step, made of its value if it has none.
    fn attribute(node: Node) -> Box<Attribute> {
        match node.kind {
            NodeKind::Attr(attribute) => attribute,
            kind => {
                let id = node.id;
                Box::new(Attribute { base: Base::Value { id, node: Node { id, kind }, qualifiers: Vec::new() } })
            }
        }
    }

    fn select(&self, id: Id, operand: &Expr, field: &Arc<str>, test_only: bool) -> Result<Node> {
        let operand = self.plan(operand)?;
        let mut attribute = Self::attribute(operand);
        let by = By::Const(Value::string(field.clone()));
        attribute.push(&Qualifier { id, optional: false, test_only, by });
        if test_only {
            return Ok(Node { id, kind: NodeKind::Has(attribute) });
        }
        Ok(attribute_node(attribute))
    }

    fn index(&self, id: Id, args: &[Expr], optional: bool) -> Result<Node> {
        let operand = self.plan(&args[0])?;
        let index = self.plan(&args[1])?;
        let by = match index.kind {
            NodeKind::Const(value) => match value {
                Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => {
                    By::Const(value)
                }
                other => return Err(format!("invalid qualifier type: {}", other.go_type())),
            },
            NodeKind::Attr(attribute) => By::Attr(Arc::new(*attribute)),
            kind => By::Node(Arc::new(Node { id: index.id, kind })),
        };
        let mut attribute = Self::attribute(operand);
        attribute.push(&Qualifier { id, optional, test_only: false, by });
        Ok(attribute_node(attribute))
    }

    fn call(&self, id: Id, function: &Arc<str>, target: Option<&Expr>, args: &[Expr]) -> Result<Node> {
        match &**function {
            "_[_]" => return self.index(id, args, false),
            "_?._" | "_[?_]" => return self.index(id, args, true),
            _ => {}
        }
        let mut planned = Vec::with_capacity(args.len() + 1);
        for arg in target.into_iter().chain(args) {
            planned.push(self.plan(arg)?);
        }
        let kind = match &**function {
            "_&&_" => NodeKind::And(pair(planned)?),
            "_||_" => NodeKind::Or(pair(planned)?),
            "_==_" => NodeKind::Equal { args: pair(planned)?, negated: false },
            "_!=_" => NodeKind::Equal { args: pair(planned)?, negated: true },
            "_?_:_" => return conditional(id, planned),
            "or" => NodeKind::OptionalOr { args: pair(planned)?, unwrap: false },
            "orValue" => NodeKind::OptionalOr { args: pair(planned)?, unwrap: true },
            name => return self.function(id, name, planned),
        };
        Ok(Node { id, kind })
    }

    fn function(&self, id: Id, name: &str, args: Vec<Node>) -> Result<Node> {
        // What an environment does not know, the checker has refused.
        let function = decls::function(name, Environment::Stored).ok_or_else(|| format!("no such overload: {name}"))?;
        let overloads = self.checked.overloads(id);
        let overload = if let [only] = overloads { only } else { "" };
        let callee = functions::callee(function, overloads, args.len());
        if overload == "in_list"
            && let [_, Node { kind: NodeKind::Const(Value::List(list)), .. }] = &*args
        {
            let values = list.values();
            if values.is_empty() {
                return Ok(Node { id, kind: NodeKind::Const(Value::Bool(false)) });
            }
            if let Some(set) = membership(&values) {
                let arg = Box::new(args.into_iter().next().ok_or("no argument")?);
                return Ok(Node { id, kind: NodeKind::Member { arg, set } });
            }
        }
        if is_conversion(name)
            && let [Node { kind: NodeKind::Const(value), .. }] = &*args
        {
            return match callee.call(name, std::slice::from_ref(value)) {
                Value::Error(message) => Err(message.to_string()),
                value => Ok(Node { id, kind: NodeKind::Const(value) }),
            };
        }
        let mut regex = None;
        if matches!(name, "matches" | "find" | "findAll")
            && let Some(Node { kind: NodeKind::Const(Value::String(pattern)), .. }) = args.get(1)
        {
            regex = Some(goregex::compile(pattern.as_str())?);
        }
        let call = Call { function: function.name, overload, args, callee, regex };
        Ok(Node { id, kind: NodeKind::Call(Box::new(call)) })
    }

    fn list(&self, elements: &[Element]) -> Result<NodeKind> {
        let items: Vec<Node> = elements.iter().map(|element| self.plan(&element.expr)).collect::<Result<_>>()?;
        let optional: Vec<bool> = elements.iter().map(|element| element.optional).collect();
        let constants: Option<Vec<Value<'static>>> = items.iter().map(Node::constant).collect();
        match constants {
            Some(values) if !optional.contains(&true) => Ok(NodeKind::Const(Value::list(values))),
            _ => Ok(NodeKind::List { items, optional }),
        }
    }

    fn map(&self, entries: &[Entry]) -> Result<NodeKind> {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push([self.plan(&entry.key)?, self.plan(&entry.value)?]);
        }
        let optional: Vec<bool> = entries.iter().map(|entry| entry.optional).collect();
        let constants: Option<Vec<_>> =
            planned.iter().map(|[key, value]| Some((Key::new(&key.constant()?), value.constant()?))).collect();
        match constants {
            Some(values) if !optional.contains(&true) => {
                Ok(NodeKind::Const(Value::Map(crate::value::Map::Values(Arc::new(values.into_iter().collect())))))
            }
            _ => Ok(NodeKind::Map { entries: planned, optional }),
        }
    }

    fn made(&self, type_name: &Arc<str>, fields: &[Field]) -> Result<NodeKind> {
        let bare: Arc<str> = type_name.strip_prefix('.').map_or_else(|| type_name.clone(), Into::into);
        if !made::is_type(&bare) {
            return Err(format!("unknown type: {type_name}"));
        }
        let optional = fields.iter().map(|field| field.optional).collect();
        let fields = fields.iter().map(|field| Ok((field.name.clone(), self.plan(&field.value)?)));
        Ok(NodeKind::Made { type_name: bare, fields: fields.collect::<Result<_>>()?, optional })
    }

    fn fold(&self, fold: &Comprehension) -> Result<NodeKind> {
        Ok(NodeKind::Fold(Box::new(Fold {
            init: self.plan(&fold.init)?,
            range: self.plan(&fold.range)?,
            condition: self.plan(&fold.condition)?,
            step: self.plan(&fold.step)?,
            result: self.plan(&fold.result)?,
            var: fold.var.clone(),
            var2: fold.var2.clone(),
            accu: fold.accu.clone(),
        })))
    }
}

fn pair(nodes: Vec<Node>) -> Result<Box<[Node; 2]>> {
    let nodes: [Node; 2] = nodes.try_into().map_err(|_| "wrong number of arguments".to_owned())?;
    Ok(Box::new(nodes))
}

fn conditional(id: Id, args: Vec<Node>) -> Result<Node> {
    let args: [Node; 3] = args.try_into().map_err(|_| "wrong number of arguments".to_owned())?;
    let [condition, truthy, falsy] = args;
    let truthy = Planner::attribute(truthy);
    let falsy = Planner::attribute(falsy);
    let base = Base::Conditional { id, condition, truthy, falsy };
    Ok(attribute_node(Box::new(Attribute { base })))
}

fn attribute_node(attribute: Box<Attribute>) -> Node {
    Node { id: attribute.id(), kind: NodeKind::Attr(attribute) }
}

fn is_conversion(name: &str) -> bool {
    matches!(name, "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint")
}

/// The keys with which members of a list of constants are found, whichever type of number they have.
fn membership(values: &[Value<'static>]) -> Option<HashSet<Key>> {
    let mut set = HashSet::new();
    for value in values {
        if !matches!(value, Value::Bool(_) | Value::Double(_) | Value::Int(_) | Value::String(_) | Value::Uint(_)) {
            return None;
        }
        set.insert(Key::new(value));
        let others: &[Type] = match value {
            Value::Double(_) => &[Type::Int, Type::Uint],
            Value::Int(_) => &[Type::Double, Type::Uint],
            Value::Uint(_) => &[Type::Double, Type::Int],
            _ => &[],
        };
        for of in others {
            let other = value.convert(of);
            if !other.is_error() && (!matches!(value, Value::Double(_)) || other.method_equal(value).is_true()) {
                set.insert(Key::new(&other));
            }
        }
    }
    Some(set)
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::string(text.clone()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.clone()),
    }
}

// === impl Node ===

impl Node {
    fn constant(&self) -> Option<Value<'static>> {
        match &self.kind {
            NodeKind::Const(value) => Some(value.clone()),
            _ => None,
        }
    }
}

// === impl Attribute ===

impl Attribute {
    /// The identity of the last qualifier, or of what it starts from.
    pub(crate) fn id(&self) -> Id {
        match &self.base {
            Base::Variable { id, qualifiers, .. } | Base::Value { id, qualifiers, .. } => {
                qualifiers.last().map_or(*id, |last| last.id)
            }
            Base::Conditional { id, truthy, falsy, .. } => {
                let both = truthy.id();
                if both == falsy.id() { both } else { *id }
            }
        }
    }

    /// Whether it is what a macro's loop accumulates.
    pub(crate) fn is_accumulator(&self) -> bool {
        matches!(&self.base, Base::Variable { name, qualifiers, .. } if &**name == ACCUMULATOR && qualifiers.is_empty())
    }

    fn push(&mut self, qualifier: &Qualifier) {
        match &mut self.base {
            Base::Variable { qualifiers, .. } | Base::Value { qualifiers, .. } => qualifiers.push(qualifier.clone()),
            Base::Conditional { truthy, falsy, .. } => {
                truthy.push(qualifier);
                falsy.push(qualifier);
            }
        }
    }
}
