//! NetworkPolicies: `pkg/apis/networking/v1/defaults.go` and `pkg/apis/networking/validation/validation.go`.

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, one_of_if_set, problems};
use crate::kinds::shared::json::{default_to, each, each_mut, is_empty, is_set, items, number, set, text, with};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::{Cell, labels};

/// The rules of NetworkPolicies.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .defaulted(|policy| {
        with(policy, "spec", |spec| {
            for list in ["ingress", "egress"] {
                each_mut(spec, list, |rule| each_mut(rule, "ports", |port| default_to(port, "protocol", "TCP")));
            }
            if is_empty(&spec["policyTypes"]) {
                let both = !is_empty(&spec["egress"]);
                set(spec, "policyTypes", if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
            }
        });
    })
    .validated(|new, _, errors| spec(&new["spec"], &Path::new("spec"), errors))
    .with_strategy(Strategy::GENERATION)
    .printed(&[Cell::Name, Cell::Made(|row| labels::selector(row.at("/spec/podSelector"))), Cell::Age]);

fn spec(spec: &Value, path: &Path, errors: &mut Errors) {
    check::label_selector(&spec["podSelector"], &path.child("podSelector"), errors);
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        each(&spec[list], &path.child(list), |rule, path| {
            each(&rule["ports"], &path.child("ports"), |it, path| port(it, path, errors));
            each(&rule[peers], &path.child(peers), |it, path| peer(it, path, errors));
        });
    }
    let at = path.child("policyTypes");
    if items(&spec["policyTypes"]).len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&at, spec["policyTypes"].clone(), detail));
        return;
    }
    each(&spec["policyTypes"], &at, |kind, path| one_of_if_set(kind, &["Ingress", "Egress"], path, errors));
}

fn port(port: &Value, path: &Path, errors: &mut Errors) {
    one_of_if_set(&port["protocol"], &["TCP", "UDP", "SCTP"], &path.child("protocol"), errors);
    let end = port["endPort"].as_i64();
    let at = path.child("endPort");
    match (&port["port"], end) {
        (Value::String(name), end) => {
            if let Some(end) = end {
                errors.push(FieldError::invalid(&at, end, "may not be specified when `port` is non-numeric"));
            }
            problems(name, check::port_name(name), &path.child("port"), errors);
        }
        (Value::Null, Some(end)) => {
            errors.push(FieldError::invalid(&at, end, "may not be specified when `port` is not specified"));
        }
        (Value::Null, None) => {}
        (start, end) => {
            check::port(number(start), &path.child("port"), errors);
            if let Some(end) = end {
                if end < number(start) {
                    errors.push(FieldError::invalid(&at, end, "must be greater than or equal to `port`"));
                }
                check::port(end, &at, errors);
            }
        }
    }
}

fn peer(peer: &Value, path: &Path, errors: &mut Errors) {
    let mut count = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        if is_set(&peer[selector]) {
            count += 1;
            check::label_selector(&peer[selector], &path.child(selector), errors);
        }
    }
    if is_set(&peer["ipBlock"]) {
        ip_block(&peer["ipBlock"], &path.child("ipBlock"), errors);
        if count > 0 {
            errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
        }
    } else if count == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    }
}

fn ip_block(block: &Value, path: &Path, errors: &mut Errors) {
    let cidr = text(&block["cidr"]);
    if cidr.is_empty() {
        errors.push(FieldError::required(&path.child("cidr"), ""));
        return;
    }
    check::cidr(cidr, &path.child("cidr"), errors);
    let Ok(network) = cidr.parse::<IpNet>() else { return };
    each(&block["except"], &path.child("except"), |except, path| {
        check::cidr(text(except), path, errors);
        let Ok(part) = text(except).parse::<IpNet>() else { return };
        if !network.contains(&part) || network.prefix_len() >= part.prefix_len() {
            errors.push(FieldError::invalid(path, except.clone(), "must be a strict subset of `cidr`"));
        }
    });
}
