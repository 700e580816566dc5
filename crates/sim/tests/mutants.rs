//! Patches that take a fix out again: `cargo xtask sim --mutants` shows that the simulator finds each. Here it is checked
//! that they can still be applied.

use std::path::Path;
use std::process::Command;

/// What a patch may change: code that the simulator runs, and no test of it.
const PLACES: [&str; 4] =
    ["crates/controllers/src/", "crates/informer/src/", "crates/model/src/", "crates/runtime/src/"];

#[test]
fn every_mutant_still_applies_to_the_tree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    let mut problems = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        if !text.starts_with("# ") {
            problems.push(format!("{name}: the first line is its title, and begins with `# `"));
        }
        for changed in text.lines().filter_map(|line| line.strip_prefix("+++ b/")) {
            if !PLACES.iter().any(|place| changed.starts_with(place)) {
                problems.push(format!("{name}: changes {changed}"));
            }
        }
        let output = Command::new("git")
            .current_dir(&root)
            .args(["apply", "--check", "-C1", "--recount"])
            .arg(&path)
            .output()
            .unwrap();
        if !output.status.success() {
            problems.push(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    assert!(
        problems.is_empty(),
        "mend these patches of crates/sim/mutants, so that they take out their fix where it is now:\n{}",
        problems.join("\n")
    );
}
