//! The code map has a heading for every crate, and decision records are numbered without gaps.

use std::path::PathBuf;

use super::Finding;

/// Every folder of `crates/` stands in backticks in a `##` or `###` heading of ARCHITECTURE.md.
pub(super) fn check_map(map: &str, folders: &[String]) -> Vec<Finding> {
    let headings: Vec<_> = map.lines().filter(|line| line.starts_with("## ") || line.starts_with("### ")).collect();
    let has_heading = |folder: &str| {
        let forms = [format!("`{folder}`"), format!("`crates/{folder}`"), format!("`crates/{folder}/`")];
        headings.iter().any(|heading| forms.iter().any(|form| heading.contains(form)))
    };
    folders
        .iter()
        .filter(|folder| !has_heading(folder))
        .map(|folder| Finding::error(1, format!("no heading for the crate `{folder}` (write: ### `{folder}`)")))
        .collect()
}

/// The names in `docs/adr`: `NNN-title.md` from 001 on (or 000), each number once.
pub(super) fn check_records(names: &[String]) -> Vec<(PathBuf, Finding)> {
    let mut findings = Vec::new();
    let mut report = |name: &str, message: String| {
        findings.push((PathBuf::from("docs/adr").join(name), Finding::error(1, message)));
    };
    let mut expected = None;
    let mut names: Vec<_> = names.iter().filter(|name| *name != "README.md").collect();
    names.sort();
    for name in names {
        let Some(number) = record_number(name) else {
            report(name, "is not named NNN-title.md".to_owned());
            continue;
        };
        let wanted = expected.unwrap_or_else(|| number.min(1));
        if number != wanted {
            report(name, format!("has number {number:03} where {wanted:03} comes next"));
        }
        expected = Some(number + 1);
    }
    findings
}

fn record_number(name: &str) -> Option<u32> {
    let (digits, title) = name.strip_suffix(".md")?.split_once('-')?;
    (digits.len() == 3 && !title.is_empty()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{check_map, check_records};

    #[test]
    fn a_crate_without_a_heading_is_named() {
        let map = "# Architecture\n\n## `base`: words\n\nThe crate `model` is here.\n\n### `crates/informer`\n";
        let folders = ["base", "model", "informer"].map(str::to_owned);
        let found: Vec<_> = check_map(map, &folders).into_iter().map(|finding| finding.message).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`model`"), "{found:?}");
    }

    #[test]
    fn records_are_numbered_without_gaps() {
        for (names, want) in [
            (vec!["001-a.md", "002-b.md", "README.md"], vec![]),
            (vec!["000-a.md", "001-b.md"], vec![]),
            (vec!["002-b.md"], vec!["docs/adr/002-b.md"]),
            (vec!["001-a.md", "003-c.md", "004-d.md"], vec!["docs/adr/003-c.md"]),
            (vec!["001-a.md", "001-b.md"], vec!["docs/adr/001-b.md"]),
            (vec!["001-a.md", "2-b.md"], vec!["docs/adr/2-b.md"]),
        ] {
            let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
            let found: Vec<_> = check_records(&names).into_iter().map(|(path, _)| path.display().to_string()).collect();
            assert_eq!(found, want, "{names:?}");
        }
    }
}
