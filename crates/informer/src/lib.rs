//! Reflector → delta FIFO → indexed store → subscribers: what controllers know of a cluster.
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
//! factory.start();                                                // after all have declared what they need
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
//! | module | what it holds |
//! |---|---|
//! | [`factory`] | [`InformerFactory`]: one informer for everybody who needs the same |
//! | [`informer`] | [`SharedInformer`], [`Subscription`]: the guarantees for subscribers |
//! | [`change`] | [`Change`]: what a subscriber is given |
//! | [`store`] | objects by key, indexes, waiting for a version |
//! | [`lister`] | reading a store by key, namespace, selector |
//! | [`consistency`] | read your own writes |
//! | [`meta_source`] | any informer read as metadata |
//! | [`typed`] | whole typed objects as views |
//! | [`reachability`] | whether the server can be reached, and who hears when it is back |
//! | [`reflector`] | list, watch, resume, back off |
//! | [`metrics`] | what is counted, under upstream's names |

pub mod change;
pub mod consistency;
mod delta_fifo;
pub mod factory;
pub mod informer;
mod keyed_queue;
pub mod lister;
pub mod meta_source;
pub mod metrics;
pub mod reachability;
pub mod reflector;
mod sink;
pub mod store;
pub mod target;
#[cfg(test)]
mod test_objects;
pub mod typed;
mod wire;

pub use change::Change;
pub use delta_fifo::End;
pub use factory::{FactoryOptions, InformerFactory, NotSynced};
pub use informer::{SharedInformer, SubscribeOptions, Subscription};
pub use lister::Lister;
pub use meta_source::MetaSource;
pub use metrics::Metrics;
pub use reachability::Reachability;
pub use store::Index;
pub use target::{Scope, Target};
pub use typed::Typed;
pub use wire::{ApiStatus, WireError};

/// What the crates of this project use of each other. Not for others: it changes without notice.
#[doc(hidden)]
pub mod __internal {
    pub mod delta_fifo {
        pub use crate::delta_fifo::*;
    }
    pub mod sink {
        pub use crate::sink::*;
    }
    pub mod wire {
        pub use crate::wire::*;
    }
}
