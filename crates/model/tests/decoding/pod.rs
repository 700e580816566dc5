//! Every field of a pod that a controller reads.

use serde_json::{Value, json};
use steersman_model::PodView;
use steersman_model::core::pod::{Container, ContainerState, ContainerStatus, SeLinuxOptions, VolumeSource};
use steersman_model::corpus::every_field;

use crate::support::{META, both, check, list, text, time, without};

/// A pod in which every field is set, and the annotations that controllers read beside others.
pub(crate) fn pod() -> Value {
    let mut pod = every_field("core.v1.Pod");
    let annotations = pod["metadata"]["annotations"].as_object_mut().unwrap();
    for (at, name) in POD_ANNOTATIONS.iter().enumerate() {
        annotations.insert((*name).to_owned(), json!(at.to_string()));
    }
    // Each container mounts a volume that is kept, and one that is not.
    let claim = volume(&pod, "persistentVolumeClaim")["name"].clone();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in pod["spec"][list].as_array_mut().unwrap() {
            container["volumeMounts"][0]["name"] = claim.clone();
            container["volumeMounts"][1]["name"] = json!("kube-api-access-x7b2q");
        }
    }
    pod
}

const POD_ANNOTATIONS: [&str; 4] = [
    "controller.kubernetes.io/pod-deletion-cost",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
];

fn volume<'a>(pod: &'a Value, source: &str) -> &'a Value {
    let mut volumes = pod["spec"]["volumes"].as_array().unwrap().iter();
    volumes.find(|volume| volume.get(source).is_some()).unwrap_or_else(|| panic!("no volume with {source}"))
}

#[test]
fn pod_metadata_has_what_controllers_read() {
    let pod = pod();
    let view: PodView = both("core.v1.Pod", &pod);
    check(&pod, &view.metadata, META);
    assert_eq!(view.metadata.annotations.len(), POD_ANNOTATIONS.len(), "no other annotation is kept");
    for (at, name) in POD_ANNOTATIONS.iter().enumerate() {
        assert_eq!(view.metadata.annotations.get(name).unwrap(), at.to_string().as_str());
    }
    assert_eq!(view.metadata.generate_name(), "", "nobody reads the prefix of a pod's name");
}

#[test]
fn pod_spec_has_what_controllers_read() {
    let pod = pod();
    let view: PodView = both("core.v1.Pod", &pod);
    check(
        &pod,
        &view,
        &[
            ("/spec/nodeName", |pod| text(&pod.spec.node_name)),
            ("/spec/hostname", |pod| text(&pod.spec.hostname)),
            ("/spec/subdomain", |pod| text(&pod.spec.subdomain)),
            ("/spec/tolerations", |pod| {
                list(&pod.spec.tolerations, |toleration| {
                    json!({
                        "key": toleration.key, "operator": toleration.operator, "value": toleration.value,
                        "effect": toleration.effect, "tolerationSeconds": toleration.toleration_seconds,
                    })
                })
            }),
            ("/spec/priorityClassName", |pod| text(&pod.spec.priority_class_name)),
            ("/spec/overhead", |pod| json!(pod.spec.overhead)),
            ("/spec/resources/requests", |pod| json!(pod.spec.resources.requests)),
            ("/spec/resources/limits", |pod| json!(pod.spec.resources.limits)),
            ("/spec/schedulingGroup/podGroupName", |pod| text(&pod.spec.pod_group_name)),
            ("/spec/resourceClaims", |pod| {
                list(&pod.spec.resource_claims, |claim| {
                    json!({
                        "name": claim.name, "resourceClaimName": claim.resource_claim_name,
                        "resourceClaimTemplateName": claim.resource_claim_template_name,
                    })
                })
            }),
            ("/spec/imagePullSecrets", |pod| list(&pod.spec.image_pull_secrets, |name| json!({"name": name}))),
            ("/spec/securityContext/seLinuxOptions", |pod| se_linux(pod.spec.se_linux_options.as_deref())),
            ("/spec/securityContext/seLinuxChangePolicy", |pod| text(&pod.spec.se_linux_change_policy)),
        ],
    );
    assert!(view.spec.has_active_deadline);
    assert!(view.spec.has_cross_namespace_affinity);
}

