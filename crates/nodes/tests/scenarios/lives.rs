//! What happens to pods on simulated nodes, on any API server.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::{Failure, TestCluster};

/// Lists all scenarios, for a macro that makes tests of them: each runs on every kind of cluster.
macro_rules! scenarios {
    ($tests:ident) => {
        $tests! {
            a_pod_is_scheduled_runs_is_ready_and_goes,
            what_happens_to_a_pod_and_a_node_is_reported,
            a_pod_does_what_its_command_says,
            a_pod_waits_for_room,
            a_gated_pod_waits_for_its_gate,
            a_finalizer_keeps_a_pod_that_has_ended,
            nodes_register_and_can_be_taken_away,
        }
    };
}
pub(crate) use scenarios;

/// Returns a pod from JSON, merged with what all have.
pub(crate) fn pod(name: &str, spec: &Value) -> Pod {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    serde_json::from_value(object).expect("a pod")
}

/// Returns a pod whose container runs this command.
pub(crate) fn running(name: &str, command: &[&str], restart_policy: &str) -> Pod {
    let container = json!({ "name": "main", "image": "busybox:1", "command": command });
    pod(name, &json!({ "containers": [container], "restartPolicy": restart_policy }))
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

pub(crate) fn address_of(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or_default()
}

/// Returns status and message of a condition.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> (&'a str, &'a str) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let held = conditions.into_iter().flatten().find(|held| held.type_ == type_);
    held.map_or(("", ""), |held| (&held.status, held.message.as_deref().unwrap_or_default()))
}

/// Waits until `looks` accepts the pod.
pub(crate) async fn until(
    cluster: &TestCluster,
    name: &str,
    what: &str,
    looks: impl Fn(&Pod) -> bool,
) -> Result<Pod, Failure> {
    let pod = async || Ok(cluster.api::<Pod>().get(name).await?);
    cluster.until_right(&format!("{name} is {what}"), pod, looks).await
}

pub(crate) async fn until_ready(cluster: &TestCluster, name: &str) -> Result<Pod, Failure> {
    until(cluster, name, "ready", |pod| condition(pod, "Ready").0 == "True").await
}

pub(crate) async fn until_gone(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    cluster
        .until(&format!("{name} is gone"), || async {
            let found = cluster.api::<Pod>().get_opt(name).await?;
            Ok(found.map_or(Ok(()), |pod| Err(format!("{:?} {:?}", pod.metadata, pod.status))))
        })
        .await
}

/// A pod gets a node, an address, readiness; and is gone after its deletion.
pub(crate) async fn a_pod_is_scheduled_runs_is_ready_and_goes(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(pod("web", &json!({}))).await?;
    let web = until_ready(cluster, "web").await?;
    assert_eq!(phase(&web), "Running");
    assert!(cluster.nodes().names().iter().any(|name| name == node_of(&web)), "{}", node_of(&web));
    assert!(address_of(&web).starts_with("10."), "{}", address_of(&web));
    assert_eq!(condition(&web, "PodScheduled").0, "True");
    let status = web.status.unwrap_or_default();
    let container = status.container_statuses.unwrap_or_default().remove(0);
    assert!(container.ready && container.started == Some(true) && container.restart_count == 0);
    assert!(container.state.is_some_and(|state| state.running.is_some()));

    let want = format!("Successfully assigned {}/web to ", cluster.namespace());
    let scheduled = |event: &Event| {
        event.reason.as_deref() == Some("Scheduled")
            && event.message.as_deref().is_some_and(|message| message.starts_with(&want))
    };
    let events = async || Ok(cluster.api::<Event>().list(&ListParams::default()).await?.items);
    cluster.until_right("the event Scheduled", events, |events| events.iter().any(scheduled)).await?;

    cluster.delete::<Pod>("web").await?;
    until_gone(cluster, "web").await
}

