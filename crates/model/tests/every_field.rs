//! Objects in which every field is set, encoded both ways by an encoder that knows only the table of field numbers.
//! Both decoders give equal views, and every field that a view promises is found in it.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use serde_json::{Value, json};
use steersman_base::{IntOrString, Istr, Meta, Quantity, Time};
use steersman_model::core::pod::{Container, ContainerState, ContainerStatus, Resources, VolumeSource};
use steersman_model::corpus::{every_field, protobuf};
use steersman_model::wire::Quantities;
use steersman_model::{
    DecodeError, DeploymentView, Encoded, EndpointSliceView, EndpointsView, Kind, LeaseView, NamespaceView, NodeView,
    PodView, ReplicaSetView, ReplicationControllerView, ServiceAccountView, ServiceView, View,
};

/// Decodes an object from both encodings and asserts that the views are equal.
fn both<V: View + PartialEq + std::fmt::Debug>(message: &str, object: &Value) -> V {
    let from_json = V::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
    let from_protobuf = V::decode(Encoded::Protobuf(&protobuf::encode(message, object))).unwrap();
    assert_eq!(from_json, from_protobuf, "{message}: JSON on the left, protobuf on the right");
    from_json
}

/// One field: where it is in the object, and what the view has of it.
type Row<V> = (&'static str, fn(&V) -> Value);

/// Asserts that each field of the view is what the object has there.
fn check<V>(object: &Value, view: &V, rows: &[Row<V>]) {
    for (path, of_view) in rows {
        let want = object.pointer(path).unwrap_or_else(|| panic!("the object has nothing at {path}"));
        let got = of_view(view);
        assert_ne!(got, Value::Null, "{path} is not in the view");
        assert_eq!(&got, want, "{path}: the view on the left, the object on the right");
    }
}

fn text(text: &str) -> Value {
    json!(text)
}

fn list<'a, T: 'a>(values: impl IntoIterator<Item = &'a T>, each: impl Fn(&T) -> Value) -> Value {
    values.into_iter().map(each).collect()
}

fn texts(values: &[Istr]) -> Value {
    list(values, |value| text(value))
}

fn time(time: Option<Time>) -> Value {
    json!(time)
}

const META: &[Row<Meta>] = &[
    ("/metadata/name", |meta| text(&meta.name)),
    ("/metadata/namespace", |meta| text(&meta.namespace)),
    ("/metadata/uid", |meta| json!(meta.uid)),
    ("/metadata/resourceVersion", |meta| json!(meta.resource_version)),
    ("/metadata/generation", |meta| json!(meta.generation)),
    ("/metadata/creationTimestamp", |meta| time(meta.creation_timestamp)),
    ("/metadata/deletionTimestamp", |meta| time(meta.deletion_timestamp())),
    ("/metadata/deletionGracePeriodSeconds", |meta| json!(meta.deletion_grace_period_seconds())),
    ("/metadata/labels", |meta| json!(meta.labels)),
    ("/metadata/ownerReferences", |meta| json!(meta.owner_references)),
    ("/metadata/finalizers", |meta| json!(meta.finalizers())),
];

#[test]
fn metadata_of_any_kind_is_whole_but_for_managed_fields() {
    let object = every_field("meta.v1.PartialObjectMetadata");
    let meta: Meta = both("meta.v1.PartialObjectMetadata", &object);
    check(&object, &meta, META);
    check(
        &object,
        &meta,
        &[
            ("/metadata/annotations", |meta| json!(meta.annotations)),
            ("/metadata/generateName", |meta| text(meta.generate_name())),
        ],
    );
    let mut want = object["metadata"].clone();
    for dropped in ["managedFields", "selfLink"] {
        want.as_object_mut().unwrap().remove(dropped);
    }
    assert_eq!(serde_json::to_value(&meta).unwrap(), want, "a PUT sends back what was read");
}

/// A pod in which every field is set, and the annotations that controllers read beside others.
fn pod() -> Value {
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

fn se_linux(options: Option<&steersman_model::core::pod::SeLinuxOptions>) -> Value {
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

fn without(object: &Value, names: &[&str]) -> Value {
    let mut object = object.clone();
    for name in names {
        object.as_object_mut().unwrap().remove(*name).unwrap_or_else(|| panic!("no {name}"));
    }
    object
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

#[test]
fn node_has_what_controllers_read() {
    let object = every_field("core.v1.Node");
    let node: NodeView = both("core.v1.Node", &object);
    check(&object, &node.metadata, META);
    check(
        &object,
        &node,
        &[
            ("/metadata/annotations", |node| json!(node.metadata.annotations)),
            ("/spec/podCIDR", |node| text(&node.spec.pod_cidr)),
            ("/spec/podCIDRs", |node| texts(&node.spec.pod_cidrs)),
            ("/spec/unschedulable", |node| json!(node.spec.unschedulable)),
            ("/spec/taints", |node| json!(node.spec.taints)),
            ("/status/allocatable", |node| json!(node.status.allocatable)),
            ("/status/conditions", |node| json!(node.status.conditions)),
            ("/status/volumesInUse", |node| texts(&node.status.volumes_in_use)),
            ("/status/volumesAttached", |node| json!(node.status.volumes_attached)),
        ],
    );
}

#[test]
fn service_has_what_controllers_read() {
    let object = every_field("core.v1.Service");
    let service: ServiceView = both("core.v1.Service", &object);
    check(&object, &service.metadata, META);
    check(
        &object,
        &service,
        &[
            ("/metadata/annotations", |service| json!(service.metadata.annotations)),
            ("/spec/type", |service| text(&service.spec.type_)),
            ("/spec/selector", |service| json!(service.spec.selector)),
            ("/spec/clusterIP", |service| text(&service.spec.cluster_ip)),
            ("/spec/ipFamilies", |service| texts(&service.spec.ip_families)),
            ("/spec/publishNotReadyAddresses", |service| json!(service.spec.publish_not_ready_addresses)),
            ("/spec/trafficDistribution", |service| json!(service.spec.traffic_distribution)),
            ("/spec/allocateLoadBalancerNodePorts", |service| json!(service.spec.allocate_load_balancer_node_ports)),
            ("/spec/ports", |service| {
                list(&service.spec.ports, |port| {
                    json!({"name": port.name, "protocol": port.protocol, "port": port.port,
                    "targetPort": port.target_port, "nodePort": port.node_port, "appProtocol": port.app_protocol})
                })
            }),
        ],
    );
    let mut numbered = object;
    numbered["spec"]["ports"][0]["targetPort"] = json!(8080);
    numbered["spec"]["ports"][1]["targetPort"] = json!("web");
    let service: ServiceView = both("core.v1.Service", &numbered);
    assert_eq!(service.spec.ports[0].target_port, IntOrString::Int(8080));
    assert_eq!(service.spec.ports[1].target_port, IntOrString::from("web"));
}

#[test]
fn service_account_has_what_controllers_read() {
    let object = every_field("core.v1.ServiceAccount");
    let account: ServiceAccountView = both("core.v1.ServiceAccount", &object);
    check(&object, &account.metadata, META);
    check(
        &object,
        &account,
        &[
            ("/secrets/0/name", |account| text(&account.secret_names[0])),
            ("/secrets/1/name", |account| text(&account.secret_names[1])),
        ],
    );
}

/// Asserts that a kind that is PUT gives back what was read, whole.
fn check_whole<V: Kind + serde::Serialize>(message: &str, view: &V, object: &Value) {
    let mut want = object.clone();
    want["metadata"] = without(&object["metadata"], &["managedFields", "selfLink"]);
    want["apiVersion"] = json!(V::RESOURCE.api_version());
    want["kind"] = json!(V::RESOURCE.kind);
    if let Some(template) = want.pointer_mut("/spec/template/metadata") {
        let kept = ["name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers"];
        template.as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
    }
    assert_eq!(
        serde_json::to_value(view).unwrap(),
        want,
        "{message}: what is PUT on the left, what was read on the right"
    );
}

#[test]
fn kinds_that_are_put_are_read_whole() {
    fn check<V: Kind + PartialEq + std::fmt::Debug + serde::Serialize>(message: &str) {
        let object = every_field(message);
        let view: V = if V::PROTOBUF {
            both(message, &object)
        } else {
            let body = protobuf::encode(message, &object);
            let error = V::decode(Encoded::Protobuf(&body)).unwrap_err();
            assert!(matches!(error, DecodeError::JsonOnly { .. }), "{error}");
            V::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
        };
        self::check(&object, view.meta(), META);
        check_whole(message, &view, &object);
    }
    check::<ReplicaSetView>("apps.v1.ReplicaSet");
    check::<DeploymentView>("apps.v1.Deployment");
    check::<ReplicationControllerView>("core.v1.ReplicationController");
    check::<NamespaceView>("core.v1.Namespace");
    check::<EndpointsView>("core.v1.Endpoints");
    check::<EndpointSliceView>("discovery.v1.EndpointSlice");
    check::<LeaseView>("coordination.v1.Lease");
    const { assert!(PodView::PROTOBUF && Meta::PROTOBUF && !ReplicaSetView::PROTOBUF) };
}

#[test]
fn an_empty_object_is_a_view_of_defaults_in_both_encodings() {
    let empty = json!({});
    assert_eq!(both::<PodView>("core.v1.Pod", &empty), PodView::default());
    assert_eq!(both::<NodeView>("core.v1.Node", &empty), NodeView::default());
    assert_eq!(both::<ServiceView>("core.v1.Service", &empty), ServiceView::default());
    assert_eq!(both::<EndpointSliceView>("discovery.v1.EndpointSlice", &empty), EndpointSliceView::default());
    assert_eq!(both::<Meta>("meta.v1.PartialObjectMetadata", &empty), Meta::default());
    assert_eq!(Resources::default().limits, Quantities::default());
    assert_eq!(Quantity::default().to_string(), "0");
}

#[test]
fn a_null_anywhere_is_as_if_the_field_were_absent() {
    /// All objects that differ from `value` in one field, which is null; and the same with the field absent.
    fn nulled(value: &Value, each: &mut dyn FnMut(Value, Value)) {
        match value {
            Value::Object(object) => {
                for (name, inner) in object {
                    let (mut null, mut absent) = (object.clone(), object.clone());
                    null.insert(name.clone(), Value::Null);
                    absent.remove(name);
                    each(null.into(), absent.into());
                    nulled(inner, &mut |null, absent| {
                        let with = |inner| {
                            let mut object = object.clone();
                            object.insert(name.clone(), inner);
                            Value::Object(object)
                        };
                        each(with(null), with(absent));
                    });
                }
            }
            Value::Array(list) => {
                if let Some(first) = list.first() {
                    let with = |inner| {
                        let mut list = list.clone();
                        list[0] = inner;
                        Value::Array(list)
                    };
                    let zero = match first {
                        Value::Object(_) => json!({}),
                        Value::String(_) => json!(""),
                        other => other.clone(),
                    };
                    each(with(if zero == *first { zero.clone() } else { Value::Null }), with(zero));
                    nulled(first, &mut |null, absent| each(with(null), with(absent)));
                }
            }
            _ => {}
        }
    }
    fn check<V: View + PartialEq + std::fmt::Debug>(message: &str, object: &Value) {
        let mut count = 0;
        nulled(object, &mut |null, absent| {
            // The entries of a map have values: a null there is an empty one, and no absence.
            let decode = |value: &Value| V::decode(Encoded::Json(value.to_string().as_bytes()));
            let (null_view, absent_view) = (decode(&null).unwrap(), decode(&absent).unwrap());
            if null_view != absent_view {
                let without_nulls = |value: &Value| value.to_string().replace("null", "");
                assert!(without_nulls(&null).contains("key-"), "{message}: {null}");
            }
            count += 1;
        });
        assert!(count > 5, "{message}: only {count} fields were looked at");
    }
    // Small objects in full; of a pod the parts that are read are the same types.
    check::<Meta>("meta.v1.PartialObjectMetadata", &every_field("meta.v1.PartialObjectMetadata"));
    check::<ServiceView>("core.v1.Service", &every_field("core.v1.Service"));
    check::<NodeView>("core.v1.Node", &every_field("core.v1.Node"));
    check::<EndpointSliceView>("discovery.v1.EndpointSlice", &every_field("discovery.v1.EndpointSlice"));
    check::<LeaseView>("coordination.v1.Lease", &every_field("coordination.v1.Lease"));
    let mut pod = pod();
    for list in ["initContainers", "ephemeralContainers"] {
        pod["spec"].as_object_mut().unwrap().remove(list);
    }
    check::<PodView>("core.v1.Pod", &pod);
}
