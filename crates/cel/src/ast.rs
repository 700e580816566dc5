//! Expressions as trees. Every node has an identity; positions, types and references are kept beside the tree by it.

use std::sync::Arc;

/// Identity of a node. Zero is none.
pub(crate) type Id = u32;

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A part that could not be parsed.
    Unspecified,
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: Box<Expr>,
        field: Arc<str>,
        test_only: bool,
    },
    Call {
        function: Arc<str>,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List {
        elements: Vec<Element>,
    },
    Map {
        entries: Vec<Entry>,
    },
    Struct {
        type_name: Arc<str>,
        fields: Vec<Field>,
    },
    Comprehension(Box<Comprehension>),
}

/// An item of a list literal, `?x` if optional.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) expr: Expr,
    pub(crate) optional: bool,
}

/// An entry of a map literal.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A field of a message literal.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A loop over a list or map, which macros expand to.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) var: Arc<str>,
    pub(crate) var2: Option<Arc<str>>,
    pub(crate) accu: Arc<str>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// The name of the variable in which macros accumulate.
pub(crate) const ACCUMULATOR: &str = "@result";
/// The name it had once, still refused for variables.
pub(crate) const OLD_ACCUMULATOR: &str = "__result__";

// === impl Expr ===

impl Expr {
    pub(crate) fn new(id: Id, kind: Kind) -> Self {
        Self { id, kind }
    }

    /// Visits this node's children, in the order in which they are evaluated.
    pub(crate) fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Self)) {
        match &self.kind {
            Kind::Unspecified | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => visit(operand),
            Kind::Call { target, args, .. } => {
                target.as_deref().into_iter().chain(args).for_each(visit);
            }
            Kind::List { elements } => elements.iter().for_each(|element| visit(&element.expr)),
            Kind::Map { entries } => entries.iter().for_each(|entry| {
                visit(&entry.key);
                visit(&entry.value);
            }),
            Kind::Struct { fields, .. } => fields.iter().for_each(|field| visit(&field.value)),
            Kind::Comprehension(fold) => {
                [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result].into_iter().for_each(visit);
            }
        }
    }

    /// The name that a chain of selections spells, such as `a.b.c`.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select { operand, field, test_only: false } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }
}
