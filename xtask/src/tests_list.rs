//! `cargo xtask tests-list [DIR]`: every test of the repository, with its number of assertions, as tab-separated values.
//!
//! Two lists, made before and after a change, show whether a test or an assertion got lost. A row is a file, a name and a
//! count; the same rules apply to any checkout, so DIR can be one of an older commit.
//! 1. A test is a function with a `test` attribute, or a scenario: a function of a cluster below `tests/scenarios` that
//!    stands in a list, as `name,` or `name on cluster,`. One that runs on several servers is one row.
//! 2. An assertion is whatever can make a test fail on purpose: `assert…!` and `panic!`, calls of `expect…`, `check…` and
//!    `until…`, and a `Failure` that a scenario makes itself.
//! 3. Assertions of other functions in test code are a file's row `(helpers)`; examples in documentation that run, its
//!    row `(doctests)`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::tidy::lexer::{Function, Source, find_word, is_word};
use crate::{tidy, workspace};

/// A test, or the sum of what else a file checks.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    assertions: usize,
}

/// Macros and functions whose names start like this, and what follows the name.
const ASSERTIONS: [(&str, &str); 7] = [
    ("assert", "!"),
    ("debug_assert", "!"),
    ("prop_assert", "!"),
    ("panic", "!"),
    ("expect", "("),
    ("check", "("),
    ("until", "("),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = match args {
        [] => workspace::root(),
        [dir] => PathBuf::from(dir),
        _ => return Err(Failure::usage("one directory at most", "usage: cargo xtask tests-list [DIR]")),
    };
    let mut files = Vec::new();
    for path in
        tidy::files(&root)?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
    {
        let file = root.join(&path);
        files.push((path, std::fs::read_to_string(&file).map_err(Failure::io("reading", &file))?));
    }
    let scenarios: BTreeSet<_> = files.iter().flat_map(|(path, text)| listed(path, text)).collect();
    let mut tests = 0;
    let mut assertions = 0;
    for (path, text) in &files {
        for row in rows(path, text, &scenarios) {
            println!("{}\t{}\t{}", path.display(), row.name, row.assertions);
            tests += usize::from(!row.name.starts_with('('));
            assertions += row.assertions;
        }
    }
    eprintln!("{tests} tests, {assertions} assertions");
    Ok(())
}

fn rows(path: &Path, text: &str, scenarios: &BTreeSet<&str>) -> Vec<Row> {
    let source = Source::new(text);
    let lines: Vec<_> = source.code.lines().collect();
    let in_test_file = path.file_name().is_some_and(|name| name == "tests.rs" || name == "test_objects.rs")
        || path.components().any(|component| component.as_os_str() == "tests");
    let mut rows = Vec::new();
    let mut helpers = 0;
    let mut end = 0;
    for function in source.functions() {
        // Assertions of an inner function count there.
        if function.lines.start < end {
            continue;
        }
        end = function.lines.end;
        let body = lines[function.lines.start - 1..function.lines.end - 1].join("\n");
        let assertions = assertions(&body);
        let is_scenario = scenarios.contains(function.name.as_str()) && is_scenario(path, &body);
        if is_scenario || is_test(&lines, &function) {
            rows.push(Row { name: function.name, assertions });
        } else if in_test_file || source.is_test_line(function.lines.start) {
            helpers += assertions;
        }
    }
    let sums = [("(helpers)", helpers), ("(doctests)", doctests(text))];
    let sums = sums.into_iter().filter(|(_, assertions)| *assertions > 0);
    rows.extend(sums.map(|(name, assertions)| Row { name: name.to_owned(), assertions }));
    rows
}

/// Names in lines `name,` and `module::name on cluster,`: those of scenarios, and of other things.
fn listed<'a>(path: &Path, text: &'a str) -> Vec<&'a str> {
    let is_path = |text: &&str| !text.is_empty() && text.chars().all(|char| is_word(char) || char == ':');
    let lines = text.lines().filter(|_| is_of_scenarios(path)).filter_map(|line| line.trim().strip_suffix(','));
    let names = lines.map(|line| line.split_once(" on ").map_or(line, |(name, _)| name)).filter(is_path);
    names.filter_map(|name| name.rsplit("::").next()).collect()
}

