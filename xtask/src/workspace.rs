//! Where the repository is and what is in it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::process;

/// The fields of a manifest that a registry shows.
const PAGE: [&str; 7] = ["categories", "description", "documentation", "keywords", "license", "readme", "repository"];

/// One package of the workspace, as `cargo metadata` sees it.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the root.
    pub(crate) manifest: PathBuf,
    pub(crate) features: Vec<String>,
    /// The names of its test targets.
    pub(crate) tests: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether a registry may have it.
    pub(crate) published: bool,
    /// The fields that a registry shows and that are missing.
    pub(crate) page_lacks: Vec<&'static str>,
    /// `package.metadata` of the manifest.
    pub(crate) metadata: Value,
}

/// An edge from one package to another; not only within the workspace.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Build dependencies count as normal ones: both are needed to use the crate.
    pub(crate) dev: bool,
}

/// The directory of the root `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // At run time first: a cached binary may outlive the place where it was compiled.
    let manifest_dir =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest_dir.parent().map_or_else(|| manifest_dir.clone(), Path::to_path_buf)
}

/// Reads a file of the repository.
pub(crate) fn read(relative: impl AsRef<Path>) -> Result<String> {
    let path = root().join(relative.as_ref());
    std::fs::read_to_string(&path).map_err(Failure::io("reading", &path))
}

/// The packages of the workspace.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let json = process::output(&mut process::cargo(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&json)
        .map_err(|error| Failure::error(format!("`cargo metadata` printed something else than JSON: {error}")))?;
    let root = root();
    Ok(list(&metadata["packages"]).map(|package| from_metadata(package, &root)).collect())
}

fn from_metadata(package: &Value, root: &Path) -> Package {
    let manifest = Path::new(text(&package["manifest_path"]));
    Package {
        name: text(&package["name"]).to_owned(),
        manifest: manifest.strip_prefix(root).unwrap_or(manifest).to_path_buf(),
        features: package["features"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect(),
        tests: list(&package["targets"])
            .filter(|target| target["kind"][0] == "test")
            .map(|target| text(&target["name"]).to_owned())
            .collect(),
        dependencies: list(&package["dependencies"])
            .map(|dependency| Dependency {
                name: text(&dependency["name"]).to_owned(),
                dev: dependency["kind"] == "dev",
            })
            .collect(),
        // `publish = false` is an empty list of registries; absent, any will do.
        published: package["publish"].is_null(),
        page_lacks: PAGE.into_iter().filter(|field| is_empty(&package[*field])).collect(),
        metadata: package["metadata"].clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