fn se_linux(options: Option<&SeLinuxOptions>) -> Value {
    options.map_or(
        Value::Null,
        |options| json!({"user": options.user, "role": options.role, "type": options.type_, "level": options.level}),
    )
}

#[test]
fn containers_have_what_controllers_read() {
    let pod = pod();
    let view: PodView = both("core.v1.Pod", &pod);
    let check_container = |path: &str, at: usize, container: &Container| {
        let object = &pod["spec"][path][at];
        check(
            object,
            container,
            &[
                ("/name", |container| text(&container.name)),
                ("/ports/1/name", |container| text(&container.ports[1].name)),
                ("/ports/1/protocol", |container| text(&container.ports[1].protocol)),
                ("/ports/1/containerPort", |container| json!(container.ports[1].container_port)),
                ("/resources/requests", |container| json!(container.resources.requests)),
                ("/resources/limits", |container| json!(container.resources.limits)),
                ("/env/1/valueFrom/secretKeyRef/name", |container| text(&container.env_secrets[1])),
                ("/envFrom/1/secretRef/name", |container| text(&container.env_from_secrets[1])),
                ("/volumeMounts/0/name", |container| text(&container.volume_mounts[0])),
                ("/securityContext/seLinuxOptions", |container| se_linux(container.se_linux_options.as_deref())),
                ("/restartPolicy", |container| text(&container.restart_policy)),
            ],
        );
        assert_eq!(container.volume_mounts.len(), 1, "only mounts of kept volumes are kept");
        assert_eq!(container.secret_names().count(), 4);
    };
    for at in 0..2 {
        check_container("containers", at, &view.spec.containers[at]);
        check_container("initContainers", at, &view.spec.init_containers[at]);
        check_container("ephemeralContainers", at, &view.spec.ephemeral_containers[at]);
    }
}

#[test]
fn volumes_have_what_controllers_read() {
    let pod = pod();
    let view: PodView = both("core.v1.Pod", &pod);
    let kept = |source: &str| {
        let name = volume(&pod, source)["name"].as_str().unwrap().to_owned();
        view.spec.volumes.iter().find(move |volume| volume.name == name.as_str())
    };
    for dropped in ["hostPath", "emptyDir", "gitRepo", "nfs", "glusterfs", "flocker", "downwardAPI", "configMap"] {
        assert!(kept(dropped).is_none(), "nothing of {dropped} is read");
    }
    // Where the names of secrets are; every projected source has one.
    for (source, path) in [
        ("secret", "/secret/secretName"),
        ("azureFile", "/azureFile/secretName"),
        ("cephfs", "/cephfs/secretRef/name"),
        ("cinder", "/cinder/secretRef/name"),
        ("flexVolume", "/flexVolume/secretRef/name"),
        ("rbd", "/rbd/secretRef/name"),
        ("scaleIO", "/scaleIO/secretRef/name"),
        ("iscsi", "/iscsi/secretRef/name"),
        ("storageos", "/storageos/secretRef/name"),
        ("csi", "/csi/nodePublishSecretRef/name"),
        ("projected", "/projected/sources/0/secret/name"),
    ] {
        let want = volume(&pod, source).pointer(path).unwrap();
        assert_eq!(&json!(kept(source).unwrap().secret_names[0]), want, "{source}");
    }
    assert_eq!(kept("projected").unwrap().secret_names.len(), 2);

    let VolumeSource::PersistentVolumeClaim(claim) = &kept("persistentVolumeClaim").unwrap().source else { panic!() };
    let want = &volume(&pod, "persistentVolumeClaim")["persistentVolumeClaim"];
    assert_eq!(&json!({"claimName": claim.claim_name, "readOnly": claim.read_only}), want);

    let VolumeSource::Ephemeral(template) = &kept("ephemeral").unwrap().source else { panic!() };
    let want = &volume(&pod, "ephemeral")["ephemeral"]["volumeClaimTemplate"];
    assert_eq!(json!(template.spec), without(&want["spec"], &[]), "the claim's spec is whole");
    assert_eq!(json!(template.metadata.labels), want["metadata"]["labels"]);
    assert_eq!(json!(template.metadata.annotations), want["metadata"]["annotations"]);
}

