//! Autoscalers, requests for certificates, claims, volumes and attachments as invariants read them.

use serde_json::Value;
use steersman_base::names::labels;
use steersman_base::{Condition, Istr, ObjectKey, StringMap, Uid, condition};

use super::parse::{conditions, int, list, text};

/// Spec of a HorizontalPodAutoscaler.
#[derive(Clone, Debug)]
pub struct Autoscaler {
    /// The resource and the key of what it scales; the resource is empty if it is another kind.
    pub target: (&'static str, ObjectKey),
    /// `spec.minReplicas`.
    pub min: i32,
    /// `spec.maxReplicas`.
    pub max: i32,
    /// What it goes by.
    pub metric: Metric,
    /// How many pods it may add, and in how many seconds; none for the default policies.
    pub adds: Option<(i32, i64)>,
}

/// What an autoscaler goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The CPU of its pods: so many thousandths each.
    Load(i64),
    /// An external metric: so much per pod.
    External(Istr, i64),
    /// Something else.
    Other,
}

/// A CertificateSigningRequest.
#[derive(Clone, Debug)]
pub struct Request {
    /// `spec.signerName`.
    pub signer: Istr,
    /// `spec.usages`.
    pub usages: Vec<Istr>,
    /// `spec.expirationSeconds`.
    pub seconds: Option<i64>,
    /// Whether it is approved.
    pub is_approved: bool,
    /// Whether it is denied, or has failed.
    pub is_refused: bool,
    /// The certificate, in PEM and in base64.
    pub certificate: Istr,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// `status.phase`.
    pub phase: Istr,
    /// `spec.volumeName`.
    pub volume: Istr,
    /// `spec.storageClassName`.
    pub class: Istr,
    /// `spec.volumeAttributesClassName`.
    pub attributes: Istr,
}

/// A PersistentVolume.
#[derive(Clone, Debug)]
pub struct Volume {
    /// `status.phase`.
    pub phase: Istr,
    /// The claim that it is for, and its uid, if that is known.
    pub claim: Option<(ObjectKey, Option<Uid>)>,
    /// Whether one node at a time may have it.
    pub has_one_writer: bool,
}

/// A VolumeAttachment.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The volume.
    pub volume: Istr,
    /// The node.
    pub node: Istr,
}

// === impl Autoscaler ===

impl Autoscaler {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let target = &spec["scaleTargetRef"];
        let resource = match (target["apiVersion"].as_str(), target["kind"].as_str()) {
            (Some("apps/v1"), Some("Deployment")) => "deployments.apps",
            (Some("apps/v1"), Some("StatefulSet")) => "statefulsets.apps",
            _ => "",
        };
        let key = ObjectKey { namespace: text(&value["metadata"]["namespace"]), name: text(&target["name"]) };
        let policy = list(&spec["behavior"]["scaleUp"]["policies"]).next().filter(|policy| policy["type"] == "Pods");
        let is_set = !spec["behavior"].is_null();
        Self {
            target: (resource, key),
            min: int(&spec["minReplicas"]).unwrap_or(1),
            max: int(&spec["maxReplicas"]).unwrap_or(0),
            metric: Metric::parse(spec),
            adds: policy
                .filter(|_| is_set)
                .and_then(|policy| Some((int(&policy["value"])?, policy["periodSeconds"].as_i64()?))),
        }
    }

    /// Whether it scales this object.
    #[must_use]
    pub fn scales(&self, resource: &str, key: &ObjectKey) -> bool {
        self.target.0 == resource && self.target.1 == *key
    }
}

// === impl Metric ===

impl Metric {
    fn parse(spec: &Value) -> Self {
        let mut metrics = list(&spec["metrics"]);
        let (Some(metric), None) = (metrics.next(), metrics.next()) else { return Self::Other };
        let milli = |target: &Value| {
            let quantity = target["averageValue"].as_str()?.parse::<steersman_base::Quantity>().ok()?;
            Some(quantity.milli_value())
        };
        let resource = &metric["resource"];
        let external = &metric["external"];
        if let Some(load) = milli(&resource["target"]).filter(|_| resource["name"] == "cpu") {
            return Self::Load(load);
        }
        match milli(&external["target"]) {
            Some(wanted) => Self::External(text(&external["metric"]["name"]), wanted),
            None => Self::Other,
        }
    }
}

// === impl Request ===

impl Request {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let conditions: Vec<Condition> = conditions(value);
        let is = |type_: &str| condition::is_true(&conditions, type_);
        Self {
            signer: text(&spec["signerName"]),
            usages: list(&spec["usages"]).map(text).collect(),
            seconds: spec["expirationSeconds"].as_i64(),
            is_approved: is("Approved"),
            is_refused: is("Denied") || is("Failed"),
            certificate: Istr::new(value["status"]["certificate"].as_str().unwrap_or_default()),
        }
    }
}

// === impl Claim ===

impl Claim {
    pub(super) fn parse(value: &Value) -> Self {
        Self {
            phase: text(&value["status"]["phase"]),
            volume: text(&value["spec"]["volumeName"]),
            class: text(&value["spec"]["storageClassName"]),
            attributes: text(&value["spec"]["volumeAttributesClassName"]),
        }
    }

    /// Whether it is bound.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.phase == "Bound"
    }
}

// === impl Volume ===

impl Volume {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        let claim = &spec["claimRef"];
        let key = || ObjectKey { namespace: text(&claim["namespace"]), name: text(&claim["name"]) };
        let uid = claim["uid"].as_str().filter(|uid| !uid.is_empty()).map(Uid::new);
        let has_one_writer = |mode: &Value| mode == "ReadWriteOnce" || mode == "ReadWriteOncePod";
        Self {
            phase: text(&value["status"]["phase"]),
            claim: claim.is_object().then(|| (key(), uid)),
            has_one_writer: list(&spec["accessModes"]).all(has_one_writer),
        }
    }

    /// The uid of the claim that it is for.
    #[must_use]
    pub fn claim_uid(&self) -> Option<&Uid> {
        self.claim.as_ref()?.1.as_ref()
    }
}

// === impl Attachment ===

impl Attachment {
    pub(super) fn parse(value: &Value) -> Self {
        let spec = &value["spec"];
        Self { volume: text(&spec["source"]["persistentVolumeName"]), node: text(&spec["nodeName"]) }
    }
}

/// The names of the claims that a pod uses, and of those of them that are made for it.
pub(super) fn claims_of_pod(value: &Value) -> (Vec<Istr>, Vec<Istr>) {
    let pod = value["metadata"]["name"].as_str().unwrap_or_default();
    let given = |volume: &Value| volume["persistentVolumeClaim"]["claimName"].as_str().map(Istr::new);
    let made = |volume: &Value| {
        let name = volume["name"].as_str().filter(|_| volume["ephemeral"].is_object())?;
        Some(Istr::new(&format!("{pod}-{name}")))
    };
    let volumes = || list(&value["spec"]["volumes"]);
    let all = volumes().filter_map(|volume| given(volume).or_else(|| made(volume)));
    (all.collect(), volumes().filter_map(made).collect())
}

/// The zone of a node, as the node lifecycle controller knows it: region and zone.
#[must_use]
pub fn zone_of(node: &StringMap) -> (Istr, Istr) {
    let label = |name: &str| node.get(name).cloned().unwrap_or_default();
    (label(labels::TOPOLOGY_REGION), label(labels::TOPOLOGY_ZONE))
}
