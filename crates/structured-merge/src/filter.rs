//! Fields that a way to write never changes, and that it must not come to own.
//!
//! A write of `spec` does not own `status`, and the other way round: storage resets what the request says. Follows
//! `fieldpath/set.go` of structured-merge-diff v6 (`Filter`).

use crate::path::PathElement;
use crate::set::{FieldSet, Node};

/// The fields of a write that count.
#[derive(Clone, Debug)]
pub enum Filter {
    /// All but these and what is below them.
    Exclude(FieldSet),
    /// Only what is below one of these patterns.
    Include(Vec<Pattern>),
}

/// The start of a path; `None` stands for any element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern(pub Vec<Option<PathElement>>);

impl Filter {
    /// All but these top-level fields.
    pub fn exclude_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Exclude(FieldSet::from_paths(names.into_iter().map(|name| crate::Path::of_fields([name]))))
    }

    /// The fields of the set that count.
    pub fn apply(&self, set: FieldSet) -> FieldSet {
        match self {
            // The usual case: who writes the one part does not say anything of the other.
            Self::Exclude(excluded) if excluded.nodes.iter().all(|node| set.node(&node.element).is_none()) => set,
            Self::Exclude(excluded) => set.recursive_difference(excluded),
            Self::Include(patterns) if patterns.is_empty() => set,
            Self::Include(patterns) => {
                let patterns: Vec<_> = patterns.iter().map(|pattern| pattern.0.as_slice()).collect();
                include(&set, &patterns)
            }
        }
    }
}

/// The paths that start as one of the patterns, or are the start of one.
fn include(set: &FieldSet, patterns: &[&[Option<PathElement>]]) -> FieldSet {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let nodes = set.nodes.iter().filter_map(|node| {
        let rest: Vec<_> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter(|(first, _)| first.as_ref().is_none_or(|first| *first == node.element))
            .map(|(_, rest)| rest)
            .collect();
        if rest.is_empty() {
            return None;
        }
        let children = include(&node.children, &rest);
        let kept = node.member || !children.is_empty();
        kept.then(|| Node { element: node.element.clone(), member: node.member, children })
    });
    FieldSet { nodes: nodes.collect() }
}