/// The events of a pod and of its node, as `kubectl describe` shows them.
pub(crate) async fn what_happens_to_a_pod_and_a_node_is_reported(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(pod("web", &json!({}))).await?;
    let node = node_of(&until_ready(cluster, "web").await?).to_owned();
    cluster.delete::<Pod>("web").await?;
    until_gone(cluster, "web").await?;
    let reported = |event: &Event| {
        let source = event.source.clone().unwrap_or_default();
        let is_ours = source.component.as_deref() == Some("kubelet") && source.host.as_ref() == Some(&node);
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let note = format!("{}: {}", text(&event.reason), text(&event.message));
        is_ours.then(|| (text(&event.involved_object.field_path), note))
    };
    let want = [
        r#"Pulled: Container image "example/main:1" already present on machine and can be accessed by the pod"#,
        "Created: Container created",
        "Started: Container started",
        "Killing: Stopping container main",
    ];
    let want = want.map(|note| ("spec.containers{main}".to_owned(), note.to_owned()));
    let seen = async || {
        let events = cluster.api::<Event>().list(&ListParams::default()).await?;
        Ok(events.iter().filter_map(reported).collect::<Vec<_>>())
    };
    let are_reported = |seen: &Vec<_>| want.iter().all(|note| seen.contains(note));
    cluster.until_right("the kubelet's events", seen, are_reported).await?;

    let nodes = Api::<Node>::all(cluster.client());
    let events = Api::<Event>::namespaced(cluster.client(), "default");
    nodes.cordon(&node).await?;
    let want = [
        "Starting: Starting kubelet.".to_owned(),
        format!("NodeNotSchedulable: Node {node} status is now: NodeNotSchedulable"),
    ];
    let about = ListParams::default().fields(&format!("involvedObject.kind=Node,involvedObject.name={node}"));
    let seen = async || {
        let events = events.list(&about).await?;
        Ok(events.iter().filter_map(reported).map(|(_, note)| note).collect::<Vec<_>>())
    };
    let are_reported = |seen: &Vec<String>| want.iter().all(|note| seen.contains(note));
    cluster.until_right("the node's events", seen, are_reported).await?;
    nodes.uncordon(&node).await?;
    Ok(())
}

/// Pods that have ended report how, and their logs show what they printed.
pub(crate) async fn a_pod_does_what_its_command_says(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(running("good", &["sh", "-c", "echo hello; sleep 1; echo bye"], "Never")).await?;
    cluster.create(running("bad", &["sh", "-c", "echo oh; exit 3"], "Never")).await?;
    // As `kubectl run`: the image's entry point runs the arguments.
    let said = json!({ "name": "main", "image": "busybox:1", "args": ["echo", "said"] });
    cluster.create(pod("args", &json!({ "containers": [said], "restartPolicy": "Never" }))).await?;
    for name in ["good", "args"] {
        until(cluster, name, "through", |pod| phase(pod) == "Succeeded").await?;
    }
    let bad = until(cluster, "bad", "through", |pod| phase(pod) == "Failed").await?;
    let ended = bad.status.unwrap_or_default().container_statuses.unwrap_or_default().remove(0).state;
    let ended = ended.and_then(|state| state.terminated).map(|ended| (ended.exit_code, ended.reason));
    assert_eq!(ended, Some((3, Some("Error".to_owned()))));
    // The kubelets read logs from their cache, which may lag behind the server.
    for (name, want) in [("good", "hello\nbye\n"), ("bad", "oh\n"), ("args", "said\n")] {
        let query = steersman_nodes::LogQuery::default();
        let log = async || Ok(cluster.nodes().logs(cluster.namespace(), name, &query).ok());
        cluster.until_eq(&format!("the log of {name}"), log, Some(want.to_owned())).await?;
    }
    Ok(())
}

/// A pod that fits no node reports it, and gets the resources that another one frees.
pub(crate) async fn a_pod_waits_for_room(cluster: &TestCluster) -> Result<(), Failure> {
    let large = |name: &str| {
        let container = json!({ "name": "main", "image": "x", "resources": { "requests": { "cpu": "6" } } });
        pod(name, &json!({ "containers": [container] }))
    };
    let count = cluster.nodes().names().len();
    for number in 0..count {
        let name = format!("large-{number}");
        cluster.create(large(&name)).await?;
        until_ready(cluster, &name).await?;
    }
    cluster.create(large("waiting")).await?;
    let waiting = until(cluster, "waiting", "refused", |pod| condition(pod, "PodScheduled").0 == "False").await?;
    let want = format!(
        "0/{count} nodes are available: {count} Insufficient cpu. \
         preemption: 0/{count} nodes are available: {count} No preemption victims found for incoming pod."
    );
    assert_eq!(condition(&waiting, "PodScheduled").1, want);
    cluster.delete::<Pod>("large-0").await?;
    until_ready(cluster, "waiting").await?;
    Ok(())
}