fn is_scenario(path: &Path, body: &str) -> bool {
    let signature: String = body.chars().take_while(|char| *char != '{').filter(|char| !char.is_whitespace()).collect();
    is_of_scenarios(path)
        && ["(cluster:&TestCluster)", "(cluster:&TestCluster,)"].iter().any(|it| signature.contains(it))
}

fn is_of_scenarios(path: &Path) -> bool {
    path.components().any(|component| component.as_os_str() == "scenarios")
}

/// Whether the function has a test attribute.
fn is_test(lines: &[&str], function: &Function) -> bool {
    lines[..function.lines.start - 1]
        .iter()
        .rev()
        .take_while(|line| !line.contains(['{', '}', ';']))
        .any(|line| ["#[test]", "::test]", "::test("].iter().any(|attribute| line.contains(attribute)))
}

fn assertions(body: &str) -> usize {
    body.lines().map(|line| calls(line) + occurrences(line, "Failure::new")).sum()
}

/// Calls in a line of functions and macros that make a test fail.
fn calls(line: &str) -> usize {
    let mut count = 0;
    let mut before = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_word) {
        let word: String = rest[start..].chars().take_while(|char| is_word(*char)).collect();
        rest = &rest[start + word.len()..];
        let follows = |with: &str| rest.starts_with(with) || (with == "(" && rest.starts_with("::<"));
        let is_one = ASSERTIONS.iter().any(|(name, with)| word.starts_with(name) && follows(with));
        count += usize::from(is_one && before != "fn");
        before = word;
    }
    count
}

fn occurrences(line: &str, word: &str) -> usize {
    match find_word(line, word) {
        Some(at) => 1 + occurrences(&line[at + word.len()..], word),
        None => 0,
    }
}

/// Blocks of code in documentation that are compiled and run.
fn doctests(text: &str) -> usize {
    let documentation = text.lines().map(str::trim_start);
    let documentation = documentation.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    let fences = documentation.map(str::trim_start).filter_map(|line| line.strip_prefix("```"));
    fences.step_by(2).filter(|language| matches!(*language, "" | "rust" | "no_run")).count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Row, listed, rows};

    fn check(path: &str, text: &str, want: &[(&str, usize)]) {
        let want: Vec<_> = want.iter().map(|(name, assertions)| (*name, *assertions)).collect();
        let path = Path::new(path);
        let scenarios = listed(path, text).into_iter().collect();
        let got = rows(path, text, &scenarios);
        let got: Vec<_> = got.iter().map(|Row { name, assertions }| (name.as_str(), *assertions)).collect();
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn tests_are_listed_with_their_assertions_and_helpers_are_summed() {
        let text = "fn code() { assert!(true); }\n#[cfg(test)]\nmod tests {\n    fn check(x: u8) { assert_eq!(x, 1); }\n    \
                    #[test]\n    fn a() { check(1); \"assert!\"; expect_eq(2)?; }\n    \
                    #[tokio::test(start_paused = true)]\n    async fn b() {\n        c.until::<Pod>(1).unwrap();\n    }\n}\n";
        check("src/a.rs", text, &[("a", 2), ("b", 1), ("(helpers)", 1)]);
    }

    #[test]
    fn scenarios_are_found_by_their_list() {
        let text = "scenarios! {\n    a,\n    x::b on setup::tokens alone,\n}\nasync fn a(cluster: &TestCluster) { Failure::new(1); }\n\
                    async fn b(\n    cluster: &TestCluster,\n) { until(1); }\nasync fn c(cluster: &TestCluster) { until(1); }\n";
        check("tests/scenarios/x.rs", text, &[("a", 1), ("b", 1), ("(helpers)", 1)]);
    }

    #[test]
    fn examples_that_run_are_counted() {
        let text = "/// ```\n/// a();\n/// ```\n//! ```text\n//! b\n//! ```\nfn a() {}\n";
        check("src/a.rs", text, &[("(doctests)", 1)]);
    }
}
