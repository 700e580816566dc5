//! A doc line stands alone on its page: it begins with a noun or a verb, not with a question word.

use std::path::Path;

use super::Finding;

/// The crates that others depend on, and the program.
const LIBRARIES: [&str; 14] = [
    "apiserver",
    "base",
    "cel",
    "cli",
    "controllers",
    "informer",
    "model",
    "nodes",
    "runtime",
    "steersman",
    "structural-schema",
    "structured-merge",
    "testing",
    "workqueue",
];

const QUESTIONS: [&str; 6] = ["What ", "How ", "Who ", "When ", "Where ", "Which "];

/// Whether the file is part of a library; its tests are not.
pub(super) fn is_library(path: &Path) -> bool {
    let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs" || part == "test_objects.rs");
    !is_test && LIBRARIES.iter().any(|name| path.starts_with(format!("crates/{name}/src")))
}

pub(super) fn check(text: &str) -> Vec<Finding> {
    let mut is_first = true;
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let doc = line.trim_start().strip_prefix("/// ");
        if is_first && doc.is_some_and(|doc| QUESTIONS.iter().any(|word| doc.starts_with(word))) {
            let message = "begin the doc line with a noun or a verb: `The number of …`, `Returns …`, `Whether …`";
            findings.push(Finding::error(index + 1, message));
        }
        is_first = doc.is_none() && line.trim() != "///";
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{check, is_library};

    #[test]
    fn the_first_line_of_a_doc_may_not_be_a_question() {
        let text =
            "/// How many there are.\nfn a() {}\n\n    /// The number.\n    /// What follows is fine.\n    fn b() {}\n";
        let lines: Vec<_> = check(text).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1]);
    }

    #[test]
    fn tests_are_no_library() {
        assert!(is_library(Path::new("crates/base/src/meta.rs")));
        assert!(!is_library(Path::new("crates/base/src/meta/tests.rs")));
        assert!(!is_library(Path::new("crates/sim/src/plan.rs")));
    }
}
