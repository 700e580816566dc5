//! Controllers, their rows, their modules and their pages go by one name.
//!
//! 1. A module is the name of its row without `-controller`, in snake case.
//! 2. Its page is `docs/NAME.md` in the crate, and the module includes it as its documentation.
//! 3. The runtime decides whether a pass reads from the cache or from the server: no controller uses `Freshness`.

use std::path::{Path, PathBuf};

use super::Finding;
use super::lexer::{Source, find_word};

/// A controller declares itself with this call.
const DECLARES: &str = "table::controller(";

/// The table, the names of the pages, and every file in `src` with its text.
pub(super) fn check(table: &str, pages: &[String], files: &[(PathBuf, String)]) -> Vec<(PathBuf, Finding)> {
    let names: Vec<&str> = table.lines().skip(1).filter_map(|row| row.split('\t').next()).collect();
    let mut findings = Vec::new();
    let mut report = |path: PathBuf, message: String| findings.push((path, Finding::error(1, message)));
    for page in pages {
        let name = page.strip_suffix(".md").unwrap_or(page);
        if !names.contains(&name) {
            report(
                Path::new("crates/controllers/docs").join(page),
                "no row of controllers.tsv has this name".to_owned(),
            );
        }
    }
    for (path, text) in files {
        let source = Source::new(text);
        let declares = source.lines().any(|(_, line)| line.contains(DECLARES) && !line.contains("fn "));
        if !declares || path.parent() != Some(Path::new("crates/controllers/src")) {
            continue;
        }
        let module = path.file_stem().unwrap_or_default().to_string_lossy();
        let Some(name) = names.iter().find(|name| module_of(name) == module) else {
            report(
                path.clone(),
                format!("no controller is called {module}: a module is its row's name without `-controller`"),
            );
            continue;
        };
        if !text.contains(&format!("include_str!(\"../docs/{name}.md\")")) {
            report(path.clone(), format!("does not include its page docs/{name}.md as documentation"));
        }
        if !text.contains(&format!("name: \"{name}\"")) {
            report(path.clone(), format!("does not declare the controller {name}"));
        }
    }
    for (path, text) in files {
        for (number, line) in Source::new(text).lines() {
            if find_word(line, "Freshness").is_some() {
                let message = "`Freshness`: read with `cx.main`, `cx.get`, `Children` or `Found`, which choose";
                findings.push((path.clone(), Finding::error(number, message)));
            }
        }
    }
    findings
}

/// `pod-garbage-collector-controller` is `pod_garbage_collector`.
fn module_of(name: &str) -> String {
    name.strip_suffix("-controller").unwrap_or(name).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "name\taliases\nreplicaset-controller\treplicaset\nroot-ca-certificate-publisher-controller\t\n";

    fn found(pages: &[&str], files: &[(&str, &str)]) -> Vec<String> {
        let pages: Vec<_> = pages.iter().map(ToString::to_string).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (PathBuf::from(path), text.to_string())).collect();
        check(TABLE, &pages, &files).into_iter().map(|(path, _)| path.display().to_string()).collect()
    }

    #[test]
    fn a_module_its_row_and_its_page_have_one_name() {
        let right = "#![doc = include_str!(\"../docs/replicaset-controller.md\")]\ntable::controller(&BuiltIn { name: \"replicaset-controller\" })";
        let door = "crates/controllers/src/replicaset.rs";
        assert_eq!(found(&["replicaset-controller.md"], &[(door, right)]), [""; 0]);
        assert_eq!(found(&["replica-set.md"], &[]), ["crates/controllers/docs/replica-set.md"]);
        assert_eq!(
            found(&[], &[("crates/controllers/src/replica_set.rs", right)]),
            ["crates/controllers/src/replica_set.rs"]
        );
        assert_eq!(found(&[], &[(door, "table::controller(&X { name: \"replicaset-controller\" })")]), [door]);
        assert_eq!(found(&[], &[(door, &right.replace("name: \"replicaset", "name: \"other"))]), [door]);
        assert_eq!(found(&[], &[("crates/controllers/src/pod.rs", "pub fn is_ready() {}")]), [""; 0]);
        assert_eq!(module_of("root-ca-certificate-publisher-controller"), "root_ca_certificate_publisher");
    }

    #[test]
    fn no_controller_chooses_between_cache_and_server() {
        let shell = "crates/controllers/src/replicaset/sync.rs";
        assert_eq!(found(&[], &[(shell, "if cx.freshness() == Freshness::ReadLive {}")]), [shell]);
        assert_eq!(found(&[], &[(shell, "// Freshness is not asked for")]), [""; 0]);
    }
}
