//! Pure: placement: whether a node should run a pod of a DaemonSet, by node name, selector, affinity and taints.
//!
//! Follows `nodeShouldRunDaemonPod` in `daemon_controller.go`, `nodeaffinity` and `helpers.go` of Kubernetes 1.37.1.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use steersman_base::Istr;
use steersman_base::names::taints;
use steersman_model::View;
use steersman_model::core::pod::Toleration;
use steersman_model::core::{NodeView, Taint};
use steersman_model::template::Template;

use crate::toleration::{Comparison, tolerates};

/// The rules that decide on which nodes the pods of a template may run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Placement {
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
    #[serde(deserialize_with = "tolerations")]
    tolerations: Vec<Toleration>,
    host_network: Option<bool>,
    #[serde(skip)]
    comparison: Comparison,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: Option<Vec<Term>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    match_expressions: Option<Vec<Requirement>>,
    match_fields: Option<Vec<Requirement>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

/// A toleration, as it is written. The duration is of no interest: the taints are those of a node that may get a pod.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    key: Istr,
    operator: Istr,
    value: Istr,
    effect: Istr,
}

/// Whether a node should run a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A pod should run there.
    Run,
    /// A pod that runs there may go on, and none is created: the node has a taint `NoSchedule` that it does not bear.
    GoOn,
    /// No pod should run there.
    Leave,
}

/// The spec of pods that differ in their node: what stands before its name, and behind it. Only the name is encoded for each.
pub(super) struct Pinned {
    before: String,
    after: &'static str,
}

/// The field of a node affinity with the nodes that a pod must be on.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The beginning of the requirement that a node has one of the names that follow.
const NAME_IN: &str = r#"{"key":"metadata.name","operator":"In","values":"#;
const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

/// The taints that all pods of DaemonSets bear: they are the node's problems, which daemons may have to solve.
const BORNE: [(&str, &str); 6] = [
    (taints::NOT_READY, NO_EXECUTE),
    (taints::UNREACHABLE, NO_EXECUTE),
    (taints::DISK_PRESSURE, NO_SCHEDULE),
    (taints::MEMORY_PRESSURE, NO_SCHEDULE),
    (taints::PID_PRESSURE, NO_SCHEDULE),
    (taints::UNSCHEDULABLE, NO_SCHEDULE),
];
/// The taint that pods with the node's network bear, too.
const BORNE_ON_HOST_NETWORK: (&str, &str) = (taints::NETWORK_UNAVAILABLE, NO_SCHEDULE);

// === impl Placement ===

impl Placement {
    /// Reads where the pods of a template may run. What the API server has accepted can be read.
    pub(super) fn of(template: &Template, comparison: Comparison) -> Self {
        Self { comparison, ..serde_json::from_str(template.spec().as_str()).unwrap_or_default() }
    }

    /// Decides about a node.
    pub(super) fn on(&self, node: &NodeView) -> Verdict {
        let is_named = self.node_name.as_deref().is_none_or(|name| name.is_empty() || node.meta().name == *name);
        if !is_named || !self.fits_selector(node) {
            return Verdict::Leave;
        }
        let repels = |effects: &[&str]| {
            let concerns = |taint: &&Taint| effects.contains(&&*taint.effect);
            node.spec.taints.iter().filter(concerns).any(|taint| !self.bears(taint))
        };
        match (repels(&[NO_SCHEDULE, NO_EXECUTE]), repels(&[NO_EXECUTE])) {
            (false, _) => Verdict::Run,
            (true, false) => Verdict::GoOn,
            (true, true) => Verdict::Leave,
        }
    }

    fn fits_selector(&self, node: &NodeView) -> bool {
        let labels = &node.meta().labels;
        let has = |(key, value): (&String, &String)| labels.get(key).is_some_and(|held| held == value.as_str());
        if !self.node_selector.iter().flatten().all(has) {
            return false;
        }
        let affinity = self.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
        required.is_none_or(|required| required.node_selector_terms.iter().flatten().any(|term| term.matches(node)))
    }

    fn bears(&self, taint: &Taint) -> bool {
        let on_host_network = self.host_network.unwrap_or(false).then_some(BORNE_ON_HOST_NETWORK);
        let is_borne = |(key, effect): (&str, &str)| taint.key == key && taint.effect == effect;
        BORNE.into_iter().chain(on_host_network).any(is_borne)
            || self.tolerations.iter().any(|toleration| tolerates(toleration, taint, self.comparison))
    }

