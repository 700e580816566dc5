//! Lists, maps and messages that an expression makes.

use super::{Checker, Reference, infer};
use crate::ast::{Element, Entry, Field, Id};
use crate::decls;
use crate::types::Type;

impl Checker<'_> {
    /// The type of an optional item or entry: what the optional is of.
    fn unwrap_optional(&mut self, id: Id, of: Type) -> Type {
        if let Some(inner) = of.optional_of() {
            return inner.clone();
        }
        if !of.is_dyn() {
            self.mismatch(id, &Type::optional(of.clone()), &of);
        }
        of
    }

    fn join(&mut self, before: Option<Type>, next: Type) -> Type {
        match before {
            None => next,
            Some(before) if self.mapping.assign(&before, &next) => infer::most_general(before, next),
            // Lists of several types are refused afterwards, unless a function takes them.
            Some(_) => Type::Dyn,
        }
    }

    pub(super) fn check_list(&mut self, id: Id, elements: &mut [Element]) {
        let mut item = None;
        for element in elements {
            self.check(&mut element.expr);
            let mut of = self.get(element.expr.id);
            if element.optional {
                of = self.unwrap_optional(element.expr.id, of);
            }
            item = Some(self.join(item, of));
        }
        let item = item.unwrap_or_else(|| self.new_var());
        self.set(id, Type::list(item));
    }

    pub(super) fn check_map(&mut self, id: Id, entries: &mut [Entry]) {
        let mut keys = None;
        let mut values = None;
        for entry in entries {
            self.check(&mut entry.key);
            let key = self.get(entry.key.id);
            keys = Some(self.join(keys, key));
            self.check(&mut entry.value);
            let mut value = self.get(entry.value.id);
            if entry.optional {
                value = self.unwrap_optional(entry.value.id, value);
            }
            values = Some(self.join(values, value));
        }
        let keys = keys.unwrap_or_else(|| self.new_var());
        let values = values.unwrap_or_else(|| self.new_var());
        self.set(id, Type::map(keys, values));
    }

    pub(super) fn check_struct(&mut self, id: Id, name: &str, fields: &mut [Field]) {
        let bare = name.strip_prefix('.').unwrap_or(name);
        let structs = self.scope.structs.contains(bare).then(|| Type::Struct(bare.into()));
        let Some(found) = decls::type_named(bare).or(structs) else {
            return self.undeclared(id, name);
        };
        self.references.insert(id, Reference::Ident(bare.into()));
        let message_type = match found {
            Type::Struct(_) | Type::Duration | Type::Timestamp | Type::Null => found,
            other => {
                self.report(id, format!("'{}' is not a message type", other.name()));
                Type::Error
            }
        };
        self.set(id, message_type);
        for field in fields {
            self.check(&mut field.value);
            let declared = self.lookup_field(field.id, bare, &field.name);
            let mut value = self.get(field.value.id);
            if field.optional {
                value = self.unwrap_optional(field.value.id, value);
            }
            if !self.mapping.assign(&declared, &value) {
                let message =
                    format!("expected type of field '{}' is '{declared}' but provided type is '{value}'", field.name);
                self.report(field.id, message);
            }
        }
    }
}
