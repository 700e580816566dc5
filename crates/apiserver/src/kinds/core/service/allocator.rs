//! Addresses and node ports of Services.
//!
//! 1. Nothing is given twice; what a write takes is given back if the write fails ([`Reservation`]), what it no longer needs is
//!    free once it has succeeded.
//! 2. Dynamic values are taken from the upper part of a range, so that the lower part stays for those that ask for a value,
//!    and in turn: the same writes get the same values.
//!
//! 3. Addresses come from the ranges of ServiceCIDRs that are ready and not terminating, and are none that an IPAddress
//!    names. Those that are given are published as IPAddresses ([`addresses`](super::addresses)).
//!
//! Follows `pkg/registry/core/service/storage/alloc.go` and `ipallocator/cidrallocator.go`; upstream's values are random.

mod ranges;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;
use parking_lot::Mutex;
use serde_json::{Value, json};

use ranges::{Pool, Ranges, family_of, to_ip};

use super::{is_headless, kind_of, needs_health_check, needs_node_port, validation};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::json::{default_to, flag, is_empty, items, number, set, text};

const NODE_PORTS: RangeInclusive<u32> = 30_000..=32_767;

/// The ServiceCIDR that every cluster has.
pub(crate) const DEFAULT_RANGE: &str = "kubernetes";

/// The addresses and ports that Services have, and those that are free.
#[derive(Debug)]
pub(crate) struct Allocator {
    /// The families of the cluster, and the ranges of its first ServiceCIDR.
    networks: Vec<IpNet>,
    state: Mutex<State>,
}

/// The addresses that a successful write has taken, and those that it has given up.
#[must_use]
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(super) taken: Vec<IpAddr>,
    pub(super) freed: Vec<IpAddr>,
}

/// The addresses and ports that a write has allocated. They are released when this is dropped, unless it is
/// [committed](Reservation::commit).
#[must_use]
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    allocator: &'a Allocator,
    taken: Vec<Thing>,
    unneeded: Vec<Thing>,
}

/// Why a Service gets nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AllocateError {
    /// It asks for something it cannot have: 422.
    #[error("the service cannot have what it asks for")]
    Invalid(Vec<FieldError>),
    /// Nothing is left: 500.
    #[error("{0}")]
    Full(String),
}

/// Something that only one Service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Ip(IpAddr),
    Port(u32),
}

#[derive(Debug)]
struct State {
    held: BTreeSet<Thing>,
    /// The addresses that IPAddresses name.
    named: BTreeSet<IpAddr>,
    ranges: Ranges,
    ports: Pool,
}

// === impl Allocator ===

impl Default for Allocator {
    /// The range of upstream's documentation: `10.0.0.0/16`.
    fn default() -> Self {
        let network = ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::new(10, 0, 0, 0), 16);
        Self::new(vec![network.into()])
    }
}

impl Allocator {
    /// Both families: that of the default, and the same of a private IPv6 network.
    pub(crate) fn dual_stack() -> Self {
        let network = ipnet::Ipv6Net::new_assert(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 108);
        let networks = Self::default().networks;
        Self::new(networks.into_iter().chain([network.into()]).collect())
    }

