//! The variables that expressions of a place may use, with their types, as data.
//!
//! A line of a table is either `variable NAME TYPE` or `type NAME FIELD TYPE`; types are written as in `declarations.txt`.

use std::sync::{Arc, LazyLock};

use crate::checker::Scope;
use crate::decl_type::StructTypes;
use crate::decls::Environment;
use crate::types::Type;

/// The variables of expressions, with their types.
#[derive(Clone, Debug)]
pub struct Variables {
    declared: Vec<(Arc<str>, Type)>,
    structs: Arc<StructTypes>,
}

/// `apiserver/pkg/admission/plugin/cel/compile.go` of Kubernetes 1.37, without parameters.
static ADMISSION: LazyLock<Variables> = LazyLock::new(|| Variables::read(include_str!("admission.txt")));

// === impl Variables ===

impl Variables {
    /// Returns the variables of admission: `object`, `oldObject`, `namespaceObject`, `request`, `authorizer` and
    /// `authorizer.requestResource`.
    #[must_use]
    pub fn admission() -> &'static Self {
        &ADMISSION
    }

    /// Adds a variable whose values may be of any type, such as `params`.
    #[must_use]
    pub fn with_dynamic(mut self, name: &str) -> Self {
        self.declared.push((name.into(), Type::Dyn));
        self
    }

    fn read(table: &str) -> Self {
        let mut declared = Vec::new();
        let mut structs = StructTypes::default();
        for line in table.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match *words {
                ["variable", name, of] => declared.push((name.into(), Type::parse(of))),
                ["type", name, field, of] => structs.declare(name, field, Type::parse(of)),
                _ => debug_assert!(false, "no declaration: {line}"),
            }
        }
        Self { declared, structs: Arc::new(structs) }
    }

    pub(crate) fn scope(&self, environment: Environment) -> Scope {
        Scope { environment, variables: self.declared.clone(), structs: Arc::clone(&self.structs) }
    }
}
