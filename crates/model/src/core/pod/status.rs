//! The fields of a pod's status that are read.

use std::fmt;

use serde::de::Deserializer;
use steersman_base::{ConditionStatus, Istr, Time};

use super::container_status::{ContainerStatus, ReadStatuses};
use crate::shared::{SharedList, pooled};
use crate::view;
use crate::wire::{Adapt, Fault, Few, Pick, Picked, Unique, Value, Wire, read_list};

/// The status of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Istr,
    /// The conditions.
    pub conditions: PodConditions,
    /// Its address; empty if it has none yet.
    pub pod_ip: Istr,
    /// All its addresses, if there are more than that one.
    pub more_pod_ips: Box<[Istr]>,
    /// The time at which the kubelet accepted it.
    pub start_time: Option<Time>,
    /// `Guaranteed`, `Burstable` or `BestEffort`; empty if the server did not report it.
    pub qos_class: Istr,
    /// The statuses of its containers.
    pub container_statuses: SharedList<ContainerStatus>,
    /// The statuses of its init containers.
    pub init_container_statuses: SharedList<ContainerStatus>,
    /// Fields that few pods have.
    pub rare: Option<Box<RarePodStatus>>,
}

/// Fields of the status that few pods have, stored out of line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RarePodStatus {
    /// Why it is in its phase, such as `Evicted`.
    pub reason: Istr,
    /// The statuses of its ephemeral containers.
    pub ephemeral_container_statuses: SharedList<ContainerStatus>,
    /// Claims that were made for it.
    pub resource_claim_statuses: Box<[ClaimStatus]>,
    /// The claim that was made for its extended resources.
    pub extended_resource_claim_name: Istr,
}

/// The conditions of a pod. Their times are the pod's own, all else is shared with pods in the same state.
#[derive(Clone, Default, PartialEq)]
pub struct PodConditions {
    shape: SharedList<ConditionShape>,
    /// Seconds since 1970, one for each condition; [`NEVER`] where there is no time.
    times: Box<[i64]>,
}

const NEVER: i64 = i64::MIN;

/// A condition without its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConditionShape {
    /// The type.
    pub type_: Istr,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why.
    pub reason: Istr,
}

/// A condition of a pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodCondition<'a> {
    /// The type.
    pub type_: &'a Istr,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why.
    pub reason: &'a Istr,
    /// Since when.
    pub last_transition_time: Option<Time>,
}

pooled!(lists of ConditionShape);

view! {
    /// A claim that was made for a pod.
    pub struct ClaimStatus {
        /// Its name within the pod.
        name: Istr = 1,
        /// The claim; absent if none was needed.
        resource_claim_name: Option<Istr> = 2,
    }
}

view! {
    /// `status` as received.
    pub(super) struct PodStatusFields {
        phase: Istr = 1,
        conditions: PodConditions as ReadConditions = 2,
        reason: Istr = 4,
        pod_ip "podIP": Istr as Unique = 6,
        start_time: Option<Time> = 7,
        container_statuses: SharedList<ContainerStatus> as ReadStatuses = 8,
        qos_class: Istr = 9,
        init_container_statuses: SharedList<ContainerStatus> as ReadStatuses = 10,
        pod_ips "podIPs": Vec<Istr> as Picked<PodIp> = 12,
        ephemeral_container_statuses: SharedList<ContainerStatus> as ReadStatuses = 13,
        resource_claim_statuses: Box<[ClaimStatus]> = 15,
        extended_resource_claim_status: ExtendedClaim = 18,
    }
}

view! {
    struct ConditionFields {
        type_ "type": Istr = 1,
        status: ConditionStatus = 2,
        last_transition_time: Option<Time> = 4,
        reason: Istr = 5,
    }
}

view! {
    struct PodIp {
        ip: Istr as Unique = 1,
    }
}

view! {
    pub(super) struct ExtendedClaim {
        resource_claim_name: Istr = 2,
    }
}

// === impl PodStatus ===

impl PodStatus {
    /// All addresses of the pod: the main one first.
    pub fn pod_ips(&self) -> impl Iterator<Item = &Istr> {
        let main = (!self.pod_ip.is_empty() && self.more_pod_ips.is_empty()).then_some(&self.pod_ip);
        main.into_iter().chain(&self.more_pod_ips)
    }