    /// Gives addresses of these networks: the first is the default family, a second makes the cluster dual-stack.
    #[must_use]
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        let ports = Pool::new((*NODE_PORTS.start()).into(), (*NODE_PORTS.end()).into(), 32, 128);
        let mut state = State { held: BTreeSet::new(), named: BTreeSet::new(), ranges: Ranges::default(), ports };
        state.ranges.set(DEFAULT_RANGE, &networks, true);
        Self { networks, state: Mutex::new(state) }
    }

    /// Notes the ranges of a ServiceCIDR, and whether addresses may come from them; none if it is gone.
    pub(crate) fn set_ranges(&self, name: &str, networks: &[IpNet], is_ready: bool) {
        self.state.lock().ranges.set(name, networks, is_ready);
    }

    /// Notes that an IPAddress names this address, or does not any more.
    pub(crate) fn set_named(&self, ip: IpAddr, is_named: bool) {
        let named = &mut self.state.lock().named;
        if is_named {
            named.insert(ip)
        } else {
            named.remove(&ip)
        };
    }

    /// Takes what a Service needs that is created, or changed from `old`, and writes it into it. Call it after
    /// `prepare` and before validation.
    ///
    /// # Errors
    /// The Service asks for what it cannot have, or nothing is left.
    pub(crate) fn allocate(&self, new: &mut Value, old: Option<&Value>) -> Result<Reservation<'_>, AllocateError> {
        let mut reservation = Reservation { allocator: self, taken: Vec::new(), unneeded: Vec::new() };
        self.families(new, old)?;
        self.addresses(new, old, &mut reservation)?;
        self.node_ports(new, old, &mut reservation)?;
        self.health_check_port(new, old, &mut reservation)?;
        Ok(reservation)
    }

    /// Frees what a Service had that is gone.
    pub(crate) fn release(&self, service: &Value) {
        let mut state = self.state.lock();
        for thing in things_of(service) {
            state.held.remove(&thing);
        }
    }

    /// Notes what a Service has that was not written through [`allocate`](Self::allocate): one that was restored.
    pub(crate) fn restore(&self, service: &Value) {
        self.state.lock().held.extend(things_of(service));
    }

    /// The first address of the default family, which is the API server's own.
    pub(crate) fn first_address(&self) -> String {
        self.networks.first().and_then(|network| network.hosts().next()).map(|ip| ip.to_string()).unwrap_or_default()
    }

    /// The networks that addresses come from.
    pub(crate) fn ranges(&self) -> Vec<String> {
        self.networks.iter().map(ToString::to_string).collect()
    }

    fn family(&self, index: usize) -> &'static str {
        self.networks.get(index).map_or("IPv4", family_of)
    }

    fn serves(&self, family: &str) -> bool {
        (0..self.networks.len()).any(|index| self.family(index) == family)
    }

    /// `ipFamilies` and `ipFamilyPolicy`: `initIPFamilyFields`.
    fn families(&self, new: &mut Value, old: Option<&Value>) -> Result<(), AllocateError> {
        if kind_of(new) == "ExternalName" {
            return Ok(());
        }
        let path = Path::new("spec");
        let selects = !is_empty(&new["spec"]["selector"]);
        let headless = text(&new["spec"]["clusterIP"]) == "None";
        let policy = match old.map(|old| text(&old["spec"]["ipFamilyPolicy"])).filter(|policy| !policy.is_empty()) {
            Some(policy) => policy,
            None if headless && !selects => "RequireDualStack",
            None => "SingleStack",
        };
        if let Some(spec) = new.get_mut("spec") {
            default_to(spec, "ipFamilyPolicy", policy);
        }
        let mut errors = Errors::default();
        validation::cluster_ips(new, old, &path, &mut errors);
        AllocateError::check(&mut errors)?;
        let Some(spec) = new.get_mut("spec") else { return Ok(()) };
        let policy = text(&spec["ipFamilyPolicy"]).to_owned();
        if policy == "SingleStack" && old.is_some() {
            shorten(spec, old, "clusterIPs");
            shorten(spec, old, "ipFamilies");
        }
        let mut families: Vec<String> = items(&spec["ipFamilies"]).iter().map(|it| text(it).to_owned()).collect();
        let at = path.child("ipFamilyPolicy");
        if policy == "SingleStack" {
            for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
                if items(&spec[field]).len() == 2 {
                    let detail =
                        format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
                    errors.push(FieldError::invalid(&at, policy.as_str(), detail));
                }
            }
        }
        for (index, ip) in items(&spec["clusterIPs"]).iter().map(text).enumerate().filter(|(_, ip)| *ip != "None") {
            let family = if ip.contains(':') { "IPv6" } else { "IPv4" };
            if index >= families.len() && self.serves(family) {
                families.push(family.to_owned());
            } else if index >= families.len() {
                let detail = format!("{family} is not configured on this cluster");
                let at = path.child("clusterIPs").index(index);
                errors.push(FieldError::invalid(&at, spec["clusterIPs"].clone(), detail));
            }
        }
        AllocateError::check(&mut errors)?;
        let anywhere = headless && !selects;
        if !anywhere {
            if policy == "RequireDualStack" && self.networks.len() < 2 {
                let detail = "this cluster is not configured for dual-stack services";
                errors.push(FieldError::invalid(&at, policy.as_str(), detail));
            }
            for (index, family) in families.iter().enumerate().filter(|(_, family)| !self.serves(family)) {
                let at = path.child("ipFamilies").index(index);
                errors.push(FieldError::invalid(&at, family.as_str(), "not configured on this cluster"));
            }
            AllocateError::check(&mut errors)?;
        }
        if families.is_empty() {
            families.push(self.family(0).to_owned());
        }
        if policy != "SingleStack" && families.len() == 1 && (anywhere || self.networks.len() == 2) {
            families.push(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }.to_owned());
        }
        set(spec, "ipFamilies", families);
        Ok(())
    }

    fn addresses(
        &self,
        new: &mut Value,
        old: Option<&Value>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), AllocateError> {
        let held: Vec<_> = old.map(ips_of).unwrap_or_default();
        if kind_of(new) == "ExternalName" {
            reservation.unneeded.extend(held.into_iter().map(Thing::Ip));
            return Ok(());
        }
        if is_headless(new) || old.is_some_and(is_headless) {
            return Ok(());
        }
        let families: Vec<_> = items(&new["spec"]["ipFamilies"]).iter().map(|it| text(it).to_owned()).collect();
        let mut ips: Vec<_> = items(&new["spec"]["clusterIPs"]).iter().map(|it| text(it).to_owned()).collect();
        let asked = json!(ips);
        ips.resize(families.len(), String::new());
        for (ip, family) in ips.iter_mut().zip(&families) {
            match ip.parse::<IpAddr>() {
                Ok(address) if held.contains(&address) => {}
                Ok(address) => self.take_ip(address, &asked, reservation)?,
                Err(_) => *ip = self.next_ip(family, text(&new["metadata"]["name"]), reservation)?.to_string(),
            }
        }
        let gone = held.into_iter().filter(|ip| !ips.contains(&ip.to_string()));
        reservation.unneeded.extend(gone.map(Thing::Ip));
        if let Some(spec) = new.get_mut("spec").filter(|_| !ips.is_empty()) {
            set(spec, "clusterIP", ips[0].as_str());
            set(spec, "clusterIPs", ips);
        }
        Ok(())
    }

    fn take_ip(&self, ip: IpAddr, asked: &Value, reservation: &mut Reservation<'_>) -> Result<(), AllocateError> {
        let state = &mut *self.state.lock();
        let why = if !state.ranges.give(ip) {
            let ranges: Vec<_> = self.networks.iter().map(ToString::to_string).collect();
            let ranges = ranges.join(",");
            format!("the provided IP ({ip}) is not in the valid range. The range of valid IPs is {ranges}")
        } else if !state.named.contains(&ip) && state.held.insert(Thing::Ip(ip)) {
            reservation.taken.push(Thing::Ip(ip));
            return Ok(());
        } else {
            "provided IP is already allocated".to_owned()
        };
        let path = Path::new("spec").child("clusterIPs");
        let detail = format!("failed to allocate IP {ip}: {why}");
        Err(AllocateError::Invalid(vec![FieldError::invalid(&path, asked.clone(), detail)]))
    }

    fn next_ip(&self, family: &str, name: &str, reservation: &mut Reservation<'_>) -> Result<IpAddr, AllocateError> {
        let state = &mut *self.state.lock();
        let held = &state.held;
        let named = &state.named;
        let ip = |number| to_ip(number, family);
        let is_taken = |number| held.contains(&Thing::Ip(ip(number))) || named.contains(&ip(number));
        let Some(number) = state.ranges.take(family, is_taken) else {
            let why = format!("failed to allocate a serviceIP for Service {name:?}: range is full");
            return Err(AllocateError::Full(why));
        };
        state.held.insert(Thing::Ip(ip(number)));
        reservation.taken.push(Thing::Ip(ip(number)));
        Ok(ip(number))
    }

    fn take_port(&self, port: i64, path: &Path, reservation: &mut Reservation<'_>) -> Result<(), AllocateError> {
        let invalid = |detail: &str| AllocateError::Invalid(vec![FieldError::invalid(path, port, detail)]);
        let Some(number) = u32::try_from(port).ok().filter(|number| NODE_PORTS.contains(number)) else {
            let low = NODE_PORTS.start();
            let high = NODE_PORTS.end();
            let detail = format!("provided port is not in the valid range. The range of valid ports is {low}-{high}");
            return Err(invalid(&detail));
        };
        if !self.state.lock().held.insert(Thing::Port(number)) {
            return Err(invalid("provided port is already allocated"));
        }
        reservation.taken.push(Thing::Port(number));
        Ok(())
    }

    fn next_port(&self, reservation: &mut Reservation<'_>) -> Result<u32, AllocateError> {
        let state = &mut *self.state.lock();
        let held = &state.held;
        let port = |number: u128| u32::try_from(number).unwrap_or_default();
        let Some(number) = state.ports.take(|number| held.contains(&Thing::Port(port(number)))) else {
            return Err(AllocateError::Full("failed to allocate a nodePort: range is full".to_owned()));
        };
        state.held.insert(Thing::Port(port(number)));
        reservation.taken.push(Thing::Port(port(number)));
        Ok(port(number))
    }

    fn node_ports(
        &self,
        new: &mut Value,
        old: Option<&Value>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), AllocateError> {
        let held = old.filter(|old| needs_node_port(old)).map(node_ports_of).unwrap_or_default();
        let mut given: Vec<(i64, i64)> = Vec::new();
        if needs_node_port(new) {
            let path = Path::new("spec").child("ports");
            let allocates = kind_of(new) != "LoadBalancer" || flag(&new["spec"]["allocateLoadBalancerNodePorts"]);
            let asked: Vec<_> = items(&new["spec"]["ports"]).to_vec();
            let ports = new.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
            for (index, entry) in ports.into_iter().flatten().enumerate() {
                let port = number(&entry["port"]);
                let mut node_port = number(&entry["nodePort"]);
                if node_port == 0 && !allocates {
                    continue;
                }
                // The same port of two protocols has one node port.
                let shared = given.iter().find(|(other, _)| *other == port).map(|(_, node_port)| *node_port);
                let sibling = asked.iter().filter(|other| number(&other["port"]) == port);
                let sibling = sibling.map(|other| number(&other["nodePort"])).find(|node_port| *node_port != 0);
                if node_port == 0 {
                    node_port = shared.or(sibling).unwrap_or_default();
                }
                if node_port == 0 {
                    node_port = self.next_port(reservation)?.into();
                } else if !held.contains(&node_port) && !given.iter().any(|(_, given)| *given == node_port) {
                    self.take_port(node_port, &path.index(index).child("nodePort"), reservation)?;
                }
                given.push((port, node_port));
                set(entry, "nodePort", node_port);
            }
        }
        let gone = held.into_iter().filter(|port| !given.iter().any(|(_, given)| given == port));
        reservation.unneeded.extend(gone.filter_map(|port| u32::try_from(port).ok()).map(Thing::Port));
        Ok(())
    }

    fn health_check_port(
        &self,
        new: &mut Value,
        old: Option<&Value>,
        reservation: &mut Reservation<'_>,
    ) -> Result<(), AllocateError> {
        let held =
            old.filter(|old| needs_health_check(old)).map_or(0, |old| number(&old["spec"]["healthCheckNodePort"]));
        let asked = number(&new["spec"]["healthCheckNodePort"]);
        if !needs_health_check(new) {
            reservation.unneeded.extend(u32::try_from(held).ok().filter(|port| *port != 0).map(Thing::Port));
            return Ok(());
        }
        if asked != 0 && asked == held {
            return Ok(());
        }
        if asked != 0 {
            let path = Path::new("spec").child("healthCheckNodePort");
            return self.take_port(asked, &path, reservation).map_err(|error| match error {
                AllocateError::Invalid(errors) => {
                    let why = errors.first().map(|error| error.detail.clone()).unwrap_or_default();
                    AllocateError::Full(format!("failed to allocate requested HealthCheck NodePort {asked}: {why}"))
                }
                full @ AllocateError::Full(_) => full,
            });
        }
        let port = self.next_port(reservation)?;
        if let Some(spec) = new.get_mut("spec") {
            set(spec, "healthCheckNodePort", port);
        }
        Ok(())
    }
}

