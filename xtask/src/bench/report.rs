//! `docs/benchmarks.md`: each suite owns the lines between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`; the rest of
//! the file is written by people.

use std::fmt::Display;
use std::fs;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{k8s, process, sections, workspace};

const FILE: &str = "docs/benchmarks.md";

/// Writes the section of a suite; with a peer, the section names the peer and its version too.
pub(super) fn save(name: &str, peer: Option<&str>, tables: &dyn Display) -> Result<()> {
    let path = workspace::root().join(FILE);
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "# Benchmarks\n".to_owned(),
        Err(error) => return Err(Failure::io("reading", &path)(error)),
    };
    let section = format!("{}\n\n{tables}", conditions(name, peer)?);
    let after =
        with_section(&before, name, &section).map_err(|problem| Failure::error(format!("{FILE}: {problem}")))?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Failure::io("making", parent))?;
    }
    fs::write(&path, after).map_err(Failure::io("writing", &path))?;
    println!("saved in {FILE}");
    Ok(())
}

/// Returns the text with the section of a suite replaced, or added at the end.
fn with_section(text: &str, name: &str, section: &str) -> std::result::Result<String, String> {
    let mark = format!("bench:{name}");
    let added = || format!("{}\n\n## {name}\n\n{}\n", text.trim_end(), sections::block(&mark, section));
    Ok(sections::replaced(text, &mark, section)?.unwrap_or_else(added))
}

/// Returns what the figures depend on, in one paragraph.
fn conditions(name: &str, peer: Option<&str>) -> Result<String> {
    let date = process::output(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let rust = process::output(Command::new("rustc").arg("--version"))?;
    // "rustc 1.95.0 (hash date)" without the hash.
    let rust = rust.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let peer = match (peer, k8s::Go::find()) {
        (Some(peer), Some(go)) => format!(", {peer} with {}", go.version),
        _ => String::new(),
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    Ok(format!("`cargo xtask bench {name}` on {}: {}, {cores} cores; {rust}{peer}.", date.trim(), cpu_model()))
}

fn cpu_model() -> String {
    let model = |info: String| {
        let line = info.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    fs::read_to_string("/proc/cpuinfo").ok().and_then(model).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(test)]
mod tests {
    use super::with_section;

    #[test]
    fn a_section_is_replaced_in_place_and_the_rest_stays() {
        let text = "# B\n\nwords\n<!-- bench:a -->\nold\n<!-- /bench:a -->\nmore words\n";
        let once = with_section(text, "a", "new\n").expect("both marks are there");
        assert_eq!(once, "# B\n\nwords\n<!-- bench:a -->\nnew\n<!-- /bench:a -->\nmore words\n");
        assert_eq!(with_section(&once, "a", "new\n"), Ok(once));
    }

    #[test]
    fn a_section_that_is_not_there_yet_is_added() {
        let added = with_section("# B\n", "a", "new\n").expect("no mark is there");
        assert_eq!(added, "# B\n\n## a\n\n<!-- bench:a -->\nnew\n<!-- /bench:a -->\n");
    }

    #[test]
    fn half_a_section_is_an_error() {
        assert!(with_section("<!-- bench:a -->\n", "a", "new").is_err());
        assert!(with_section("<!-- /bench:a --><!-- bench:a -->", "a", "new").is_err());
    }
}
