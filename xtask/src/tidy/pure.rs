//! Pure files decide and do nothing else: what is in them can be tested as a table.
//!
//! Pure are, in `crates/controllers` and `crates/nodes`, every file of a controller's folder except `sync.rs` (the
//! shell), `memory.rs` (what is remembered between passes), `metrics.rs` and tests; elsewhere, files that say so: a line
//! `//! Pure: …` at the top.

use std::path::Path;

use super::Finding;
use super::lexer::{Source, find_word};

/// Words that a pure file must not contain, and what they are.
const IMPURE: [(&str, &str); 24] = [
    ("async", "async code"),
    (".await", "async code"),
    ("tokio::", "async code"),
    ("kube::", "client"),
    ("Client", "client"),
    ("Writer", "client"),
    ("Clock", "clock"),
    ("Instant::now", "clock"),
    ("SystemTime", "clock"),
    ("Timestamp::now", "clock"),
    ("Zoned::now", "clock"),
    ("rand::", "random numbers"),
    ("fastrand", "random numbers"),
    ("tracing::", "logging"),
    ("println!", "output"),
    ("eprintln!", "output"),
    ("std::env", "environment"),
    ("std::fs", "files"),
    ("std::net", "network"),
    ("Mutex", "state that others change"),
    ("RwLock", "state that others change"),
    ("OnceLock", "state that others change"),
    ("sync::atomic", "state that others change"),
    ("prometheus", "metrics"),
];

/// The impure parts of a controller's folder, as files or folders.
const NOT_DECISIONS: [&str; 4] = ["sync", "memory", "metrics", "tests"];

/// The marker counts in the first lines only, where a reader sees it.
const MARKER_LINES: usize = 10;

pub(super) fn is_pure(path: &Path, text: &str) -> bool {
    let marked = text.lines().take(MARKER_LINES).any(|line| line.starts_with("//! Pure:"));
    marked || is_decision(path)
}

/// Whether the file is in the folder of a controller and not its shell.
fn is_decision(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["crates", "controllers" | "nodes", "src", _folder, rest @ ..] if !rest.is_empty() => {
            !rest.iter().any(|part| NOT_DECISIONS.contains(&part.strip_suffix(".rs").unwrap_or(part)))
        }
        _ => false,
    }
}

pub(super) fn check(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines().filter(|(number, _)| !source.is_test_line(*number)) {
        if let Some((word, what)) = IMPURE.iter().find(|(word, _)| find_word(line, word).is_some()) {
            findings.push(Finding::error(number, format!("`{word}`: a pure file has no {what}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{check, is_pure};
    use crate::tidy::lexer::Source;

    #[test]
    fn pure_are_the_decisions_of_controllers_and_what_says_so() {
        for (path, text, want) in [
            ("crates/controllers/src/replicaset/plan.rs", "", true),
            ("crates/controllers/src/replicaset/ranking.rs", "", true),
            ("crates/controllers/src/replicaset/sync.rs", "", false),
            ("crates/controllers/src/replicaset/sync/batch.rs", "", false),
            ("crates/controllers/src/replicaset/tests.rs", "", false),
            ("crates/controllers/src/replicaset/metrics.rs", "", false),
            ("crates/controllers/src/endpointslice/memory.rs", "", false),
            ("crates/controllers/src/endpointslice/memory/tracker.rs", "", false),
            ("crates/controllers/src/endpointslice/metrics.rs", "//! Pure: what is counted.\n", true),
            ("crates/controllers/src/replicaset.rs", "", false),
            ("crates/runtime/src/manager/status.rs", "", false),
            ("crates/workqueue/src/state.rs", "//! The queue.\n//!\n//! Pure: it takes the time.\n", true),
            ("crates/workqueue/src/state.rs", "//! The queue is not\n// Pure: anything\n", false),
        ] {
            assert_eq!(is_pure(Path::new(path), text), want, "{path}: {text}");
        }
    }

    #[test]
    fn effects_are_found_in_code_and_not_in_comments_strings_or_tests() {
        let check = |text: &str| check(&Source::new(text)).into_iter().map(|finding| finding.line).collect::<Vec<_>>();
        for effect in [
            "async fn a() {}",
            "b().await;",
            "use kube::Api;",
            "fn a(client: &Client) {}",
            "fn a(w: Writer) {}",
            "fn a(c: &dyn Clock) {}",
            "Instant::now();",
            "jiff::Timestamp::now()",
            "SystemTime::UNIX_EPOCH",
            "fastrand::u8(..)",
            "tracing::info!()",
            "struct Tracker(Mutex<u8>);",
            "use std::sync::atomic::AtomicBool;",
            "use prometheus::Histogram;",
        ] {
            assert_eq!(check(&format!("fn before() {{}}\n{effect}\n")), [2], "{effect}");
        }
        for harmless in [
            "// async Client",
            "let a = \"tracing::info\";",
            "struct ClientAddress(ClockFace);",
            "fn asynchronous(rand: u8) {}",
            "#[cfg(test)]\nmod tests {\n    async fn a() {}\n}",
        ] {
            assert!(check(harmless).is_empty(), "{harmless}");
        }
    }
}
