//! The certificate authorities: read from their files, and read again when those change.
//!
//! 1. A pair that cannot be used never replaces one that can.
//! 2. A signer without a usable pair is reported by the readiness check; the others sign.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use steersman_base::Time;
use steersman_runtime::health::Unhealthy;

use super::authority::Authority;
use super::{Pair, Signer, Source};

/// The certificate authority of each signer.
pub(super) struct Keys(BTreeMap<Signer, Held>);

/// One certificate authority.
struct Held {
    pair: Pair,
    state: Mutex<State>,
}

struct State {
    /// The last contents of the two files; `None` for one that cannot be read.
    seen: Contents,
    current: Result<Arc<Authority>, String>,
}

/// The contents of the certificate and of the key.
pub(super) type Contents = [Option<Vec<u8>>; 2];

// === impl Keys ===

impl Keys {
    /// Reads all files. What cannot be used is logged, and reported by [`check`](Self::check).
    pub(super) fn load(pairs: BTreeMap<Signer, Pair>) -> Self {
        let held = pairs.into_iter().map(|(signer, pair)| {
            let seen = [&pair.certificate, &pair.key].map(|source| match source {
                Source::File(path) => std::fs::read(path).ok(),
                Source::Text(text) => Some(text.as_bytes().to_vec()),
            });
            let current = pair.authority(&seen);
            if let Err(problem) = &current {
                tracing::error!(signer = signer.name(), problem, "signer has no usable certificate authority");
            }
            (signer, Held { pair, state: Mutex::new(State { seen, current }) })
        });
        Self(held.collect())
    }

    /// Whether a signer has a certificate authority, usable or not.
    pub(super) fn has(&self, signer: Signer) -> bool {
        self.0.contains_key(&signer)
    }

    /// Whether some of them are read from files.
    pub(super) fn has_files(&self) -> bool {
        self.0.values().any(|held| !held.pair.files().is_empty())
    }

    /// Returns the certificate authority of a signer.
    ///
    /// # Errors
    /// It cannot be used.
    pub(super) fn authority(&self, signer: Signer) -> Result<Arc<Authority>, String> {
        let held = self.0.get(&signer).ok_or("it has no certificate authority")?;
        held.state.lock().current.clone()
    }

    /// Returns the signers whose authorities are read from files, with the files of certificate and key.
    pub(super) fn files(&self) -> Vec<(Signer, Pair)> {
        let of_files = self.0.iter().filter(|(_, held)| !held.pair.files().is_empty());
        of_files.map(|(signer, held)| (*signer, held.pair.clone())).collect()
    }

    /// Takes in the contents of the files of a signer; returns whether it can sign with others than before.
    pub(super) fn saw(&self, signer: Signer, contents: Contents) -> bool {
        let Some(held) = self.0.get(&signer) else { return false };
        let mut state = held.state.lock();
        if state.seen == contents {
            return false;
        }
        let found = held.pair.authority(&contents);
        state.seen = contents;
        match (found, &state.current) {
            (Ok(authority), _) => {
                tracing::info!(signer = signer.name(), "certificate authority was read again");
                state.current = Ok(authority);
                true
            }
            (Err(problem), Ok(_)) => {
                let signer = signer.name();
                tracing::error!(signer, problem, "changed certificate authority cannot be used; the old one signs");
                false
            }
            (Err(problem), Err(_)) => {
                tracing::error!(signer = signer.name(), problem, "signer has no usable certificate authority");
                state.current = Err(problem);
                false
            }
        }
    }

    /// Checks that every signer can sign.
    ///
    /// # Errors
    /// A signer has no usable certificate authority, or its certificate has expired.
    pub(super) fn check(&self, now: Time) -> Result<(), Unhealthy> {
        let mut problems: Vec<String> = Vec::new();
        for (signer, held) in &self.0 {
            let problem = match &held.state.lock().current {
                Ok(authority) if now < authority.not_after => continue,
                Ok(authority) => format!("its certificate authority has expired, at {}", authority.not_after),
                Err(problem) => problem.clone(),
            };
            problems.push(format!("{} signs nothing: {problem}", signer.name()));
        }
        if problems.is_empty() { Ok(()) } else { Err(Unhealthy(problems.join("; "))) }
    }
}

// === impl Pair ===

impl Pair {
    fn files(&self) -> Vec<&Path> {
        let sources = [&self.certificate, &self.key].into_iter();
        sources.filter_map(Source::file).collect()
    }

    /// Returns the authority of these contents.
    fn authority(&self, contents: &Contents) -> Result<Arc<Authority>, String> {
        let named =
            |source: &Source| source.file().map_or("the cluster's own".into(), Path::to_string_lossy).into_owned();
        let names = [named(&self.certificate), named(&self.key)];
        let unread = names.iter().zip(contents).find(|(_, content)| content.is_none());
        if let Some((name, _)) = unread {
            return Err(format!("cannot read {name}"));
        }
        let [certificate, key] = contents.each_ref().map(|content| content.as_deref().unwrap_or_default());
        let made = Authority::from_pem(certificate, key).map(Arc::new);
        made.map_err(|error| format!("cannot use {} and {}: {error}", names[0], names[1]))
    }
}

// === impl Source ===

impl Source {
    /// Returns the file, if it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Text(_) => None,
        }
    }
}
