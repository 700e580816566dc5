//! Shared informers: reflector → delta FIFO → indexed store → subscribers.
//!
//! ```no_run
//! use steersman_informer::{Change, InformerFactory};
//! use steersman_model::{PodView, View};
//!
//! # async fn example(client: kube::Client) -> Result<(), steersman_informer::NotSynced> {
//! let factory = InformerFactory::new(client);
//! let pods = factory.informer::<PodView>();                       // the same informer for every caller
//! let by_owner = pods.index(|pod: &PodView| pod.meta().controller().map(|owner| owner.uid.clone()));
//! let _subscription = pods.subscribe(|change: &Change<PodView>| println!("{change:?}"));
//! factory.start();                                                // after everything is declared
//! factory.synced().await?;                                        // the error names what is missing
//!
//! if let Some(web) = pods.lister().namespace("default").get("web-1") {
//!     let siblings = by_owner.get(&web.meta().controller().map(|owner| owner.uid.clone()).unwrap_or_default());
//!     println!("{} and {} more, as of {:?}", web.meta().name, siblings.len(), pods.reached());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module of the source | contents |
//! |---|---|
//! | `factory` | [`InformerFactory`]: one informer for all callers that need the same |
//! | `informer` | [`SharedInformer`], [`Subscription`]: the guarantees for subscribers |
//! | `change` | [`Change`]: a change of one object, as subscribers get it |
//! | `store` | objects by key, indexes ([`Index`]), waiting for a version |
//! | `lister` | [`Lister`]: reads a store by key, namespace, selector |
//! | `consistency` | read your own writes |
//! | `meta_source` | [`MetaSource`]: any informer, read as metadata |
//! | `typed` | [`Typed`]: whole typed objects as views |
//! | `reachability` | whether the server can be reached, and notifications when it is back |
//! | `reflector` | list, watch, resume, back off |
//! | `delta_fifo` | pending changes, compressed per object |
//! | `wire` | requests, and decoders of lists and watches |
//! | `metrics` | [`Metrics`], under upstream's names |

mod change;
mod consistency;
mod delta_fifo;
mod factory;
mod informer;
mod keyed_queue;
mod lister;
mod meta_source;
mod metrics;
mod reachability;
mod reflector;
mod sink;
mod store;
mod target;
#[cfg(test)]
mod test_objects;
mod typed;
mod wire;

pub use change::Change;
pub use delta_fifo::End;
pub use factory::{FactoryOptions, InformerFactory, MetaInformer, NotSynced, RunningInformer};
pub use informer::{InformerState, SharedInformer, SubscribeOptions, SubscriberState, Subscription, TransformSet};
pub use lister::{Lister, NamespaceLister};
pub use meta_source::{MetaHandler, MetaSource};
pub use metrics::Metrics;
pub use reflector::{Lists, Phase, Problem, ProblemKind, ReflectorOptions, ReflectorState};
pub use store::{Index, Snapshot};
pub use target::{Selection, Target};
pub use typed::{HasResource, Typed, resource_of, strip_managed_fields};
pub use wire::{ApiStatus, UnreadableObject, WireError};

/// The time for which a list from the past counts as one that lags: API servers of one cluster are behind each other by
/// seconds. After it, the server's store was restored from a backup, and will not get back to what was written.
pub(crate) const PAST_FOR: std::time::Duration = std::time::Duration::from_secs(60);

/// Items that the crates of this project use of each other. Not for others: they change without notice.
#[doc(hidden)]
pub mod __internal {
    pub mod consistency {
        pub use crate::consistency::*;
    }
    pub mod delta_fifo {
        pub use crate::delta_fifo::*;
    }
    pub mod reachability {
        pub use crate::reachability::*;
    }
    pub mod reflector {
        pub use crate::reflector::*;
    }
    pub mod sink {
        pub use crate::sink::*;
    }
    pub mod store {
        pub use crate::store::*;
    }
    pub mod wire {
        pub use crate::wire::*;
    }
}
