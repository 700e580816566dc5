//! Every field of the other kinds that a controller reads.

use serde_json::{Value, json};
use steersman_base::{IntOrString, Meta};
use steersman_model::admissionregistration::ValidatingAdmissionPolicyView;
use steersman_model::apiserverinternal::StorageVersionView;
use steersman_model::apps::{
    ClaimRetentionPolicy, ControllerRevisionView, DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy,
    DaemonSetView, DeploymentSpec, DeploymentStatus, DeploymentStrategy, ReplicaSetSpec, ReplicaSetStatus,
    RollingUpdate, RollingUpdateStatefulSet, StatefulSetOrdinals, StatefulSetSpec, StatefulSetStatus,
    StatefulSetUpdateStrategy, StatefulSetView,
};
use steersman_model::batch::{
    CronJobSpec, CronJobStatus, ExitCodes, FailurePolicy, FailureRule, JobSpec, JobStatus, PodConditionPattern,
    SuccessPolicy, SuccessRule, UncountedPods,
};
use steersman_model::certificates::{
    CertificateSigningRequestSpec, CertificateSigningRequestStatus, CertificateSigningRequestView,
    ClusterTrustBundleView,
};
use steersman_model::core::{
    BootstrapTokenView, ClaimRef, ConfigMapView, PersistentVolumeClaimView, PersistentVolumeView,
    ReplicationControllerSpec, ReplicationControllerStatus, ResourceQuotaView, TokenData, TokenSecretView,
};
use steersman_model::corpus::{every_field, protobuf};
use steersman_model::networking::{IpAddressView, ServiceCidrView};
use steersman_model::policy::PodDisruptionBudgetView;
use steersman_model::rbac::ClusterRoleView;
use steersman_model::resource::{
    DeviceClassView, DeviceTaintRuleView, PooledSliceView, ResourceClaimTemplateView, ResourceClaimView,
    ResourcePoolStatusRequestView, ResourceSliceView,
};
use steersman_model::scheduling::{ControllerReference, PodGroupView, WorkloadSpec, WorkloadView};
use steersman_model::storage::{StorageClassView, VolumeAttributesClassView};
use steersman_model::storagemigration::StorageVersionMigrationView;
use steersman_model::wire::Message;
use steersman_model::{
    CronJobView, DecodeError, DeploymentView, Encoded, EndpointSliceView, EndpointsView, HorizontalPodAutoscalerView,
    JobView, Kind, LeaseView, NamespaceView, NodeLeaseView, NodeView, PodView, ReplicaSetView,
    ReplicationControllerView, ServiceAccountView, ServiceView, View,
};

use crate::support::{META, both, check, list, text, texts, without};

