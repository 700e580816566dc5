//! A cluster with controllers of one's choice.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steersman_base::Clock;
use steersman_runtime::{Descriptor, Manager, connection};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::PodsOf;

/// A cluster with controllers of one's choice, and a namespace of the scenario's own.
pub struct Cluster {
    client: Client,
    namespace: String,
    stop: CancellationToken,
    manager: JoinHandle<()>,
}

/// Why a scenario did not hold, in words that show the world.
pub struct Failure(String);

/// The variable in which `cargo xtask k8s test` hands over its kubeconfig.
const RIG_KUBECONFIG: &str = "STEERSMAN_RIG_KUBECONFIG";
/// Far more than any step of a scenario takes; a scenario that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the world.
const LOOK_EVERY: Duration = Duration::from_millis(20);

// === impl Cluster ===

impl Cluster {
    /// The rig's kube-apiserver, with these controllers of ours on it.
    ///
    /// # Errors
    /// The rig is not there: run the test through `cargo xtask k8s test`.
    pub async fn on_rig(controllers: &[Descriptor]) -> Result<Self, Failure> {
        let Some(kubeconfig) = std::env::var_os(RIG_KUBECONFIG) else {
            return Err(Failure(format!("{RIG_KUBECONFIG} is not set: run this through `cargo xtask k8s test`")));
        };
        let options = connection::Options { kubeconfig: Some(kubeconfig.into()), ..connection::Options::default() };
        let client = connection::connect(options).await?;
        Self::start(client, Clock::system(), controllers).await
    }

    async fn start(client: Client, clock: Clock, controllers: &[Descriptor]) -> Result<Self, Failure> {
        let namespace = Namespace {
            metadata: ObjectMeta { generate_name: Some("scenario-".into()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let namespace = Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        let mut manager = Manager::new(client.clone(), clock);
        for descriptor in controllers {
            manager.add(descriptor, None);
        }
        let stop = CancellationToken::new();
        let manager = tokio::spawn(manager.run(stop.clone()));
        Ok(Self { client, namespace: namespace.metadata.name.unwrap_or_default(), stop, manager })
    }

    /// A client of the cluster.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The scenario's own namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of a kind in the scenario's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Creates an object in the scenario's namespace.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn create<K>(&self, object: K) -> Result<K, Failure>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug,
    {
        Ok(self.api().create(&PostParams::default(), &object).await?)
    }

    /// Deletes an object in the scenario's namespace.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn delete<K>(&self, name: &str) -> Result<(), Failure>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The pods that an object controls.
    #[must_use]
    pub fn pods_of<K: Resource<DynamicType = ()>>(&self, owner: &K) -> PodsOf<'_> {
        PodsOf::new(self, owner.meta().uid.clone().unwrap_or_default())
    }

    /// Looks at the world until `look` answers a value; `look` says what it sees while it does not.
    ///
    /// # Errors
    /// The world never came to look that way; the failure tells what was seen last.
    pub async fn until<T, F>(&self, what: &str, mut look: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<Result<T, String>, Failure>>,
    {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            match look().await? {
                Ok(value) => return Ok(value),
                Err(seen) if tokio::time::Instant::now() > deadline => {
                    return Err(Failure(format!("never happened: {what}; seen last: {seen}")));
                }
                Err(_) => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Stops the controllers and removes the namespace.
    ///
    /// # Errors
    /// A controller panicked, or the server refuses.
    pub async fn stop(self) -> Result<(), Failure> {
        self.stop.cancel();
        self.manager.await.map_err(|error| Failure(format!("the manager ended badly: {error}")))?;
        Api::<Namespace>::all(self.client).delete(&self.namespace, &DeleteParams::default()).await?;
        Ok(())
    }
}

// === impl Failure ===

impl Failure {
    /// A failure in these words.
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