#[test]
fn volumes_that_are_attached_are_whole() {
    let pod = pod();
    let view: PodView = both("core.v1.Pod", &pod);
    for volume in &view.spec.volumes {
        let (name, whole) = match &volume.source {
            VolumeSource::Fc(it) => (
                "fc",
                json!({"targetWWNs": it.target_wwns, "lun": it.lun, "fsType": it.fs_type, "readOnly": it.read_only,
                    "wwids": it.wwids}),
            ),
            VolumeSource::Iscsi(it) => (
                "iscsi",
                json!({"targetPortal": it.target_portal, "iqn": it.iqn, "lun": it.lun,
                    "iscsiInterface": it.iscsi_interface, "fsType": it.fs_type, "readOnly": it.read_only,
                    "portals": it.portals, "chapAuthDiscovery": it.chap_auth_discovery,
                    "secretRef": {"name": it.secret_ref}, "chapAuthSession": it.chap_auth_session,
                    "initiatorName": it.initiator_name}),
            ),
            VolumeSource::FlexVolume(it) => (
                "flexVolume",
                json!({"driver": it.driver, "fsType": it.fs_type, "secretRef": {"name": it.secret_ref},
                    "readOnly": it.read_only, "options": it.options}),
            ),
            VolumeSource::GcePersistentDisk(it) => (
                "gcePersistentDisk",
                json!({"pdName": it.pd_name, "fsType": it.fs_type, "partition": it.partition,
                    "readOnly": it.read_only}),
            ),
            VolumeSource::AwsElasticBlockStore(it) => (
                "awsElasticBlockStore",
                json!({"volumeID": it.volume_id, "fsType": it.fs_type, "partition": it.partition,
                    "readOnly": it.read_only}),
            ),
            VolumeSource::AzureDisk(it) => (
                "azureDisk",
                json!({"diskName": it.disk_name, "diskURI": it.disk_uri, "cachingMode": it.caching_mode,
                    "fsType": it.fs_type, "readOnly": it.read_only, "kind": it.kind}),
            ),
            VolumeSource::AzureFile(it) => (
                "azureFile",
                json!({"secretName": it.secret_name, "shareName": it.share_name, "readOnly": it.read_only}),
            ),
            VolumeSource::Cinder(it) => (
                "cinder",
                json!({"volumeID": it.volume_id, "fsType": it.fs_type, "readOnly": it.read_only,
                    "secretRef": {"name": it.secret_ref}}),
            ),
            VolumeSource::VsphereVolume(it) => (
                "vsphereVolume",
                json!({"volumePath": it.volume_path, "fsType": it.fs_type,
                    "storagePolicyName": it.storage_policy_name, "storagePolicyID": it.storage_policy_id}),
            ),
            VolumeSource::Portworx(it) => {
                ("portworxVolume", json!({"volumeID": it.volume_id, "fsType": it.fs_type, "readOnly": it.read_only}))
            }
            VolumeSource::Other | VolumeSource::PersistentVolumeClaim(_) | VolumeSource::Ephemeral(_) => continue,
        };
        assert_eq!(whole, self::volume(&pod, name)[name]);
    }
    let attached = view.spec.volumes.iter().filter(|volume| {
        !matches!(
            volume.source,
            VolumeSource::Other | VolumeSource::PersistentVolumeClaim(_) | VolumeSource::Ephemeral(_)
        )
    });
    assert_eq!(attached.count(), 10, "each source was looked at");
}

