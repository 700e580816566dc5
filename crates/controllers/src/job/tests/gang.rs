//! Workloads and PodGroups of Jobs.

use steersman_model::scheduling::WorkloadView;

use super::*;
use crate::job::gang::{
    Managed, TEMPLATE_ANNOTATION, delegating, described, group_name, is_new, managed, min_count, new_group,
    new_workload, template, template_of, workload_name,
};
use crate::job::plan::Replacement;
use crate::job::pods::{new_indexed_pods, new_pods};

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn scheduled(scheduling: Value) -> JobView {
    job(json!({ "spec": { "scheduling": scheduling } }))
}

/// Recorded from upstream's functions; the last pair from its manager.
#[test]
fn names_are_upstreams() {
    let named = |name: &str, uid: &str| workload_name(job(json!({ "metadata": { "name": name, "uid": uid } })).meta());
    assert_eq!(named("sums", "job"), "sums-8465554dcd");
    assert_eq!(named("sums", "7f2c1e8a-4a59-4f7d-9a0c-1f6f0f8f3b11"), "sums-6764c774d7");
    assert_eq!(named("sums", ""), "sums-69ddf977d7");
    assert_eq!(named(&"x".repeat(300), "job"), format!("{}-8465554dcd", "x".repeat(242)));
    assert_eq!(group_name("sums-abc", "sums-pgt-0"), "sums-abc-sums-pgt-0-7d59c74595");
    let workload = named("sums", "a67a3d4a-810f-4e8a-b03e-55f9f3e5d3e6");
    assert_eq!(workload, "sums-6f87887c69");
    assert_eq!(group_name(&workload, "sums-pgt-0"), "sums-6f87887c69-sums-pgt-0-f4894879c");
    for (workload, template) in [(10, 300), (300, 10), (300, 300), (126, 200), (200, 120)] {
        let name = group_name(&"w".repeat(workload), &"t".repeat(template));
        let hash = name.rsplit('-').next().unwrap_or_default().len();
        assert_eq!(name.len(), 253, "{workload} {template}");
        let half = (253 - hash - 2) / 2;
        let kept = name.matches('w').count().min(name.matches('t').count());
        assert!(kept >= workload.min(template).min(half), "{workload} {template}: {name}");
    }
}