    /// Why it is in its phase; mostly empty.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.rare.as_ref().map_or("", |rare| &rare.reason)
    }

    /// The statuses of its ephemeral containers.
    #[must_use]
    pub fn ephemeral_container_statuses(&self) -> &[ContainerStatus] {
        self.rare.as_ref().map_or(&[], |rare| &rare.ephemeral_container_statuses)
    }

    /// Claims that were made for it.
    #[must_use]
    pub fn resource_claim_statuses(&self) -> &[ClaimStatus] {
        self.rare.as_ref().map_or(&[], |rare| &rare.resource_claim_statuses)
    }

    /// The claim that was made for its extended resources; mostly empty.
    #[must_use]
    pub fn extended_resource_claim_name(&self) -> &str {
        self.rare.as_ref().map_or("", |rare| &rare.extended_resource_claim_name)
    }
}

impl Adapt<PodStatus> for PodStatusFields {
    fn adapt(self) -> PodStatus {
        let rare = RarePodStatus {
            reason: self.reason,
            ephemeral_container_statuses: self.ephemeral_container_statuses,
            resource_claim_statuses: self.resource_claim_statuses,
            extended_resource_claim_name: self.extended_resource_claim_status.resource_claim_name,
        };
        // Nearly every pod has one address, in two fields.
        let says_it_twice = matches!(&*self.pod_ips, [ip] if *ip == self.pod_ip);
        PodStatus {
            phase: self.phase,
            conditions: self.conditions,
            pod_ip: self.pod_ip,
            more_pod_ips: if says_it_twice { Box::default() } else { self.pod_ips.into() },
            start_time: self.start_time,
            qos_class: self.qos_class,
            container_statuses: self.container_statuses,
            init_container_statuses: self.init_container_statuses,
            rare: (rare != RarePodStatus::default()).then(|| Box::new(rare)),
        }
    }
}

// === impl PodConditions ===

impl PodConditions {
    /// The condition of this type.
    #[must_use]
    pub fn get(&self, type_: &str) -> Option<PodCondition<'_>> {
        self.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of this type is there and holds.
    #[must_use]
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// The conditions, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PodCondition<'_>> {
        self.shape.iter().zip(&self.times).map(|(shape, &time)| PodCondition {
            type_: &shape.type_,
            status: shape.status,
            reason: &shape.reason,
            last_transition_time: (time != NEVER).then_some(Time::from_unix(time)),
        })
    }
}

/// Conditions with their times.
impl FromIterator<(ConditionShape, Option<Time>)> for PodConditions {
    fn from_iter<I: IntoIterator<Item = (ConditionShape, Option<Time>)>>(conditions: I) -> Self {
        let conditions = conditions.into_iter().map(|(shape, time)| (shape, time.map_or(NEVER, Time::unix)));
        let (shape, times): (Vec<_>, Vec<_>) = conditions.unzip();
        Self { shape: SharedList::new(shape), times: times.into() }
    }
}

impl fmt::Debug for PodConditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

// === impl ReadConditions ===

/// The number of conditions of an ordinary pod.
const USUAL_CONDITIONS: usize = 5;

/// Reads the conditions of a pod.
#[derive(Default)]
pub(super) struct ReadConditions {
    shape: Few<ConditionShape, USUAL_CONDITIONS>,
    times: Few<i64, USUAL_CONDITIONS>,
}

impl ReadConditions {
    fn push(&mut self, read: ConditionFields) {
        self.shape.push(ConditionShape { type_: read.type_, status: read.status, reason: read.reason });
        self.times.push(read.last_transition_time.map_or(NEVER, Time::unix));
    }
}

impl Wire for ReadConditions {
    type Building<'a> = Self;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_list(deserializer, Self::push)
    }
    fn take<'a>(building: &mut Self, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.push(ConditionFields::from_protobuf(value)?);
        Ok(())
    }
    fn finish(building: Self) -> Result<Self, Fault> {
        Ok(building)
    }
}

impl Adapt<PodConditions> for ReadConditions {
    fn adapt(self) -> PodConditions {
        PodConditions { shape: SharedList::of(self.shape.as_slice()), times: self.times.as_slice().into() }
    }
}

impl Pick for PodIp {
    type Kept = Istr;
    fn pick(self) -> Option<Istr> {
        Some(self.ip)
    }
}
