//! Whether a Service can be: `ValidateServiceCreate` and `ValidateServiceUpdate` of
//! `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};
use steersman_base::validation::{dns1123_label, dns1123_subdomain, qualified_name};

use super::{is_external, is_headless, kind_of, needs_health_check};
use crate::field::{FieldError, Path};
use crate::kinds::shared::check::{self, Errors, PROTOCOLS, forbid_if, one_of, one_of_if_set, problems};
use crate::kinds::shared::endpoint_address::endpoint_ip;
use crate::kinds::shared::go;
use crate::kinds::shared::json::{each, is_empty, is_set, items, number, text};

const ONLY_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const KINDS: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(crate) fn service(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = Path::new("spec");
    if let Some(old) = old {
        update(new, old, &path, errors);
    }
    let spec = &new["spec"];
    if items(&spec["ports"]).is_empty() && !is_headless(new) && kind_of(new) != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    by_kind(new, &path, errors);
    ports(spec, &path.child("ports"), errors);
    check::labels(&spec["selector"], &path.child("selector"), errors);
    affinity(spec, &path, errors);
    cluster_ips(new, old, &path, errors);
    let known: Vec<_> =
        old.map(|old| items(&old["spec"]["externalIPs"]).iter().map(text).collect()).unwrap_or_default();
    each(&spec["externalIPs"], &path.child("externalIPs"), |ip, path| {
        let count = errors.len();
        check::legacy_ip(text(ip), &known, path, errors);
        if errors.len() == count {
            endpoint_ip(text(ip), path, errors);
        }
    });
    one_of(&spec["type"], KINDS, &path.child("type"), errors);
    unique_ports(new, &path.child("ports"), errors);
    balancer(new, &path, errors);
    traffic(new, &path, errors);
}

fn by_kind(service: &Value, path: &Path, errors: &mut Errors) {
    let spec = &service["spec"];
    match kind_of(service) {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(service) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), "None", detail));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let set = !is_empty(&spec[field]);
                forbid_if(set, "may not be set for ExternalName services", &path.child(field), errors);
            }
            let name = text(&spec["externalName"]);
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("externalName"), ""));
            } else {
                problems(name, dns1123_subdomain(name), &path.child("externalName"), errors);
            }
        }
        _ => {}
    }
}

fn ports(spec: &Value, path: &Path, errors: &mut Errors) {
    let needs_name = items(&spec["ports"]).len() > 1;
    let mut names = Vec::new();
    each(&spec["ports"], path, |port, path| {
        let name = text(&port["name"]);
        let at = path.child("name");
        if needs_name && name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if !name.is_empty() {
            problems(name, dns1123_label(name), &at, errors);
            if names.contains(&name) {
                errors.push(FieldError::duplicate(&at, name));
            }
            names.push(name);
        }
        check::port(number(&port["port"]), &path.child("port"), errors);
        one_of(&port["protocol"], PROTOCOLS, &path.child("protocol"), errors);
        check::port_or_name(&port["targetPort"], &path.child("targetPort"), errors);
        if let Some(protocol) = port["appProtocol"].as_str() {
            problems(protocol, qualified_name(protocol), &path.child("appProtocol"), errors);
        }
    });
}

