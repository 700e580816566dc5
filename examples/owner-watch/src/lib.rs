//! A controller of Pods that watches what Pods own: a ConfigMap that belongs to a Pod concerns that Pod.
//!
//! Owner references are the usual way from a child back to its parent. [`Builder::owns`] follows the reference that *controls*;
//! a Pod that owns a ConfigMap seldom controls it, so this example follows every owner reference.
//!
//! [`Builder::owns`]: steersman::runtime::controller::Builder::owns

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use steersman::base::ObjectKey;
use steersman::informer::resource_of;
use steersman::informer::{Index, Lister, Selection, Typed};
use steersman::model::View;
use steersman::runtime::{Action, Context, Controller, Error, Manager, Reconciler, handler};

/// Hears which ConfigMaps a Pod owns.
type Report = Box<dyn Fn(&ObjectKey, Vec<String>) + Send + Sync>;

/// The controller: what it reads from.
pub struct Belongings {
    pods: Lister<Typed<Pod>>,
    by_owner: Index<String, Typed<ConfigMap>>,
    report: Report,
}

impl Reconciler for Belongings {
    async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(Action::Done) };
        let uid = pod.meta().uid.to_string();
        let mut owned: Vec<_> = self.by_owner.get(&uid).iter().map(|map| View::meta(&**map).name.to_string()).collect();
        owned.sort_unstable();
        (self.report)(key, owned);
        Ok(Action::Done)
    }
}

/// Adds the controller to a manager. `report` is called with what each Pod owns, whenever that changes.
pub fn add_belongings(
    manager: &Manager,
    report: impl Fn(&ObjectKey, Vec<String>) + Send + Sync + 'static,
) -> Controller {
    let maps = manager.informers().typed::<ConfigMap>(Selection::everything());
    // An index, so that no pass looks through a whole namespace.
    let by_owner = maps.index(|map: &Typed<ConfigMap>| {
        map.owner_references().iter().map(|owner| owner.uid.clone()).collect::<Vec<_>>()
    });
    manager
        .controller::<Pod>("belongings")
        .watches::<ConfigMap>(handler::owner(resource_of::<Pod>()))
        .reconcile_with(Belongings { pods: manager.lister(), by_owner, report: Box::new(report) })
}
