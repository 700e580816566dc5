//! `cargo xtask tidy`: the checks that reviewers should not have to make by hand.
//!
//! Every check is a function from text to [`Finding`]s; only this file reads files and prints.
//! 1. [`edges`]: crates depend on each other in one direction; each has what its page in a registry shows.
//! 2. [`size`]: files and functions stay readable.
//! 3. [`pure`]: decisions do no I/O and read no clock.
//! 4. [`docs`]: the code map and the decision records are complete; generated tables are up to date.
//! 5. [`banned`]: what must not be committed.
//! 6. [`controllers`]: a controller, its row, its module and its page have one name.
//! 7. [`bindings`]: one `let` per binding, no nested options.
//! 8. [`doc_lines`]: doc lines of the libraries begin with a noun or a verb.

mod banned;
mod bindings;
mod controllers;
mod doc_lines;
mod docs;
mod edges;
pub(crate) mod lexer;
mod pure;
mod size;

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::workspace;

use lexer::Source;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    /// Listed only.
    Warning,
    /// Fails the command.
    Error,
}

/// A finding about a line.
#[derive(Debug, PartialEq)]
struct Finding {
    level: Level,
    line: usize,
    message: String,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        return Err(Failure::usage("`tidy` takes no arguments", "usage: cargo xtask tidy"));
    }
    let mut report = Report::default();
    let packages = workspace::packages()?;
    for package in &packages {
        let manifest = workspace::read(&package.manifest)?;
        report.add(&package.manifest, edges::check(package, &packages, &manifest));
        report.add(&package.manifest, edges::check_page(package));
    }
    let files = files(&workspace::root())?;
    for file in &files {
        check_file(file, &mut report)?;
    }
    let map = Path::new("ARCHITECTURE.md");
    if files.contains(&map.to_path_buf()) {
        report.add(map, docs::check_map(&workspace::read(map)?, &crate_folders(&files)));
    } else {
        report.add(map, vec![Finding::error(1, "is missing")]);
    }
    for (path, finding) in docs::check_records(&names_in(&files, Path::new("docs/adr"))) {
        report.add(&path, vec![finding]);
    }
    check_controllers(&files, &mut report)?;
    for (path, _) in crate::docs::outdated()? {
        report.add(&path, vec![Finding::error(1, "a generated table is out of date: run `cargo xtask docs`")]);
    }
    report.print()
}

fn check_controllers(files: &[PathBuf], report: &mut Report) -> Result<()> {
    let table = workspace::read(Path::new("crates/controllers/data/controllers.tsv"))?;
    let pages = names_in(files, Path::new("crates/controllers/docs"));
    let is_source = |file: &&PathBuf| file.starts_with("crates/controllers/src");
    let mut sources = Vec::new();
    for file in files.iter().filter(is_source) {
        sources.push((file.clone(), workspace::read(file)?));
    }
    for (path, finding) in controllers::check(&table, &pages, &sources) {
        report.add(&path, vec![finding]);
    }
    Ok(())
}

fn check_file(path: &Path, report: &mut Report) -> Result<()> {
    report.add(path, banned::check_name(path));
    // Anything that is not UTF-8 is data; the checks are about text.
    let Ok(text) = fs::read_to_string(workspace::root().join(path)) else { return Ok(()) };
    report.add(path, banned::check_text(&text));
    if path.extension().is_some_and(|extension| extension == "rs") {
        let source = Source::new(&text);
        report.add(path, banned::check_rust(&source));
        report.add(path, bindings::check(&source));
        report.add(path, size::check(path, &source));
        if doc_lines::is_library(path) {
            report.add(path, doc_lines::check(&text));
        }
        if pure::is_pure(path, &text) {
            report.add(path, pure::check(&source));
        }
    }
    Ok(())
}

/// All files below the root, relative to it and in order; no build results, nothing of git.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    const HIDDEN_BUT_OURS: [&str; 3] = [".cargo", ".ci", ".github"];
    const NOT_OURS: [&str; 2] = ["target", "Cargo.lock"];
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).map_err(Failure::io("reading", &dir))? {
            let entry = entry.map_err(Failure::io("reading", &dir))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if (name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&&*name)) || NOT_OURS.contains(&&*name) {
                continue;
            }
            let kind = entry.file_type().map_err(Failure::io("reading", &entry.path()))?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(root).unwrap_or(&entry.path()).to_path_buf());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The folders below `crates/` that hold a crate.
fn crate_folders(files: &[PathBuf]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.starts_with("crates") && file.ends_with("Cargo.toml") && file.components().count() == 3)
        .filter_map(|file| Some(file.parent()?.file_name()?.to_string_lossy().into_owned()))
        .collect()
}

fn names_in(files: &[PathBuf], dir: &Path) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.parent() == Some(dir))
        .filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()))
        .collect()
}

/// The findings so far.
#[derive(Default)]
struct Report {
    lines: Vec<(Level, String)>,
}

// === impl Finding ===

impl Finding {
    fn error(line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Error, line, message: message.into() }
    }

    fn warning(line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, line, message: message.into() }
    }
}

// === impl Report ===

impl Report {
    fn add(&mut self, path: &Path, findings: Vec<Finding>) {
        for Finding { level, line, message } in findings {
            let prefix = if level == Level::Warning { "warning: " } else { "" };
            self.lines.push((level, format!("{}:{line}: {prefix}{message}", path.display())));
        }
    }

    fn print(&self) -> Result<()> {
        for (_, line) in &self.lines {
            println!("{line}");
        }
        let errors = self.lines.iter().filter(|(level, _)| *level == Level::Error).count();
        println!("tidy: {errors} violations, {} warnings", self.lines.len() - errors);
        if errors == 0 { Ok(()) } else { Err(Failure::Reported) }
    }
}
