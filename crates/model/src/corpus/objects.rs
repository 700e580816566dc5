//! The objects of the corpus.

use super::{Numbers, TEMPLATES};

/// The parts that all objects of one template share.
struct Template {
    app: String,
    tier: &'static str,
    team: String,
    hash: String,
    checksum: String,
    replica_set_uid: String,
    namespace: String,
    spec_head: String,
    spec_tail: String,
}

const TIERS: [&str; 4] = ["frontend", "backend", "batch-processing", "data"];

/// The pod of this number.
pub(super) fn pod(numbers: &mut Numbers, index: usize) -> String {
    let template = Template::new(index % TEMPLATES);
    let Template { app, tier, team, hash, checksum, replica_set_uid, namespace, spec_head, spec_tail } = &template;
    let suffix = numbers.suffix(5);
    let name = format!("{app}-{hash}-{suffix}");
    let uid = numbers.uid();
    let trace = numbers.hex(20);
    let version = 1_000_000 + index;
    let node = format!("ip-10-0-{}-{}.eu-central-1.compute.internal", numbers.below(4), numbers.below(250));
    let ip = address(numbers, 244);
    let host = address(numbers, 0);
    let created = numbers.time();
    let started = numbers.time();
    let ready = numbers.time();
    let token = format!("kube-api-access-{}", numbers.suffix(5));
    let containers = ["server", "proxy"].map(|container| container_status(numbers, container, app, &started)).join(",");
    let managed = managed_fields(&created, &ready);
    format!(
        r#"{{"metadata":{{"name":"{name}","generateName":"{app}-{hash}-","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"{created}","labels":{{"app.kubernetes.io/name":"{app}","example.dev/instance":"{name}","example.dev/team":"{team}","example.dev/trace":"{trace}","pod-template-hash":"{hash}","tier":"{tier}"}},"annotations":{{"checksum/config":"{checksum}","prometheus.io/port":"9090","prometheus.io/scrape":"true"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{app}-{hash}","uid":"{replica_set_uid}","controller":true,"blockOwnerDeletion":true}}],"managedFields":{managed}}},"spec":{{"volumes":[{{"name":"config","configMap":{{"name":"{app}-config","defaultMode":420}}}},{{"name":"certificates","secret":{{"secretName":"{app}-tls","defaultMode":420}}}},{{"name":"scratch","emptyDir":{{}}}},{{"name":"{token}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}],"defaultMode":420}}}}],{spec_head}{{"name":"{token}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}{spec_tail},"nodeName":"{node}","priority":1000,"priorityClassName":"{team}-priority","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},"status":{{"phase":"Running","observedGeneration":1,"conditions":[{},{},{},{},{}],"hostIP":"{host}","hostIPs":[{{"ip":"{host}"}}],"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"startTime":"{started}","containerStatuses":[{containers}],"qosClass":"Burstable"}}}}"#,
        condition("PodReadyToStartContainers", &started),
        condition("Initialized", &started),
        condition("Ready", &ready),
        condition("ContainersReady", &ready),
        condition("PodScheduled", &created),
    )
}

/// The ReplicaSet of this number.
pub(super) fn replica_set(numbers: &mut Numbers, index: usize) -> String {
    let template = Template::new(index % TEMPLATES);
    let Template { app, tier, team, hash, namespace, spec_head, spec_tail, .. } = &template;
    let uid = numbers.uid();
    let owner = numbers.uid();
    let created = numbers.time();
    let copy = index / TEMPLATES;
    let name = if copy == 0 { format!("{app}-{hash}") } else { format!("{app}-{copy}-{hash}") };
    let version = 2_000_000 + index;
    let revision = numbers.below(20) + 1;
    let replicas = numbers.below(10);
    let labels = format!(
        r#"{{"app.kubernetes.io/name":"{app}","example.dev/team":"{team}","pod-template-hash":"{hash}","tier":"{tier}"}}"#
    );
    // A template has no service account token yet, so the list of mounts ends before it.
    let head = spec_head.trim_end_matches(',');
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","generation":{revision},"creationTimestamp":"{created}","labels":{labels},"annotations":{{"deployment.kubernetes.io/desired-replicas":"{replicas}","deployment.kubernetes.io/max-replicas":"{}","deployment.kubernetes.io/revision":"{revision}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"Deployment","name":"{app}","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],"managedFields":{}}},"spec":{{"replicas":{replicas},"selector":{{"matchLabels":{labels}}},"template":{{"metadata":{{"labels":{labels},"annotations":{{"prometheus.io/port":"9090","prometheus.io/scrape":"true"}}}},"spec":{{{head}{spec_tail}}}}}}},"status":{{"replicas":{replicas},"fullyLabeledReplicas":{replicas},"readyReplicas":{replicas},"availableReplicas":{replicas},"observedGeneration":{revision}}}}}"#,
        replicas + 1,
        replica_set_managed_fields(&created),
    )
}

impl Template {
    fn new(index: usize) -> Self {
        // Templates are the same for every seed: they stand for what a cluster runs, not for one moment of it.
        let mut numbers = Numbers(index as u64 ^ 0x5eed_0000);
        numbers.next();
        let app = format!("service-{index:03}-{}", ["api", "worker", "gateway", "cache"][index % 4]);
        let tier = TIERS[index % TIERS.len()];
        let (spec_head, spec_tail) = spec(&app, index);
        Self {
            tier,
            team: format!("team-{:02}", index % 40),
            hash: numbers.suffix(9),
            checksum: numbers.hex(64),
            replica_set_uid: numbers.uid(),
            namespace: format!("namespace-{:02}", index % 40),
            spec_head,
            spec_tail,
            app,
        }
    }
}

