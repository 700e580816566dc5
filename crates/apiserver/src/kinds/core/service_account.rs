//! ServiceAccounts.

mod token;

use serde_json::{Value, json};

use crate::kinds::shared::json::{copy, is_empty, items, set};
use crate::kinds::{Handler, NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The rules of ServiceAccounts.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .prepared(|account, _| only_names_of_secrets(account))
    .with_strategy(Strategy::RETURNS_DELETED)
    .with_subresources(&[("token", Handler::Create(token::create))])
    .printed(&[Cell::Name, Cell::Age]);

/// A service account refers to secrets of its namespace, by name alone.
fn only_names_of_secrets(account: &mut Value) {
    if is_empty(&account["secrets"]) {
        return;
    }
    let only_name = |secret: &Value| {
        let mut only = json!({});
        copy(&mut only, secret, "name");
        only
    };
    let secrets: Vec<_> = items(&account["secrets"]).iter().map(only_name).collect();
    set(account, "secrets", secrets);
}
