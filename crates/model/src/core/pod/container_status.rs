//! The container statuses of a pod.
//!
//! Statuses of siblings' containers that run are the same, but for times and ids that nobody reads, so what was made of
//! their bytes is remembered.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{self, Deserializer, SeqAccess};
use steersman_base::{Istr, Time};

use super::Resources;
use crate::memo::Memo;
use crate::shared::{SharedList, pooled};
use crate::split::{Encoding, GatheredError, Scratch, Split, decode_gathered, split_json, split_protobuf};
use crate::view;
use crate::wire::{Adapt, Fault, Few, IsSet, Parts, Quantities, Slice, Value, Wire, at_index};

/// The status of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContainerStatus {
    /// Its name within the pod.
    pub name: Istr,
    /// The state.
    pub state: ContainerState,
    /// The number of restarts.
    pub restart_count: i32,
    /// The resources allocated by the node.
    pub allocated_resources: Quantities,
    /// The actual resources; absent if the node did not report them.
    pub resources: Option<Box<Resources>>,
}

/// The state of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ContainerState {
    /// Not reported, which means waiting.
    #[default]
    Unset,
    /// It does not run yet.
    Waiting,
    /// It runs.
    Running,
    /// It has ended.
    Terminated {
        /// With this code.
        exit_code: i32,
        /// When.
        finished_at: Option<Time>,
    },
}

pooled!(lists of ContainerStatus);

view! {
    /// The part of a container status that differs between siblings.
    struct OwnStatusFields {
        state: ContainerState as StateFields = 2,
    }
}

view! {
    /// The part that is usually the same.
    struct SharedStatusFields {
        name: Istr = 1,
        restart_count: i32 = 5,
        allocated_resources: Quantities = 10,
        resources: Option<Box<Resources>> = 11,
    }
}

view! {
    struct Nothing {}
}

/// The split of a container status.
struct StatusParts;

impl Split for StatusParts {
    type Own = OwnStatusFields;
    type First = SharedStatusFields;
    type Second = Nothing;
}

/// Reads a list of container statuses. Those of siblings that run are the same, but for times and ids that nobody
/// reads.
#[derive(Default)]
pub(super) struct ReadStatuses(SharedList<ContainerStatus>);

static STATUSES: LazyLock<Memo<SharedList<ContainerStatus>>> = LazyLock::new(Memo::new);

view! {
    struct StateFields {
        waiting: bool as IsSet = 1,
        running: bool as IsSet = 2,
        terminated: Option<Terminated> = 3,
    }
}

view! {
    struct Terminated {
        exit_code: i32 = 1,
        finished_at: Option<Time> = 6,
    }
}

// === impl ReadStatuses ===

/// The gathered parts of some statuses: the own part of each, and where the shared part ends.
type Gathered = Few<(ContainerState, usize), USUAL_CONTAINERS>;

/// Most pods have no more containers than this.
const USUAL_CONTAINERS: usize = 4;

impl ReadStatuses {
    fn of_gathered(gathered: &Gathered, scratch: &mut Scratch, encoding: Encoding) -> Result<Self, GatheredError> {
        let Scratch { groups: [body, _], masked, .. } = scratch;
        let length = body.len();
        let make = |body: &[u8]| {
            let mut start = 0;
            let statuses = gathered.as_slice().iter().enumerate().map(|(index, &(state, end))| {
                let gathered = decode_gathered(encoding, &body[std::mem::replace(&mut start, end)..end]);
                let SharedStatusFields { name, restart_count, allocated_resources, resources } =
                    gathered.map_err(|error| error.in_element(index))?;
                Ok(ContainerStatus { name, state, restart_count, allocated_resources, resources })
            });
            Ok(SharedList::new(statuses.collect::<Result<_, GatheredError>>()?))
        };
        // A terminated container has times of its own: nothing to remember.
        if gathered.as_slice().iter().any(|(state, _)| matches!(state, ContainerState::Terminated { .. })) {
            return make(body).map(Self);
        }
        for (state, end) in gathered.as_slice() {
            body.push(match state {
                ContainerState::Unset | ContainerState::Terminated { .. } => 0,
                ContainerState::Waiting => 1,
                ContainerState::Running => 2,
            });
            body.extend_from_slice(&end.to_le_bytes());
        }
        masked.clear();
        STATUSES.remember(body, length, masked, make).map(Self)
    }
}

impl Wire for ReadStatuses {
    type Building<'a> = Few<Slice<'a>, USUAL_CONTAINERS>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Scratch::with(|scratch| {
            let gathered = deserializer.deserialize_seq(JsonStatuses(scratch))?;
            Self::of_gathered(&gathered, scratch, Encoding::Json).map_err(GatheredError::into_json)
        })
    }
    fn take<'a>(building: &mut Self::Building<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.push(value.slice()?);
        Ok(())
    }
    fn finish(building: Self::Building<'_>) -> Result<Self, Fault> {
        let Some(&first) = building.as_slice().first() else { return Ok(Self::default()) };
        Scratch::with(|scratch| {
            let mut gathered = Gathered::default();
            for slice in building.as_slice() {
                let own = split_protobuf::<StatusParts>(&Parts::from(*slice), scratch)?;
                gathered.push((own.state, scratch.groups[0].len()));
            }
            Self::of_gathered(&gathered, scratch, Encoding::Protobuf).map_err(|error| error.into_fault(&first.into()))
        })
    }
}

impl Adapt<SharedList<ContainerStatus>> for ReadStatuses {
    fn adapt(self) -> SharedList<ContainerStatus> {
        self.0
    }
}

struct JsonStatuses<'a>(&'a mut Scratch);

impl<'de> de::Visitor<'de> for JsonStatuses<'_> {
    type Value = Gathered;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Gathered, A::Error> {
        let mut gathered = Gathered::default();
        while let Some(own) = seq
            .next_element_seed(JsonStatus(self.0))
            .map_err(|problem| at_index(gathered.as_slice().len(), &problem))?
        {
            gathered.push((own.state, self.0.groups[0].len()));
        }
        Ok(gathered)
    }
}

struct JsonStatus<'a>(&'a mut Scratch);

impl<'de> de::DeserializeSeed<'de> for JsonStatus<'_> {
    type Value = OwnStatusFields;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<OwnStatusFields, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> de::Visitor<'de> for JsonStatus<'_> {
    type Value = OwnStatusFields;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }
    fn visit_none<E: de::Error>(self) -> Result<OwnStatusFields, E> {
        self.0.groups[0].extend_from_slice(b"{}");
        Ok(OwnStatusFields::default())
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<OwnStatusFields, D::Error> {
        split_json::<StatusParts, D>(deserializer, self.0)
    }
}

// === impl ContainerState ===

impl Adapt<ContainerState> for StateFields {
    fn adapt(self) -> ContainerState {
        match self {
            Self { terminated: Some(Terminated { exit_code, finished_at }), .. } => {
                ContainerState::Terminated { exit_code, finished_at }
            }
            Self { running: true, .. } => ContainerState::Running,
            Self { waiting: true, .. } => ContainerState::Waiting,
            Self { .. } => ContainerState::Unset,
        }
    }
}
