//! The fields of a pod's containers that are read.

use steersman_base::Istr;

use super::Volume;
use crate::view;
use crate::wire::{Adapt, Pick, Picked, Quantities};

view! {
    /// A container.
    #[derive(Eq, Hash)]
    pub struct Container {
        /// Its name within the pod.
        name: Istr = 1,
        /// Ports it names.
        ports: Box<[ContainerPort]> = 6,
        /// Names of the secrets of which its environment variables are made.
        env_secrets "env": Box<[Istr]> as Picked<EnvVar> = 7,
        /// The requests and limits.
        resources: Resources = 8,
        /// Names of the volumes it mounts, of those that the view keeps.
        volume_mounts: Box<[Istr]> as Picked<VolumeMount> = 9,
        /// Its SELinux labels.
        se_linux_options "securityContext": Option<Box<SeLinuxOptions>> as SecurityContext = 15,
        /// Names of the secrets that its environment variables are taken from as a whole.
        env_from_secrets "envFrom": Box<[Istr]> as Picked<EnvFromSource> = 19,
        /// `Always` for a sidecar: an init container that keeps running.
        restart_policy: Istr = 24,
    }
}

view! {
    /// A port of a container, by which named target ports are found.
    #[derive(Eq, Hash)]
    pub struct ContainerPort {
        /// Its name within the pod.
        name: Istr = 1,
        /// The number.
        container_port: i32 = 3,
        /// `TCP`, `UDP` or `SCTP`; empty is `TCP`.
        protocol: Istr = 4,
    }
}

view! {
    /// Requests and limits.
    #[derive(Eq, Hash)]
    pub struct Resources: Serialize {
        /// The limits.
        limits: Quantities = 1,
        /// The requests.
        requests: Quantities = 2,
    }
}

view! {
    /// SELinux labels.
    #[derive(Eq, Hash)]
    pub struct SeLinuxOptions {
        /// User.
        user: Istr = 1,
        /// Role.
        role: Istr = 2,
        /// Type.
        type_ "type": Istr = 3,
        /// Level.
        level: Istr = 4,
    }
}

view! {
    pub(super) struct SecurityContext {
        se_linux_options: Option<Box<SeLinuxOptions>> = 3,
    }
}

view! {
    pub(super) struct PodSecurityContext {
        se_linux_options: Option<Box<SeLinuxOptions>> = 1,
        se_linux_change_policy: Istr = 13,
    }
}

view! {
    /// The name of an object of the same namespace.
    pub(super) struct LocalReference {
        name: Istr = 1,
    }
}

view! {
    /// A name that stands beside other fields in JSON, and in a message of its own in protobuf.
    pub(super) struct InlinedReference {
        ..reference: LocalReference = 1,
    }
}

view! {
    pub(super) struct EnvVar {
        value_from: EnvVarSource = 3,
    }
}

view! {
    pub(super) struct EnvVarSource {
        secret_key_ref: InlinedReference = 4,
    }
}

view! {
    pub(super) struct EnvFromSource {
        secret_ref: InlinedReference = 3,
    }
}

view! {
    pub(super) struct VolumeMount {
        name: Istr = 1,
    }
}

view! {
    pub(super) struct EphemeralContainer {
        ..common: Container = 1,
    }
}

fn non_empty(name: Istr) -> Option<Istr> {
    (!name.is_empty()).then_some(name)
}

// === impl Container ===

impl Container {
    /// Names of all secrets of which its environment is made.
    pub fn secret_names(&self) -> impl Iterator<Item = &Istr> {
        self.env_secrets.iter().chain(&self.env_from_secrets)
    }

    /// Forgets mounts of volumes that are not kept.
    pub(super) fn keep_mounts_of(&mut self, volumes: &[Volume]) {
        if self.volume_mounts.is_empty() {
            return;
        }
        let mut mounts = std::mem::take(&mut self.volume_mounts).into_vec();
        mounts.retain(|mount| volumes.iter().any(|volume| volume.name == *mount));
        self.volume_mounts = mounts.into();
    }
}

// === impl Pick, Adapt ===

impl Pick for LocalReference {
    type Kept = Istr;
    fn pick(self) -> Option<Istr> {
        non_empty(self.name)
    }
}

impl Pick for EnvVar {
    type Kept = Istr;
    fn pick(self) -> Option<Istr> {
        non_empty(self.value_from.secret_key_ref.reference.name)
    }
}

impl Pick for EnvFromSource {
    type Kept = Istr;
    fn pick(self) -> Option<Istr> {
        non_empty(self.secret_ref.reference.name)
    }
}

impl Pick for VolumeMount {
    type Kept = Istr;
    fn pick(self) -> Option<Istr> {
        Some(self.name)
    }
}

impl Pick for EphemeralContainer {
    type Kept = Container;
    fn pick(self) -> Option<Container> {
        Some(self.common)
    }
}

impl Adapt<Option<Box<SeLinuxOptions>>> for SecurityContext {
    fn adapt(self) -> Option<Box<SeLinuxOptions>> {
        self.se_linux_options
    }
}
