//! The fields of a pod's spec that are read: the pod's own part, and the part it shares with its siblings.
//!
//! Siblings differ in few bytes of their spec, so the shared part is decoded once for each template: what was made of
//! which bytes is remembered. Node, host name and affinity are read for each pod. What else differs is the name of the
//! volume with the service account's token, which every container mounts; it is made up for each pod, no view keeps it,
//! and it is masked in what is remembered.

use std::ops::Deref;
use std::sync::LazyLock;

use memchr::memmem;
use serde::de::Deserializer;
use steersman_base::Istr;

use super::affinity::Affinity;
use super::container::{EphemeralContainer, LocalReference, PodSecurityContext};
use super::volume::VolumeFields;
use super::{Container, NodeFieldTerm, Resources, SeLinuxOptions, Volume};
use crate::memo::{Masked, Memo};
use crate::shared::{Shared, SharedList, pooled};
use crate::split::{Encoding, GatheredError, Scratch, Split, decode_gathered, split_json, split_protobuf};
use crate::view;
use crate::wire::{Adapt, Fault, Parts, Picked, Quantities, Unique, Value, Wire};

/// The spec of a pod: its own fields. Those it shares with its siblings are reached by deref.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSpec {
    /// The node it is bound to; empty until it is.
    pub node_name: Istr,
    /// The requested host name.
    pub hostname: Istr,
    /// The nodes it may go to, by their fields: `nodeAffinity`'s required terms. Kept only until it is bound, for this
    /// differs over the pods of a DaemonSet.
    pub node_field_terms: Box<[NodeFieldTerm]>,
    /// The volumes of which something is read: claims, ephemeral ones, attachable ones, and those that name a secret.
    pub volumes: SharedList<Volume>,
    /// The part shared with its siblings.
    pub shared: Shared<PodSpecShared>,
}

/// The part that pods of one template share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSpecShared {
    /// The domain of its host name.
    pub subdomain: Istr,
    /// The taints it tolerates.
    pub tolerations: Box<[Toleration]>,
    /// Whether a term of its pod affinity or anti-affinity names namespaces, by list or by selector.
    pub has_cross_namespace_affinity: bool,
    /// Whether `activeDeadlineSeconds` is set, and not negative.
    pub has_active_deadline: bool,
    /// The priority class.
    pub priority_class_name: Istr,
    /// The overhead beside its containers.
    pub overhead: Quantities,
    /// The resources at pod level.
    pub resources: Resources,
    /// The pod group it is scheduled with.
    pub pod_group_name: Istr,
    /// The resource claims it uses.
    pub resource_claims: Box<[ResourceClaim]>,
    /// Its containers.
    pub containers: Box<[Container]>,
    /// Containers that run before the others, or beside them.
    pub init_containers: Box<[Container]>,
    /// Containers added to the running pod.
    pub ephemeral_containers: Box<[Container]>,
    /// Names of the secrets that open image registries.
    pub image_pull_secrets: Box<[Istr]>,
    /// SELinux labels of all its containers.
    pub se_linux_options: Option<Box<SeLinuxOptions>>,
    /// The SELinux label policy of its volumes.
    pub se_linux_change_policy: Istr,
}
pooled!(PodSpecShared);

view! {
    /// A taint that a pod bears.
    #[derive(Eq, Hash)]
    pub struct Toleration {
        /// Key of the taint; empty for any.
        key: Istr = 1,
        /// `Equal`, `Exists`, `Lt` or `Gt`; empty is `Equal`.
        operator: Istr = 2,
        /// Value of the taint.
        value: Istr = 3,
        /// Effect of the taint; empty for any.
        effect: Istr = 4,
        /// The duration for `NoExecute`; absent means forever.
        toleration_seconds: Option<i64> = 5,
    }
}

view! {
    /// A resource claim that a pod uses: one by name, or one made for it from a template.
    #[derive(Eq, Hash)]
    pub struct ResourceClaim {
        /// Its name within the pod.
        name: Istr = 1,
        /// The claim.
        resource_claim_name: Option<Istr> = 3,
        /// The template.
        resource_claim_template_name: Option<Istr> = 4,
    }
}

view! {
    struct SchedulingGroup {
        pod_group_name: Istr = 1,
    }
}

view! {
    /// The pod's own part of `spec`, as received.
    struct OwnFields {
        node_name: Istr = 10,
        hostname: Istr as Unique = 16,
        affinity: Affinity = 18,
    }
}

view! {
    /// The volumes alone: those of a StatefulSet's pods differ, so they are remembered by themselves.
    struct VolumesField {
        volumes: Vec<Volume> as Picked<VolumeFields> = 1,
    }
}

view! {
    /// The shared part, as received.
    struct SharedFields {
        containers: Vec<Container> = 2,
        active_deadline_seconds: Option<i64> = 5,
        security_context: PodSecurityContext = 14,
        image_pull_secrets: Box<[Istr]> as Picked<LocalReference> = 15,
        subdomain: Istr = 17,
        init_containers: Vec<Container> = 20,
        tolerations: Box<[Toleration]> = 22,
        priority_class_name: Istr = 24,
        overhead: Quantities = 32,
        ephemeral_containers: Vec<Container> as Picked<EphemeralContainer> = 34,
        resource_claims: Box<[ResourceClaim]> = 39,
        resources: Resources = 40,
        scheduling_group: SchedulingGroup = 43,
    }
}

/// The split of a spec.
struct SpecParts;

