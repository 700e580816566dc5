//! `cargo xtask sim`: runs the simulator, or shows that it finds what it is there to find.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::{process, sections, workspace};

/// Patches that take a fix out again, one per file; the first line is the title.
const MUTANTS: &str = "crates/sim/mutants";
/// A copy of the repository, for the patches.
const COPY: &str = "target/mutants/tree";
/// Where it is compiled: a directory of its own, because Cargo does not distinguish the crates of two copies of a workspace, and would
/// take those of a mutant for ours.
const BUILT: &str = "target/mutants/built";
/// The default number of worlds per mutant: a mutant that survives them was not found.
const WORLDS: &str = "200";

const DOCUMENT: &str = "docs/reliability.md";
/// The section of the table.
const MARK: &str = "mutants";

/// The build profile of the simulator: fast, and quickly compiled.
const PROFILE: &str = "sim";
/// That of mutants: a change compiles in seconds, and worlds take somewhat longer.
const MUTANT_PROFILE: &str = "mutants";
/// The crates that patches change, each before those that depend on it.
const CRATES: [&str; 4] = ["model", "informer", "runtime", "controllers"];

struct Mutant {
    path: PathBuf,
    title: String,
    /// The number of its crate among [`CRATES`]: all crates above are compiled for it, and once more when it is taken back.
    depth: usize,
}

impl Mutant {
    fn is_called(&self, name: &str) -> bool {
        self.path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(name))
    }
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--mutants") {
        let rest: Vec<String> = args.iter().filter(|arg| *arg != "--mutants").cloned().collect();
        return mutants(&rest);
    }
    process::run(simulator(PROFILE).args(args))
}

/// The command that compiles the simulator and runs it.
fn simulator(profile: &str) -> std::process::Command {
    process::cargo(["run", "--quiet", "--profile", profile, "--package", "steersman-sim", "--"])
}

/// Applies each patch to a copy, and runs worlds until one fails. With `--mutant NAME`, only the patches with this text in
/// their file names. With `--save`, each result is written to the document as soon as it is known.
fn mutants(args: &[String]) -> Result<()> {
    let mut wanted = Vec::new();
    let mut is_saved = false;
    let mut rest = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--save" => is_saved = true,
            "--mutant" => wanted.push(args.next().ok_or_else(|| Failure::error("--mutant needs a name"))?.clone()),
            _ => rest.push(arg.clone()),
        }
    }
    let all = list()?;
    let is_wanted = |mutant: &&Mutant| wanted.is_empty() || wanted.iter().any(|name| mutant.is_called(name));
    let mut chosen: Vec<&Mutant> = all.iter().filter(is_wanted).collect();
    // Those of one crate together: then the crates below it are not compiled again.
    chosen.sort_by_key(|mutant| mutant.depth);
    let copy = workspace::root().join(COPY);
    renew(&copy)?;
    let mut outlived = Vec::new();
    for mutant in chosen {
        git(&copy, &["checkout", "--quiet", "--force", "."])?;
        let patch = mutant.path.to_string_lossy().into_owned();
        // Code around the lines may have moved or changed: one line of context is enough to find the place.
        git(&copy, &["apply", "-C1", "--recount", &patch])?;
        let found = hunt(&copy, &rest)?;
        println!("{}: {}", mutant.title, found.as_deref().unwrap_or("not found"));
        if is_saved {
            save(&all, mutant, found.as_deref().unwrap_or("not found"))?;
        }
        if found.is_none() {
            outlived.push(mutant.title.clone());
        }
    }
    git(&copy, &["checkout", "--quiet", "--force", "."])?;
    if outlived.is_empty() { Ok(()) } else { Err(Failure::error(format!("not found: {}", outlived.join("; ")))) }
}

/// Writes the result of one mutant to the table of the document. Rows of other mutants stay, those of removed ones go.
fn save(all: &[Mutant], mutant: &Mutant, found: &str) -> Result<()> {
    let document = workspace::read(DOCUMENT)?;
    let mut table = String::from("| mutant | found after |\n|---|--:|\n");
    for other in all {
        let start = format!("| {} |", other.title);
        let known = document.lines().find(|line| line.starts_with(&start)).map(str::to_owned);
        let row = if other.path == mutant.path { Some(format!("{start} {found} |")) } else { known };
        table.extend(row.map(|row| format!("{row}\n")));
    }
    let text = sections::replaced(&document, MARK, &table).map_err(Failure::error)?;
    let text = text.ok_or_else(|| Failure::error(format!("{DOCUMENT} has no section `{MARK}`")))?;
    let path = workspace::root().join(DOCUMENT);
    std::fs::write(&path, text).map_err(Failure::io("writing", &path))
}

fn list() -> Result<Vec<Mutant>> {
    let folder = workspace::root().join(MUTANTS);
    let entries = std::fs::read_dir(&folder).map_err(Failure::io("reading", &folder))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    paths.sort();
    paths.into_iter().map(read).collect()
}

/// Reads the title of a patch, which is its first line and which git does not read, and the lowest crate that it changes.
fn read(path: PathBuf) -> Result<Mutant> {
    let text = std::fs::read_to_string(&path).map_err(Failure::io("reading", &path))?;
    let first = text.lines().next().unwrap_or_default();
    let title = first.trim_start_matches(['#', ' ']).to_owned();
    let is_changed = |name: &&str| text.contains(&format!("\n+++ b/crates/{name}/"));
    let depth = CRATES.iter().position(is_changed).unwrap_or(CRATES.len());
    Ok(Mutant { path, title, depth })
}

/// Makes the copy that of the current commit. One that is there is changed, not replaced: files that stay as they are need not be
/// compiled again.
fn renew(copy: &Path) -> Result<()> {
    let root = workspace::root();
    if !copy.join(".git").exists() {
        return git(&root, &["worktree", "add", "--detach", "--force", COPY]);
    }
    let mut command = std::process::Command::new("git");
    let head = process::output(command.current_dir(&root).args(["rev-parse", "HEAD"]))?;
    git(copy, &["checkout", "--quiet", "--force", "--detach", head.trim()])
}

fn git(folder: &Path, args: &[&str]) -> Result<()> {
    process::run(std::process::Command::new("git").current_dir(folder).args(args))
}

/// Returns how many worlds it took to find the mutant, or why it was refused.
fn hunt(copy: &Path, args: &[String]) -> Result<Option<String>> {
    let mut command = simulator(MUTANT_PROFILE);
    command.current_dir(copy).env("CARGO_TARGET_DIR", workspace::root().join(BUILT));
    command.args(["--until-failure", "--no-shrink", "--worlds", WORLDS]).args(args);
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::error(format!("cannot run cargo: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find_map(|line| line.strip_prefix("found after ")).map(str::to_owned);
    if found.is_none() && !output.status.success() {
        return Err(Failure::error("the mutant does not compile or run: mend the patch"));
    }
    Ok(found)
}
