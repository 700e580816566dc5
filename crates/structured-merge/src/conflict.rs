//! Fields that an apply would take from other managers.

use std::collections::BTreeMap;

use crate::managed::ManagerId;
use crate::path::Path;
use crate::set::FieldSet;

/// A field, and the other manager that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: ManagerId,
    /// The field.
    pub path: Path,
}

/// All conflicts of an apply, ordered by manager; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// The number of bytes of fields that a message shows. Upstream shows them all, which is quadratic where many fields
/// are below one long key.
const SHOWN_BYTES_MAX: usize = 256 << 10;

impl Conflict {
    /// Returns the message of the cause in the status; its field is the path.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

impl Conflicts {
    pub(crate) fn from_sets(sets: &BTreeMap<ManagerId, FieldSet>) -> Self {
        let mut conflicts = Vec::new();
        for (manager, set) in sets {
            set.for_each(&mut |path| conflicts.push(Conflict { manager: manager.clone(), path: path.clone() }));
        }
        Self(conflicts)
    }

    /// The first conflicts, as many as a message shows.
    pub fn shown(&self) -> &[Conflict] {
        let mut bytes = 0;
        let fits = |conflict: &Conflict| {
            bytes += conflict.path.to_string().len();
            bytes <= SHOWN_BYTES_MAX
        };
        let count = self.0.iter().map(fits).take_while(|fits| *fits).count();
        &self.0[..count]
    }

    /// Those whose fields are not in the set.
    pub(crate) fn outside(self, allowed: &FieldSet) -> Self {
        Self(self.0.into_iter().filter(|conflict| !allowed.contains(&conflict.path)).collect())
    }
}

/// The message of the status.
impl std::fmt::Display for Conflicts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", conflict.message(), conflict.path);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last = None;
        for conflict in self.shown() {
            if last != Some(&conflict.manager) {
                if last.is_some() {
                    f.write_str("\n")?;
                }
                write!(f, "conflicts with {}:", conflict.manager)?;
                last = Some(&conflict.manager);
            }
            write!(f, "\n- {}", conflict.path)?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}