/// The spec up to the mounts of the first container, and the rest.
fn spec(app: &str, index: usize) -> (String, String) {
    let cpu = 100 + index % 7 * 50;
    let memory = 128 + index % 5 * 64;
    let variables: String = (0..6)
        .map(|n| format!(r#"{{"name":"SETTING_{n}","value":"value {n} of {app}, template {index}"}},"#))
        .collect();
    let probe = |path: &str| {
        format!(
            r#"{{"httpGet":{{"path":"{path}","port":"http","scheme":"HTTP"}},"initialDelaySeconds":5,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}}"#
        )
    };
    let head = format!(
        r#""containers":[{{"name":"server","image":"registry.example.dev/{app}:v1.{index}.0","args":["--port=8080","--log-level=info"],"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}},{{"name":"metrics","containerPort":9090,"protocol":"TCP"}}],"env":[{variables}{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}},{{"name":"PASSWORD","valueFrom":{{"secretKeyRef":{{"name":"{app}-credentials","key":"password"}}}}}}],"resources":{{"limits":{{"memory":"{memory}Mi"}},"requests":{{"cpu":"{cpu}m","memory":"{memory}Mi"}}}},"livenessProbe":{},"readinessProbe":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","volumeMounts":[{{"name":"config","mountPath":"/etc/{app}"}},{{"name":"certificates","readOnly":true,"mountPath":"/etc/tls"}},"#,
        probe("/healthz"),
        probe("/readyz"),
    );
    let tail = format!(
        r#"]}},{{"name":"proxy","image":"registry.example.dev/proxy:v2.3.4","args":["--upstream=127.0.0.1:8080"],"ports":[{{"name":"https","containerPort":8443,"protocol":"TCP"}}],"resources":{{"limits":{{"memory":"64Mi"}},"requests":{{"cpu":"10m","memory":"64Mi"}}}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{{"capabilities":{{"drop":["ALL"]}},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{app}","serviceAccount":"{app}","securityContext":{{"runAsUser":1000,"runAsNonRoot":true}},"imagePullSecrets":[{{"name":"registry"}}],"schedulerName":"default-scheduler","enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority""#
    );
    (head, tail)
}

fn address(numbers: &mut Numbers, second: u64) -> String {
    format!("10.{second}.{}.{}", numbers.below(256), numbers.below(254) + 1)
}

fn condition(type_: &str, time: &str) -> String {
    format!(
        r#"{{"type":"{type_}","observedGeneration":1,"status":"True","lastProbeTime":null,"lastTransitionTime":"{time}"}}"#
    )
}

fn container_status(numbers: &mut Numbers, name: &str, app: &str, started: &str) -> String {
    let id = numbers.hex(64);
    let image = numbers.hex(64);
    format!(
        r#"{{"name":"{name}","state":{{"running":{{"startedAt":"{started}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"registry.example.dev/{app}:v1","imageID":"registry.example.dev/{app}@sha256:{image}","containerID":"containerd://{id}","started":true,"allocatedResources":{{"cpu":"10m","memory":"64Mi"}},"resources":{{"limits":{{"memory":"64Mi"}},"requests":{{"cpu":"10m","memory":"64Mi"}}}}}}"#
    )
}

fn managed_fields(created: &str, changed: &str) -> String {
    format!(
        r#"[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"{created}","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:checksum/config":{{}},"f:prometheus.io/port":{{}},"f:prometheus.io/scrape":{{}}}},"f:generateName":{{}},"f:labels":{{".":{{}},"f:app.kubernetes.io/name":{{}},"f:pod-template-hash":{{}},"f:tier":{{}}}},"f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"00000000-0000-0000-0000-000000000000\"}}":{{}}}}}},"f:spec":{{"f:containers":{{"k:{{\"name\":\"server\"}}":{{".":{{}},"f:args":{{}},"f:env":{{".":{{}},"k:{{\"name\":\"SETTING_0\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}},"k:{{\"name\":\"SETTING_1\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}},"k:{{\"name\":\"SETTING_2\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}}}},"f:image":{{}},"f:imagePullPolicy":{{}},"f:livenessProbe":{{".":{{}},"f:httpGet":{{".":{{}},"f:path":{{}},"f:port":{{}}}}}},"f:name":{{}},"f:ports":{{".":{{}},"k:{{\"containerPort\":8080,\"protocol\":\"TCP\"}}":{{".":{{}},"f:containerPort":{{}},"f:name":{{}},"f:protocol":{{}}}}}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:memory":{{}}}},"f:requests":{{".":{{}},"f:cpu":{{}},"f:memory":{{}}}}}}}}}},"f:dnsPolicy":{{}},"f:restartPolicy":{{}},"f:schedulerName":{{}},"f:securityContext":{{}},"f:terminationGracePeriodSeconds":{{}}}}}}}},{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{changed}","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{"k:{{\"type\":\"ContainersReady\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}},"k:{{\"type\":\"Ready\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}}}},"f:containerStatuses":{{}},"f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:podIPs":{{".":{{}},"k:{{\"ip\":\"10.0.0.1\"}}":{{".":{{}},"f:ip":{{}}}}}},"f:startTime":{{}}}}}},"subresource":"status"}}]"#
    )
}

fn replica_set_managed_fields(created: &str) -> String {
    format!(
        r#"[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"apps/v1","time":"{created}","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:deployment.kubernetes.io/revision":{{}}}}}},"f:spec":{{"f:replicas":{{}},"f:selector":{{}},"f:template":{{"f:metadata":{{"f:labels":{{}}}},"f:spec":{{"f:containers":{{}}}}}}}}}}}}]"#
    )
}
