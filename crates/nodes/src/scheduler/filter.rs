//! Whether a pod can run on a node, and if not, why: in upstream's order and words, where the first plug-in that
//! refuses gives the reason.

use std::borrow::Cow;

use steersman_model::core::pod::Toleration;
use steersman_model::core::{NodeView, Taint};

use super::affinity;
use super::ledger::{NodeState, Used};
use super::request::Request;
use crate::view::SimPodSpec;

/// Why a pod cannot run on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The reasons, each of which is counted in the message.
    pub(super) reasons: Vec<Cow<'static, str>>,
    /// Whether the removal of other pods would help.
    pub(super) is_resolvable: bool,
    /// Whether the pod is refused by all nodes alike: then the reason is not counted.
    pub(super) is_of_all: bool,
}

/// Whether the pod can run on the node.
pub(super) fn fits(spec: &SimPodSpec, request: &Request, node: &NodeState, used: &Used) -> Result<(), Refusal> {
    let view = &node.view;
    let tolerates = |taint: &Taint| spec.tolerations.iter().any(|toleration| tolerates(toleration, taint));
    if view.spec.unschedulable && !tolerates(&unschedulable()) {
        return Err(Refusal::lasting("node(s) were unschedulable"));
    }
    if untolerated(view, "NoSchedule", tolerates) || untolerated(view, "NoExecute", tolerates) {
        return Err(Refusal::lasting("node(s) had untolerated taint(s)"));
    }
    if !affinity::matches(spec, &view.metadata) {
        return Err(Refusal::lasting("node(s) didn't match Pod's node affinity/selector"));
    }
    if !used.ports.leaves(&request.ports) {
        let reasons = vec!["node(s) didn't have free ports for the requested pod ports".into()];
        return Err(Refusal { reasons, is_resolvable: true, is_of_all: false });
    }
    has_room(request, node, used)
}

/// Returns the number of taints with the effect `PreferNoSchedule` that the pod does not tolerate.
pub(super) fn untolerated_preferences(spec: &SimPodSpec, node: &NodeView) -> usize {
    let tolerates = |taint: &Taint| spec.tolerations.iter().any(|toleration| tolerates(toleration, taint));
    node.spec.taints.iter().filter(|taint| taint.effect == "PreferNoSchedule" && !tolerates(taint)).count()
}

fn untolerated(node: &NodeView, effect: &str, tolerates: impl Fn(&Taint) -> bool) -> bool {
    node.spec.taints.iter().any(|taint| taint.effect == effect && !tolerates(taint))
}

/// The taint of a cordoned node, set or about to be set.
fn unschedulable() -> Taint {
    Taint { key: "node.kubernetes.io/unschedulable".into(), effect: "NoSchedule".into(), ..Taint::default() }
}

/// Whether a toleration matches a taint.
pub(super) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    let number = |text: &str| text.parse::<i64>().ok();
    let numbers = || number(&taint.value).zip(number(&toleration.value));
    effect
        && key
        && match toleration.operator.as_str() {
            "Exists" => true,
            // Only `Exists` may have no key.
            "" | "Equal" => !toleration.key.is_empty() && toleration.value == taint.value,
            "Lt" => numbers().is_some_and(|(taint, bound)| taint < bound),
            "Gt" => numbers().is_some_and(|(taint, bound)| taint > bound),
            _ => false,
        }
}

fn has_room(request: &Request, node: &NodeState, used: &Used) -> Result<(), Refusal> {
    let asked = &request.asked;
    let has = &node.allocatable;
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    let mut is_resolvable = true;
    if used.pods + 1 > node.pods {
        reasons.push("Too many pods".into());
    }
    let mut check = |asked: i64, used: i64, has: i64, reason: &dyn Fn() -> Cow<'static, str>| {
        if asked > 0 && asked > has - used {
            reasons.push(reason());
            // The removal of pods does not increase the capacity.
            is_resolvable &= asked <= has;
        }
    };
    check(asked.milli_cpu, used.asked.milli_cpu, has.milli_cpu, &|| "Insufficient cpu".into());
    check(asked.memory, used.asked.memory, has.memory, &|| "Insufficient memory".into());
    let storage = || "Insufficient ephemeral-storage".into();
    check(asked.ephemeral_storage, used.asked.ephemeral_storage, has.ephemeral_storage, &storage);
    for (name, amount) in &asked.others {
        let of = |held: &std::collections::BTreeMap<_, i64>| held.get(name).copied().unwrap_or(0);
        check(*amount, of(&used.asked.others), of(&has.others), &|| format!("Insufficient {name}").into());
    }
    if reasons.is_empty() { Ok(()) } else { Err(Refusal { reasons, is_resolvable, is_of_all: false }) }
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn lasting(reason: &'static str) -> Self {
        Self { reasons: vec![reason.into()], is_resolvable: false, is_of_all: false }
    }

    pub(super) fn of_all(reason: &'static str) -> Self {
        Self { is_of_all: true, ..Self::lasting(reason) }
    }
}
