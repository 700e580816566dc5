//! Copies: slices of Endpoints that users write, and roles that are sums of others.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{AGGREGATION, Findings, MIRRORING, Rest};

const ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const MIRROR: &str = "endpointslicemirroring-controller.k8s.io";

/// "the cluster's control plane mirrors most Endpoints resources to corresponding EndpointSlices." (website: EndpointSlices,
/// EndpointSlice mirroring)
///
/// At rest: of a Service without selector, the slices that mirror its Endpoints have their addresses.
pub(super) fn endpoints_are_mirrored(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(MIRRORING) {
        return;
    }
    for object in rest.world.all("services").filter(|object| !object.is_terminating()) {
        let Some(service) = object.service().filter(|service| service.selector.is_empty() && !service.external) else {
            continue;
        };
        let written = rest.world.get("endpoints", &object.key).filter(|written| !written.is_terminating());
        // The API server writes both for its own Service, and says so.
        let written = written.filter(|written| written.labels.get(SKIP).is_none_or(|skip| **skip != *"true"));
        let written = written.and_then(|written| written.endpoints()).filter(|written| !written.is_lock);
        let want: BTreeSet<_> = written.into_iter().flat_map(|written| &written.addresses).map(|(ip, ..)| ip).collect();
        let slices = rest.world.content(&object.key.namespace).filter_map(|slice| slice.slice());
        let mine = slices.filter(|slice| slice.managed_by == MIRROR && slice.service == object.key.name);
        let have: BTreeSet<_> =
            mine.flat_map(|slice| &slice.endpoints).flat_map(|endpoint| &endpoint.addresses).collect();
        found.expect(have == want, || {
            format!("{object} has Endpoints {want:?}, mirrored are {have:?}; families {:?}", service.families)
        });
    }
}

/// "ClusterRoleSelectors holds a list of selectors which will be used to find ClusterRoles and create the rules."
/// (AggregationRule, clusterRoleSelectors)
///
/// At rest: a role with selectors has the rules of the roles that they select.
pub(super) fn roles_are_the_sums_of_their_parts(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(AGGREGATION) {
        return;
    }
    let raw = |key| rest.world.raw(ROLES, key).map(|raw| &**raw);
    let rules = |role: &Value| -> Vec<String> {
        role["rules"].as_array().into_iter().flatten().map(ToString::to_string).collect()
    };
    for object in rest.world.all(ROLES).filter(|object| !object.is_terminating()) {
        let Some(role) = raw(&object.key) else { continue };
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
        let Some(selectors) = selectors else { continue };
        let is_selected = |labels: &steersman_base::StringMap, selector: &Value| {
            let wanted = selector["matchLabels"].as_object().into_iter().flatten();
            wanted.into_iter().all(|(key, value)| labels.get(key).map(|held| &**held) == value.as_str())
        };
        let mut want = Vec::new();
        for selector in selectors {
            for part in
                rest.world.all(ROLES).filter(|part| part.key != object.key && is_selected(&part.labels, selector))
            {
                for rule in raw(&part.key).map(rules).unwrap_or_default() {
                    if !want.contains(&rule) {
                        want.push(rule);
                    }
                }
            }
        }
        let have = rules(role);
        found.expect(have == want, || format!("{object} has the rules {have:?}, its parts {want:?}"));
    }
}