/// A gate keeps a pod from being scheduled.
pub(crate) async fn a_gated_pod_waits_for_its_gate(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(pod("gated", &json!({ "schedulingGates": [{ "name": "example.dev/wait" }] }))).await?;
    cluster.create(pod("free", &json!({}))).await?;
    until_ready(cluster, "free").await?;
    let gated = cluster.api::<Pod>().get("gated").await?;
    assert_eq!((node_of(&gated), condition(&gated, "PodScheduled").0), ("", "False"));
    let open = Patch::Merge(json!({ "spec": { "schedulingGates": null } }));
    cluster.api::<Pod>().patch("gated", &PatchParams::default(), &open).await?;
    until_ready(cluster, "gated").await?;
    Ok(())
}

/// A pod with finalizers ends, reports how, and stays until they are removed.
pub(crate) async fn a_finalizer_keeps_a_pod_that_has_ended(cluster: &TestCluster) -> Result<(), Failure> {
    let mut kept = running("kept", &["sleep", "3600"], "Never");
    kept.metadata.finalizers = Some(vec!["example.dev/keep".into()]);
    cluster.create(kept).await?;
    until_ready(cluster, "kept").await?;
    cluster.delete::<Pod>("kept").await?;
    until(cluster, "kept", "through", |pod| phase(pod) == "Failed").await?;
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    cluster.api::<Pod>().patch("kept", &PatchParams::default(), &release).await?;
    until_gone(cluster, "kept").await
}

/// Nodes register, are ready, and renew their leases; a removed one is deleted.
pub(crate) async fn nodes_register_and_can_be_taken_away(cluster: &TestCluster) -> Result<(), Failure> {
    let nodes = Api::<Node>::all(cluster.client());
    let leases = Api::<Lease>::namespaced(cluster.client(), "kube-node-lease");
    for name in cluster.nodes().names() {
        let node = async || Ok(nodes.get_opt(&name).await?);
        let is_untainted =
            |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).is_none_or(Vec::is_empty);
        let is_right = |node: &Option<Node>| node.as_ref().is_some_and(is_untainted);
        let node = cluster.until_right("the node is ready, and not to be avoided", node, is_right).await?;
        let status = node.and_then(|node| node.status).unwrap_or_default();
        let ready = status.conditions.unwrap_or_default().into_iter().find(|held| held.type_ == "Ready");
        assert_eq!(ready.map(|held| held.status).as_deref(), Some("True"));
        let address = status.addresses.unwrap_or_default().into_iter().find(|address| address.type_ == "InternalIP");
        assert!(address.is_some_and(|address| address.address.starts_with("172.")));
        let holder = async || Ok(leases.get_opt(&name).await?.and_then(|lease| lease.spec?.holder_identity));
        cluster.until_eq("a lease", holder, Some(name.to_string())).await?;
    }
    let first = cluster.nodes().names()[0].clone();
    cluster.nodes().remove(&first).map_err(Failure::from)?;
    let are_there = async || Ok((nodes.get_opt(&first).await?.is_some(), leases.get_opt(&first).await?.is_some()));
    cluster.until_eq("the node and its lease are gone", are_there, (false, false)).await?;
    cluster.nodes().resume(&first).map_err(Failure::from)?;
    let back = cluster
        .until("the node is back", || async { Ok(nodes.get_opt(&first).await?.ok_or_else(|| "no node".to_owned())) })
        .await?;
    // A node that somebody deletes stays deleted.
    nodes.delete(&first, &DeleteParams::default()).await?;
    cluster.advance(std::time::Duration::from_secs(2)).await;
    let again = nodes.get_opt(&first).await?.map(|node| (node.metadata.uid, back.metadata.uid));
    assert_eq!(again, None);
    Ok(())
}
