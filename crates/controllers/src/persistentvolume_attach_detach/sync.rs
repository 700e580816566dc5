//! The shell: observe → plan → ask CSI drivers, and record events at pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_base::{Istr, MicroTime, ObjectKey, Resource};
use steersman_informer::{Index, Lister};
use steersman_model::core::{NodeView, PersistentVolumeView, PodView};
use steersman_model::storage::VolumeAttachmentView;
use steersman_model::{Kind, View};
use steersman_runtime::events::About;
use steersman_runtime::{Action, Context, Delete, Error, Reconciler, WriteError, reasons};

mod nodes;

pub(super) use nodes::Lists;

use super::memory::Memory;
use super::metrics::{Counted, Metrics};
use super::plan::{Rules, Step, plan};
use super::resolve::{Resolver, Wanted};
use super::state::{Attachment, Doing, Failure, Known, NodeFacts, OnNode, Volume};
use super::{messages, object};
use crate::volume_spec::{CsiSpec, Plugin, VolumeSpec};

const PODS: &Resource = &PodView::RESOURCE;
const ATTACHMENTS: &Resource = &VolumeAttachmentView::RESOURCE;
const ATTACHED: &str = "SuccessfulAttachVolume";
const FAILED: &str = "FailedAttachVolume";
/// The maximum number of times that a pass looks again at its own writes.
const LOOKS: usize = 3;

/// The controller's shell for volumes: the caches that it reads from, and its memory.
pub(super) struct Volumes {
    pub(super) resolver: Resolver,
    pub(super) attachments: Lister<VolumeAttachmentView>,
    pub(super) attachments_by_volume: Index<Istr, VolumeAttachmentView>,
    pub(super) attachments_by_inline: Index<Istr, VolumeAttachmentView>,
    pub(super) nodes_by_volume: Index<Istr, NodeView>,
    /// The namespace, if the manager sees one only: volumes of others are not its own.
    pub(super) scope: Option<Istr>,
    pub(super) memory: Arc<Memory>,
    pub(super) metrics: Metrics,
    pub(super) rules: Rules,
}

/// A volume, as a pass sees it.
struct Observed {
    spec: VolumeSpec,
    wanted: Wanted,
    nodes: BTreeMap<Istr, OnNode>,
}

/// A node says that it still uses a volume that no pod on it needs.
#[derive(Debug, thiserror::Error)]
#[error("volume {volume} is still in use by node {node}, according to Node status")]
struct InUse {
    volume: Istr,
    node: Istr,
}

reasons! {
    /// Why the attach/detach controller writes.
    pub enum Why {
        /// A pod on the node needs the volume.
        Attach { volume: Istr, node: Istr } => "a pod on node {node} needs volume {volume}",
        /// No pod on the node needs the volume.
        Detach { volume: Istr, node: Istr } => "no pod on node {node} needs volume {volume}",
        /// The list of attached volumes is not what is attached.
        List { volumes: usize } => "{volumes} volumes are attached, or about to be detached",
    }
}

// === impl Volumes ===

impl Reconciler for Volumes {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let volume = &key.name;
        let mut wake = None;
        for _ in 0..LOOKS {
            let Some(observed) = self.observe(volume) else { return Ok(Action::Done) };
            let planned = plan(&Volume::from(&observed.spec), &observed.nodes, self.rules, cx.clock.now_micros());
            wake = planned.wake;
            let mut is_changed = false;
            for (node, step) in planned.steps {
                is_changed |= self.perform(cx, &observed, &node, step).await?;
            }
            if !is_changed {
                break;
            }
        }
        let now = cx.clock.now_micros();
        Ok(wake.map_or(Action::Done, |wake| Action::After(wake.since(now))))
    }
}

