//! Sets of fields, as trees.
//!
//! 1. **One form.** A node is kept only if it is a member or has members below it, and siblings are sorted; equal sets are
//!    equal trees.
//! 2. **Laws of sets.** Union, intersection and difference treat every path on its own: a parent that is a member and its
//!    children do not stand for each other, except in [`FieldSet::recursive_difference`].
//! 3. **Linear.** Operations on two sets cost time in the sum of their sizes.
//! 4. **No garbage.** [`FieldSet::parse`] takes any bytes, of at most [`FIELDS_BYTES_MAX`] and [`DEPTH_MAX`] levels, and
//!    fails without a panic; what it accepts is printed as upstream prints it.

use std::fmt;

use serde_json::{Map, Value};

use crate::path::{Path, PathElement, PathError};
use crate::value::{self, Escape};

/// The longest path. Objects are nested as deeply as their parser allows (128 in `serde_json`), and their fields are
/// kept within themselves, four levels down.
pub const DEPTH_MAX: usize = 120;
/// The longest text of a field set: what upstream takes as a request's body.
pub const FIELDS_BYTES_MAX: usize = 3 << 20;

/// A set of paths.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(crate) nodes: Vec<Node>,
}

/// A path's last element, whether the path is in the set, and what is in the set below it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

/// Why a `FieldsV1` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsError {
    /// Not JSON.
    #[error("{0}")]
    Json(String),
    /// A value that is neither an object nor null.
    #[error("ReadMapCB: expect {{ or n, but found {0}")]
    NotAnObject(&'static str),
    /// The name of a member.
    #[error("parsing key as path element: {0}")]
    Element(#[from] PathError),
    /// More than [`DEPTH_MAX`] levels.
    #[error("fields are nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// More than [`FIELDS_BYTES_MAX`] bytes.
    #[error("fields are longer than {FIELDS_BYTES_MAX} bytes")]
    TooLong,
}

// === impl FieldSet ===

impl FieldSet {
    /// The set of these paths. The empty path stands for the whole object, which nobody owns, and is ignored.
    pub fn from_paths(paths: impl IntoIterator<Item = Path>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(path);
        }
        set
    }

    /// Adds a path. Its parents are not added.
    pub fn insert(&mut self, path: Path) {
        let mut set = self;
        let mut elements = path.0.into_iter().peekable();
        while let Some(element) = elements.next() {
            let index = match set.find(&element) {
                Ok(index) => index,
                Err(index) => {
                    set.nodes.insert(index, Node { element, member: false, children: Self::default() });
                    index
                }
            };
            let node = &mut set.nodes[index];
            if elements.peek().is_none() {
                node.member = true;
            }
            set = &mut node.children;
        }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    pub(crate) fn node(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|index| &self.nodes[index])
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// Whether the path is in the set.
    pub fn contains(&self, path: &Path) -> bool {
        let Some((last, parents)) = path.0.split_last() else {
            return false;
        };
        let mut set = self;
        for element in parents {
            match set.node(element) {
                Some(node) => set = &node.children,
                None => return false,
            }
        }
        set.node(last).is_some_and(|node| node.member)
    }

    /// Paths in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        zip(self, other, |a, b| match (a, b) {
            (Some(a), Some(b)) => a.with(a.member || b.member, a.children.union(&b.children)),
            (a, b) => a.or(b).cloned(),
        })
    }

    /// Paths in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        zip(self, other, |a, b| match (a, b) {
            (Some(a), Some(b)) => a.with(a.member && b.member, a.children.intersection(&b.children)),
            _ => None,
        })
    }

    /// Paths in this one only.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        zip(self, other, |a, b| match (a, b) {
            (Some(a), Some(b)) => a.with(a.member && !b.member, a.children.difference(&b.children)),
            (a, _) => a.cloned(),
        })
    }

    /// [`difference`](Self::difference) of a large set and a small one, in place.
    #[must_use]
    pub(crate) fn without(mut self, few: &Self) -> Self {
        for taken in &few.nodes {
            if let Ok(index) = self.find(&taken.element) {
                let node = &mut self.nodes[index];
                node.member &= !taken.member;
                node.children = std::mem::take(&mut node.children).without(&taken.children);
                if !node.member && node.children.is_empty() {
                    self.nodes.remove(index);
                }
            }
        }
        self
    }

    /// Paths in this one that are neither in the other nor below one of its paths.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        zip(self, other, |a, b| match (a, b) {
            (Some(_), Some(b)) if b.member => None,
            (Some(a), Some(b)) => a.with(a.member, a.children.recursive_difference(&b.children)),
            (a, _) => a.cloned(),
        })
    }

    /// Paths that have no path below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let nodes = self.nodes.iter().filter_map(|node| {
            let leaf = node.member && node.children.is_empty();
            node.with(leaf, node.children.leaves())
        });
        Self { nodes: nodes.collect() }
    }

    /// Calls `visit` for every path: at each level first the members, then what is below them.
    pub fn for_each(&self, visit: &mut impl FnMut(&Path)) {
        self.visit(&mut Path::default(), visit);
    }

    fn visit(&self, path: &mut Path, visit: &mut impl FnMut(&Path)) {
        for node in self.nodes.iter().filter(|node| node.member) {
            path.0.push(node.element.clone());
            visit(path);
            path.0.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            path.0.push(node.element.clone());
            node.children.visit(path, visit);
            path.0.pop();
        }
    }

    /// All paths, in the order of [`FieldSet::for_each`].
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::with_capacity(self.nodes.len());
        self.for_each(&mut |path| paths.push(path.clone()));
        paths
    }

    /// The set of nodes in any order, of which several may have the same element.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        let ordered = nodes.windows(2).all(|pair| pair[0].element < pair[1].element);
        if !ordered {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, kept| {
                let same = later.element == kept.element;
                if same {
                    kept.member |= later.member;
                    kept.children = kept.children.union(&later.children);
                }
                same
            });
        }
        Self { nodes }
    }
}