#[test]
fn metadata_of_any_kind_is_whole_but_for_what_nobody_reads() {
    let object = every_field("meta.v1.PartialObjectMetadata");
    let meta: Meta = both("meta.v1.PartialObjectMetadata", &object);
    check(&object, &meta, META);
    let want = without(&object["metadata"], &["managedFields", "selfLink", "generateName"]);
    assert_eq!(serde_json::to_value(&meta).unwrap(), want);
    assert_eq!(meta.key().to_string(), format!("{}/{}", meta.namespace, meta.name));
    let service = every_field("core.v1.Service");
    let of_whole: Meta = both("core.v1.Service", &service);
    check(&service, &of_whole, META);
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
fn lease_of_a_node_has_its_metadata_and_its_renewal() {
    let object = every_field("coordination.v1.Lease");
    let lease: NodeLeaseView = both("coordination.v1.Lease", &object);
    check(&object, &lease.metadata, META);
    assert_eq!(json!(lease.spec.renew_time), object["spec"]["renewTime"]);
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

#[test]
fn config_map_has_what_controllers_read() {
    let metadata = every_field("core.v1.Service")["metadata"].clone();
    let object = json!({"metadata": metadata, "data": {"b": "text", "a": ""}, "immutable": true});
    let map: ConfigMapView = both("core.v1.ConfigMap", &object);
    check(&object, &map.metadata, META);
    check(&object, &map, &[("/data", |map| json!(map.data))]);
}

#[test]
fn token_secret_has_what_controllers_read_and_no_token() {
    let read = |data: Value| {
        let object = json!({"metadata": {"name": "s"}, "data": data, "type": "kubernetes.io/service-account-token"});
        TokenSecretView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
    };
    let full = json!({"ca.crt": "Q0E=", "namespace": "bnM=", "token": "c2VjcmV0", "other": null});
    let secret = read(full);
    assert_eq!((&*secret.metadata.name, &*secret.type_), ("s", "kubernetes.io/service-account-token"));
    assert_eq!(secret.data, TokenData { ca_certificate: "Q0E=".into(), has_namespace: true, has_token: true });
    assert!(!format!("{secret:?}").contains("c2VjcmV0"), "{secret:?}");
    for empty in [json!(null), json!({}), json!({"ca.crt": null, "namespace": "", "token": null})] {
        assert_eq!(read(empty.clone()).data, TokenData::default(), "{empty}");
    }
    let body = protobuf::encode("core.v1.Secret", &json!({"type": "Opaque"}));
    let error = TokenSecretView::decode(Encoded::Protobuf(&body)).unwrap_err();
    assert!(matches!(error, DecodeError::JsonOnly { .. }), "{error}");
}

#[test]
fn storage_has_what_controllers_read() {
    let object = every_field("core.v1.PersistentVolumeClaim");
    let claim: PersistentVolumeClaimView = both("core.v1.PersistentVolumeClaim", &object);
    check(&object, &claim.metadata, META);
    check(
        &object,
        &claim,
        &[
            ("/metadata/annotations", |claim| json!(claim.metadata.annotations)),
            ("/spec", |claim| json!(claim.spec)),
            ("/status/phase", |claim| text(&claim.status.phase)),
            ("/status/accessModes", |claim| texts(&claim.status.access_modes)),
            ("/status/capacity", |claim| json!(claim.status.capacity)),
            ("/status/conditions", |claim| json!(claim.status.conditions)),
            ("/status/allocatedResources", |claim| json!(claim.status.allocated_resources)),
            ("/status/currentVolumeAttributesClassName", |claim| {
                json!(claim.status.current_volume_attributes_class_name)
            }),
            ("/status/modifyVolumeStatus/targetVolumeAttributesClassName", |claim| {
                text(&claim.status.modify_volume_status.target_volume_attributes_class_name)
            }),
        ],
    );
    let object = every_field("core.v1.PersistentVolume");
    let volume: PersistentVolumeView = both("core.v1.PersistentVolume", &object);
    check(&object, &volume.metadata, META);
    check(
        &object,
        &volume,
        &[
            ("/spec/capacity", |volume| json!(volume.spec.capacity)),
            ("/spec/accessModes", |volume| texts(&volume.spec.access_modes)),
            ("/spec/claimRef/namespace", |volume| text(&claim_ref_of(volume).namespace)),
            ("/spec/claimRef/name", |volume| text(&claim_ref_of(volume).name)),
            ("/spec/claimRef/uid", |volume| json!(claim_ref_of(volume).uid)),
            ("/spec/persistentVolumeReclaimPolicy", |volume| text(&volume.spec.persistent_volume_reclaim_policy)),
            ("/spec/storageClassName", |volume| text(&volume.spec.storage_class_name)),
            ("/spec/volumeMode", |volume| json!(volume.spec.volume_mode)),
            ("/spec/volumeAttributesClassName", |volume| json!(volume.spec.volume_attributes_class_name)),
            ("/spec/hostPath/path", |volume| json!(volume.spec.source.host_path.as_ref().map(|path| &path.path))),
            ("/spec/nfs/server", |volume| json!(volume.spec.source.nfs.as_ref().map(|nfs| &nfs.server))),
            ("/spec/nfs/path", |volume| json!(volume.spec.source.nfs.as_ref().map(|nfs| &nfs.path))),
            ("/spec/csi/driver", |volume| json!(volume.spec.source.csi.as_ref().map(|csi| &csi.driver))),
            ("/spec/csi/volumeHandle", |volume| json!(volume.spec.source.csi.as_ref().map(|csi| &csi.volume_handle))),
            ("/status", |volume| json!(volume.status)),
        ],
    );
    let source = &volume.spec.source;
    assert!(source.gce_persistent_disk.is_some() && source.aws_elastic_block_store.is_some());
    assert!(source.iscsi.is_some() && source.cinder.is_some() && source.fc.is_some() && source.flex_volume.is_some());
    assert!(source.azure_file.is_some() && source.azure_disk.is_some() && source.vsphere_volume.is_some());
    assert!(source.portworx_volume.is_some());
    let object = every_field("storage.v1.StorageClass");
    let class: StorageClassView = both("storage.v1.StorageClass", &object);
    check(
        &object,
        &class,
        &[
            ("/provisioner", |class| text(&class.provisioner)),
            ("/reclaimPolicy", |class| text(&class.reclaim_policy)),
            ("/mountOptions", |class| texts(&class.mount_options)),
            ("/allowVolumeExpansion", |class| json!(class.allow_volume_expansion)),
            ("/volumeBindingMode", |class| text(&class.volume_binding_mode)),
        ],
    );
    let object = every_field("storage.v1.VolumeAttributesClass");
    let class: VolumeAttributesClassView = both("storage.v1.VolumeAttributesClass", &object);
    check(&object, &class.metadata, META);
}

fn claim_ref_of(volume: &PersistentVolumeView) -> ClaimRef {
    volume.spec.claim_ref.as_deref().cloned().unwrap_or_default()
}

#[test]
fn ranges_and_addresses_of_services_have_what_controllers_read() {
    let object = every_field("networking.v1.ServiceCIDR");
    let range: ServiceCidrView = both("networking.v1.ServiceCIDR", &object);
    check(&object, &range.metadata, META);
    check(
        &object,
        &range,
        &[
            ("/spec/cidrs", |range| json!(range.spec.cidrs)),
            ("/status/conditions", |range| json!(range.status.conditions)),
        ],
    );
    let object = every_field("networking.v1.IPAddress");
    let address: IpAddressView = both("networking.v1.IPAddress", &object);
    check(&object, &address.metadata, META);
}

#[test]
fn storage_versions_name_their_api_servers() {
    let object = every_field("apiserverinternal.v1alpha1.StorageVersion");
    let version: StorageVersionView = both("apiserverinternal.v1alpha1.StorageVersion", &object);
    check(&object, &version.metadata, META);
    check(
        &object,
        &version,
        &[("/status/storageVersions/1/apiServerID", |version| text(&version.status.storage_versions[1].api_server_id))],
    );
}

#[test]
fn migrations_are_whole() {
    let object = every_field("storagemigration.v1.StorageVersionMigration");
    let migration: StorageVersionMigrationView = both("storagemigration.v1.StorageVersionMigration", &object);
    check(&object, &migration.metadata, META);
    check(
        &object,
        &migration,
        &[("/spec", |migration| json!(migration.spec)), ("/status", |migration| json!(migration.status))],
    );
}

#[test]
fn admission_policies_keep_their_spec_as_it_came() {
    let object = json!({
        "metadata": { "name": "a", "generation": 2 },
        "spec": { "validations": [{ "expression": "true" }] },
        "status": { "observedGeneration": 1 },
    });
    let body = object.to_string();
    let policy = ValidatingAdmissionPolicyView::decode(Encoded::Json(body.as_bytes())).expect("a policy");
    assert_eq!(policy.spec.as_str(), object["spec"].to_string());
    assert_eq!((policy.metadata.generation, policy.status.observed_generation), (2, 1));
}

#[test]
fn claims_of_devices_have_what_controllers_read() {
    let object = every_field("resource.v1.ResourceClaim");
    let claim: ResourceClaimView = both("resource.v1.ResourceClaim", &object);
    check(&object, &claim.metadata, META);
    let exactly = |claim: &ResourceClaimView| claim.spec.devices.requests[1].exactly.clone().unwrap_or_default();
    assert_eq!(object["spec"]["devices"]["requests"][1]["exactly"]["count"], json!(exactly(&claim).count));
    check(
        &object,
        &claim,
        &[
            ("/metadata/annotations", |claim| json!(claim.metadata.annotations)),
            ("/spec/devices/requests/0/exactly/deviceClassName", |claim| {
                json!(claim.spec.devices.requests[0].exactly.as_ref().map(|it| &it.device_class_name))
            }),
            ("/spec/devices/requests/0/exactly/allocationMode", |claim| {
                json!(claim.spec.devices.requests[0].exactly.as_ref().map(|it| &it.allocation_mode))
            }),
            ("/spec/devices/requests/0/firstAvailable/1/deviceClassName", |claim| {
                text(&claim.spec.devices.requests[0].first_available[1].device_class_name)
            }),
            ("/spec/devices/requests/0/firstAvailable/1/allocationMode", |claim| {
                text(&claim.spec.devices.requests[0].first_available[1].allocation_mode)
            }),
            ("/spec/devices/requests/0/firstAvailable/1/count", |claim| {
                json!(claim.spec.devices.requests[0].first_available[1].count)
            }),
            ("/spec/devices/requests/1/exactly/adminAccess", |claim| {
                json!(claim.spec.devices.requests[1].exactly.as_ref().and_then(|it| it.admin_access))
            }),
            ("/status/reservedFor", |claim| json!(claim.status.reserved_for)),
        ],
    );
    let allocated = |claim: &ResourceClaimView| claim.status.allocation.clone().unwrap_or_default().devices.results;
    let result = &object["status"]["allocation"]["devices"]["results"][1];
    check(
        result,
        &allocated(&claim)[1],
        &[
            ("/driver", |device| text(&device.driver)),
            ("/pool", |device| text(&device.pool)),
            ("/device", |device| text(&device.device)),
            ("/adminAccess", |device| json!(device.admin_access)),
            ("/tolerations/1/key", |device| text(&device.tolerations[1].key)),
            ("/tolerations/1/operator", |device| text(&device.tolerations[1].operator)),
            ("/tolerations/1/value", |device| text(&device.tolerations[1].value)),
            ("/tolerations/1/effect", |device| text(&device.tolerations[1].effect)),
            ("/tolerations/1/tolerationSeconds", |device| json!(device.tolerations[1].toleration_seconds)),
            ("/consumedCapacity", |device| json!(device.consumed_capacity)),
        ],
    );
    let object = every_field("resource.v1.DeviceClass");
    let class: DeviceClassView = both("resource.v1.DeviceClass", &object);
    check(&object, &class.metadata, META);
    check(&object, &class, &[("/spec/extendedResourceName", |class| json!(class.spec.extended_resource_name))]);
}

#[test]
fn slices_and_taint_rules_have_what_controllers_read() {
    let object = every_field("resource.v1.ResourceSlice");
    let slice: ResourceSliceView = both("resource.v1.ResourceSlice", &object);
    check(&object, &slice.metadata, META);
    check(
        &object,
        &slice,
        &[
            ("/spec/driver", |slice| text(&slice.spec.driver)),
            ("/spec/pool/name", |slice| text(&slice.spec.pool.name)),
            ("/spec/pool/generation", |slice| json!(slice.spec.pool.generation)),
            ("/spec/devices/1/name", |slice| text(&slice.spec.devices[1].name)),
            ("/spec/devices/1/taints", |slice| json!(slice.spec.devices[1].taints)),
        ],
    );
    let object = every_field("resource.v1.DeviceTaintRule");
    let rule: DeviceTaintRuleView = both("resource.v1.DeviceTaintRule", &object);
    check(&object, &rule.metadata, META);
    check(
        &object,
        &rule,
        &[
            ("/spec/deviceSelector/driver", |rule| json!(rule.spec.device_selector.as_ref().unwrap().driver)),
            ("/spec/deviceSelector/pool", |rule| json!(rule.spec.device_selector.as_ref().unwrap().pool)),
            ("/spec/deviceSelector/device", |rule| json!(rule.spec.device_selector.as_ref().unwrap().device)),
            ("/spec/taint", |rule| json!(rule.spec.taint)),
            ("/status/conditions", |rule| json!(rule.status.conditions)),
        ],
    );
}

#[test]
fn slices_and_requests_have_what_the_status_of_pools_is_made_of() {
    let object = every_field("resource.v1.ResourceSlice");
    let slice: PooledSliceView = both("resource.v1.ResourceSlice", &object);
    check(&object, &slice.metadata, META);
    check(
        &object,
        &slice,
        &[
            ("/spec/driver", |slice| text(&slice.spec.driver)),
            ("/spec/pool/name", |slice| text(&slice.spec.pool.name)),
            ("/spec/pool/generation", |slice| json!(slice.spec.pool.generation)),
            ("/spec/pool/resourceSliceCount", |slice| json!(slice.spec.pool.resource_slice_count)),
            ("/spec/nodeName", |slice| json!(slice.spec.node_name)),
            ("/spec/partitionTypeAttribute", |slice| json!(slice.spec.partition_type_attribute)),
            ("/spec/sharedCounters/1/name", |slice| text(&slice.spec.shared_counters[1].name)),
            ("/spec/devices/1/name", |slice| text(&slice.spec.devices[1].name)),
            ("/spec/devices/1/taints", |slice| json!(slice.spec.devices[1].taints)),
            ("/spec/devices/1/allowMultipleAllocations", |slice| {
                json!(slice.spec.devices[1].allow_multiple_allocations)
            }),
            ("/spec/devices/1/consumesCounters/1/counterSet", |slice| {
                text(&slice.spec.devices[1].consumes_counters[1].counter_set)
            }),
        ],
    );
    let device = &object["spec"]["devices"][1];
    let of_view = &slice.spec.devices[1];
    for (name, attribute) in of_view.attributes.iter() {
        assert_eq!(json!(attribute.string), device["attributes"][&**name]["string"]);
    }
    for (name, capacity) in of_view.capacity.iter() {
        assert_eq!(json!(capacity.value), device["capacity"][&**name]["value"]);
    }
    for (name, counter) in of_view.consumes_counters[0].counters.iter() {
        assert_eq!(json!(counter.value), device["consumesCounters"][0]["counters"][&**name]["value"]);
    }
    for (name, counter) in slice.spec.shared_counters[0].counters.iter() {
        assert_eq!(json!(counter.value), object["spec"]["sharedCounters"][0]["counters"][&**name]["value"]);
    }
    assert_eq!(of_view.attributes.iter().count() + of_view.capacity.iter().count(), 4);

    let object = every_field("resource.v1alpha3.ResourcePoolStatusRequest");
    let request: ResourcePoolStatusRequestView = both("resource.v1alpha3.ResourcePoolStatusRequest", &object);
    check(&object, &request.metadata, META);
    check(
        &object,
        &request,
        &[
            ("/spec/driver", |request| text(&request.spec.driver)),
            ("/spec/poolName", |request| json!(request.spec.pool_name)),
            ("/spec/limit", |request| json!(request.spec.limit)),
            ("/spec/defaultPartitionTypeAttribute", |request| json!(request.spec.default_partition_type_attribute)),
            ("/status/conditions", |request| json!(request.status.as_ref().map(|status| &status.conditions))),
        ],
    );
}

#[test]
fn claim_templates_keep_the_spec_of_their_claims() {
    let object = every_field("resource.v1.ResourceClaimTemplate");
    let template = ResourceClaimTemplateView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
    check(&object, &template.metadata, META);
    check(
        &object,
        &template,
        &[
            ("/spec/metadata/labels", |template| json!(template.spec.labels())),
            ("/spec/metadata/annotations", |template| json!(template.spec.annotations())),
            ("/spec/spec", |template| serde_json::from_str(template.spec.spec().as_str()).unwrap()),
        ],
    );
}

#[test]
fn pod_groups_have_what_controllers_read() {
    let object = every_field("scheduling.v1beta1.PodGroup");
    let group: PodGroupView = both("scheduling.v1beta1.PodGroup", &object);
    check(&object, &group.metadata, META);
    check(
        &object,
        &group,
        &[
            ("/spec/workloadRef/workloadName", |group| {
                json!(group.spec.workload_ref.as_ref().map(|workload| &workload.workload_name))
            }),
            ("/spec/workloadRef/templateName", |group| {
                json!(group.spec.workload_ref.as_ref().map(|workload| &workload.template_name))
            }),
            ("/spec/schedulingPolicy/gang/minCount", |group| {
                json!(group.spec.scheduling_policy.gang.as_ref().map(|gang| gang.min_count))
            }),
            ("/spec/resourceClaims/1/name", |group| text(&group.spec.resource_claims[1].name)),
            ("/spec/resourceClaims/1/resourceClaimName", |group| {
                json!(group.spec.resource_claims[1].resource_claim_name)
            }),
            ("/spec/resourceClaims/1/resourceClaimTemplateName", |group| {
                json!(group.spec.resource_claims[1].resource_claim_template_name)
            }),
            ("/status/resourceClaimStatuses/1/name", |group| text(&group.status.resource_claim_statuses[1].name)),
            ("/status/resourceClaimStatuses/1/resourceClaimName", |group| {
                json!(group.status.resource_claim_statuses[1].resource_claim_name)
            }),
        ],
    );
}

#[test]
fn workloads_keep_the_templates_of_their_groups() {
    let object = every_field("scheduling.v1beta1.Workload");
    let workload = WorkloadView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
    check(&object, &workload.metadata, META);
    fn of(workload: &WorkloadView) -> &ControllerReference {
        workload.spec.controller_ref.as_ref().unwrap()
    }
    check(
        &object,
        &workload,
        &[
            ("/spec/controllerRef/apiGroup", |workload| text(&of(workload).api_group)),
            ("/spec/controllerRef/kind", |workload| text(&of(workload).kind)),
            ("/spec/controllerRef/name", |workload| text(&of(workload).name)),
            ("/spec/podGroupTemplates/1", |workload| {
                serde_json::from_str(workload.spec.pod_group_templates[1].as_str()).unwrap()
            }),
        ],
    );
}

#[test]
fn cluster_role_has_what_controllers_read() {
    let object = every_field("rbac.v1.ClusterRole");
    let role: ClusterRoleView = both("rbac.v1.ClusterRole", &object);
    check(&object, &role.metadata, META);
    check(
        &object,
        &role,
        &[
            ("/rules", |role| json!(role.rules)),
            ("/aggregationRule/clusterRoleSelectors", |role| {
                json!(role.aggregation_rule.as_ref().unwrap().cluster_role_selectors)
            }),
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
        crate::support::check(&object, view.meta(), META);
        check_whole(message, &view, &object);
    }
    check::<ReplicaSetView>("apps.v1.ReplicaSet");
    check::<DeploymentView>("apps.v1.Deployment");
    check::<DaemonSetView>("apps.v1.DaemonSet");
    check::<ReplicationControllerView>("core.v1.ReplicationController");
    check::<NamespaceView>("core.v1.Namespace");
    check::<EndpointsView>("core.v1.Endpoints");
    check::<EndpointSliceView>("discovery.v1.EndpointSlice");
    check::<LeaseView>("coordination.v1.Lease");
    check::<HorizontalPodAutoscalerView>("autoscaling.v2.HorizontalPodAutoscaler");
    check::<ResourceQuotaView>("core.v1.ResourceQuota");
    check::<PodDisruptionBudgetView>("policy.v1.PodDisruptionBudget");
    check::<ClusterTrustBundleView>("certificates.v1.ClusterTrustBundle");
    const { assert!(PodView::PROTOBUF && Meta::PROTOBUF && !ReplicaSetView::PROTOBUF) };
}

/// Jobs and CronJobs are not PUT whole, but their statuses are.
#[test]
fn statuses_of_batch_are_read_whole() {
    fn check<V: View, S: serde::Serialize>(message: &str, status: impl Fn(&V) -> S) {
        let object = every_field(message);
        let view = V::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
        crate::support::check(&object, view.meta(), META);
        assert_eq!(serde_json::to_value(status(&view)).unwrap(), object["status"], "{message}");
    }
    check::<JobView, _>("batch.v1.Job", |job| job.status.clone());
    check::<CronJobView, _>("batch.v1.CronJob", |job| job.status.clone());
}

#[test]
fn requests_for_certificates_are_read_whole() {
    let object = json!({
        "metadata": { "name": "a", "labels": { "a": "b" } },
        "spec": {
            "request": "LS0t", "signerName": "example.com/a", "expirationSeconds": 600, "usages": ["client auth"],
            "username": "ann", "uid": "1", "groups": ["g"], "extra": { "k": ["v", "w"] },
        },
        "status": {
            "certificate": "LS0tLS0=",
            "conditions": [{
                "type": "Approved", "status": "True", "reason": "R", "message": "m",
                "lastUpdateTime": "2026-11-15T00:00:00Z", "lastTransitionTime": "2026-11-15T00:00:01Z",
            }],
        },
    });
    let view = CertificateSigningRequestView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap();
    assert_eq!(serde_json::to_value(&view.status).unwrap(), object["status"]);
    check(
        &object,
        &view,
        &[
            ("/metadata/labels", |view| json!(view.metadata.labels)),
            ("/spec/request", |view| json!(view.spec.request)),
            ("/spec/signerName", |view| text(&view.spec.signer_name)),
            ("/spec/expirationSeconds", |view| json!(view.spec.expiration_seconds)),
            ("/spec/usages", |view| texts(&view.spec.usages)),
            ("/spec/username", |view| text(&view.spec.username)),
            ("/spec/uid", |view| text(&view.spec.uid)),
            ("/spec/groups", |view| texts(&view.spec.groups)),
            ("/spec/extra", |view| json!(view.spec.extra)),
        ],
    );
    assert!(!format!("{view:?}").contains("LS0t"), "{view:?}");
}

#[test]
fn fields_that_are_read_from_json_only_have_their_numbers_too() {
    fn check<M: Message>(message: &str) {
        for (name, number) in M::FIELDS {
            let field = protobuf::fields_of(message).iter().find(|field| field.name == *name);
            assert_eq!(field.map(|field| field.number), Some((*number).into()), "{message}.{name}");
        }
        assert!(!M::FIELDS.is_empty());
    }
    check::<TokenSecretView>("core.v1.Secret");
    check::<BootstrapTokenView>("core.v1.Secret");
    check::<CertificateSigningRequestView>("certificates.v1.CertificateSigningRequest");
    check::<CertificateSigningRequestSpec>("certificates.v1.CertificateSigningRequestSpec");
    check::<CertificateSigningRequestStatus>("certificates.v1.CertificateSigningRequestStatus");
    check::<ReplicaSetView>("apps.v1.ReplicaSet");
    check::<ReplicaSetSpec>("apps.v1.ReplicaSetSpec");
    check::<ReplicaSetStatus>("apps.v1.ReplicaSetStatus");
    check::<DeploymentView>("apps.v1.Deployment");
    check::<DeploymentSpec>("apps.v1.DeploymentSpec");
    check::<DeploymentStrategy>("apps.v1.DeploymentStrategy");
    check::<RollingUpdate>("apps.v1.RollingUpdateDeployment");
    check::<DeploymentStatus>("apps.v1.DeploymentStatus");
    check::<DaemonSetView>("apps.v1.DaemonSet");
    check::<DaemonSetSpec>("apps.v1.DaemonSetSpec");
    check::<DaemonSetUpdateStrategy>("apps.v1.DaemonSetUpdateStrategy");
    check::<RollingUpdate>("apps.v1.RollingUpdateDaemonSet");
    check::<DaemonSetStatus>("apps.v1.DaemonSetStatus");
    check::<StatefulSetView>("apps.v1.StatefulSet");
    check::<StatefulSetSpec>("apps.v1.StatefulSetSpec");
    check::<StatefulSetUpdateStrategy>("apps.v1.StatefulSetUpdateStrategy");
    check::<RollingUpdateStatefulSet>("apps.v1.RollingUpdateStatefulSetStrategy");
    check::<ClaimRetentionPolicy>("apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy");
    check::<StatefulSetOrdinals>("apps.v1.StatefulSetOrdinals");
    check::<StatefulSetStatus>("apps.v1.StatefulSetStatus");
    check::<ControllerRevisionView>("apps.v1.ControllerRevision");
    check::<ReplicationControllerView>("core.v1.ReplicationController");
    check::<ReplicationControllerSpec>("core.v1.ReplicationControllerSpec");
    check::<ReplicationControllerStatus>("core.v1.ReplicationControllerStatus");
    check::<JobView>("batch.v1.Job");
    check::<JobSpec>("batch.v1.JobSpec");
    check::<JobStatus>("batch.v1.JobStatus");
    check::<UncountedPods>("batch.v1.UncountedTerminatedPods");
    check::<FailurePolicy>("batch.v1.PodFailurePolicy");
    check::<FailureRule>("batch.v1.PodFailurePolicyRule");
    check::<ExitCodes>("batch.v1.PodFailurePolicyOnExitCodesRequirement");
    check::<PodConditionPattern>("batch.v1.PodFailurePolicyOnPodConditionsPattern");
    check::<SuccessPolicy>("batch.v1.SuccessPolicy");
    check::<SuccessRule>("batch.v1.SuccessPolicyRule");
    check::<WorkloadView>("scheduling.v1beta1.Workload");
    check::<WorkloadSpec>("scheduling.v1beta1.WorkloadSpec");
    check::<ControllerReference>("scheduling.v1beta1.TypedLocalObjectReference");
    check::<CronJobView>("batch.v1.CronJob");
    check::<CronJobSpec>("batch.v1.CronJobSpec");
    check::<CronJobStatus>("batch.v1.CronJobStatus");
}

#[test]
fn a_revision_has_the_template_that_its_patch_restores() {
    let revision = |data: Value| {
        let object = json!({ "metadata": { "name": "web-1" }, "data": data, "revision": 3 });
        ControllerRevisionView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
    };
    let template = json!({ "$patch": "replace", "metadata": { "labels": { "app": "web" } }, "spec": { "x": 1 } });
    let web = revision(json!({ "spec": { "template": template } }));
    assert_eq!(web.revision, 3);
    assert_eq!(web.template().unwrap().labels().get("app").unwrap(), "web");
    assert_eq!(web.template().unwrap().spec().as_str(), r#"{"x":1}"#);
    for other in [json!(null), json!("text"), json!({ "spec": 7 }), json!({ "spec": { "template": {} } })] {
        assert_eq!(revision(other.clone()).template(), None, "{other}");
    }
}

#[test]
fn an_empty_object_is_a_view_of_defaults_in_both_encodings() {
    let empty = json!({});
    assert_eq!(both::<PodView>("core.v1.Pod", &empty), PodView::default());
    assert_eq!(both::<NodeView>("core.v1.Node", &empty), NodeView::default());
    assert_eq!(both::<ServiceView>("core.v1.Service", &empty), ServiceView::default());
    assert_eq!(both::<EndpointSliceView>("discovery.v1.EndpointSlice", &empty), EndpointSliceView::default());
    assert_eq!(both::<Meta>("meta.v1.PartialObjectMetadata", &empty), Meta::default());
}
