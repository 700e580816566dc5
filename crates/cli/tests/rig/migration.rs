//! `--enable-leader-migration`: controllers under a second lease, and controllers that another manager runs.

use std::path::Path;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_base::Clock;
use steersman_testing::rig::{Process, Rig, Setup};
use steersman_testing::{Failure, expect, expect_eq, objects};

use crate::everything::{start, start_manager, until_answered};
use crate::manager::{client_of, until, wanted};

const CONFIG: &str = "apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: moving
controllerLeaders:
- { name: ttl-controller, component: kube-controller-manager }
- { name: namespace-controller, component: cloud-controller-manager }
";
/// The annotation of the controller that moves.
const TTL: &str = "node.alpha.kubernetes.io/ttl";

fn leases(admin: &Client) -> Api<Lease> {
    Api::namespaced(admin.clone(), "kube-system")
}

/// Somebody else holds the second lease for so many seconds.
async fn hold(admin: &Client, seconds: i32) -> Result<(), Failure> {
    let now = Clock::system().now_micros().to_string();
    let spec = json!({
        "holderIdentity": "the other manager", "leaseDurationSeconds": seconds, "acquireTime": now, "renewTime": now,
    });
    let lease = json!({ "metadata": { "name": "moving" }, "spec": spec });
    let kept = leases(admin).get_opt("moving").await?;
    if kept.is_some() {
        leases(admin).patch("moving", &PatchParams::default(), &Patch::Merge(lease)).await?;
    } else {
        leases(admin).create(&PostParams::default(), &serde_json::from_value(lease)?).await?;
    }
    Ok(())
}

async fn ttl_of(nodes: &Api<Node>) -> Result<Option<String>, Failure> {
    let node = nodes.get("bare").await?;
    Ok(node.metadata.annotations.and_then(|annotations| annotations.get(TTL).cloned()))
}

async fn start_migrating(rig: &Rig) -> Result<(Process, Client), Failure> {
    let file = rig.scratch().join("migration.yaml");
    std::fs::write(&file, CONFIG)?;
    let mut flags = rig.manager_flags();
    flags.extend([
        "--controllers=ttl,namespace,replicaset".to_owned(),
        "--enable-leader-migration".to_owned(),
        format!("--leader-migration-config={}", file.display()),
        "--leader-elect-retry-period=500ms".to_owned(),
    ]);
    start_manager(rig, "migrating", Path::new(env!("CARGO_BIN_EXE_steersman")), &["controller-manager"], flags).await
}

#[tokio::test]
async fn a_migrated_controller_works_under_the_second_lease_and_its_loss_ends_the_program() -> Result<(), Failure> {
    let rig = start("migration", Setup::DEFAULT).await?;
    let admin = client_of(rig.kubeconfig()).await?;
    let nodes: Api<Node> = Api::all(admin.clone());
    nodes.create(&PostParams::default(), &objects::node("bare")).await?;
    hold(&admin, 8).await?;
    let (process, port) = start_migrating(&rig).await?;
    let page: Value = serde_json::from_str(&until_answered(&process, &port, "/debug/controllers").await?)?;
    let entries = page["controllers"].as_array().cloned().unwrap_or_default();
    let of = |name: &str| entries.iter().find(|entry| entry["name"] == name).cloned().unwrap_or_default();
    expect_eq("the one that moves", &of("ttl-controller")["state"], &json!("enabled"))?;
    let why = "the leader migration gives it to cloud-controller-manager";
    expect_eq("the one that has gone", &of("namespace-controller")["why"], &json!(why))?;

    // The first lease is held, the second is not.
    until("it leads", || async {
        let lease = leases(&admin).get_opt("kube-controller-manager").await?;
        Ok(wanted(lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default(), |held| !held.is_empty()))
    })
    .await?;
    expect_eq("before the second lease is held", &ttl_of(&nodes).await?, &None)?;
    until("it works", || async { Ok(wanted(ttl_of(&nodes).await?, Option::is_some)) }).await?;
    let page = until_answered(&process, &port, "/healthz?verbose").await?;
    expect(page.contains("[+]leader-migration ok"), "the check of the second lease", &page)?;
    let page = until_answered(&process, &port, "/metrics").await?;
    for want in [
        "leader_election_master_status{name=\"kube-controller-manager\"} 1",
        "leader_election_master_status{name=\"moving\"} 1",
        "workqueue_adds_total{name=\"ttlcontroller\"}",
    ] {
        expect(page.contains(want), want, &page)?;
    }

    hold(&admin, 3600).await?;
    let why = "leader migration failed: leaderelection lost";
    until("it says why", || async { Ok(wanted(process.said()?, |said| said.contains(why))) }).await?;
    // It has ended, or is about to: a signal changes nothing.
    expect_eq("the exit code", &process.terminate().await?, &1)
}
