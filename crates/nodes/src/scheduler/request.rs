//! The requests of a pod, and the capacity of a node. Follows `component-helpers/resource` and
//! `pkg/scheduler/framework` of Kubernetes 1.37.1.

use std::collections::BTreeMap;

use steersman_base::{Istr, Quantity};
use steersman_model::core::pod::Resources;
use steersman_model::wire::Quantities;

use super::ports::{HostPort, ports};
use crate::view::{Container, SimPodSpec};

/// Amounts of resources: CPU in thousandths, all else in units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) milli_cpu: i64,
    pub(crate) memory: i64,
    pub(crate) ephemeral_storage: i64,
    /// Extended resources and huge pages.
    pub(crate) others: BTreeMap<Istr, i64>,
}

/// The requests of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The resources that must be free.
    pub(crate) asked: Amounts,
    /// CPU and memory for comparing nodes: a pod without requests still uses something.
    pub(crate) counted_milli_cpu: i64,
    pub(crate) counted_memory: i64,
    /// Host ports.
    pub(crate) ports: Box<[HostPort]>,
}

/// The requests that a container without requests counts with: upstream's figures.
const COUNTED_MILLI_CPU: i64 = 100;
const COUNTED_MEMORY: i64 = 200 << 20;

/// Returns the requests of a pod: its containers together with its sidecars, or the init container with the largest
/// request, whichever is more; plus the overhead. Requests at pod level take precedence.
pub(crate) fn request(spec: &SimPodSpec) -> Request {
    let asked = total(spec, |container| Amounts::of(&container.resources.requests));
    let counted = total(spec, |container| {
        let requests = &container.resources.requests;
        let milli_cpu = requests.get("cpu").map_or(COUNTED_MILLI_CPU, |cpu| cpu.milli_value());
        let memory = requests.get("memory").map_or(COUNTED_MEMORY, |memory| memory.value());
        Amounts { milli_cpu, memory, ..Amounts::default() }
    });
    let Resources { requests: of_pod, .. } = &spec.resources;
    let overhead = Amounts::of(&spec.overhead);
    let mut request =
        Request { counted_milli_cpu: counted.milli_cpu, counted_memory: counted.memory, asked, ports: ports(spec) };
    if let Some(cpu) = of_pod.get("cpu") {
        request.asked.milli_cpu = cpu.milli_value();
        request.counted_milli_cpu = cpu.milli_value();
    }
    if let Some(memory) = of_pod.get("memory") {
        request.asked.memory = memory.value();
        request.counted_memory = memory.value();
    }
    for (name, amount) in of_pod.iter().filter(|(name, _)| name.starts_with("hugepages-")) {
        request.asked.others.insert(name.clone(), amount.value());
    }
    request.counted_milli_cpu += overhead.milli_cpu;
    request.counted_memory += overhead.memory;
    request.asked.add(&overhead);
    request
}

fn total(spec: &SimPodSpec, of: impl Fn(&Container) -> Amounts) -> Amounts {
    let mut together = Amounts::default();
    for container in &spec.containers {
        together.add(&of(container));
    }
    let mut sidecars = Amounts::default();
    let mut most = Amounts::default();
    for container in &spec.init_containers {
        let own = of(container);
        if container.is_sidecar() {
            together.add(&own);
            sidecars.add(&own);
            most.raise_to(&sidecars);
        } else {
            let mut while_it_runs = own;
            while_it_runs.add(&sidecars);
            most.raise_to(&while_it_runs);
        }
    }
    together.raise_to(&most);
    together
}

// === impl Amounts ===

impl Amounts {
    /// Returns the amounts of a list, except `pods`.
    pub(crate) fn of(quantities: &Quantities) -> Self {
        let mut amounts = Self::default();
        for (name, quantity) in quantities.iter() {
            match name.as_str() {
                "cpu" => amounts.milli_cpu = quantity.milli_value(),
                "memory" => amounts.memory = quantity.value(),
                "ephemeral-storage" => amounts.ephemeral_storage = quantity.value(),
                "pods" => {}
                _ => drop(amounts.others.insert(name.clone(), Quantity::value(*quantity))),
            }
        }
        amounts
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.milli_cpu = self.milli_cpu.saturating_add(other.milli_cpu);
        self.memory = self.memory.saturating_add(other.memory);
        self.ephemeral_storage = self.ephemeral_storage.saturating_add(other.ephemeral_storage);
        for (name, amount) in &other.others {
            let held = self.others.entry(name.clone()).or_default();
            *held = held.saturating_add(*amount);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.milli_cpu -= other.milli_cpu;
        self.memory -= other.memory;
        self.ephemeral_storage -= other.ephemeral_storage;
        for (name, amount) in &other.others {
            *self.others.entry(name.clone()).or_default() -= amount;
        }
        self.others.retain(|_, amount| *amount != 0);
    }

    fn raise_to(&mut self, other: &Self) {
        self.milli_cpu = self.milli_cpu.max(other.milli_cpu);
        self.memory = self.memory.max(other.memory);
        self.ephemeral_storage = self.ephemeral_storage.max(other.ephemeral_storage);
        for (name, amount) in &other.others {
            let held = self.others.entry(name.clone()).or_default();
            *held = (*held).max(*amount);
        }
    }
}
