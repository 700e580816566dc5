//! Endpoints lead to the pods that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Uid};

use super::{Case, ENDPOINTS, Findings, Rest, SLICES, Verdict};
use crate::world::{Object, Phase, Pod, Service};

const SLICE_RESOURCE: &str = "endpointslices.discovery.k8s.io";
/// The manager label of the slices that are checked.
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// How many addresses an Endpoints object has at most: upstream's figure.
const ADDRESSES_MAX: usize = 1000;
/// How many ports a slice has at most.
const PORTS_MAX: usize = 20_000;

/// "By default, the control plane creates and manages EndpointSlices to have no more than 100 endpoints each."
/// (website: EndpointSlices) "When there are over 1000 backing endpoints for a Service, Kubernetes truncates the data
/// in the Endpoints object." (website: Service, Over-capacity endpoints)
///
/// Asked when one of the two controllers writes: within the limits, and no endpoint twice in one slice or subset.
/// Judged against the object alone.
pub(super) fn slices_are_within_their_limits(case: &Case<'_>) -> Verdict {
    if !case.by(&[SLICES, ENDPOINTS]) {
        return Verdict::NotMine;
    }
    let Some(after) = &case.step.after else { return Verdict::NotMine };
    if let Some(slice) = after.slice() {
        let mut seen = BTreeSet::new();
        let twice = slice.endpoints.iter().find(|endpoint| !seen.insert((&endpoint.addresses, &endpoint.pod)));
        if let Some(twice) = twice {
            return Verdict::Violated(format!("{after} has the endpoint {:?} twice", twice.addresses));
        }
        let max = case.options.endpoints_per_slice_max;
        let holds = slice.endpoints.len() <= max && slice.ports <= PORTS_MAX;
        return Verdict::at_store(holds, || {
            format!(
                "{after} has {} endpoints and {} ports, at most {max} endpoints are allowed",
                slice.endpoints.len(),
                slice.ports
            )
        });
    }
    let Some(endpoints) = after.endpoints() else { return Verdict::NotMine };
    if let Some(twice) = &endpoints.twice {
        return Verdict::Violated(format!("{after} has the address {twice} twice in one subset"));
    }
    let distinct: BTreeSet<_> = endpoints.addresses.iter().map(|(ip, _, pod)| (ip, pod)).collect();
    Verdict::at_store(distinct.len() <= ADDRESSES_MAX, || {
        format!("{after} has {} addresses, at most {ADDRESSES_MAX} are allowed", distinct.len())
    })
}

/// Returns the pods of a slice or an Endpoints object, and whether they are listed as ready.
fn targets(object: &Object) -> Vec<(&Uid, bool)> {
    let slice = object.slice().into_iter().flat_map(|slice| &slice.endpoints);
    let of_slice = slice.filter_map(|endpoint| Some((endpoint.pod.as_ref()?, endpoint.ready)));
    let endpoints = object.endpoints().into_iter().flat_map(|endpoints| &endpoints.addresses);
    let of_endpoints = endpoints.filter_map(|(_, ready, pod)| Some((pod.as_ref()?, *ready)));
    of_slice.chain(of_endpoints).collect()
}

/// "targetRef is a reference to a Kubernetes object that represents this endpoint." (Endpoint, targetRef)
///
/// Asked when one of the two controllers writes: every pod that is named existed at some time. Judged against the
/// store, over the whole run.
pub(super) fn endpoints_stand_for_pods_that_existed(case: &Case<'_>) -> Verdict {
    let Some(after) = case.step.after.as_ref().filter(|_| case.by(&[SLICES, ENDPOINTS])) else {
        return Verdict::NotMine;
    };
    let targets = targets(after);
    if targets.is_empty() {
        return Verdict::NotMine;
    }
    let unknown = targets.iter().find(|(uid, _)| !case.memory.pods.contains(uid));
    Verdict::at_store(unknown.is_none(), || {
        format!(
            "{after} leads to a pod with the uid {:?}, which never existed",
            unknown.map(|(uid, _)| uid.to_string())
        )
    })
}