#[test]
fn a_job_of_its_own_has_both_objects_and_a_child_what_its_parent_delegates() {
    let parent =
        json!({ "apiVersion": "jobset.x-k8s.io/v1", "kind": "JobSet", "name": "p", "uid": "p", "controller": true });
    let mut guest = parent.clone();
    guest["controller"] = json!(false);
    let delegates =
        json!({ "metadata": { "ownerReferences": [parent], "annotations": { TEMPLATE_ANNOTATION: "workers" } } });
    let in_group = json!({ "spec": { "template": { "spec": { "schedulingGroup": { "podGroupName": "mine" } } } } });
    let check = |name: &str, more: Value, want: Managed| assert_eq!(managed(&job(more)), want, "{name}");
    let workers = || Managed::GroupOf { template: "workers".into() };
    check("a Job", json!({}), Managed::Both);
    check("an owner that is no controller", json!({ "metadata": { "ownerReferences": [guest] } }), Managed::Both);
    check("a child", json!({ "metadata": { "ownerReferences": [parent] } }), Managed::Nothing);
    check("a child whose parent delegates", delegates.clone(), workers());
    check("a group of the user's", in_group.clone(), Managed::Nothing);
    check("a group of the user's, and a parent", merged(in_group, delegates.clone()), Managed::Nothing);
    check(
        "the annotation without a parent",
        json!({ "metadata": { "annotations": { TEMPLATE_ANNOTATION: "x" } } }),
        Managed::Both,
    );

    let reference = json!({ "apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "p" });
    let of = |more: Value| -> WorkloadView {
        decode(
            json!({ "metadata": { "name": "w", "namespace": "default" }, "spec": { "controllerRef": merged(reference.clone(), more) } }),
        )
    };
    assert_eq!(described(&of(json!({}))), delegating(&job(delegates.clone())));
    assert_ne!(described(&of(json!({ "name": "q" }))), delegating(&job(delegates)));
    assert_eq!(delegating(&job(json!({ "metadata": { "ownerReferences": [parent] } }))), None);
}

#[test]
fn only_a_job_that_never_started_is_new() {
    let check = |name: &str, more: Value, pods: &[Arc<PodView>], want: bool| {
        let fresh = json!({ "status": { "startTime": null } });
        assert_eq!(is_new(&job(merged(fresh, more)), pods), want, "{name}");
    };
    check("a new one", json!({}), &[], true);
    check("it has pods", json!({}), &[pod("a", json!({}))], false);
    check("it was started", json!({ "status": { "startTime": NOW } }), &[], false);
    check("pods have succeeded", json!({ "status": { "succeeded": 1 } }), &[], false);
    check("pods have failed", json!({ "status": { "failed": 1 } }), &[], false);
    let suspended = |status: &str| json!({ "status": { "conditions": [{ "type": "Suspended", "status": status }] } });
    check("it was suspended", suspended("True"), &[], false);
    check("it was suspended once", suspended("False"), &[], false);
}

#[test]
fn the_template_of_a_group_is_what_the_job_asks_for() {
    let check = |name: &str, job: JobView, want: Value| {
        let want = merged(json!({ "name": "sums-pgt-0" }), want);
        assert_eq!(template(&job), want, "{name}");
    };
    let basic = json!({ "schedulingPolicy": { "basic": {} } });
    let gang = |count: i32| json!({ "schedulingPolicy": { "gang": { "minCount": count } } });
    check("nothing", job(json!({})), basic.clone());
    check("an empty policy", scheduled(json!({ "schedulingPolicy": {} })), basic.clone());
    check("each pod by itself", scheduled(basic.clone()), basic.clone());
    check("a gang of some", scheduled(gang(4)), gang(4));
    check("a gang of all", scheduled(json!({ "schedulingPolicy": { "gang": {} } })), gang(2));
    let none = json!({ "spec": { "parallelism": 0, "scheduling": { "schedulingPolicy": { "gang": {} } } } });
    check("a gang of none", job(none), gang(1));
    let all = json!({
        "schedulingConstraints": { "topology": [{ "key": "zone" }] },
        "disruptionMode": { "all": {} },
        "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "gpus" }],
    });
    check("everything", scheduled(all.clone()), merged(basic.clone(), all));
    let empty = json!({ "schedulingConstraints": { "topology": [] }, "disruptionMode": {}, "resourceClaims": [] });
    check("nothing, in words", scheduled(empty), basic.clone());
    let class = json!({ "spec": { "template": { "spec": { "priorityClassName": "high" } } } });
    check("a class", job(class), merged(basic, json!({ "priorityClassName": "high" })));
}

#[test]
fn a_group_is_the_jobs_and_copies_its_template() {
    let job = scheduled(json!({ "schedulingPolicy": { "gang": { "minCount": 3 } } }));
    let mut stored = new_workload(&job);
    assert_eq!(stored["spec"]["controllerRef"], json!({ "apiGroup": "batch", "kind": "Job", "name": "sums" }));
    assert_eq!(stored["metadata"]["ownerReferences"][0]["uid"], "job");
    assert_eq!(stored["metadata"]["ownerReferences"][0]["controller"], true);
    stored["metadata"]["uid"] = json!("workload");
    stored["spec"]["podGroupTemplates"][0]["priority"] = json!(7);
    stored["spec"]["podGroupTemplates"][0]["preemptionPolicy"] = json!("Never");
    let workload: WorkloadView = decode(stored);
    let template = template_of(&workload, "sums-pgt-0").unwrap();
    assert_eq!(template_of(&workload, "other"), None);
    assert_eq!(min_count(&template), Some(3));
    let group = new_group(&job, &workload.metadata, &template, true);
    assert_eq!(group["kind"], "PodGroup");
    assert_eq!(group["metadata"]["name"], group_name("sums-8465554dcd", "sums-pgt-0"));
    let owners = &group["metadata"]["ownerReferences"];
    assert_eq!((&owners[0]["kind"], &owners[0]["controller"]), (&json!("Job"), &json!(true)));
    let link = json!({ "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "name": "sums-8465554dcd", "uid": "workload" });
    assert_eq!(owners[1], link);
    let want = json!({
        "workloadRef": { "workloadName": "sums-8465554dcd", "templateName": "sums-pgt-0" },
        "schedulingPolicy": { "gang": { "minCount": 3 } },
        "priority": 7,
    });
    assert_eq!(group["spec"], want);
    let of_parent = new_group(&job, &workload.metadata, &template, false);
    assert_eq!(of_parent["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
}

#[test]
fn pods_name_their_group() {
    let plain = job(json!({}));
    let numbered = indexed(json!({}));
    let one = [Replacement { index: 3, ..Replacement::default() }];
    for (new, name) in [
        (new_pods(&plain, 1, Some("gang")), "sums-abcde"),
        (new_indexed_pods(&numbered, &one, Some("gang")), "sums-3-abcde"),
    ] {
        let body: Value = serde_json::from_slice(&new[0].body(name)).unwrap();
        assert_eq!(body["spec"]["schedulingGroup"], json!({ "podGroupName": "gang" }));
        assert_eq!(body["spec"]["restartPolicy"], "Never");
        assert_eq!(body["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    }
    let body: Value = serde_json::from_slice(&new_pods(&plain, 1, None)[0].body("x")).unwrap();
    assert_eq!(body["spec"].get("schedulingGroup"), None);
}
