//! What must not be committed: tests that do not run, unfinished code, `mod.rs`, paths of a machine.

use std::path::Path;

use super::Finding;
use super::lexer::{Source, find_word};

/// In code, not in comments or strings.
const CODE: [(&str, &str); 4] = [
    ("#[ignore", "a test that does not run proves nothing: fix it or remove it"),
    ("todo!(", "finish it, or return an error that says what is missing"),
    ("unimplemented!(", "finish it, or return an error that says what is missing"),
    ("dbg!(", "left over from debugging"),
];

/// Split, so that this file does not find itself.
const HOMES: [(&str, &str); 3] = [("/ho", "me/"), ("/Us", "ers/"), ("/ro", "ot/")];

pub(super) fn check_name(path: &Path) -> Vec<Finding> {
    if path.starts_with("crates") && path.file_name().is_some_and(|name| name == "mod.rs") {
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        return vec![Finding::error(1, format!("modules are `{folder}.rs` + `{folder}/`, not `{folder}/mod.rs`"))];
    }
    Vec::new()
}

pub(super) fn check_text(text: &str) -> Vec<Finding> {
    let homes = HOMES.map(|(start, end)| format!("{start}{end}"));
    let named = |line: &str| homes.iter().find(|home| names_home(line, home)).cloned();
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some(Finding::error(index + 1, format!("a path in {}…", named(line)?)))).collect()
}

/// Whether the line has an absolute path into a home directory; a URL or a longer path may contain the same letters.
fn names_home(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + home.len()..].chars().next();
        let starts_path = before.is_none_or(|char| char.is_whitespace() || "\"'`(=:<[,".contains(char));
        starts_path && after.is_some_and(|char| char.is_alphanumeric() || matches!(char, '.' | '_'))
    })
}

pub(super) fn check_rust(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for (word, why) in CODE {
            if find_word(line, word).is_some() {
                findings.push(Finding::error(number, format!("`{}`: {why}", word.trim_end_matches('('))));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{HOMES, check_name, check_rust, check_text};
    use crate::tidy::lexer::Source;

    #[test]
    fn holes_are_found_in_code_and_not_in_comments_or_strings() {
        for (text, want) in [
            ("#[test]\n#[ignore]\nfn a() {}", vec![2]),
            ("#[ignore = \"slow\"]", vec![1]),
            ("fn a() { todo!() }", vec![1]),
            ("fn a() { unimplemented!(\"later\") }\nfn b() { dbg!(1); }", vec![1, 2]),
            ("// todo!() is not for us\nlet a = \"dbg!(x)\"; my_dbg!(x)", vec![]),
        ] {
            let found: Vec<_> = check_rust(&Source::new(text)).into_iter().map(|finding| finding.line).collect();
            assert_eq!(found, want, "{text}");
        }
    }

    #[test]
    fn a_mod_rs_is_refused_in_crates_only() {
        assert_eq!(check_name(Path::new("crates/a/src/b/mod.rs")).len(), 1);
        assert_eq!(check_name(Path::new("crates/a/src/b.rs")), []);
        assert_eq!(check_name(Path::new("examples/a/src/b/mod.rs")), []);
    }

    #[test]
    fn paths_into_a_home_directory_are_found_anywhere() {
        for (start, end) in HOMES {
            for (text, want) in [
                (format!("first\nsee {start}{end}someone/x"), vec![2]),
                (format!("\"{start}{end}.cargo\""), vec![1]),
                (format!("https://example.org{start}{end}x"), vec![]),
                (format!("{start}{end}* is where people live"), vec![]),
            ] {
                let found: Vec<_> = check_text(&text).into_iter().map(|finding| finding.line).collect();
                assert_eq!(found, want, "{text}");
            }
        }
    }
}
