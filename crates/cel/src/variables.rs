//! The variables that expressions of a place may use, with their types, as data.
//!
//! A line of a table is either `variable NAME TYPE` or `type NAME FIELD TYPE`; types are written as in `declarations.txt`.

use std::sync::{Arc, LazyLock};

use crate::checker::Scope;
use crate::decl_type::StructTypes;
use crate::decls::Environment;
use crate::types::Type;

/// The struct of the variables that a policy declares.
pub(crate) const COMPOSED: &str = "kubernetes.variables";

/// The variables of expressions, with their types.
#[derive(Clone, Debug)]
pub struct Variables {
    declared: Vec<(Arc<str>, Type)>,
    structs: Arc<StructTypes>,
}

/// `apiserver/pkg/admission/plugin/cel/compile.go` of Kubernetes 1.37, without parameters.
static ADMISSION: LazyLock<Variables> = LazyLock::new(|| Variables::read(include_str!("admission.txt")));

/// `dynamic-resource-allocation/cel/compile.go` of Kubernetes 1.37, without lists as attributes.
static DEVICES: LazyLock<Variables> = LazyLock::new(|| Variables::read(include_str!("devices.txt")));

// === impl Variables ===

impl Variables {
    /// Returns the variable of selectors of devices: `device`.
    #[must_use]
    pub fn devices() -> &'static Self {
        &DEVICES
    }

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

    /// Leaves out `authorizer` and `authorizer.requestResource`, which messages cannot use.
    #[must_use]
    pub fn without_authorizer(mut self) -> Self {
        self.declared.retain(|(name, _)| !name.starts_with("authorizer"));
        self
    }

    /// Declares the types of patches: `Object`, `Object.FIELD` and `JSONPatch`.
    pub(crate) fn with_patches(mut self) -> Self {
        Arc::make_mut(&mut self.structs).declare_patches();
        self
    }

    /// Declares `variables`, a struct whose fields are declared one after the other.
    pub(crate) fn composed(mut self) -> Self {
        Arc::make_mut(&mut self.structs).declare_empty(COMPOSED);
        self.declared.push(("variables".into(), Type::Struct(COMPOSED.into())));
        self
    }

    /// Declares a field of `variables`.
    pub(crate) fn declare_composed(&mut self, name: &str, of: &Type) {
        Arc::make_mut(&mut self.structs).declare(COMPOSED, name, composed_type(of));
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

/// Returns the type that a variable of a policy has for other expressions: structs are forgotten.
pub(crate) fn composed_type(of: &Type) -> Type {
    match of {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(item) => Type::list(composed_type(item)),
        Type::Map(key, value) => Type::map(composed_type(key), composed_type(value)),
        _ => Type::Dyn,
    }
}
