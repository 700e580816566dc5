//! Owner references, create-or-patch, retries, waits.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::DeleteParams;
use serde_json::json;
use steersman_runtime::client::{CachedClient, ClientError, Ensured, Patch};
use steersman_runtime::owner::{OwnedBy as _, set_controller_reference};
use steersman_runtime::retry::{Backoff, retry_on_conflict};
use steersman_runtime::wait::{WaitError, conditions, wait_until};
use steersman_testing::{Failure, Verb, objects};

use crate::support::{config, datum, key, start};

#[tokio::test(start_paused = true)]
async fn an_object_is_created_then_patched_then_left_alone() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let owner = client.objects().create(&config(cluster.namespace(), "owner", &[])).await?;
    let other = client.objects().create(&config(cluster.namespace(), "other", &[])).await?;
    let objects = client.objects();
    let ensure = |value: &'static str, owner: ConfigMap| {
        objects.create_or_patch(config(cluster.namespace(), "child", &[]), move |child| {
            child.data.get_or_insert_default().insert("x".into(), value.into());
            Ok(set_controller_reference(&owner, child)?)
        })
    };
    let (child, ensured) = ensure("1", owner.clone()).await?;
    assert_eq!((ensured, datum(&child, "x").as_deref()), (Ensured::Created, Some("1")));
    let writes = cluster.last_writes().len();
    assert_eq!(ensure("1", owner.clone()).await?.1, Ensured::Unchanged);
    assert_eq!(cluster.last_writes().len(), writes, "nothing was written");

    // What others set stays.
    let _: ConfigMap =
        client.objects().patch(&key(&cluster, "child"), Patch::Merge(&json!({"data": {"y": "theirs"}}))).await?;
    let (child, ensured) = ensure("2", owner).await?;
    assert_eq!(ensured, Ensured::Updated);
    assert_eq!((datum(&child, "x").as_deref(), datum(&child, "y").as_deref()), (Some("2"), Some("theirs")));

    let error = ensure("3", other).await.unwrap_err().to_string();
    assert!(error.contains("is already owned by another ConfigMap controller owner"), "{error}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_status_is_patched_apart_from_the_rest() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let mut pod = objects::pod("web");
    pod.metadata.namespace = Some(cluster.namespace().to_owned());
    let pods = client.objects();
    let ensure = |label: &'static str, phase: &'static str| {
        pods.create_or_patch(pod.clone(), move |pod| {
            pod.metadata.labels.get_or_insert_default().insert("l".into(), label.into());
            pod.status.get_or_insert_default().phase = Some(phase.into());
            Ok(())
        })
    };
    for (label, phase, want) in [
        ("1", "Pending", Ensured::Created),
        ("1", "Running", Ensured::UpdatedStatusOnly),
        ("2", "Running", Ensured::Updated),
        ("3", "Failed", Ensured::UpdatedStatus),
        ("3", "Failed", Ensured::Unchanged),
    ] {
        let (_, ensured) = ensure(label, phase).await?;
        assert_eq!(ensured, want, "{label} {phase}");
    }
    let read = client.live().get::<Pod>(&key(&cluster, "web")).await?;
    assert_eq!(read.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Failed"));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn an_update_is_made_of_what_was_seen_or_not_at_all() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let objects = client.objects();
    let ensure = |value: &'static str| {
        objects.create_or_update(config(cluster.namespace(), "a", &[]), move |object| {
            object.data = Some([("x".to_owned(), value.to_owned())].into());
            Ok(())
        })
    };
    assert_eq!(ensure("1").await?.1, Ensured::Created);
    assert_eq!(ensure("1").await?.1, Ensured::Unchanged);
    assert_eq!(ensure("2").await?.1, Ensured::Updated);
    let renamed = objects.create_or_update(config(cluster.namespace(), "a", &[]), |object| {
        object.metadata.name = Some("b".into());
        Ok(())
    });
    let error = renamed.await.unwrap_err();
    assert!(matches!(error, ClientError::Mutate { .. }), "{error}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn conflicts_are_retried_until_the_change_is_made() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    client.objects().create(&config(cluster.namespace(), "a", &[("n", "0")])).await?;
    let a = key(&cluster, "a");
    let add = |client: CachedClient| {
        let a = a.clone();
        async move {
            let mut backoff = Backoff::RETRY;
            backoff.steps = 50;
            retry_on_conflict(backoff, || async {
                let mut object = client.live().get::<ConfigMap>(&a).await?.object().clone();
                let count: u32 = datum(&object, "n").and_then(|text| text.parse().ok()).unwrap_or_default();
                object.data = Some([("n".to_owned(), (count + 1).to_string())].into());
                // Others come in between.
                tokio::task::yield_now().await;
                client.objects().update(&object).await
            })
            .await
        }
    };
    futures::future::try_join_all((0..10).map(|_| add(client.clone()))).await?;
    assert_eq!(datum(&*client.live().get::<ConfigMap>(&a).await?, "n").as_deref(), Some("10"));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_cache_shows_what_was_waited_for() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let web = key(&cluster, "web");
    let minute = Duration::from_secs(60);
    for waiting in [client.clone(), client.live()] {
        let began = tokio::time::Instant::now();
        let (pod, _) = futures::try_join!(
            async { Ok::<_, Failure>(wait_until(&waiting, &web, conditions::is_pod_running, minute).await?) },
            async {
                cluster.advance(Duration::from_secs(7)).await;
                cluster.create(objects::pod("web")).await?;
                let running = json!({"status": {"phase": "Running"}});
                let _: Pod = client.objects().status().patch(&web, Patch::Merge(&running)).await?;
                Ok(())
            }
        )?;
        let uid = pod.and_then(|pod| pod.object().metadata.uid.clone()).unwrap_or_default();
        assert_eq!(began.elapsed(), Duration::from_secs(7), "woken, not polling");
        let how = DeleteParams::default().grace_period(0);
        let (gone, _) = futures::try_join!(
            async { Ok::<_, Failure>(wait_until(&waiting, &web, conditions::is_deleted::<Pod>(&uid), minute).await?) },
            async { Ok(client.objects::<Pod>().delete(&web, &how).await?) }
        )?;
        assert!(gone.is_none());
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_too_early_says_what_was_seen_last() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    let web = key(&cluster, "web");
    cluster.create(objects::pod("web")).await?;
    let error = wait_until(&client, &web, conditions::is_pod_running, Duration::from_secs(9)).await.unwrap_err();
    let want = format!("pods {web} is not as wanted after 9s; seen last: phase Pending");
    assert_eq!(error.to_string(), want);
    let never = |_: Option<&ConfigMap>| false;
    let error = wait_until(&client, &web, never, Duration::from_secs(9)).await.unwrap_err();
    assert!(matches!(error, WaitError::TimedOut { .. }));
    for verb in [Verb::List, Verb::Watch] {
        cluster.faults().on(verb, "secrets").refuse(StatusCode::FORBIDDEN);
    }
    for waiting in [client.clone(), client.live()] {
        let never = |_: Option<&Secret>| false;
        let error = wait_until(&waiting, &web, never, Duration::from_secs(9)).await.unwrap_err().to_string();
        assert!(error.contains("seen last: nothing: ") && error.contains("403"), "why it cannot be read: {error}");
    }
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn what_a_cached_owner_controls_goes_with_it() -> Result<(), Failure> {
    let (cluster, client) = start().await?;
    client.objects().create(&config(cluster.namespace(), "owner", &[])).await?;
    let owner = client.get::<ConfigMap>(&key(&cluster, "owner")).await?;
    let child = config(cluster.namespace(), "child", &[]).controlled_by(&*owner)?;
    let child = client.objects().create(&child).await?;
    let reference = child.metadata.owner_references.unwrap_or_default();
    assert_eq!(reference.first().map(|reference| reference.uid.clone()), owner.object().metadata.uid.clone());
    cluster.stop().await
}
