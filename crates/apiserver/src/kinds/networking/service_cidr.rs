//! ServiceCIDRs: `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::bootstrap;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::service::allocator::DEFAULT_RANGE;
use crate::kinds::shared::check::{IMMUTABLE, strict_cidr};
use crate::kinds::shared::json::{each, items, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::Registry;
use crate::registry::object_meta::meta_text;
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::Cell;

/// The rules of ServiceCIDRs.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, old, errors| {
        let path = Path::new("spec").child("cidrs");
        match old {
            None => cidrs(&new["spec"]["cidrs"], &path, errors),
            Some(old) => changed(&new["spec"]["cidrs"], &old["spec"]["cidrs"], &path, errors),
        }
    })
    .status_resets(&["metadata", "spec"])
    .after_write(|registry, stored| {
        if let Ok(range) = stored.parse() {
            update_allocator(registry, &range);
        }
    })
    .after_delete(|registry, range| {
        let name = meta_text(range, "name");
        registry.services.set_ranges(name, &[], false);
        if name == DEFAULT_RANGE {
            bootstrap::default_range(registry);
        }
    })
    .with_strategy(Strategy { status_keeps_metadata: USER_METADATA, ..Strategy::DEFAULT })
    .printed(&[Cell::Name, Cell::Joined("/spec/cidrs", ""), Cell::Age]);

/// Updates the ranges of the allocator of Services. A range without a condition is ready: no controller may run.
pub(crate) fn update_allocator(registry: &Registry, range: &Value) {
    let networks: Vec<_> = items(&range["spec"]["cidrs"]).iter().filter_map(|cidr| text(cidr).parse().ok()).collect();
    let mut conditions = items(&range["status"]["conditions"]).iter();
    let ready = conditions.find(|condition| text(&condition["type"]) == "Ready");
    let is_ready = ready.is_none_or(|ready| text(&ready["status"]) == "True");
    let is_terminating = !range["metadata"]["deletionTimestamp"].is_null();
    registry.services.set_ranges(meta_text(range, "name"), &networks, is_ready && !is_terminating);
}

fn cidrs(cidrs: &Value, path: &Path, errors: &mut Errors) {
    let list = items(cidrs);
    if list.is_empty() {
        errors.push(FieldError::required(path, "at least one CIDR required"));
        return;
    }
    if list.len() > 2 {
        let shown = serde_json::json!({"CIDRs": cidrs});
        errors.push(FieldError::invalid(path, shown, "may only hold up to 2 values"));
        return;
    }
    each(cidrs, path, |cidr, path| strict_cidr(text(cidr), path, errors));
    let families: Vec<_> = list.iter().filter_map(|cidr| text(cidr).parse::<ipnet::IpNet>().ok()).collect();
    if let [ipnet::IpNet::V4(_), ipnet::IpNet::V4(_)] | [ipnet::IpNet::V6(_), ipnet::IpNet::V6(_)] = families[..] {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(path, cidrs.clone(), detail));
    }
}

/// Checks an update: a second network may come.
fn changed(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let mut keep = |at: usize| {
        if items(new).get(at) != items(old).get(at) {
            errors.push(FieldError::invalid(&path.index(at), text(&new[at]), IMMUTABLE));
        }
    };
    match (items(old).len(), items(new).len()) {
        (before, now) if before == now => (0..now).for_each(keep),
        (1, 2) => {
            keep(0);
            cidrs(new, path, errors);
        }
        _ => errors.push(FieldError::invalid(path, items(new).to_vec(), IMMUTABLE)),
    }
}
