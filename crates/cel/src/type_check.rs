//! Type checks of the expressions of a policy against the schemas of the kinds that it matches.
//!
//! Follows `apiserver/pkg/admission/plugin/policy/validating/typechecking.go` and `plugin/cel/composition.go`.

use std::sync::Arc;

use crate::checker::{self, Scope};
use crate::decl_type;
use crate::decls::Environment;
use crate::schema::Schema;
use crate::types::Type;
use crate::variables::{COMPOSED, Variables, composed_type};

/// The type of a variable, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub enum KnownType<'a> {
    /// There is no such variable.
    Absent,
    /// Its values may be of any type.
    Any,
    /// Its values are of this schema, and its type has this name in errors.
    Of(&'a str, &'a Schema),
}

/// The checker of the expressions of one policy, for one kind of objects.
///
/// ```
/// use serde_json::json;
/// use steersman_cel::{KnownType, Schema, TypeCheck};
///
/// let schema = Schema::new(&json!({"type": "object", "properties": {
///     "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
/// }}));
/// let mut check = TypeCheck::new(KnownType::Of("Cake", &schema), KnownType::Absent);
/// check.declare("count", "object.spec.replicas");
/// assert_eq!(check.check("variables.count > 3"), Ok(()));
/// let wrong = check.check("object.spec.slices > 3").unwrap_err();
/// assert!(wrong.starts_with("ERROR: <input>:1:12: undefined field 'slices'"), "{wrong}");
/// ```
#[derive(Clone, Debug)]
pub struct TypeCheck {
    scope: Scope,
}

// === impl TypeCheck ===

impl TypeCheck {
    /// Returns a checker in which `object` and `oldObject` are of this type, and `params` of that one.
    #[must_use]
    pub fn new(object: KnownType<'_>, params: KnownType<'_>) -> Self {
        let mut scope = Variables::admission().scope(Environment::Stored);
        // Upstream declares the authorizer alone here, so its resource is no variable.
        scope.variables.retain(|(name, _)| !matches!(&**name, "object" | "oldObject" | "authorizer.requestResource"));
        let mut check = Self { scope };
        check.add(&["object", "oldObject"], object);
        check.add(&["params"], params);
        Arc::make_mut(&mut check.scope.structs).declare_empty(COMPOSED);
        check.scope.variables.push(("variables".into(), Type::Struct(COMPOSED.into())));
        check
    }

    /// Declares a variable of the policy, `variables.NAME`, with the type of its expression. If that is wrong, values may be of
    /// any type.
    pub fn declare(&mut self, name: &str, expression: &str) {
        let checked = checker::compile(expression, &self.scope);
        let of = checked.map_or(Type::Dyn, |checked| composed_type(checked.type_of(checked.expr.id)));
        Arc::make_mut(&mut self.scope.structs).declare(COMPOSED, name, of);
    }

    /// Checks an expression of any result type.
    ///
    /// # Errors
    /// What is wrong with it, in cel-go's words.
    pub fn check(&self, expression: &str) -> Result<(), String> {
        checker::compile(expression, &self.scope).map(drop)
    }

    fn add(&mut self, names: &[&str], known: KnownType<'_>) {
        let of = match known {
            KnownType::Absent => return,
            KnownType::Any => Type::Dyn,
            KnownType::Of(name, schema) => match decl_type::declare(schema, true) {
                Some(declared) => declared.named(name, Arc::make_mut(&mut self.scope.structs)),
                None => Type::Dyn,
            },
        };
        self.scope.variables.extend(names.iter().map(|name| ((*name).into(), of.clone())));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cake() -> Schema {
        Schema::new(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "slices": {"type": "integer"}, "tier": {"type": "string"},
                "eaters": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            }},
        }}))
    }

    #[test]
    fn what_is_not_in_the_schema_is_an_error() {
        let schema = cake();
        let check = TypeCheck::new(KnownType::Of("Cake", &schema), KnownType::Any);
        for fine in [
            "object.spec.slices > 3 && oldObject.metadata.name != ''",
            "object.spec.eaters.all(eater, eater.name.startsWith('a'))",
            "params.anything.goes",
            "request.userInfo.username == 'me'",
            "authorizer.group('').resource('pods').check('get').allowed()",
            "namespaceObject.metadata.labels.exists(label, label == 'a')",
        ] {
            assert_eq!(check.check(fine), Ok(()), "{fine}");
        }
        for (wrong, why) in [
            ("object.spec.slice", "undefined field 'slice'"),
            ("object.spec.slices == 'many'", "found no matching overload for '_==_' applied to '(int, string)'"),
            ("variables.absent", "undefined field 'absent'"),
            ("authorizer.requestResource.check('get').allowed()", "unexpected failed resolution of"),
            ("object.", "Syntax error"),
        ] {
            let got = check.check(wrong).expect_err(wrong);
            assert!(got.contains(why), "{wrong}: {got}");
        }
        let without = TypeCheck::new(KnownType::Of("Cake", &schema), KnownType::Absent);
        let got = without.check("params.anything").expect_err("there are no parameters");
        assert!(got.contains("undeclared reference to 'params'"), "{got}");
        assert_eq!(TypeCheck::new(KnownType::Any, KnownType::Absent).check("object.anything.goes"), Ok(()));
    }

    #[test]
    fn variables_have_the_types_of_their_expressions() {
        let schema = cake();
        let mut check = TypeCheck::new(KnownType::Of("Cake", &schema), KnownType::Absent);
        check.declare("slices", "object.spec.slices");
        check.declare("names", "object.spec.eaters.map(eater, eater.name)");
        check.declare("spec", "object.spec");
        check.declare("wrong", "object.nothing");
        check.declare("double", "variables.slices * 2");
        for fine in ["variables.double < 10", "variables.names[0] == 'me'", "variables.spec.any", "variables.wrong > 3"]
        {
            assert_eq!(check.check(fine), Ok(()), "{fine}");
        }
        let got = check.check("variables.double == 'two'").expect_err("a number is no text");
        assert!(got.contains("'(int, string)'"), "{got}");
        let got = check.check("variables.names[0] == 1").expect_err("a text is no number");
        assert!(got.contains("'(string, int)'"), "{got}");
    }
}
