//! Endpoints: `ValidateEndpoints` of `pkg/apis/core/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain, qualified_name};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, PROTOCOLS, one_of, problems};
use crate::kinds::shared::endpoint_address::endpoint_ip;
use crate::kinds::shared::json::{default_zero_to, each, each_mut, is_empty, items, number, same, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, TableRow, cell};

/// The rules of Endpoints.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .defaulted(|object| {
        each_mut(object, "subsets", |subset| {
            each_mut(subset, "ports", |port| default_zero_to(port, "protocol", "TCP"));
        });
    })
    .validated(|new, old, errors| {
        // What an older version took is taken again.
        if old.is_none_or(|old| !same(&old["subsets"], &new["subsets"])) {
            each(&new["subsets"], &Path::new("subsets"), |subset, path| subset_of(subset, path, errors));
        }
    })
    .with_strategy(Strategy {
        create_on_update: true,
        warning: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ..Strategy::DEFAULT
    })
    .etcd_prefix("services/endpoints")
    .printed(&[Cell::Name, Cell::Made(endpoints), Cell::Age]);

/// The most addresses that a cell shows.
const SHOWN_MAX: usize = 3;

fn subset_of(subset: &Value, path: &Path, errors: &mut Errors) {
    if is_empty(&subset["addresses"]) && is_empty(&subset["notReadyAddresses"]) {
        errors.push(FieldError::required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
    for list in ["addresses", "notReadyAddresses"] {
        each(&subset[list], &path.child(list), |it, path| address(it, path, errors));
    }
    let needs_name = items(&subset["ports"]).len() > 1;
    each(&subset["ports"], &path.child("ports"), |it, path| port(it, needs_name, path, errors));
}

fn address(address: &Value, path: &Path, errors: &mut Errors) {
    let ip = text(&address["ip"]);
    let hostname = text(&address["hostname"]);
    check::legacy_ip(ip, &[], &path.child("ip"), errors);
    if !hostname.is_empty() {
        problems(hostname, dns1123_label(hostname), &path.child("hostname"), errors);
    }
    if let Some(node) = address["nodeName"].as_str() {
        problems(node, dns1123_subdomain(node), &path.child("nodeName"), errors);
    }
    endpoint_ip(ip, &path.child("ip"), errors);
}

fn port(port: &Value, needs_name: bool, path: &Path, errors: &mut Errors) {
    let name = text(&port["name"]);
    if needs_name && name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else if !name.is_empty() {
        problems(name, dns1123_label(name), &path.child("name"), errors);
    }
    check::port(number(&port["port"]), &path.child("port"), errors);
    one_of(&port["protocol"], PROTOCOLS, &path.child("protocol"), errors);
    if let Some(protocol) = port["appProtocol"].as_str() {
        problems(protocol, qualified_name(protocol), &path.child("appProtocol"), errors);
    }
}

fn endpoints(row: &TableRow<'_>) -> String {
    let subsets = row.list_at("/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let elements =
        |subset: &'_ Value, field: &str| subset.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = elements(subset, "addresses");
        let ports = elements(subset, "ports");
        let ips = || addresses.iter().map(|address| cell::text(address, "ip"));
        if ports.is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in ports.iter().map(|port| port.get("port").and_then(Value::as_i64).unwrap_or_default()) {
            all.extend(
                ips().map(|ip| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }),
            );
        }
    }
    cell::first_of(&all, SHOWN_MAX, ",")
}