/// "In general, an endpoint should be marked ready if it is serving and not terminating, though this can be overridden
/// in some cases, such as when the associated Service has set the publishNotReadyAddresses flag." (EndpointConditions,
/// ready)
///
/// Asked when one of the two controllers writes: each endpoint that becomes ready with the write is a ready pod that is
/// not terminating, unless the service publishes pods that are not ready. Judged against the store; staleness excuses
/// what was so at some time by what was shown.
pub(super) fn ready_endpoints_are_ready_pods(case: &Case<'_>) -> Verdict {
    let Some(after) = case.step.after.as_ref().filter(|_| case.by(&[SLICES, ENDPOINTS])) else {
        return Verdict::NotMine;
    };
    let name = after.slice().map_or(&after.key.name, |slice| &slice.service);
    let service = ObjectKey { namespace: after.key.namespace.clone(), name: name.clone() };
    let window = case.window();
    let publishes_all = |object: &Object| object.service().is_some_and(|service| service.publish_all);
    if window.of_key("services", &service).is_some_and(|versions| versions.ever(publishes_all)) {
        return Verdict::NotMine;
    }
    let before: BTreeSet<_> =
        case.step.before.iter().flat_map(|before| targets(before)).filter(|(_, ready)| *ready).collect();
    let mut verdict = Verdict::NotMine;
    for (uid, _) in targets(after).into_iter().filter(|target| target.1 && !before.contains(target)) {
        let is_ready =
            |pod: &Object| pod.uid == *uid && pod.pod().is_some_and(|pod| pod.ready) && !pod.is_terminating();
        let now = case.world.by_uid(uid);
        if now.is_some_and(|pod| is_ready(pod)) {
            if matches!(verdict, Verdict::NotMine) {
                verdict = Verdict::Holds;
            }
            continue;
        }
        // A deleted pod existed once: whether it was ready then cannot be found by its uid alone.
        let as_shown =
            now.is_none_or(|pod| window.of_key("pods", &pod.key).is_some_and(|versions| versions.ever(is_ready)));
        if !as_shown {
            let pod = now.map_or_else(|| uid.to_string(), ToString::to_string);
            return Verdict::Violated(format!("{after} begins to say that {pod} is ready, and it is not"));
        }
        verdict = Verdict::Stale;
    }
    verdict
}

/// What should be published of a service: per pod, its addresses and whether it is ready.
type Wanted<'a> = BTreeMap<&'a Uid, (Vec<IpAddr>, bool, &'a Arc<Object>)>;

/// The pods of a service that have an address and have not ended.
fn wanted<'a>(rest: &Rest<'a>, key: &ObjectKey, service: &Service) -> Wanted<'a> {
    let mut wanted = Wanted::new();
    for pod in rest.world.content(&key.namespace) {
        let Some(is) = pod.pod().filter(|is| is.phase != Phase::Ended) else { continue };
        let addresses: Vec<IpAddr> =
            is.ips.iter().filter_map(|ip| Some(ip.parse::<IpAddr>().ok()?.to_canonical())).collect();
        if service.selects(&pod.labels) && !addresses.is_empty() {
            let ready = service.publish_all || (is.ready && !pod.is_terminating());
            wanted.insert(&pod.uid, (addresses, ready, pod));
        }
    }
    wanted
}

/// The services whose endpoints the controllers keep.
fn services<'a>(rest: &Rest<'a>) -> impl Iterator<Item = (&'a Arc<Object>, &'a Service)> {
    let services = rest.world.all("services").filter(|service| !service.is_terminating());
    let services = services.filter_map(|object| Some((object, object.service()?)));
    services.filter(|(_, service)| service.has_endpoints())
}

fn has_node(rest: &Rest<'_>, pod: &Pod) -> bool {
    pod.node.is_empty() || rest.world.get("nodes", &ObjectKey::cluster(&pod.node)).is_some()
}

fn is_leaving(rest: &Rest<'_>, namespace: &Istr) -> bool {
    rest.world.get("namespaces", &ObjectKey::cluster(namespace)).is_none_or(|namespace| namespace.is_terminating())
}

/// "The control plane automatically creates EndpointSlices for any Kubernetes Service that has a selector specified.
/// These EndpointSlices include references to all the Pods that match the Service selector." (website: EndpointSlices)
///
/// At rest: each pod that has an address and has not ended is there once per family, as ready as it is, and nothing
/// else. A pod whose node is gone may be left out.
pub(super) fn slices_are_those_of_the_pods(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(SLICES) {
        return;
    }
    let mut slices: BTreeMap<(&Istr, &Istr), Vec<&Arc<Object>>> = BTreeMap::new();
    for object in rest.world.all(SLICE_RESOURCE).filter(|object| !object.is_terminating()) {
        if let Some(slice) = object.slice().filter(|slice| slice.managed_by == MANAGER) {
            slices.entry((&object.key.namespace, &slice.service)).or_default().push(object);
        }
    }
    for (object, service) in services(rest).filter(|(object, _)| !is_leaving(rest, &object.key.namespace)) {
        let wanted = wanted(rest, &object.key, service);
        let mine = slices.get(&(&object.key.namespace, &object.key.name));
        found.expect(mine.is_some(), || format!("{object} has no slice"));
        let mut told: BTreeSet<(&Uid, &Istr)> = BTreeSet::new();
        for slice in mine.into_iter().flatten() {
            for endpoint in slice.slice().into_iter().flat_map(|slice| &slice.endpoints) {
                let Some(uid) = &endpoint.pod else { continue };
                let Some((_, ready, pod)) = wanted.get(uid) else {
                    found.expect(false, || {
                        format!("{slice} of {object} leads to {:?}, which is not a pod of it", endpoint.addresses)
                    });
                    continue;
                };
                for address in &endpoint.addresses {
                    found.expect(told.insert((uid, address)), || format!("{pod} is twice in the slices of {object}"));
                }
                found.expect(endpoint.ready == *ready, || {
                    format!("{slice} of {object} says that {pod} is ready: {}; it is: {ready}", endpoint.ready)
                });
            }
        }
        for (uid, (addresses, _, pod)) in &wanted {
            if !pod.pod().is_some_and(|pod| service.publish_all || has_node(rest, pod)) {
                found.excuse();
                continue;
            }
            let has =
                |address: &IpAddr| told.iter().any(|(told, text)| told == uid && text.parse().ok() == Some(*address));
            let in_family = addresses.iter().filter(|address| is_in(&service.families, **address));
            let missing: Vec<_> = in_family.filter(|address| !has(address)).collect();
            found.expect(missing.is_empty(), || format!("{pod} with {missing:?} is in no slice of {object}"));
        }
    }
}

