//! Reflector → delta FIFO → indexed store → subscribers.

pub mod consistency;
pub mod delta_fifo;
pub mod factory;
pub mod informer;
mod keyed_queue;
pub mod lister;
pub mod meta_source;
pub mod metrics;
pub mod reflector;
pub mod sink;
pub mod store;
pub mod target;
#[cfg(test)]
mod test_objects;
pub mod typed;
pub mod wire;

pub use delta_fifo::End;
pub use factory::{FactoryOptions, InformerFactory, NotSynced};
pub use informer::{Change, SharedInformer, SubscribeOptions, Subscription};
pub use lister::Lister;
pub use meta_source::{MetaChange, MetaSource};
pub use metrics::Metrics;
pub use store::Index;
pub use target::{Scope, Target};
pub use typed::Typed;
