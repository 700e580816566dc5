//! Statuses that are written alone, of kinds that check little about them: the `…StatusUpdate` checks of
//! `pkg/apis/*/validation`, and what strategies keep of the old object.

use serde_json::Value;
use steersman_base::validation::dns1123_subdomain;

use super::check::{self, Errors, one_of_if_set, problems};
use super::json::{copy, default_zero_to, each, entries, is_empty, is_set, items, object_mut, text, with};
use super::pod::resources::amount_of;
use super::{NameRule, batch, certificates, core, meta, pod, workload};
use crate::field::{FieldError, Path};

/// What a write of the status does to the object, besides what it does to every kind's.
pub(super) fn prepare(group: &str, kind: &str, new: &mut Value, old: &Value, now: &str) {
    match (group, kind) {
        ("apps", "DaemonSet") => workload::keep_template_generation(new, old),
        ("batch", "Job") => {
            let labels = old["spec"]["template"]["metadata"]["labels"].clone();
            with(new, "metadata", |metadata| default_zero_to(metadata, "labels", labels));
        }
        ("", "PersistentVolume") => {
            const TIME: &str = "lastPhaseTransitionTime";
            let before = &old["status"];
            let Some(status) = object_mut(new, "status") else { return };
            let kept = is_empty(&status[TIME]) || status[TIME] == before[TIME];
            if status["phase"] == before["phase"] && is_empty(&status[TIME]) {
                copy(status, before, TIME);
            } else if status["phase"] != before["phase"] && kept {
                super::json::set(status, TIME, now);
            }
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::prepare_status(new, old, now),
        _ => {}
    }
}

/// All that is wrong with a changed status.
pub(super) fn validate(group: &str, kind: &str, new: &Value, old: &Value, errors: &mut Errors) {
    if (group, kind) == ("certificates.k8s.io", "CertificateSigningRequest") {
        certificates::validate_status(new, old, errors);
        return;
    }
    meta::validate_meta(new, Some(old), NameRule::default(), errors);
    let (status, path) = (&new["status"], Path::new("status"));
    match (group, kind) {
        ("", "Pod") => pod::update::validate_pod_status(new, old, errors),
        ("apps", _) | ("", "ReplicationController") => workload::validate_status(kind, new, old, errors),
        ("batch", _) => batch::validate_status(kind, new, old, errors),
        ("", "Node") => core::validate_node_status(new, errors),
        ("", "Service") => service(new, old, &path.child("loadBalancer").child("ingress"), errors),
        ("networking.k8s.io", "Ingress") => {
            balancer(status, &old["status"], &path.child("loadBalancer").child("ingress"), errors);
        }
        ("", "PersistentVolumeClaim") => capacity(&status["capacity"], &path.child("capacity"), errors),
        ("", "ResourceQuota") => {
            for list in ["hard", "used"] {
                for (name, amount) in entries(&status[list]) {
                    amount_of(name, amount, &path.child(list).key(name), errors);
                }
            }
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            counts(status, &["currentReplicas", "desiredReplicas"], &path, errors);
        }
        ("policy", "PodDisruptionBudget") => {
            let fields = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
            counts(status, &fields, &path, errors);
        }
        _ => {}
    }
}

fn counts(status: &Value, fields: &[&str], path: &Path, errors: &mut Errors) {
    for field in fields {
        check::non_negative(&status[*field], &path.child(field), errors);
    }
}

fn capacity(amounts: &Value, path: &Path, errors: &mut Errors) {
    for (name, amount) in entries(amounts) {
        if let Some(quantity) = check::quantity(amount).filter(|quantity| quantity.value() < 0) {
            let detail = "must be a valid resource quantity";
            errors.push(FieldError::invalid(&path.key(name), quantity.value(), detail));
        }
    }
}

fn service(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let ingress = &new["status"]["loadBalancer"]["ingress"];
    if text(&new["spec"]["type"]) != "LoadBalancer" && !is_empty(ingress) {
        errors.push(FieldError::forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    balancer(&new["status"], &old["status"], path, errors);
    each(ingress, path, |it, path| {
        let (mode, at) = (&it["ipMode"], path.child("ipMode"));
        match (is_set(mode), is_empty(&it["ip"])) {
            (false, false) => errors.push(FieldError::required(&at, "must be specified when `ip` is set")),
            (true, true) => errors.push(FieldError::forbidden(&at, "may not be specified when `ip` is not set")),
            _ => one_of_if_set(mode, &["Proxy", "VIP"], &at, errors),
        }
    });
}

fn balancer(status: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let known: Vec<_> = items(&old["loadBalancer"]["ingress"]).iter().map(|it| text(&it["ip"])).collect();
    each(&status["loadBalancer"]["ingress"], path, |it, path| {
        let (ip, name) = (text(&it["ip"]), text(&it["hostname"]));
        if !ip.is_empty() {
            check::legacy_ip(ip, &known, &path.child("ip"), errors);
        }
        if !name.is_empty() {
            problems(name, dns1123_subdomain(name), &path.child("hostname"), errors);
            if check::ip(name).is_some() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(&path.child("hostname"), name, detail));
            }
        }
    });
}