/// Whether the service has this family; one without families has those of its pods.
fn is_in(families: &[Istr], address: IpAddr) -> bool {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    families.is_empty() || families.iter().any(|held| held == family)
}

/// "Endpoints is a collection of endpoints that implement the actual service." (Endpoints)
///
/// At rest: the addresses are those of the pods that have not ended, as ready as they are. Services with more than
/// 1,000 pods are left out.
pub(super) fn endpoints_are_those_of_the_pods(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(ENDPOINTS) {
        return;
    }
    for (object, service) in services(rest).filter(|(object, _)| !is_leaving(rest, &object.key.namespace)) {
        let mut wanted = wanted(rest, &object.key, service);
        wanted.retain(|_, (_, _, pod)| service.publish_all || !pod.is_terminating());
        let Some(endpoints) = rest.world.get("endpoints", &object.key).and_then(|object| object.endpoints()) else {
            found.expect(false, || format!("{object} has no Endpoints"));
            continue;
        };
        // Without ports there is nothing to publish, unless the service is headless.
        if wanted.len() > ADDRESSES_MAX || !service.has_ports {
            found.excuse();
            continue;
        }
        let mut told: BTreeMap<&Uid, bool> = BTreeMap::new();
        for (ip, ready, uid) in &endpoints.addresses {
            let Some(uid) = uid.as_ref().filter(|uid| wanted.contains_key(uid)) else {
                found.expect(false, || {
                    format!("endpoints {} have the address {ip}, which is none of its pods", object.key)
                });
                continue;
            };
            told.insert(uid, *ready);
        }
        for (uid, (addresses, ready, pod)) in &wanted {
            let family = service.families.first().map_or(&[][..], std::slice::from_ref);
            if !addresses.iter().any(|address| is_in(family, *address)) {
                continue;
            }
            let is = told.get(uid);
            // Without a port of that name, a pod is not published.
            if is.is_none() {
                found.expect(has_named_ports(rest, &object.key), || {
                    format!("{pod} is not in the endpoints of {object}")
                });
            } else {
                found.expect(is == Some(ready), || {
                    format!("{pod} is in the endpoints of {object} as ready: {is:?}; it is: {ready}")
                });
            }
        }
    }
}

/// Whether a service leads to ports by name: then a pod may lack them.
fn has_named_ports(rest: &Rest<'_>, key: &ObjectKey) -> bool {
    let ports = rest.world.raw("services", key).and_then(|service| service["spec"]["ports"].as_array());
    ports.into_iter().flatten().any(|port| port["targetPort"].is_string())
}

/// "In most use cases, EndpointSlices are owned by the Service that the endpoint slice object tracks endpoints for."
/// (website: EndpointSlices) So the garbage collector deletes them. The Endpoints of a deleted service are deleted by
/// their controller: follows `endpoints_controller.go` of Kubernetes 1.37.
///
/// At rest: no slice or Endpoints of the two controllers belongs to a deleted service.
pub(super) fn no_endpoints_without_a_service(rest: &Rest<'_>, found: &mut Findings) {
    let is_kept = |namespace: &Istr, name: &Istr| {
        let key = ObjectKey { namespace: namespace.clone(), name: name.clone() };
        rest.world.get("services", &key).is_some()
    };
    if rest.options.runs(SLICES) && rest.options.runs(super::GARBAGE) {
        for object in rest.world.all(SLICE_RESOURCE) {
            let Some(slice) = object.slice().filter(|slice| slice.managed_by == MANAGER) else { continue };
            // A service that was deleted with `Orphan` leaves its slices to themselves.
            if object.owners.is_empty() {
                continue;
            }
            found.expect(is_kept(&object.key.namespace, &slice.service), || {
                format!("{object} is left of service {}", slice.service)
            });
        }
    }
    if rest.options.runs(ENDPOINTS) {
        for object in rest.world.all("endpoints") {
            let managed = object.labels.get(steersman_base::names::labels::ENDPOINTS_MANAGED_BY);
            if object.endpoints().is_some_and(|endpoints| endpoints.is_lock) || managed.is_none() {
                continue;
            }
            found.expect(is_kept(&object.key.namespace, &object.key.name), || {
                format!("{object} is left of its service")
            });
        }
    }
}