impl Split for SpecParts {
    type Own = OwnFields;
    type First = VolumesField;
    type Second = SharedFields;
}

/// Reads a `spec`.
#[derive(Default)]
pub(super) struct ReadPodSpec(PodSpec);

static VOLUMES: LazyLock<Memo<SharedList<Volume>>> = LazyLock::new(Memo::new);
static SPECS: LazyLock<Memo<Shared<PodSpecShared>>> = LazyLock::new(Memo::new);

/// The API server's name of the volume with the token of a pod's service account; five random characters follow.
const TOKEN_VOLUME_PREFIX: &str = "kube-api-access-";

static TOKEN_VOLUME: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(TOKEN_VOLUME_PREFIX));

// === impl PodSpec ===

impl Deref for PodSpec {
    type Target = PodSpecShared;
    fn deref(&self) -> &PodSpecShared {
        &self.shared
    }
}

impl OwnFields {
    /// The spec of these own fields and of what was gathered.
    fn with_gathered(self, scratch: &mut Scratch, encoding: Encoding) -> Result<PodSpec, GatheredError> {
        let Scratch { groups: [volumes, shared], masked, .. } = scratch;
        mask_token_volumes(volumes, masked);
        let volumes = VOLUMES.remember(volumes, volumes.len(), masked, |body| {
            decode_gathered::<VolumesField>(encoding, body).map(|fields| SharedList::new(fields.volumes))
        })?;

        mask_token_volumes(shared, masked);
        let length = shared.len();
        // Beside its bytes, the shared part depends on a bit, and on which volumes are kept.
        let is_cross_namespace = self.affinity.is_cross_namespace();
        shared.push(u8::from(is_cross_namespace));
        for volume in &volumes {
            shared.extend_from_slice(volume.name.as_bytes());
            shared.push(0);
        }
        let shared = SPECS.remember(shared, length, masked, |body| {
            let fields = decode_gathered::<SharedFields>(encoding, body)?;
            Ok(Shared::new(fields.shared(&volumes, is_cross_namespace)))
        })?;
        Ok(PodSpec {
            node_field_terms: if self.node_name.is_empty() { self.affinity.node_field_terms() } else { Box::default() },
            node_name: self.node_name,
            hostname: self.hostname,
            volumes,
            shared,
        })
    }
}

impl SharedFields {
    fn shared(self, volumes: &[Volume], has_cross_namespace_affinity: bool) -> PodSpecShared {
        let kept = |mut containers: Vec<Container>| -> Box<[Container]> {
            for container in &mut containers {
                container.keep_mounts_of(volumes);
            }
            containers.into()
        };
        PodSpecShared {
            subdomain: self.subdomain,
            tolerations: self.tolerations,
            has_cross_namespace_affinity,
            has_active_deadline: self.active_deadline_seconds.is_some_and(|seconds| seconds >= 0),
            priority_class_name: self.priority_class_name,
            overhead: self.overhead,
            resources: self.resources,
            pod_group_name: self.scheduling_group.pod_group_name,
            resource_claims: self.resource_claims,
            containers: kept(self.containers),
            init_containers: kept(self.init_containers),
            ephemeral_containers: kept(self.ephemeral_containers),
            image_pull_secrets: self.image_pull_secrets,
            se_linux_options: self.security_context.se_linux_options,
            se_linux_change_policy: self.security_context.se_linux_change_policy,
        }
    }
}

/// Masks the random part in the names of token volumes.
fn mask_token_volumes(body: &mut [u8], masked: &mut Masked) {
    masked.clear();
    let mut from = 0;
    while let Some(at) = TOKEN_VOLUME.find(&body[from..]) {
        from += at + TOKEN_VOLUME_PREFIX.len();
        masked.mask(body, from, |random| random.iter().all(u8::is_ascii_alphanumeric));
    }
}

// === impl ReadPodSpec ===

impl Wire for ReadPodSpec {
    type Building<'a> = Parts<'a>;
    fn read_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Scratch::with(|scratch| {
            let own = split_json::<SpecParts, D>(deserializer, scratch)?;
            own.with_gathered(scratch, Encoding::Json).map_err(GatheredError::into_json).map(Self)
        })
    }
    fn take<'a>(building: &mut Parts<'a>, value: Value<'_, 'a>) -> Result<(), Fault> {
        building.push(value.slice()?);
        Ok(())
    }
    fn finish(parts: Parts<'_>) -> Result<Self, Fault> {
        Scratch::with(|scratch| {
            let own = split_protobuf::<SpecParts>(&parts, scratch)?;
            own.with_gathered(scratch, Encoding::Protobuf).map_err(|error| error.into_fault(&parts)).map(Self)
        })
    }
}

impl Adapt<PodSpec> for ReadPodSpec {
    fn adapt(self) -> PodSpec {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_random_in_the_names_of_token_volumes_is_masked() {
        let check = |given: &str, want: &str| {
            let mut body = given.as_bytes().to_vec();
            mask_token_volumes(&mut body, &mut Masked::default());
            assert_eq!(String::from_utf8_lossy(&body), want);
        };
        check("a kube-api-access-x7b2q b kube-api-access-x7b2q", "a kube-api-access-***** b kube-api-access-*****");
        check("kube-api-access-x7b", "kube-api-access-x7b");
        check("kube-api-access-x7-2q", "kube-api-access-x7-2q");
        check("kube-api-acces-x7b2q", "kube-api-acces-x7b2q");
    }
}