impl Volumes {
    /// Returns what the caches and the memory know of a volume; `None` if it is not one of ours.
    fn observe(&self, volume: &Istr) -> Option<Observed> {
        let (spec, objects) = self.resolver.spec(volume)?;
        let wanted = self.resolver.wanted(&spec, &objects);
        if let Some(scope) = &self.scope {
            let of_claim = |object: &Arc<PersistentVolumeView>| {
                object.spec.claim_ref.as_ref().is_some_and(|claim| claim.namespace == *scope)
            };
            let is_ours = || objects.iter().any(of_claim) || !self.memory.volume(volume).is_empty();
            if wanted.is_empty() && !is_ours() {
                return None;
            }
        }
        self.hold(volume, &wanted);
        let known = self.memory.volume(volume);
        let of_volumes = objects.iter().flat_map(|object| self.attachments_by_volume.get(&object.meta().name));
        let attachments = of_volumes.chain(self.attachments_by_inline.get(volume));
        let mut names: Vec<Istr> = attachments.map(|attachment| attachment.spec.node_name.clone()).collect();
        names.extend(self.nodes_by_volume.get(volume).iter().map(|node| node.meta().name.clone()));
        names.extend(wanted.keys().chain(known.keys()).cloned());
        names.sort();
        names.dedup();
        let on_node = |name: Istr| {
            let on = self.on_node(&spec, &name, wanted.contains_key(&name), known.get(&name));
            (name, on)
        };
        let nodes: BTreeMap<Istr, OnNode> = names.into_iter().map(on_node).collect();
        self.count(&spec, &wanted, &nodes);
        Some(Observed { spec, wanted, nodes })
    }

    /// Remembers which pods need a volume.
    fn hold(&self, volume: &Istr, wanted: &Wanted) {
        let held = |pods: &[Arc<PodView>]| {
            let pods = pods.iter().map(|pod| (pod.meta().key(), pod.meta().uid.clone()));
            pods.collect::<BTreeMap<_, _>>()
        };
        for node in self.memory.volume(volume).keys().filter(|node| !wanted.contains_key(*node)) {
            self.memory.change(volume, node, |known| {
                known.pods.clear();
                known.is_refusal_reported = false;
            });
        }
        for (node, pods) in wanted {
            self.memory.change(volume, node, |known| known.pods = held(pods));
        }
    }

    fn on_node(&self, spec: &VolumeSpec, name: &Istr, is_wanted: bool, known: Option<&Known>) -> OnNode {
        let node = self.resolver.nodes.get(&ObjectKey::cluster(name));
        let (is_reported, is_listed) = self.memory.is_on(&spec.unique, node.as_deref());
        let facts = match &node {
            Some(node) => NodeFacts::of(node, &spec.unique),
            None => NodeFacts { is_mounted: self.memory.is_used_on_lost(&spec.unique, name), ..NodeFacts::default() },
        };
        let attachment = self.attachment(spec, name);
        let known = known.cloned().unwrap_or_default();
        OnNode {
            is_wanted,
            attachment: attachment.map(|attachment| Attachment::from(&*attachment)),
            is_reported,
            is_listed,
            facts,
            requested: known.requested,
            doing: known.doing,
            failure: known.failure,
            is_refusal_reported: known.is_refusal_reported,
            is_uncertain: known.is_uncertain,
        }
    }

    fn attachment(&self, spec: &VolumeSpec, node: &str) -> Option<Arc<VolumeAttachmentView>> {
        let Plugin::Csi(csi) = &spec.plugin else { return None };
        let key = object::attachment_key(&csi.handle, &csi.driver, node);
        let found = self.attachments.get(&key)?;
        self.memory.note_attachment(&key.name, &spec.unique);
        Some(found)
    }

