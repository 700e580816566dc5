//! Sizes: files under about 500 lines and functions under about 70 read well. Over that they are listed; far over that
//! they fail. Tests get more, because tables of cases are long and simple.
//!
//! A decision ladder that reads top-down may be long: `// tidy: ladder` above the function says that it is one.

use std::path::Path;

use super::Finding;
use super::lexer::{Function, Source};

/// Lines from which on something is listed, and from which on it fails.
struct Limit {
    listed: usize,
    fails: usize,
}

const FILE: Limit = Limit { listed: 500, fails: 800 };
const TEST_FILE: Limit = Limit { listed: 800, fails: 1500 };
const FUNCTION: Limit = Limit { listed: 70, fails: 150 };
const TEST_FUNCTION: Limit = Limit { listed: 150, fails: 300 };

const LADDER: &str = "// tidy: ladder";

pub(super) fn check(path: &Path, source: &Source<'_>) -> Vec<Finding> {
    let is_test_file = is_test_file(path);
    let limit = if is_test_file { TEST_FILE } else { FILE };
    let mut findings: Vec<_> = limit.check(1, "file", source.text.lines().count()).into_iter().collect();
    for function in source.functions() {
        let is_test = is_test_file || source.is_test_line(function.lines.start);
        let limit = if is_test { TEST_FUNCTION } else { FUNCTION };
        if !is_ladder(source.text, &function) {
            findings.extend(limit.check(function.lines.start, &format!("fn {}", function.name), function.lines.len()));
        }
    }
    findings
}

fn is_test_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path.components().any(|component| matches!(component.as_os_str().to_str(), Some("tests" | "benches")))
}

/// Whether the comment stands among the comments and attributes right above the function.
fn is_ladder(text: &str, function: &Function) -> bool {
    let lines: Vec<_> = text.lines().take(function.lines.start - 1).collect();
    lines
        .iter()
        .rev()
        .map(|line| line.trim_start())
        .take_while(|line| line.starts_with("//") || line.starts_with("#["))
        .any(|line| line.starts_with(LADDER))
}

// === impl Limit ===

impl Limit {
    fn check(&self, line: usize, what: &str, lines: usize) -> Option<Finding> {
        let Self { listed, fails } = self;
        if lines > *fails {
            Some(Finding::error(line, format!("{what} has {lines} lines, more than {fails}: split it")))
        } else if lines > *listed {
            Some(Finding::warning(line, format!("{what} has {lines} lines, more than {listed}")))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::check;
    use crate::tidy::Level;
    use crate::tidy::lexer::Source;

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    fn levels(path: &str, text: &str) -> Vec<(usize, Level)> {
        check(Path::new(path), &Source::new(text)).into_iter().map(|finding| (finding.line, finding.level)).collect()
    }

    #[test]
    fn long_files_are_listed_and_very_long_ones_fail() {
        for (path, lines, want) in [
            ("src/a.rs", 500, vec![]),
            ("src/a.rs", 501, vec![(1, Level::Warning)]),
            ("src/a.rs", 801, vec![(1, Level::Error)]),
            ("src/a/tests.rs", 801, vec![(1, Level::Warning)]),
            ("crates/a/tests/b.rs", 1501, vec![(1, Level::Error)]),
        ] {
            assert_eq!(levels(path, &"// x\n".repeat(lines)), want, "{path} with {lines} lines");
        }
    }

    #[test]
    fn long_functions_are_listed_and_very_long_ones_fail() {
        for (lines, want) in [(70, vec![]), (71, vec![(1, Level::Warning)]), (151, vec![(1, Level::Error)])] {
            assert_eq!(levels("src/a.rs", &function(lines)), want, "{lines} lines");
        }
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(151));
        assert_eq!(levels("src/a.rs", &in_tests), [(3, Level::Warning)]);
    }

    #[test]
    fn a_ladder_may_be_long() {
        let ladder = format!("/// Decides.\n// tidy: ladder\n#[must_use]\n{}", function(200));
        assert_eq!(levels("src/a.rs", &ladder), []);
        let too_far_above = format!("// tidy: ladder\nfn short() {{}}\n{}", function(200));
        assert_eq!(levels("src/a.rs", &too_far_above), [(3, Level::Error)]);
    }
}