    /// Returns the specs of pods that are pinned to nodes, and bear the taints that all pods of DaemonSets bear.
    pub(super) fn pinned(&self, mut spec: Map<String, Value>) -> Pinned {
        let on_host_network = self.host_network.unwrap_or(false).then_some(BORNE_ON_HOST_NETWORK);
        let mut tolerations = match spec.remove("tolerations") {
            Some(Value::Array(tolerations)) => tolerations,
            _ => Vec::new(),
        };
        for (key, effect) in BORNE.into_iter().chain(on_host_network) {
            let borne = json!({ "key": key, "operator": "Exists", "effect": effect });
            // Another duration does not make another toleration.
            let is_same = |held: &Value| {
                let field = |name: &str| held[name].as_str().unwrap_or_default();
                [field("key"), field("operator"), field("effect"), field("value")] == [key, "Exists", effect, ""]
            };
            match tolerations.iter_mut().find(|held| is_same(held)) {
                Some(held) => *held = borne,
                None => tolerations.push(borne),
            }
        }
        spec.insert("tolerations".into(), tolerations.into());
        let mut affinity = fields(spec.remove("affinity"));
        let mut of_nodes = fields(affinity.remove("nodeAffinity"));
        of_nodes.remove(REQUIRED);
        let before = format!(
            r#"{}"affinity":{}"nodeAffinity":{}"{REQUIRED}":{{"nodeSelectorTerms":[{{"matchFields":[{NAME_IN}["#,
            opened(spec),
            opened(affinity),
            opened(of_nodes),
        );
        Pinned { before, after: "]}]}]}}}}" }
    }
}

// === impl Pinned ===

impl Pinned {
    /// Returns the spec of the pod of a node, as JSON.
    pub(super) fn to(&self, node: &str) -> String {
        format!("{}{}{}", self.before, json!(node), self.after)
    }
}

fn fields(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Returns the JSON of an object to which another field can be added.
fn opened(fields: Map<String, Value>) -> String {
    let is_empty = fields.is_empty();
    let mut text = Value::Object(fields).to_string();
    text.pop();
    if !is_empty {
        text.push(',');
    }
    text
}

// === impl Term ===

impl Term {
    /// A term without requirements matches no node.
    fn matches(&self, node: &NodeView) -> bool {
        let expressions = self.match_expressions.as_deref().unwrap_or_default();
        let fields = self.match_fields.as_deref().unwrap_or_default();
        let name = &node.meta().name;
        let is_field = |field: &Requirement| {
            field.key == "metadata.name" && matches!(&*field.operator, "In" | "NotIn") && field.holds(Some(name))
        };
        !(expressions.is_empty() && fields.is_empty())
            && expressions.iter().all(|requirement| requirement.holds(node.meta().labels.get(&requirement.key)))
            && fields.iter().all(is_field)
    }
}

// === impl Requirement ===

impl Requirement {
    /// Whether a value, or its absence, is what is required. An unknown operator requires the impossible.
    fn holds(&self, value: Option<&Istr>) -> bool {
        let values = self.values.as_deref().unwrap_or_default();
        let is_listed = || value.is_some_and(|value| values.iter().any(|listed| *value == listed.as_str()));
        let numbers = || {
            let number = value?.parse::<i64>().ok()?;
            match values {
                [bound] => Some((number, bound.parse::<i64>().ok()?)),
                _ => None,
            }
        };
        match &*self.operator {
            "In" => is_listed(),
            "NotIn" => !is_listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => numbers().is_some_and(|(number, bound)| number > bound),
            "Lt" => numbers().is_some_and(|(number, bound)| number < bound),
            _ => false,
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Whether a pod that runs there may go on.
    pub(super) fn may_go_on(self) -> bool {
        self != Self::Leave
    }
}

fn tolerations<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Toleration>, D::Error> {
    let written = Option::<Vec<Written>>::deserialize(from)?;
    let toleration = |Written { key, operator, value, effect }| Toleration {
        key,
        operator,
        value,
        effect,
        toleration_seconds: None,
    };
    Ok(written.into_iter().flatten().map(toleration).collect())
}