fn affinity(spec: &Value, path: &Path, errors: &mut Errors) {
    const SECONDS_MAX: i64 = 86_400;
    const WHEN: &str = "when session affinity type is ClientIP";
    let config = &spec["sessionAffinityConfig"];
    let at = path.child("sessionAffinityConfig");
    one_of(&spec["sessionAffinity"], &["ClientIP", "None"], &path.child("sessionAffinity"), errors);
    match text(&spec["sessionAffinity"]) {
        "ClientIP" if !is_set(config) => errors.push(FieldError::required(&at, WHEN)),
        "ClientIP" if !is_set(&config["clientIP"]) => errors.push(FieldError::required(&at.child("clientIP"), WHEN)),
        "ClientIP" => {
            let at = at.child("clientIP").child("timeoutSeconds");
            match config["clientIP"]["timeoutSeconds"].as_i64() {
                None => errors.push(FieldError::required(&at, WHEN)),
                Some(seconds) if seconds <= 0 || seconds > SECONDS_MAX => {
                    let detail = format!("must be greater than 0 and less than {SECONDS_MAX}");
                    errors.push(FieldError::invalid(&at, seconds, detail));
                }
                Some(_) => {}
            }
        }
        "None" => forbid_if(is_set(config), "must not be set when session affinity is None", &at, errors),
        _ => {}
    }
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`: `ValidateServiceClusterIPsRelatedFields`.
pub(crate) fn cluster_ips(service: &Value, old: Option<&Value>, path: &Path, errors: &mut Errors) {
    if kind_of(service) == "ExternalName" {
        return;
    }
    let spec = &service["spec"];
    let ip = text(&spec["clusterIP"]);
    let ips = items(&spec["clusterIPs"]);
    let at = path.child("clusterIPs");
    let shown = || spec["clusterIPs"].clone();
    if ip.is_empty() && !ips.is_empty() {
        errors.push(FieldError::invalid(&at, shown(), "must be empty when `clusterIP` is not specified"));
    } else if !ip.is_empty() && ips.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if !ip.is_empty() && text(&ips[0]) != ip {
        errors.push(FieldError::invalid(&at, shown(), "first value must match `clusterIP`"));
    }
    families(spec, path, errors);
    let known: Vec<_> = old.map(|old| items(&old["spec"]["clusterIPs"]).iter().map(text).collect()).unwrap_or_default();
    let count = errors.len();
    for (index, ip) in ips.iter().map(text).enumerate() {
        if index > 0 || ip != "None" {
            check::legacy_ip(ip, &known, &at.index(index), errors);
        } else if ips.len() > 1 {
            errors.push(FieldError::invalid(&at, shown(), "'None' must be the first and only value"));
        }
    }
    let good = errors.len() == count;
    if ips.len() > 2 {
        errors.push(FieldError::invalid(&at, shown(), "may only hold up to 2 values"));
    }
    if !good {
        return;
    }
    let is_v6 = |ip: &Value| text(ip).contains(':');
    if ips.len() > 1 && is_v6(&ips[0]) == is_v6(&ips[1]) {
        errors.push(FieldError::invalid(&at, shown(), "may specify no more than one IP for each IP family"));
    }
    if !is_headless(service) {
        for (index, (ip, family)) in ips.iter().zip(items(&spec["ipFamilies"])).enumerate() {
            let want = match text(family) {
                "IPv4" if is_v6(ip) => "IPv4",
                "IPv6" if !is_v6(ip) => "IPv6",
                _ => continue,
            };
            let detail = format!("expected an {want} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(&at.index(index), ip.clone(), detail));
        }
    }
}

fn families(spec: &Value, path: &Path, errors: &mut Errors) {
    let mut seen = Vec::new();
    each(&spec["ipFamilies"], &path.child("ipFamilies"), |family, path| {
        let family = text(family);
        if !matches!(family, "IPv4" | "IPv6") {
            errors.push(FieldError::not_supported(path, family, &["IPv4", "IPv6"]));
        }
        if seen.contains(&family) {
            errors.push(FieldError::duplicate(path, family));
        }
        seen.push(family);
    });
    one_of_if_set(
        &spec["ipFamilyPolicy"],
        &["PreferDualStack", "RequireDualStack", "SingleStack"],
        &path.child("ipFamilyPolicy"),
        errors,
    );
}

fn unique_ports(service: &Value, path: &Path, errors: &mut Errors) {
    let list = &service["spec"]["ports"];
    if kind_of(service) == "ClusterIP" {
        each(list, path, |port, path| {
            let set = number(&port["nodePort"]) != 0;
            forbid_if(set, "may not be used when `type` is 'ClusterIP'", &path.child("nodePort"), errors);
        });
    }
    let key = |port: &Value, field: &str| (text(&port["protocol"]).to_owned(), number(&port[field]));
    let seen_before = |field: &str, index: usize| {
        let port = key(&items(list)[index], field);
        items(list)[..index].iter().any(|other| key(other, field) == port)
    };
    for (index, port) in items(list).iter().enumerate() {
        if number(&port["nodePort"]) != 0 && seen_before("nodePort", index) {
            errors.push(FieldError::duplicate(&path.index(index).child("nodePort"), port["nodePort"].clone()));
        }
    }
    for (index, port) in items(list).iter().enumerate() {
        if seen_before("port", index) {
            let key = json!({"protocol": port["protocol"], "port": port["port"]});
            errors.push(FieldError::duplicate(&path.index(index), go::show("ServicePort", &key)));
        }
    }
}

fn balancer(service: &Value, path: &Path, errors: &mut Errors) {
    const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let spec = &service["spec"];
    let is_balancer = kind_of(service) == "LoadBalancer";
    if !is_empty(&spec["loadBalancerSourceRanges"]) {
        let at = path.child("LoadBalancerSourceRanges");
        forbid_if(!is_balancer, ONLY_BALANCERS, &at, errors);
        each(&spec["loadBalancerSourceRanges"], &at, |range, path| check::cidr(text(range).trim(), path, errors));
    } else if let Some(ranges) = service["metadata"]["annotations"][RANGES].as_str() {
        let at = Path::new("metadata").child("annotations").key(RANGES);
        forbid_if(!is_balancer, ONLY_BALANCERS, &at, errors);
        for range in ranges.split(',').map(str::trim).filter(|_| !ranges.trim().is_empty()) {
            check::cidr(range, &at, errors);
        }
    }
    let at = path.child("allocateLoadBalancerNodePorts");
    forbid_if(is_set(&spec["allocateLoadBalancerNodePorts"]) && !is_balancer, ONLY_BALANCERS, &at, errors);
    if is_balancer && !is_set(&spec["allocateLoadBalancerNodePorts"]) {
        errors.push(FieldError::required(&Path::new("allocateLoadBalancerNodePorts"), ""));
    }
    balancer_class(service, path, errors);
}

fn balancer_class(service: &Value, path: &Path, errors: &mut Errors) {
    let at = path.child("loadBalancerClass");
    if let Some(class) = service["spec"]["loadBalancerClass"].as_str() {
        if kind_of(service) == "LoadBalancer" {
            problems(class, qualified_name(class), &at, errors);
        } else {
            errors.push(FieldError::forbidden(&at, ONLY_BALANCERS));
        }
    }
}

fn traffic(service: &Value, path: &Path, errors: &mut Errors) {
    let spec = &service["spec"];
    let policy = text(&spec["externalTrafficPolicy"]);
    let at = path.child("externalTrafficPolicy");
    if is_external(service) {
        one_of(&spec["externalTrafficPolicy"], &["Cluster", "Local"], &at, errors);
    } else if !policy.is_empty() {
        errors.push(FieldError::invalid(&at, policy, "may only be set for externally-accessible services"));
    }
    let port = number(&spec["healthCheckNodePort"]);
    let at = path.child("healthCheckNodePort");
    if !needs_health_check(service) {
        if port != 0 {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&at, port, detail));
        }
    } else if port == 0 {
        errors.push(FieldError::required(&at, ""));
    } else {
        check::port(port, &at, errors);
    }
    let at = path.child("internalTrafficPolicy");
    one_of_if_set(&spec["internalTrafficPolicy"], &["Cluster", "Local"], &at, errors);
    let needs_policy = matches!(kind_of(service), "NodePort" | "LoadBalancer" | "ClusterIP");
    if needs_policy && !is_set(&spec["internalTrafficPolicy"]) {
        errors.push(FieldError::required(&at, ""));
    }
    one_of_if_set(
        &spec["trafficDistribution"],
        &["PreferClose", "PreferSameZone", "PreferSameNode"],
        &path.child("trafficDistribution"),
        errors,
    );
}

fn update(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let spec = &new["spec"];
    let before = &old["spec"];
    if kind_of(new) != "ExternalName" && kind_of(old) != "ExternalName" {
        if !(is_headless(new) && is_headless(old)) {
            changed_ips(spec, before, path, errors);
        }
        if !is_headless(new) && !is_headless(old) {
            changed_families(spec, before, path, errors);
        }
    }
    let at = path.child("loadBalancerClass");
    if kind_of(new) == "LoadBalancer"
        && kind_of(old) == "LoadBalancer"
        && spec["loadBalancerClass"] != before["loadBalancerClass"]
    {
        errors.push(FieldError::invalid(&at, spec["loadBalancerClass"].clone(), "may not change once set"));
    }
    balancer_class(new, path, errors);
    if needs_health_check(new) && needs_health_check(old) {
        let changed = number(&spec["healthCheckNodePort"]) != number(&before["healthCheckNodePort"]);
        forbid_if(changed, check::IMMUTABLE, &path.child("healthCheckNodePort"), errors);
    }
}

fn changed_ips(spec: &Value, before: &Value, path: &Path, errors: &mut Errors) {
    const STAYS: &str = "may not change once set";
    let ips = items(&spec["clusterIPs"]);
    let were = items(&before["clusterIPs"]);
    let at = path.child("clusterIPs");
    let shown = || spec["clusterIPs"].clone();
    if ips.len() == were.len() {
        for (index, _) in ips.iter().zip(were).enumerate().filter(|(_, (ip, was))| ip != was) {
            errors.push(FieldError::invalid(&at.index(index), shown(), STAYS));
        }
        return;
    }
    if ips.is_empty() {
        errors.push(FieldError::invalid(&at.index(0), shown(), "primary clusterIP can not be unset"));
    } else if were.first().is_some_and(|was| *was != ips[0]) {
        errors.push(FieldError::invalid(&at.index(0), shown(), STAYS));
    }
    if ips.len() == 1 && were.len() == 2 && text(&spec["ipFamilyPolicy"]) != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), spec["ipFamilyPolicy"].clone(), detail));
    }
}

fn changed_families(spec: &Value, before: &Value, path: &Path, errors: &mut Errors) {
    const STAYS: &str = "may not change once set";
    let families = items(&spec["ipFamilies"]);
    let were = items(&before["ipFamilies"]);
    let at = path.child("ipFamilies").index(0);
    if families.len() == were.len() {
        for _ in families.iter().zip(were).filter(|(family, was)| family != was) {
            errors.push(FieldError::invalid(&at, spec["ipFamilies"].clone(), STAYS));
        }
    } else if families.first().zip(were.first()).is_some_and(|(family, was)| family != was) {
        errors.push(FieldError::invalid(&at, spec["clusterIPs"].clone(), STAYS));
    }
}
