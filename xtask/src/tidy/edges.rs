//! Crate edges: which crate may depend on which.
//!
//! The table is the drawing in ARCHITECTURE.md, one row per crate. Edges point one way, so a crate can be read knowing
//! only what stands above it in the table.

use super::Finding;
use crate::workspace::Package;

/// A crate's row: what it may use, and what only its tests, examples and benches may use besides.
struct Row {
    name: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

const BASE: &str = "steersman-base";
const MODEL: &str = "steersman-model";
const WORKQUEUE: &str = "steersman-workqueue";
const INFORMER: &str = "steersman-informer";
const RUNTIME: &str = "steersman-runtime";
const CONTROLLERS: &str = "steersman-controllers";
const NODES: &str = "steersman-nodes";
const STRUCTURED_MERGE: &str = "steersman-structured-merge";
const STRUCTURAL_SCHEMA: &str = "steersman-structural-schema";
const CEL: &str = "steersman-cel";
const APISERVER: &str = "steersman-apiserver";
const TESTING: &str = "steersman-testing";
const SIM: &str = "steersman-sim";
const STEERSMAN: &str = "steersman";
const CLI: &str = "steersman-cli";

const ROWS: [Row; 16] = [
    row(BASE, &[], &[]),
    row(MODEL, &[BASE], &[]),
    row(WORKQUEUE, &[BASE], &[]),
    row(INFORMER, &[BASE, MODEL, WORKQUEUE], &[]),
    row(RUNTIME, &[BASE, MODEL, WORKQUEUE, INFORMER], &[]),
    // Pure functions on JSON: they need nothing of ours.
    row(STRUCTURED_MERGE, &[], &[]),
    // Pure functions too; base has the words of upstream's errors.
    row(STRUCTURAL_SCHEMA, &[BASE], &[]),
    // Quantities, the syntax of names and field errors are in base.
    row(CEL, &[BASE], &[]),
    // Knows nothing of the runtime: it must be possible to doubt one without doubting the other.
    row(APISERVER, &[BASE, STRUCTURED_MERGE, STRUCTURAL_SCHEMA, CEL], &[]),
    // Expressions of admission policies are type-checked by a controller.
    row(CONTROLLERS, &[BASE, MODEL, WORKQUEUE, INFORMER, RUNTIME, CEL], &[TESTING]),
    row(NODES, &[BASE, MODEL, WORKQUEUE, INFORMER, RUNTIME], &[TESTING]),
    // Takes controllers as descriptors and knows none by name.
    row(TESTING, &[BASE, MODEL, WORKQUEUE, INFORMER, RUNTIME, APISERVER, NODES], &[]),
    // Puts whole clusters together, so it may use any of them; on a real API server, also the program itself.
    row(SIM, &[BASE, MODEL, WORKQUEUE, INFORMER, RUNTIME, CONTROLLERS, NODES, APISERVER, TESTING, CLI], &[]),
    // Names the others, and has no code of its own.
    row(STEERSMAN, &[BASE, MODEL, WORKQUEUE, INFORMER, RUNTIME, CONTROLLERS, NODES, APISERVER, TESTING], &[]),
    row(CLI, &[BASE, MODEL, WORKQUEUE, INFORMER, RUNTIME, CONTROLLERS, NODES, APISERVER], &[TESTING]),
    row("xtask", &[], &[]),
];

const fn row(name: &'static str, uses: &'static [&'static str], tests_use: &'static [&'static str]) -> Row {
    Row { name, uses, tests_use }
}

/// Compares the edges of one package with its row.
pub(super) fn check(package: &Package, all: &[Package], manifest: &str) -> Vec<Finding> {
    // Examples show how crates go together, so they may use any.
    if package.manifest.starts_with("examples") {
        return Vec::new();
    }
    let Some(row) = ROWS.iter().find(|row| row.name == package.name) else {
        let message = format!("{} has no row in xtask/src/tidy/edges.rs: say there what it may use", package.name);
        return vec![Finding::error(1, message)];
    };
    let ours = |name: &str| all.iter().any(|other| other.name == name);
    package
        .dependencies
        .iter()
        .filter(|dependency| ours(&dependency.name))
        .filter_map(|dependency| {
            let name = dependency.name.as_str();
            let allowed = row.uses.contains(&name) || (dependency.dev && row.tests_use.contains(&name));
            // A dev-dependency on itself switches on features for its own tests.
            let itself = dependency.dev && name == row.name;
            (!allowed && !itself).then(|| Finding::error(line_of(manifest, name), refusal(row, name, dependency.dev)))
        })
        .collect()
}

/// Whether a crate that can be published has what its page in a registry shows.
pub(super) fn check_page(package: &Package) -> Vec<Finding> {
    let mut lacks = package.page_lacks.clone();
    if package.metadata["docs"]["rs"].is_null() {
        lacks.push("metadata.docs.rs");
    }
    let missing = |field: &str| Finding::error(1, format!("can be published and has no `{field}`"));
    if package.published { lacks.into_iter().map(missing).collect() } else { Vec::new() }
}

fn refusal(row: &Row, name: &str, dev: bool) -> String {
    let kind = if dev { "even in tests " } else { "" };
    format!("{} may not use {name} {kind}(edges: xtask/src/tidy/edges.rs, why: ARCHITECTURE.md)", row.name)
}

/// The first line that names the dependency.
fn line_of(manifest: &str, name: &str) -> usize {
    let starts =
        |line: &str| line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    manifest.lines().position(starts).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::{CONTROLLERS, RUNTIME, TESTING, WORKQUEUE, check};
    use crate::tidy::Finding;
    use crate::workspace::{Dependency, Package};

    const NONE: [usize; 0] = [];

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependencies = dependencies.iter().map(|(name, dev)| Dependency { name: (*name).to_owned(), dev: *dev });
        let manifest = format!("crates/{name}/Cargo.toml").into();
        Package { name: name.to_owned(), manifest, dependencies: dependencies.collect(), ..Package::default() }
    }

    /// The lines of the findings for a package among the whole workspace.
    fn lines(package: &Package, manifest: &str) -> Vec<usize> {
        let all: Vec<_> = super::ROWS.iter().map(|row| self::package(row.name, &[])).collect();
        check(package, &all, manifest).into_iter().map(|Finding { line, .. }| line).collect()
    }

    #[test]
    fn an_edge_against_the_direction_is_named_with_its_line() {
        let manifest = "[dependencies]\nserde.workspace = true\nsteersman-runtime.workspace = true\n";
        assert_eq!(lines(&package(WORKQUEUE, &[("serde", false), (RUNTIME, false)]), manifest), [3]);
        assert_eq!(lines(&package(RUNTIME, &[("serde", false), (WORKQUEUE, false)]), manifest), NONE);
    }

    #[test]
    fn only_tests_may_use_the_testing_crate() {
        assert_eq!(lines(&package(CONTROLLERS, &[(TESTING, true)]), ""), NONE);
        assert_eq!(lines(&package(CONTROLLERS, &[(TESTING, false)]), ""), [1]);
        assert_eq!(lines(&package(WORKQUEUE, &[(TESTING, true)]), ""), [1]);
    }

    #[test]
    fn a_crate_that_can_be_published_has_a_page() {
        let mut crate_ = package("steersman-model", &[]);
        crate_.page_lacks = vec!["readme"];
        assert_eq!(super::check_page(&crate_).len(), 0);
        crate_.published = true;
        assert_eq!(super::check_page(&crate_).len(), 2);
        crate_.page_lacks.clear();
        crate_.metadata = serde_json::json!({"docs": {"rs": {}}});
        assert_eq!(super::check_page(&crate_).len(), 0);
    }

    #[test]
    fn a_crate_without_a_row_is_refused_and_an_example_needs_none() {
        assert_eq!(lines(&package("steersman-utils", &[]), ""), [1]);
        let mut example = package("pod-watcher", &[(TESTING, false)]);
        example.manifest = "examples/pod-watcher/Cargo.toml".into();
        assert_eq!(lines(&example, ""), NONE);
    }
}