impl Node {
    /// The same element with other contents; `None` if it would hold nothing.
    fn with(&self, member: bool, children: FieldSet) -> Option<Self> {
        (member || !children.is_empty()).then(|| Self { element: self.element.clone(), member, children })
    }
}

/// Walks two sorted lists of siblings side by side.
fn zip(a: &FieldSet, b: &FieldSet, mut join: impl FnMut(Option<&Node>, Option<&Node>) -> Option<Node>) -> FieldSet {
    let mut left = a.nodes.iter().peekable();
    let mut right = b.nodes.iter().peekable();
    let mut nodes = Vec::new();
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return FieldSet { nodes },
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.element.cmp(&b.element),
        };
        let a = if order.is_le() { left.next() } else { None };
        let b = if order.is_ge() { right.next() } else { None };
        nodes.extend(join(a, b));
    }
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.paths().iter().map(ToString::to_string)).finish()
    }
}

// === FieldsV1 ===

impl FieldSet {
    /// Reads the text of a `FieldsV1`.
    ///
    /// # Errors
    ///
    /// The text is not JSON, has a member whose name is no path element, or is too long or too deep.
    pub fn parse(text: &[u8]) -> Result<Self, FieldsError> {
        if text.len() > FIELDS_BYTES_MAX {
            return Err(FieldsError::TooLong);
        }
        let value = serde_json::from_slice(text).map_err(|error| FieldsError::Json(error.to_string()))?;
        Self::from_value(&value)
    }

    /// Reads a `FieldsV1` that has been parsed.
    ///
    /// # Errors
    ///
    /// As [`FieldSet::parse`].
    pub fn from_value(value: &Value) -> Result<Self, FieldsError> {
        read(value, 0).map(|(set, _)| set)
    }

    /// The set as a `FieldsV1`.
    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        for node in &self.nodes {
            let mut value = node.children.to_value();
            if node.member
                && let Value::Object(inner) = &mut value
                && !inner.is_empty()
            {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            members.insert(node.element.to_text(), value);
        }
        Value::Object(members)
    }

    /// The text of a `FieldsV1`, byte for byte as upstream writes it.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(false, &mut out, &mut String::new());
        out
    }

    fn write_json(&self, with_self: bool, out: &mut String, name: &mut String) {
        out.push('{');
        if with_self {
            out.push_str("\".\":{}");
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if index > 0 || with_self {
                out.push(',');
            }
            name.clear();
            node.element.write_text(name);
            value::json_string(name, Escape::Plain, out);
            out.push(':');
            let with_self = node.member && !node.children.is_empty();
            node.children.write_json(with_self, out, name);
        }
        out.push('}');
    }
}

/// Returns the set that a member of a `FieldsV1` holds, and whether it is a member of the set itself.
fn read(value: &Value, depth: usize) -> Result<(FieldSet, bool), FieldsError> {
    let members = match value {
        Value::Object(members) => members,
        Value::Null => return Ok((FieldSet::default(), true)),
        Value::Bool(_) => return Err(FieldsError::NotAnObject("a boolean")),
        Value::Number(_) => return Err(FieldsError::NotAnObject("a number")),
        Value::String(_) => return Err(FieldsError::NotAnObject("a string")),
        Value::Array(_) => return Err(FieldsError::NotAnObject("a list")),
    };
    if depth > DEPTH_MAX {
        return Err(FieldsError::TooDeep);
    }
    let mut nodes = Vec::with_capacity(members.len());
    let mut with_self = false;
    for (name, value) in members {
        if name == "." {
            with_self = true;
            continue;
        }
        // Elements of kinds to come are dropped, as upstream does.
        let Some(element) = PathElement::parse(name)? else {
            continue;
        };
        let (children, member) = read(value, depth + 1)?;
        nodes.push(Node { element, member, children });
    }
    let member = with_self || nodes.is_empty();
    Ok((FieldSet::from_nodes(nodes), member))
}
