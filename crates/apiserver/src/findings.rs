//! What strict decoding finds in a body: unknown fields and keys that are written twice.
//!
//! A body of a few MiB can hold a million of them, each under a key of a MiB, so both the number of findings and what is
//! shown of a path are bounded while they are collected, not when they are sent.

use std::borrow::Cow;
use std::collections::HashSet;

/// The maximum number of unknown and duplicate fields that are reported; upstream's bound (`sigs.k8s.io/json`).
pub(crate) const FINDINGS_MAX: usize = 100;
/// The maximum bytes of a path that are shown. Upstream shows all of it; no field that a kind knows is so far down.
pub(crate) const PATH_BYTES_MAX: usize = 256;
/// The text that stands for the rest of a truncated path.
const REST: &str = "...";

/// Sentences about a body, each once, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    sentences: Vec<String>,
    seen: HashSet<String>,
}

// === impl Findings ===

impl Findings {
    /// Adds a sentence, unless there are enough or it was said before.
    pub(crate) fn add(&mut self, sentence: impl FnOnce() -> String) {
        if self.sentences.len() >= FINDINGS_MAX {
            return;
        }
        let sentence = sentence();
        if self.seen.insert(sentence.clone()) {
            self.sentences.push(sentence);
        }
    }

    /// The sentences.
    pub(crate) fn into_sentences(self) -> Vec<String> {
        self.sentences
    }
}

/// As much of a path as a message shows.
pub(crate) fn shown_path(path: &str) -> Cow<'_, str> {
    if path.len() <= PATH_BYTES_MAX {
        return Cow::Borrowed(path);
    }
    let end = (0..=PATH_BYTES_MAX).rev().find(|end| path.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}{REST}", &path[..end]))
}

/// The sentence about a field that the kind does not know.
pub(crate) fn unknown_field(path: &str) -> String {
    format!("unknown field {:?}", shown_path(path))
}

/// The sentence about a key that is written twice.
pub(crate) fn duplicate_field(path: &str) -> String {
    format!("duplicate field {:?}", shown_path(path))
}

/// Whether the duplicate field of this sentence is underneath the unknown field of the other: it was skipped with it.
pub(crate) fn is_within(duplicate: &str, unknown: &str) -> bool {
    let quoted = |sentence: &str, start: &str| -> Option<String> {
        Some(sentence.strip_prefix(start)?.strip_prefix('"')?.strip_suffix('"')?.to_owned())
    };
    let (Some(duplicate), Some(unknown)) = (quoted(duplicate, "duplicate field "), quoted(unknown, "unknown field "))
    else {
        return false;
    };
    match unknown.strip_suffix(REST).filter(|start| start.len() + 3 >= PATH_BYTES_MAX) {
        // Truncated paths cannot be distinguished any more.
        Some(start) => duplicate.starts_with(start),
        None => duplicate.strip_prefix(&unknown).is_some_and(|rest| rest.starts_with(['.', '['])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_few_and_each_is_said_once() {
        let mut findings = Findings::default();
        for number in 0..1000 {
            findings.add(|| unknown_field(&format!("f{}", number / 2)));
        }
        let sentences = findings.into_sentences();
        assert_eq!(sentences.len(), FINDINGS_MAX);
        assert_eq!(sentences[1], "unknown field \"f1\"");
    }

    #[test]
    fn a_long_path_is_cut_between_letters() {
        let path = format!("a{}", "ü".repeat(1000));
        let shown = shown_path(&path);
        assert!(shown.len() <= PATH_BYTES_MAX + REST.len() && shown.ends_with("ü..."), "{shown}");
        assert_eq!(shown_path("spec.containers[0]"), "spec.containers[0]");
    }

    #[test]
    fn what_is_inside_an_unknown_field_is_not_taken_for_what_is_beside_it() {
        let unknown = unknown_field("spec.a\"b");
        assert!(is_within(&duplicate_field("spec.a\"b.c"), &unknown));
        assert!(is_within(&duplicate_field("spec.a\"b[0]"), &unknown));
        assert!(!is_within(&duplicate_field("spec.a\"bc"), &unknown));
        let long = "x".repeat(1000);
        assert!(is_within(&duplicate_field(&format!("{long}.c")), &unknown_field(&long)));
    }
}