#[test]
fn the_nodes_a_pod_may_go_to_are_kept_until_it_is_bound() {
    let mut pod = pod();
    assert!(both::<PodView>("core.v1.Pod", &pod).spec.node_field_terms.is_empty());
    pod["spec"].as_object_mut().unwrap().remove("nodeName");
    let view: PodView = both("core.v1.Pod", &pod);
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    for (at, term) in view.spec.node_field_terms.iter().enumerate() {
        let got = list(
            &term.match_fields,
            |field| json!({"key": field.key, "operator": field.operator, "values": field.values}),
        );
        assert_eq!(&got, pod.pointer(&format!("{terms}/{at}/matchFields")).unwrap());
    }
    assert_eq!(view.spec.node_field_terms.len(), 2);
}

#[test]
fn pod_status_has_what_controllers_read() {
    let pod = pod();
    let view: PodView = both("core.v1.Pod", &pod);
    check(
        &pod,
        &view,
        &[
            ("/status/phase", |pod| text(&pod.status.phase)),
            ("/status/reason", |pod| text(pod.status.reason())),
            ("/status/podIP", |pod| text(&pod.status.pod_ip)),
            ("/status/podIPs", |pod| pod.status.pod_ips().map(|ip| json!({"ip": ip})).collect()),
            ("/status/startTime", |pod| time(pod.status.start_time)),
            ("/status/qosClass", |pod| text(&pod.status.qos_class)),
            ("/status/resourceClaimStatuses", |pod| {
                list(
                    pod.status.resource_claim_statuses(),
                    |claim| json!({"name": claim.name, "resourceClaimName": claim.resource_claim_name}),
                )
            }),
            ("/status/extendedResourceClaimStatus/resourceClaimName", |pod| {
                text(pod.status.extended_resource_claim_name())
            }),
        ],
    );
    let conditions: Vec<_> = view.status.conditions.iter().collect();
    assert_eq!(conditions.len(), 2);
    for (at, condition) in conditions.iter().enumerate() {
        let object = &pod["status"]["conditions"][at];
        assert_eq!(json!(condition.type_), object["type"]);
        assert_eq!(json!(condition.status), object["status"]);
        assert_eq!(json!(condition.reason), object["reason"]);
        assert_eq!(json!(condition.last_transition_time), object["lastTransitionTime"]);
    }
    assert_ne!(conditions[0].status, conditions[1].status);
    let statuses = |path: &str, statuses: &[ContainerStatus]| check_statuses(&pod["status"][path], statuses);
    statuses("containerStatuses", &view.status.container_statuses);
    statuses("initContainerStatuses", &view.status.init_container_statuses);
    statuses("ephemeralContainerStatuses", view.status.ephemeral_container_statuses());
}

fn check_statuses(objects: &Value, statuses: &[ContainerStatus]) {
    assert_eq!(statuses.len(), 3, "one in each state");
    for (at, status) in statuses.iter().enumerate() {
        let object = &objects[at];
        check(
            object,
            status,
            &[
                ("/name", |status| text(&status.name)),
                ("/restartCount", |status| json!(status.restart_count)),
                ("/allocatedResources", |status| json!(status.allocated_resources)),
                ("/resources/limits", |status| json!(status.resources.as_ref().unwrap().limits)),
                ("/resources/requests", |status| json!(status.resources.as_ref().unwrap().requests)),
            ],
        );
        let state = match status.state {
            ContainerState::Unset => json!({}),
            ContainerState::Waiting => json!({"waiting": object["state"]["waiting"]}),
            ContainerState::Running => json!({"running": object["state"]["running"]}),
            ContainerState::Terminated { exit_code, finished_at } => {
                let mut terminated = object["state"]["terminated"].clone();
                terminated["exitCode"] = json!(exit_code);
                terminated["finishedAt"] = json!(finished_at);
                json!({"terminated": terminated})
            }
        };
        assert_eq!(state, object["state"]);
    }
}
