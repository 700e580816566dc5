//! Accounts, certificates and tokens when things go wrong.

use std::time::Duration;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret, ServiceAccount};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use prometheus::Registry;
use serde_json::{Value, json};
use steersman_runtime::Build;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::scenarios::accounts::{MAP, UID, token_secret, until_filled};
use crate::scenarios::namespace::{HOLD, delete};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};
use crate::scenarios::support::line::{Line, Trouble};

const EVERY_NAMESPACE: &[Controller] = &[controllers::SERVICE_ACCOUNT, controllers::ROOT_CA_WITH_CERTIFICATE];
const TOKENS: &[Controller] = &[controllers::SERVICE_ACCOUNT_TOKEN_WITH_KEY];

fn account(name: &str) -> ServiceAccount {
    objects::service_account(name)
}

async fn change(cluster: &TestCluster, secret: &str, metadata: Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    cluster.api::<Secret>().patch(secret, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_away_gets_nothing() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(EVERY_NAMESPACE).start().await?;
    cluster.until_exists::<ServiceAccount>("default").await?;
    cluster.until_exists::<ConfigMap>(MAP).await?;
    delete(&cluster).await?;
    cluster.delete::<ServiceAccount>("default").await?;
    cluster.delete::<ConfigMap>(MAP).await?;
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    let there =
        (cluster.api::<ServiceAccount>().get_opt("default").await?, cluster.api::<ConfigMap>().get_opt(MAP).await?);
    assert_eq!(there, (None, None));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_twice_when_replies_are_lost_and_caches_lag() -> Result<(), Failure> {
    let faults = Faults::default();
    for resource in ["serviceaccounts", "configmaps"] {
        faults.on(Verb::Watch, resource).happens(Fault::Lag(Duration::from_secs(3)));
        faults.on(Verb::Create, resource).nth(1).lose_reply();
    }
    let cluster = TestCluster::builder().faults(&faults).controllers(EVERY_NAMESPACE).start().await?;
    let namespace = objects::namespace("late");
    Api::all(cluster.client()).create(&PostParams::default(), &namespace).await?;
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    for namespace in ["default", "late", cluster.namespace()] {
        Api::<ServiceAccount>::namespaced(cluster.client(), namespace).get("default").await?;
        Api::<ConfigMap>::namespaced(cluster.client(), namespace).get(MAP).await?;
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn passes_are_counted_by_code() -> Result<(), Failure> {
    let registry = Registry::new();
    let counted = registry.clone();
    let cluster = TestCluster::builder()
        .manager_options(move |options| options.metrics = Some(counted.clone()))
        .controllers(&[controllers::ROOT_CA_WITH_CERTIFICATE])
        .start()
        .await?;
    cluster.settle().await?;
    cluster.faults().on(Verb::Create, "configmaps").next(1).refuse(StatusCode::FORBIDDEN);
    cluster.delete::<ConfigMap>(MAP).await?;
    cluster.settle().await?;
    let page = cluster.manager().exposition().text();
    let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert_eq!(
        line(r#"root_ca_cert_publisher_sync_total{code="403"}"#),
        r#"root_ca_cert_publisher_sync_total{code="403"} 1"#
    );
    assert!(
        !line(r#"root_ca_cert_publisher_sync_duration_seconds_bucket{code="200",le="16.384"}"#).is_empty(),
        "{page}"
    );
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn without_a_key_or_a_certificate_controllers_say_that_they_do_not_run() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    for descriptor in [controllers::ROOT_CA, controllers::SERVICE_ACCOUNT_TOKEN] {
        let Build::Disabled(why) = cluster.manager().build(&descriptor, None) else { panic!("{}", descriptor.name) };
        assert!(why.contains("--"), "it says which flag: {why}");
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_not_deleted_because_a_cache_is_behind() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "serviceaccounts").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().faults(&faults).controllers(TOKENS).start().await?;
    cluster.settle().await?;
    cluster.create(account("robot")).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    until_filled(&cluster, "robot-token").await?;
    cluster.settle().await?;
    cluster.api::<Secret>().get("robot-token").await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_token_goes_with_an_account_that_the_cache_never_saw() -> Result<(), Failure> {
    let faults = Faults::default();
    let cluster = TestCluster::builder().faults(&faults).controllers(TOKENS).start().await?;
    cluster.settle().await?;
    // The watch breaks, and is not to be had before the account has come and gone.
    faults.on(Verb::Watch, "serviceaccounts").refuse(StatusCode::GONE);
    faults.on(Verb::List, "serviceaccounts").refuse(StatusCode::SERVICE_UNAVAILABLE);
    faults.server_goes_away();
    faults.server_is_back();
    cluster.create(account("robot")).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    until_filled(&cluster, "robot-token").await?;
    cluster.delete::<ServiceAccount>("robot").await?;
    faults.heal();
    cluster
        .until("the secret goes, too", async || {
            let held = cluster.api::<Secret>().get_opt("robot-token").await?;
            Ok(held.map_or(Ok(()), |held| Err(format!("{:?}", held.metadata))))
        })
        .await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_another_account_of_that_name_goes() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(TOKENS).start().await?;
    cluster.create(account("robot")).await?;
    cluster.create(token_secret("right", "robot", None)).await?;
    cluster.create(token_secret("wrong", "robot", Some("00000000-0000-0000-0000-000000000001"))).await?;
    cluster.create(token_secret("nobodys", "nobody", None)).await?;
    cluster.settle().await?;
    let secrets = cluster.api::<Secret>().list(&Default::default()).await?.items;
    let names: Vec<_> = secrets.into_iter().filter_map(|secret| secret.metadata.name).collect();
    assert_eq!(names, ["right"]);
    // The account is made anew: its secret is not its secret any more.
    cluster.delete::<ServiceAccount>("robot").await?;
    cluster.create(account("robot")).await?;
    cluster.settle().await?;
    assert_eq!(cluster.api::<Secret>().get_opt("right").await?, None);
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_token_that_does_not_say_whose_it_is_goes_with_the_account_that_was_there() -> Result<(), Failure> {
    // The new account may be there by the time that the end of the old one is seen, or not yet.
    for lag in [0, 5] {
        let faults = Faults::default();
        faults.on(Verb::Watch, "serviceaccounts").happens(Fault::Lag(Duration::from_secs(lag)));
        let cluster = TestCluster::builder().faults(&faults).controllers(TOKENS).start().await?;
        cluster.create(account("robot")).await?;
        cluster.create(token_secret("robot-token", "robot", None)).await?;
        until_filled(&cluster, "robot-token").await?;
        cluster.advance(Duration::from_secs(60)).await;
        change(&cluster, "robot-token", json!({ "annotations": { UID: null } })).await?;
        cluster.settle().await?;
        cluster.api::<Secret>().get("robot-token").await?;

        cluster.delete::<ServiceAccount>("robot").await?;
        cluster.create(account("robot")).await?;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(cluster.api::<Secret>().get_opt("robot-token").await?, None, "the watch lags by {lag} s");
        let deletes = cluster.last_writes().iter().filter(|write| write.verb == Verb::Delete).count();
        assert_eq!(deletes, 1, "{:?}", cluster.last_writes());
        // What is made for the new account is its own.
        cluster.create(token_secret("robot-token", "robot", None)).await?;
        until_filled(&cluster, "robot-token").await?;
        cluster.expect_quiet(Duration::from_secs(600)).await?;
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_secret_without_a_token_waits_for_the_next_account_of_the_name() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(TOKENS).start().await?;
    cluster.faults().on(Verb::Update, "secrets").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    cluster.create(account("robot")).await?;
    let secret = cluster.create(token_secret("robot-token", "robot", None)).await?;
    cluster.advance(Duration::from_millis(100)).await;
    cluster.delete::<ServiceAccount>("robot").await?;
    let robot = cluster.create(account("robot")).await?;
    cluster.advance(Duration::from_millis(100)).await;
    cluster.faults().heal();
    let filled = until_filled(&cluster, "robot-token").await?;
    assert_eq!(filled.metadata.uid, secret.metadata.uid, "it is the same one");
    assert_eq!(filled.metadata.annotations.unwrap_or_default().remove(UID), robot.metadata.uid);
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_token_stays_if_the_server_still_has_the_account_that_a_cache_has_not() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(TOKENS).start().await?;
    let robot = cluster.create(account("robot")).await?;
    cluster.create(token_secret("robot-token", "robot", robot.metadata.uid.as_deref())).await?;
    until_filled(&cluster, "robot-token").await?;
    // Another manager, to which every change looks like an end.
    let line = Line::to(cluster.client(), Trouble::Forges(r#""type":"MODIFIED""#, r#""type":"DELETED""#));
    let manager = Beside::start(&cluster, line.client(), TOKENS)?;
    cluster.advance(Duration::from_secs(10)).await;
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "is": "changed" } } }));
    cluster.api::<ServiceAccount>().patch("robot", &PatchParams::default(), &patch).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(line.count(&Method::GET, "/serviceaccounts/robot"), 1, "it was asked for");
    cluster.api::<Secret>().get("robot-token").await?;
    manager.stop().await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_token_that_the_new_account_takes_over_at_the_last_moment_stays() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(TOKENS).start().await?;
    cluster.create(account("robot")).await?;
    cluster.create(token_secret("robot-token", "robot", None)).await?;
    until_filled(&cluster, "robot-token").await?;
    change(&cluster, "robot-token", json!({ "annotations": { UID: null } })).await?;
    cluster.settle().await?;
    cluster.faults().on(Verb::Delete, "secrets").nth(1).delay(Duration::from_secs(1));
    cluster.delete::<ServiceAccount>("robot").await?;
    let robot = cluster.create(account("robot")).await?;
    cluster.advance(Duration::from_millis(500)).await;
    change(&cluster, "robot-token", json!({ "annotations": { UID: robot.metadata.uid } })).await?;
    cluster.advance(Duration::from_secs(60)).await;
    cluster.api::<Secret>().get("robot-token").await?;
    let deletes = cluster.last_writes().iter().filter(|write| write.verb == Verb::Delete).count();
    assert_eq!(deletes, 1, "it was tried, and not again: {:?}", cluster.last_writes());
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_secret_on_its_way_out_is_not_filled_when_its_account_comes_back() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "serviceaccounts").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().faults(&faults).controllers(TOKENS).start().await?;
    cluster.settle().await?;
    cluster.create(token_secret("robot-token", "robot", None).finalizer(HOLD)).await?;
    cluster.settle().await?;
    let expect_empty = async |when: &str| {
        let secret = cluster.api::<Secret>().get("robot-token").await?;
        assert!(secret.metadata.deletion_timestamp.is_some(), "it is held");
        assert_eq!(secret.data, None, "{when}");
        Ok::<_, Failure>(())
    };
    expect_empty("there is no account").await?;

    cluster.create(account("robot")).await?;
    change(&cluster, "robot-token", json!({ "labels": { "is": "changed" } })).await?;
    cluster.advance(Duration::from_secs(10)).await;
    expect_empty("the server has an account, the cache does not").await?;
    cluster.advance(Duration::from_secs(60)).await;
    expect_empty("the cache has it, too").await?;
    cluster.expect_quiet(Duration::from_secs(600)).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_accounts_certificates_and_tokens_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        let secrets = Some(vec![ObjectReference { name: Some("listed".into()), ..ObjectReference::default() }]);
        cluster.create(ServiceAccount { secrets, ..account("robot") }).await?;
        for name in ["robot-token", "listed"] {
            cluster.create(token_secret(name, "robot", None)).await?;
        }
        cluster.create(token_secret("orphan-token", "nobody", None)).await?;
        scene.rest().await?;
        cluster.delete::<Secret>("listed").await?;
        cluster.delete::<ServiceAccount>("default").await?;
        cluster.delete::<ConfigMap>(MAP).await
    };
    let world = async |cluster: &TestCluster| {
        let mut seen = Vec::new();
        for namespace in ["default", cluster.namespace()] {
            let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), namespace);
            let accounts = accounts.list(&Default::default()).await?.items.into_iter();
            seen.extend(accounts.map(|account| format!("account {:?} {:?}", account.metadata.name, account.secrets)));
            let maps = Api::<ConfigMap>::namespaced(cluster.client(), namespace);
            let maps = maps.list(&Default::default()).await?.items.into_iter();
            seen.extend(maps.map(|map| format!("map {:?} {:?}", map.metadata.name, map.data)));
            let secrets = Api::<Secret>::namespaced(cluster.client(), namespace);
            for secret in secrets.list(&Default::default()).await?.items {
                let keys: Vec<_> = secret.data.unwrap_or_default().into_keys().collect();
                seen.push(format!("secret {:?} {keys:?}", secret.metadata.name));
            }
        }
        Ok(seen)
    };
    let controllers = [
        controllers::SERVICE_ACCOUNT,
        controllers::ROOT_CA_WITH_CERTIFICATE,
        controllers::SERVICE_ACCOUNT_TOKEN_WITH_KEY,
    ];
    crash_after_each_write(TestCluster::builder, &controllers, story, world).await?;
    Ok(())
}
