//! The cache outside the source tree: `$STEERSMAN_CACHE`, else `$XDG_CACHE_HOME/steersman`, else `~/.cache/steersman`.
//!
//! ```text
//! rig/install.lock         held by the one process that builds
//! rig/built/NAME-KEY       one binary per content of what it is built from; never changes once it is there
//! rig/k8s-…-etcd-…-KEY/    what one state of `rig/` needs: hard links to built/, under the plain names
//! rig/running/             one locked file per running rig; see rig/cmd/rigd/state.go
//! ```
//! So a change rebuilds only what it concerns, two checkouts share what they have in common, and removing the whole
//! directory costs nothing but time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// The directory of everything that belongs to the rig.
pub(crate) fn rig_dir() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("STEERSMAN_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("steersman")))
        .or_else(|| set("HOME").map(|dir| dir.join(".cache").join("steersman")))
        .map(|dir| dir.join("rig"))
        .ok_or_else(|| Failure::error("no place for the cache: set STEERSMAN_CACHE to a directory"))
}

/// Waits until this process is the only one that builds; the lock ends with the file, however the process ends.
pub(crate) fn lock(dir: &Path) -> Result<File> {
    fs::create_dir_all(dir).map_err(Failure::io("making", dir))?;
    let path = dir.join("install.lock");
    let file = File::options().create(true).append(true).open(&path).map_err(Failure::io("opening", &path))?;
    if file.try_lock().is_err() {
        println!("rig: another install is running; waiting for it");
        file.lock().map_err(Failure::io("locking", &path))?;
    }
    Ok(file)
}

/// Gives `file` a second name; a copy where the file system has no hard links.
pub(crate) fn link(file: &Path, name: &Path) -> Result<()> {
    if name.exists() || fs::hard_link(file, name).is_ok() {
        return Ok(());
    }
    // Under a temporary name first: a file with the final name may be run at once.
    let temporary = name.with_extension("new");
    fs::copy(file, &temporary).map_err(Failure::io("writing", &temporary))?;
    fs::rename(&temporary, name).map_err(Failure::io("writing", name))
}

/// FNV-1a with 64 bits: the key of a cache entry. The standard library's hasher may change with the toolchain, and a
/// new toolchain is no reason to build Kubernetes again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(u64);

// === impl Key ===

impl Key {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds one part with its length, so that parts cannot run into each other.
    pub(crate) fn add(&mut self, part: &[u8]) {
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds every file of a directory, by name and content, without subdirectories.
    pub(crate) fn add_dir(&mut self, dir: &Path) -> Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir).map_err(Failure::io("reading", dir))? {
            let path = entry.map_err(Failure::io("reading", dir))?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        for path in files {
            self.add(path.file_name().unwrap_or_default().as_encoded_bytes());
            self.add(&fs::read(&path).map_err(Failure::io("reading", &path))?);
        }
        Ok(())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn parts_of_a_key_do_not_run_into_each_other() {
        let key = |parts: &[&str]| {
            let mut key = Key::new();
            parts.iter().for_each(|part| key.add(part.as_bytes()));
            key.to_string()
        };
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["ab"]), key(&["ab", ""]));
    }
}
