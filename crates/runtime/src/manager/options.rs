//! The options of a manager.

use std::time::Duration;

use prometheus::Registry;
use steersman_base::{Clock, Istr};

use crate::client::ClientOptions;
use crate::events::EventOptions;
use crate::lease::LeaseOptions;
use crate::mapper::Scheme;
use crate::metrics::process::ProcessMetrics;

/// The options of a manager.
#[derive(Clone)]
#[non_exhaustive]
pub struct ManagerOptions {
    /// The clock.
    pub clock: Clock,
    /// The one namespace that its controllers see; all namespaces by default.
    pub namespace: Option<Istr>,
    /// The registry in which queues, informers, reconciles and webhooks count; by default one of the manager's own, which
    /// [`Manager::metrics`](crate::Manager::metrics) returns.
    pub metrics: Option<Registry>,
    /// Whether nothing counts, unless a registry is given.
    pub(super) unmeasured: bool,
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

    /// Sets the registry in which queues, informers, reconciles and webhooks count.
    #[must_use]
    pub fn metrics(mut self, registry: Registry) -> Self {
        self.metrics = Some(registry);
        self
    }

    /// Turns metrics off, unless a registry is set later.
    #[must_use]
    pub fn without_metrics(mut self) -> Self {
        self.metrics = None;
        self.unmeasured = true;
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

    /// Returns the registry to count in; a new one, unless one is given or metrics are off.
    pub(super) fn registry(&self) -> Result<Option<Registry>, prometheus::Error> {
        if self.metrics.is_some() || self.unmeasured {
            return Ok(self.metrics.clone());
        }
        let registry = Registry::new();
        ProcessMetrics::register(&registry)?;
        Ok(Some(registry))
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
            unmeasured: false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::TestServer;
    use crate::{Action, Context, Error, Manager, Reconciler};
    use steersman_base::ObjectKey;

    struct Nothing;

    impl Reconciler for Nothing {
        async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
            Ok(Action::Done)
        }
    }

    #[tokio::test]
    async fn a_manager_counts_without_being_told_where() {
        let text = |options: ManagerOptions| {
            let manager = Manager::new(TestServer::default().client(), options).unwrap();
            manager.context().controller_of_keys("bakery").reconcile_with(Nothing);
            (manager.exposition().text(), manager.metrics().is_some())
        };
        let (counted, has_registry) = text(ManagerOptions::default());
        for series in [
            r#"workqueue_depth{name="bakery"} 0"#,
            r#"controller_runtime_max_concurrent_reconciles{controller="bakery"} 1"#,
            "\nprocess_start_time_seconds ",
        ] {
            assert!(counted.contains(series), "{series} is missing in {counted}");
        }
        assert!(has_registry);
        assert_eq!(text(ManagerOptions::default().without_metrics()), (String::new(), false));

        let registry = Registry::new();
        let (given, _) = text(ManagerOptions::default().without_metrics().metrics(registry.clone()));
        assert!(given.contains("workqueue_depth"), "{given}");
        assert!(
            !given.contains("process_start_time_seconds"),
            "a registry that is given may have them already: {given}"
        );
    }

    #[cfg(feature = "webhook")]
    #[tokio::test]
    async fn webhooks_of_a_manager_are_counted_in_its_registry_several_servers_together() {
        use crate::serving::ServeOptions;
        use crate::webhook::{Admission, Verdict, WebhookServer};

        let manager = Manager::new(TestServer::default().client(), ManagerOptions::default()).unwrap();
        for path in ["/sites", "/cakes"] {
            let allow = async |_: Admission<serde_json::Value>| Ok(Verdict::allow());
            let allow = move |admission| Box::pin(allow(admission));
            manager.add(WebhookServer::new(ServeOptions::default()).validate(path, allow));
        }
        let text = manager.exposition().text();
        for path in ["/sites", "/cakes"] {
            let series = format!(r#"controller_runtime_webhook_requests_total{{code="200",webhook="{path}"}} 0"#);
            assert!(text.contains(&series), "{series} is missing in {text}");
        }
    }
}
