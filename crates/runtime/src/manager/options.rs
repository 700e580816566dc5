//! The options of a manager.

use std::time::Duration;

use prometheus::Registry;
use steersman_base::{Clock, Istr};

use crate::client::ClientOptions;
use crate::events::EventOptions;
use crate::lease::LeaseOptions;
use crate::mapper::Scheme;

/// The options of a manager.
#[derive(Clone)]
#[non_exhaustive]
pub struct ManagerOptions {
    /// The clock.
    pub clock: Clock,
    /// The one namespace that its controllers see; all namespaces by default.
    pub namespace: Option<Istr>,
    /// The registry in which queues, informers and reconciles count; none by default.
    pub metrics: Option<Registry>,
    /// The lease that must be held to work; by default this process always leads.
    pub lease: Option<LeaseOptions>,
    /// The client that renews the lease, with connections of its own so that it never waits behind others.
    pub lease_client: Option<kube::Client>,
    /// The maximum time of an orderly shutdown.
    pub shutdown_within: Duration,
    /// Whether everything is decided and nothing is written (shadow mode); the decision log shows what would have been
    /// written. No lease is used either: a shadow runs beside the leader.
    pub shadow: bool,
    /// The options of [`Manager::client`](crate::Manager::client).
    pub client: ClientOptions,
    /// The types that the program knows, to find the type of a kind.
    pub scheme: Scheme,
    /// The name of the program, which its pages show.
    pub component: String,
    /// The options of events.
    pub events: EventOptions,
    /// The maximum size of the decision log in bytes.
    pub decisions_bytes_max: usize,
}

/// The default time of an orderly shutdown: controller-runtime's value, and a pod's grace period.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(30);

// === impl ManagerOptions ===

impl ManagerOptions {
    /// Sets the clock: where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Limits the caches and controllers to one namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<Istr>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the registry in which queues, informers and reconciles count.
    #[must_use]
    pub fn metrics(mut self, registry: Registry) -> Self {
        self.metrics = Some(registry);
        self
    }

    /// Sets the lease that must be held to work; with `None` this process always leads.
    #[must_use]
    pub fn lease(mut self, lease: impl Into<Option<LeaseOptions>>) -> Self {
        self.lease = lease.into();
        self
    }

    /// Sets the client that renews the lease.
    #[must_use]
    pub fn lease_client(mut self, client: kube::Client) -> Self {
        self.lease_client = Some(client);
        self
    }

    /// Sets how long the orderly shutdown may take.
    #[must_use]
    pub fn shutdown_within(mut self, time: Duration) -> Self {
        self.shutdown_within = time;
        self
    }

    /// Sets how [`Manager::client`](crate::Manager::client) reads.
    #[must_use]
    pub fn client(mut self, client: ClientOptions) -> Self {
        self.client = client;
        self
    }

    /// Sets the types that the program knows.
    #[must_use]
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Sets the name of the program.
    #[must_use]
    pub fn component(mut self, name: impl Into<String>) -> Self {
        self.component = name.into();
        self
    }

    /// Sets how events are sent.
    #[must_use]
    pub fn events(mut self, events: EventOptions) -> Self {
        self.events = events;
        self
    }

    /// Sets how many bytes the decision log keeps at most.
    #[must_use]
    pub fn decisions_bytes_max(mut self, bytes: usize) -> Self {
        self.decisions_bytes_max = bytes;
        self
    }

    /// Turns shadow mode on: everything is decided, nothing is written.
    #[must_use]
    pub fn in_shadow(mut self) -> Self {
        self.shadow = true;
        self
    }
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            namespace: None,
            metrics: None,
            lease: None,
            lease_client: None,
            scheme: Scheme::new(),
            component: "steersman".to_owned(),
            shutdown_within: SHUTDOWN_WITHIN,
            shadow: false,
            client: ClientOptions::default(),
            events: EventOptions::default(),
            decisions_bytes_max: crate::decisions::BYTES_MAX,
        }
    }
}
