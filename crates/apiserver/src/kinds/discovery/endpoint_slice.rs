//! EndpointSlices: `pkg/apis/discovery/v1/defaults.go` and `pkg/apis/discovery/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1123_label, dns1123_subdomain, label_value, qualified_name};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, PROTOCOLS, one_of, problems};
use crate::kinds::shared::endpoint_address::endpoint_ip;
use crate::kinds::shared::json::{default_to, each, each_mut, entries, items, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Generation, Strategy};
use crate::table::{Cell, TableRow, cell};

/// The rules of EndpointSlices.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|slice| {
        each_mut(slice, "ports", |port| {
            default_to(port, "name", "");
            default_to(port, "protocol", "TCP");
        });
    })
    .validated(|new, old, errors| {
        let kind = text(&new["addressType"]);
        endpoints(&new["endpoints"], kind, &Path::new("endpoints"), errors);
        ports(&new["ports"], &Path::new("ports"), errors);
        one_of(&new["addressType"], &["FQDN", "IPv4", "IPv6"], &Path::new("addressType"), errors);
        if let Some(old) = old {
            check::immutable_unshown(&new["addressType"], &old["addressType"], &Path::new("addressType"), errors);
        }
    })
    .warned(|new, old, warnings| {
        if old.is_none() && text(&new["addressType"]) == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
    })
    .with_strategy(Strategy { generation: Generation::ContentOrLabels, ..Strategy::DEFAULT })
    .printed(&[
        Cell::Name,
        Cell::Text("/addressType"),
        Cell::Made(slice_ports),
        Cell::Made(slice_addresses),
        Cell::Age,
    ]);

/// The most addresses or ports that a cell shows.
const SHOWN_MAX: usize = 3;

const ENDPOINTS_MAX: usize = 1000;

const ADDRESSES_MAX: usize = 100;

const PORTS_MAX: usize = 20_000;

const HINTS_MAX: usize = 8;

const TOPOLOGY_MAX: usize = 16;

fn endpoints(endpoints: &Value, kind: &str, path: &Path, errors: &mut Errors) {
    let count = items(endpoints).len();
    if count > ENDPOINTS_MAX {
        errors.push(FieldError::too_many(path, count, ENDPOINTS_MAX));
        return;
    }
    each(endpoints, path, |endpoint, path| {
        let at = path.child("addresses");
        match items(&endpoint["addresses"]).len() {
            0 => errors.push(FieldError::required(&at, "")),
            count if count > ADDRESSES_MAX => errors.push(FieldError::too_many(&at, count, ADDRESSES_MAX)),
            _ => {}
        }
        each(&endpoint["addresses"], &at, |it, path| address(text(it), kind, &at, path, errors));
        if let Some(node) = endpoint["nodeName"].as_str() {
            problems(node, dns1123_subdomain(node), &path.child("nodeName"), errors);
        }
        let topology = path.child("deprecatedTopology");
        let count = entries(&endpoint["deprecatedTopology"]).len();
        if count > TOPOLOGY_MAX {
            errors.push(FieldError::too_many(&topology, count, TOPOLOGY_MAX));
        }
        check::labels(&endpoint["deprecatedTopology"], &topology, errors);
        if let Some(name) = endpoint["hostname"].as_str() {
            problems(name, dns1123_label(name), &path.child("hostname"), errors);
        }
        hints(&endpoint["hints"], &path.child("hints"), errors);
    });
}

fn address(address: &str, kind: &str, list: &Path, path: &Path, errors: &mut Errors) {
    let count = errors.len();
    let is_v6 = address.contains(':');
    match kind {
        "IPv4" => check::legacy_ip(address, &[], path, errors),
        "IPv6" => check::strict_ip(address, path, errors),
        "FQDN" => {
            let name = address.strip_suffix('.').unwrap_or(address);
            let wrong = dns1123_subdomain(name);
            if address.is_empty() {
                errors.push(FieldError::required(path, ""));
            } else if !wrong.is_empty() {
                problems(name, wrong, path, errors);
            } else if !name.contains('.') {
                let detail = "should be a domain with at least two segments separated by dots";
                errors.push(FieldError::invalid(path, name, detail));
            }
            return;
        }
        _ => return,
    }
    if errors.len() > count {
        return;
    }
    if is_v6 != (kind == "IPv6") {
        errors.push(FieldError::invalid(list, address, format!("must be an {kind} address")));
    }
    endpoint_ip(address, path, errors);
}

fn ports(ports: &Value, path: &Path, errors: &mut Errors) {
    let count = items(ports).len();
    if count > PORTS_MAX {
        errors.push(FieldError::too_many(path, count, PORTS_MAX));
        return;
    }
    for (index, port) in items(ports).iter().enumerate() {
        let path = path.index(index);
        let name = text(&port["name"]);
        if !name.is_empty() {
            problems(name, dns1123_label(name), &path.child("name"), errors);
        }
        if items(ports)[..index].iter().any(|other| text(&other["name"]) == name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        one_of(&port["protocol"], PROTOCOLS, &path.child("protocol"), errors);
        if let Some(protocol) = port["appProtocol"].as_str() {
            problems(protocol, qualified_name(protocol), &path.child("appProtocol"), errors);
        }
    }
}

fn hints(hints: &Value, path: &Path, errors: &mut Errors) {
    for (list, rule) in [("forZones", label_value as fn(&str) -> Vec<String>), ("forNodes", dns1123_subdomain)] {
        let at = path.child(list);
        let count = items(&hints[list]).len();
        if count > HINTS_MAX {
            errors.push(FieldError::too_many(&at, count, HINTS_MAX));
            return;
        }
        for (index, hint) in items(&hints[list]).iter().enumerate() {
            let name = text(&hint["name"]);
            let at = at.index(index).child("name");
            if items(&hints[list])[..index].iter().any(|other| text(&other["name"]) == name) {
                errors.push(FieldError::duplicate(&at, name));
            }
            problems(name, rule(name), &at, errors);
        }
    }
}

fn slice_ports(row: &TableRow<'_>) -> String {
    let ports: Vec<String> = row
        .list_at("/ports")
        .iter()
        .map(|port| match (port.get("port").and_then(Value::as_i64), port.get("name").and_then(Value::as_str)) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    or_unset(cell::first_of(&ports, SHOWN_MAX, ","))
}

fn slice_addresses(row: &TableRow<'_>) -> String {
    let addresses: Vec<String> = row
        .list_at("/endpoints")
        .iter()
        .filter_map(|endpoint| endpoint.get("addresses").and_then(Value::as_array))
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    or_unset(cell::first_of(&addresses, SHOWN_MAX, ","))
}

fn or_unset(text: String) -> String {
    if text.is_empty() { "<unset>".to_owned() } else { text }
}