    fn count(&self, spec: &VolumeSpec, wanted: &Wanted, nodes: &BTreeMap<Istr, OnNode>) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let is_actual = |on: &&OnNode| on.attachment.is_some() || on.is_reported;
        self.metrics.count(
            &spec.unique,
            Counted {
                plugin: spec.plugin_label(),
                desired: number(wanted.len()),
                actual: number(nodes.values().filter(is_actual).count()),
                pods: wanted.iter().map(|(node, pods)| (node.clone(), number(pods.len()))).collect(),
            },
        );
    }

    /// Performs a step. Returns whether the volume has to be looked at again.
    async fn perform(&self, cx: &Context, observed: &Observed, node: &Istr, step: Step) -> Result<bool, Error> {
        let now = cx.clock.now_micros();
        let volume = &observed.spec.unique;
        match step {
            Step::Request => self.memory.change(volume, node, |known| known.requested = Some(now)),
            Step::Await(what) => self.memory.change(volume, node, |known| known.doing = Some((what, now))),
            Step::Withdraw => {
                self.memory.withdraw(volume, node);
                self.memory.change(volume, node, |known| known.is_reported = false);
            }
            Step::Report => self.report(cx, observed, node, now),
            Step::Refuse { others } => self.refuse(cx, observed, node, &others),
            Step::Create => return self.create(cx, observed, node, now).await,
            Step::Detach { verify, forced } => {
                if let Some(forced) = forced {
                    self.metrics.forced(forced);
                }
                return self.detach(cx, &observed.spec, node, verify, now).await;
            }
            Step::FailAttach(message) => {
                self.fail(cx, observed, node, Doing::Attach, &message);
                return Ok(true);
            }
            Step::FailDetach(message) => {
                self.fail(cx, observed, node, Doing::Detach, &message);
                return Ok(true);
            }
            Step::Forget => {
                self.forget(&observed.spec, node, now);
                return Ok(observed.wanted.contains_key(node));
            }
        }
        Ok(false)
    }

    /// Records that a volume is attached, and records an event at its pods, unless they have one.
    fn report(&self, cx: &Context, observed: &Observed, node: &Istr, now: MicroTime) {
        let Observed { spec, nodes, .. } = observed;
        let mut is_known = nodes.get(node).is_some_and(|on| on.is_reported);
        let mut begun = None;
        self.memory.report(&spec.unique, node);
        self.memory.change(&spec.unique, node, |known| {
            is_known |= known.is_reported;
            begun = known.doing.map(|(_, begun)| begun);
            let pods = std::mem::take(&mut known.pods);
            *known = Known { pods, is_reported: true, ..Known::default() };
        });
        if !is_known {
            self.metrics.ended(spec, Doing::Attach, now.since(begun.unwrap_or(now)), false);
            self.send_event(cx, observed, node, |_| messages::attached(&spec.shown), false);
        }
    }

    /// Records events at pods whose volume is attached to other nodes.
    fn refuse(&self, cx: &Context, observed: &Observed, node: &Istr, others: &[Istr]) {
        let Observed { spec, wanted, .. } = observed;
        let users: Vec<_> = others.iter().filter_map(|other| wanted.get(other)).flatten().collect();
        let users: Vec<_> = users.into_iter().map(|pod| pod.meta()).collect();
        self.send_event(cx, observed, node, |pod| messages::refused(&spec.shown, pod.meta(), &users), true);
        self.memory.change(&spec.unique, node, |known| known.is_refusal_reported = true);
    }

    fn send_event(
        &self,
        cx: &Context,
        observed: &Observed,
        node: &Istr,
        note: impl Fn(&PodView) -> String,
        warns: bool,
    ) {
        for pod in observed.wanted.get(node).into_iter().flatten() {
            let about = About::new(PODS, pod.meta());
            if warns {
                cx.events.warning(&about, FAILED, note(pod));
            } else {
                cx.events.normal(&about, ATTACHED, note(pod));
            }
        }
    }

    async fn create(&self, cx: &Context, observed: &Observed, node: &Istr, now: MicroTime) -> Result<bool, Error> {
        let spec = &observed.spec;
        let body = csi(spec).and_then(|csi| object::attachment(csi, node));
        let Some(body) = body else { return Ok(false) };
        let why = Why::Attach { volume: spec.shown.clone(), node: node.clone() };
        let begin = || self.memory.change(&spec.unique, node, |known| known.doing = Some((Doing::Attach, now)));
        match cx.writer.unowned().create_in(None, ATTACHMENTS, body.to_string().into_bytes(), &why).await {
            // One that exists was created by another manager, or by a request without an answer.
            Ok(_) | Err(WriteError::AlreadyExists) => {
                begin();
                Ok(false)
            }
            Err(error) => {
                let message = format!("kubernetes.io/csi: attacher.Attach failed: {}", error.message());
                self.fail(cx, observed, node, Doing::Attach, &message);
                Err(error.into())
            }
        }
    }

    /// Detaches a volume, if it is safe. Returns whether that has ended.
    async fn detach(
        &self,
        cx: &Context,
        spec: &VolumeSpec,
        node: &Istr,
        verify: bool,
        now: MicroTime,
    ) -> Result<bool, Error> {
        let volume = &spec.unique;
        if verify {
            let live = cx.live.get::<NodeView>(&ObjectKey::cluster(node)).await?;
            if live.is_some_and(|live| NodeFacts::of(&live, volume).is_mounted) {
                // The cache did not show it. Nothing is detached, and it counts as attached until the node is done.
                self.set_failure(spec, node, Doing::Detach, now);
                return Err(InUse { volume: spec.shown.clone(), node: node.clone() }.into());
            }
        }
        let Some(attachment) = self.attachment(spec, node) else {
            self.forget(spec, node, now);
            return Ok(true);
        };
        let why = Why::Detach { volume: spec.shown.clone(), node: node.clone() };
        match cx.writer.unowned().delete(ATTACHMENTS, attachment.meta(), Delete::default(), &why).await {
            Ok(()) => {
                self.memory.change(volume, node, |known| known.doing = Some((Doing::Detach, now)));
                Ok(false)
            }
            Err(WriteError::NotFound) => {
                self.forget(spec, node, now);
                Ok(true)
            }
            Err(error) => {
                self.memory.change(volume, node, |known| known.is_uncertain = true);
                self.set_failure(spec, node, Doing::Detach, now);
                Err(error.into())
            }
        }
    }

    /// Records a failure; pods get an event if a volume could not be attached.
    fn fail(&self, cx: &Context, observed: &Observed, node: &Istr, what: Doing, message: &str) {
        let spec = &observed.spec;
        self.set_failure(spec, node, what, cx.clock.now_micros());
        match what {
            Doing::Attach => self.send_event(cx, observed, node, |_| messages::failed(&spec.shown, message), true),
            Doing::Detach => self.memory.change(&spec.unique, node, |known| known.is_uncertain = true),
        }
        tracing::warn!(volume = %spec.unique, %node, ?what, message, "a volume could not be attached or detached");
    }

    fn set_failure(&self, spec: &VolumeSpec, node: &Istr, what: Doing, now: MicroTime) {
        let mut begun = None;
        self.memory.change(&spec.unique, node, |known| {
            begun = known.doing.take().map(|(_, begun)| begun);
            known.failure = Some(Failure::after(known.failure, what, now));
        });
        self.metrics.ended(spec, what, now.since(begun.unwrap_or(now)), true);
    }

    /// Forgets a volume on a node: it is detached.
    fn forget(&self, spec: &VolumeSpec, node: &Istr, now: MicroTime) {
        let known = self.memory.volume(&spec.unique).remove(node);
        if let Some((Doing::Detach, begun)) = known.and_then(|known| known.doing) {
            self.metrics.ended(spec, Doing::Detach, now.since(begun), false);
        }
        let held = self.memory.volume(&spec.unique).remove(node).map(|known| known.pods).unwrap_or_default();
        self.memory.forget(&spec.unique, node);
        if !held.is_empty() {
            self.memory.change(&spec.unique, node, |known| known.pods = held);
        }
        if let Some(csi) = csi(spec) {
            self.memory.forget_attachment(&object::attachment_key(&csi.handle, &csi.driver, node).name);
        }
    }
}

fn csi(spec: &VolumeSpec) -> Option<&CsiSpec> {
    match &spec.plugin {
        Plugin::Csi(csi) => Some(csi),
        Plugin::Iscsi | Plugin::Fc => None,
    }
}
