//! Services, their addresses and their node ports.

pub(crate) mod addresses;
pub(crate) mod allocator;
mod defaults;
mod prepare;
mod table;
mod validation;

use serde_json::Value;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::one_of_if_set;
use crate::kinds::shared::endpoint_address::load_balancer_status;
use crate::kinds::shared::json::{each, is_empty, is_set, items, text};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::admission::Admission;
use crate::registry::strategy::{SelectableField, Strategy};

pub(crate) use allocator::{AllocateError, Allocator, Reservation};

/// The rules of Services.
pub(crate) static RULES: Rules = Rules::named(NameRule::Label)
    .admitted(Admission { is_counted: Admission::COUNTED_ALWAYS, ..Admission::NONE })
    .defaulted(defaults::service)
    .prepared(prepare::service)
    .validated(validation::service)
    .warned(|new, _, warnings| {
        let is_used = !is_headless(new) && kind_of(new) != "ExternalName";
        if is_used && !is_empty(&new["spec"]["externalIPs"]) {
            let warning = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
            warnings.push(warning.to_owned());
        }
        if text(&new["spec"]["trafficDistribution"]) == "PreferClose" {
            let warning = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
            warnings.push(warning.to_owned());
        }
    })
    .status_validated(status)
    .allocating(|registry, service, old| registry.services.allocate(service, old))
    .with_strategy(Strategy {
        create_on_update: true,
        selectable_fields: &[SelectableField::at("spec.clusterIP"), SelectableField::at("spec.type")],
        ..Strategy::RETURNS_DELETED
    })
    .after_delete(|registry, service| {
        registry.services.release(service);
        addresses::withdraw(registry, service);
    })
    .etcd_prefix("services/specs")
    .printed(table::CELLS);

/// Checks a written status: `ValidateServiceStatusUpdate` of `pkg/apis/core/validation/validation.go`.
fn status(new: &Value, old: &Value, errors: &mut Errors) {
    validate_meta_update(new, old, errors);
    let path = &Path::new("status").child("loadBalancer").child("ingress");
    let ingress = &new["status"]["loadBalancer"]["ingress"];
    if text(&new["spec"]["type"]) != "LoadBalancer" && !is_empty(ingress) {
        errors.push(FieldError::forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    load_balancer_status(&new["status"], &old["status"], path, errors);
    each(ingress, path, |it, path| {
        let mode = &it["ipMode"];
        let at = path.child("ipMode");
        match (is_set(mode), is_empty(&it["ip"])) {
            (false, false) => errors.push(FieldError::required(&at, "must be specified when `ip` is set")),
            (true, true) => errors.push(FieldError::forbidden(&at, "may not be specified when `ip` is not set")),
            _ => one_of_if_set(mode, &["Proxy", "VIP"], &at, errors),
        }
    });
}

fn kind_of(service: &Value) -> &str {
    text(&service["spec"]["type"])
}

fn is_headless(service: &Value) -> bool {
    text(&service["spec"]["clusterIPs"][0]) == "None" && items(&service["spec"]["clusterIPs"]).len() == 1
}

fn needs_cluster_ip(service: &Value) -> bool {
    kind_of(service) != "ExternalName"
}

fn needs_node_port(service: &Value) -> bool {
    matches!(kind_of(service), "NodePort" | "LoadBalancer")
}

fn needs_health_check(service: &Value) -> bool {
    kind_of(service) == "LoadBalancer" && text(&service["spec"]["externalTrafficPolicy"]) == "Local"
}

/// Whether it can be reached from outside the cluster.
fn is_external(service: &Value) -> bool {
    let spec = &service["spec"];
    needs_node_port(service) || (kind_of(service) == "ClusterIP" && !items(&spec["externalIPs"]).is_empty())
}
