//! Conditions, which every kind numbers in its own way.

use steersman_base::{Condition, ConditionStatus, Istr, Time};

use crate::view;
use crate::wire::{Adapt, Unique};

/// Declares the conditions of a kind: fields and numbers.
macro_rules! conditions {
    ($($name:ident { $($field:ident: $type:ty $(as $read:ty)? = $number:literal),* $(,)? })*) => {$(
        view! {
            pub(crate) struct $name {
                type_ "type": Istr = 1,
                status: ConditionStatus = 2,
                $($field: $type $(as $read)? = $number,)*
            }
        }

        impl Adapt<Condition> for $name {
            fn adapt(self) -> Condition {
                Condition { type_: self.type_, status: self.status, $($field: self.$field,)* ..Condition::default() }
            }
        }
    )*};
}

conditions! {
    ReplicaSetCondition {
        last_transition_time: Option<Time> = 3,
        reason: Istr = 4,
        message: Istr as Unique = 5,
    }
    StatefulSetCondition {
        last_transition_time: Option<Time> = 3,
        reason: Istr = 4,
        message: Istr as Unique = 5,
    }
    DaemonSetCondition {
        last_transition_time: Option<Time> = 3,
        reason: Istr = 4,
        message: Istr as Unique = 5,
    }
    DeploymentCondition {
        reason: Istr = 4,
        message: Istr as Unique = 5,
        last_update_time: Option<Time> = 6,
        last_transition_time: Option<Time> = 7,
    }
    JobCondition {
        last_probe_time: Option<Time> = 3,
        last_transition_time: Option<Time> = 4,
        reason: Istr = 5,
        message: Istr as Unique = 6,
    }
    HorizontalPodAutoscalerCondition {
        last_transition_time: Option<Time> = 3,
        reason: Istr = 4,
        message: Istr as Unique = 5,
        observed_generation: i64 = 6,
    }
    NodeCondition {
        last_heartbeat_time: Option<Time> = 3,
        last_transition_time: Option<Time> = 4,
        reason: Istr = 5,
        message: Istr = 6,
    }
    MetaCondition {
        observed_generation: i64 = 3,
        last_transition_time: Option<Time> = 4,
        reason: Istr = 5,
        message: Istr = 6,
    }
    PersistentVolumeClaimCondition {
        last_probe_time: Option<Time> = 3,
        last_transition_time: Option<Time> = 4,
        reason: Istr = 5,
        message: Istr as Unique = 6,
    }
    NamespaceCondition {
        last_transition_time: Option<Time> = 4,
        reason: Istr = 5,
        message: Istr = 6,
    }
}