/// A single-stack Service gives up its second value if it did not change it itself.
fn shorten(spec: &mut Value, old: Option<&Value>, field: &str) {
    if old.is_some_and(|old| old["spec"][field] == spec[field])
        && let Some(list) = spec.get_mut(field).and_then(Value::as_array_mut)
    {
        list.truncate(1);
    }
}

pub(super) fn ips_of(service: &Value) -> Vec<IpAddr> {
    items(&service["spec"]["clusterIPs"]).iter().filter_map(|ip| text(ip).parse().ok()).collect()
}

fn node_ports_of(service: &Value) -> Vec<i64> {
    let ports = items(&service["spec"]["ports"]).iter().map(|port| number(&port["nodePort"]));
    ports.filter(|port| *port != 0).collect()
}

fn things_of(service: &Value) -> Vec<Thing> {
    let ports = node_ports_of(service).into_iter().chain([number(&service["spec"]["healthCheckNodePort"])]);
    let ports = ports.filter_map(|port| u32::try_from(port).ok()).filter(|port| *port != 0).map(Thing::Port);
    ips_of(service).into_iter().map(Thing::Ip).chain(ports).collect()
}

// === impl Reservation ===

impl Reservation<'_> {
    /// The write has succeeded: what it took stays taken, and what it no longer needs is free.
    pub(crate) fn commit(mut self) -> Kept {
        let ips = |things: &[Thing]| things.iter().filter_map(Thing::ip).collect();
        let kept = Kept { taken: ips(&self.taken), freed: ips(&self.unneeded) };
        self.taken.clear();
        let mut state = self.allocator.state.lock();
        for thing in self.unneeded.drain(..) {
            state.held.remove(&thing);
        }
        kept
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let mut state = self.allocator.state.lock();
        for thing in self.taken.drain(..) {
            state.held.remove(&thing);
        }
    }
}

// === impl Thing ===

impl Thing {
    fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Ip(ip) => Some(*ip),
            Self::Port(_) => None,
        }
    }
}

// === impl AllocateError ===

impl AllocateError {
    fn check(errors: &mut Errors) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self::Invalid(std::mem::take(errors).into_iter().collect())) }
    }
}

#[cfg(test)]
mod tests;
