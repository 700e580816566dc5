//! Each invariant fires on a stream of changes that violates it, and is silent on legal ones, excuses included.

mod further;
mod gc;
mod later;
mod legal;
mod nodes;
mod others;
mod rollout;
mod service;
mod state;
mod story;
mod workloads;

use std::collections::BTreeSet;

use story::Story;

/// A stream of changes.
type Stream = fn(&mut Story);

/// Streams that violate the invariant of that name.
fn violations() -> Vec<(&'static str, Stream)> {
    [
        rollout::VIOLATIONS,
        state::VIOLATIONS,
        gc::VIOLATIONS,
        service::VIOLATIONS,
        workloads::VIOLATIONS,
        nodes::VIOLATIONS,
        others::VIOLATIONS,
        later::VIOLATIONS,
        further::VIOLATIONS,
    ]
    .concat()
}

#[test]
fn each_invariant_fires_on_what_violates_it() {
    let mut silent = Vec::new();
    for (invariant, stream) in violations() {
        let mut story = Story::new();
        stream(&mut story);
        let count = story.count(invariant);
        let fired = story.violations.iter().any(|violation| violation.invariant == invariant);
        if !fired || count.violated == 0 || count.checked < count.violated {
            silent.push(format!("{invariant}, {count:?}; these fired: {:#?}", story.violations));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn every_invariant_has_a_stream_that_violates_it() {
    let mut covered: BTreeSet<_> = violations().into_iter().map(|(invariant, _)| invariant).collect();
    // A stream of changes has no logs: a test of the recorder violates it.
    covered.insert(super::REASONS);
    let missing: Vec<_> = super::catalogue().map(|(name, _)| name).filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "no stream violates {missing:#?}");
}

#[test]
fn nothing_fires_on_what_is_legal() {
    let mut wrong = Vec::new();
    let legal = [legal::LEGAL, workloads::LEGAL, nodes::LEGAL, others::LEGAL, later::LEGAL, further::LEGAL].concat();
    for (name, stream) in legal {
        let mut story = Story::new();
        stream(&mut story);
        if !story.violations.is_empty() || !story.unmet.is_empty() {
            wrong.push(format!("{name}: {:#?} {:#?}", story.violations, story.unmet));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_unique_and_every_one_is_counted_from_the_start() {
    let names: Vec<_> = super::catalogue().map(|(name, _)| name).collect();
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), distinct.len());
    let suite = super::Suite::new(super::Options::default());
    assert!(names.iter().all(|name| suite.counts().contains_key(name)));
    assert!(names.len() >= 60);
}
