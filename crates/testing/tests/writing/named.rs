//! Creates under names of our choice.

use serde_json::json;
use steersman_base::Istr;
use steersman_runtime::__internal::writer::Naming;
use steersman_runtime::WriteError;

use crate::support::{CONFIG_MAPS, Fate, Why, World, name};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A ConfigMap of this name that an object with this uid controls.
fn owned(name: &str, uid: &str) -> Vec<u8> {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true });
    let metadata = json!({ "name": name, "generateName": "web-", "ownerReferences": [owner] });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }).to_string().into_bytes()
}

async fn create(world: &World) -> Result<Istr, WriteError> {
    create_for(world, "").await
}

async fn create_for(world: &World, purpose: &str) -> Result<Istr, WriteError> {
    let naming = Naming { prefix: "web-", purpose, is_seen: &|_| false };
    let write = world.writer.on_behalf_of(&world.owner);
    write.create_named(&CONFIG_MAPS, naming, |name| owned(name, "u-1"), &Why::Silent).await.map(|made| made.meta.name)
}

async fn names(world: &World) -> Vec<String> {
    let list = world.get(MAPS).await.unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let names = items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("web-")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_named_create_whose_answer_is_lost_was_made_if_the_object_is_there() {
    let world = World::with(|_| Fate::ReplyLost).await;
    let made = create(&world).await.unwrap();
    assert_eq!(names(&world).await, [made.as_str()]);
    assert_eq!(world.seen.writes().len(), 1, "it is asked for, and not sent again");
    assert_eq!(world.get(&format!("{MAPS}/{made}")).await.unwrap()["metadata"]["generateName"], "web-");
}

#[tokio::test(start_paused = true)]
async fn a_named_create_that_was_not_made_is_tried_again_under_the_same_name() {
    for fate in [Fate::Lost, Fate::Refused(500, None), Fate::Refused(503, None), Fate::Refused(504, None)] {
        let mut number = 0;
        let world = World::with(move |_| {
            number += 1;
            // A refusal of another kind does not make the name forgotten.
            [fate, Fate::Refused(403, None), fate, Fate::Served].get(number - 1).copied().unwrap_or(Fate::Served)
        })
        .await;
        let outcomes = [create(&world).await, create(&world).await, create(&world).await];
        assert_eq!(outcomes.each_ref().map(name), ["Unknown", "Rejected", "Unknown"], "{fate:?}");
        assert!(names(&world).await.is_empty());
        // Meanwhile the first one arrives after all, as it was sent.
        let name =
            world.seen.bodies().first().map(|body| body["metadata"]["name"].as_str().unwrap().to_owned()).unwrap();
        let arrived = http::Request::post(MAPS).body(owned(&name, "u-1")).unwrap();
        let _: serde_json::Value = world.client.request(arrived).await.unwrap();
        assert_eq!(create(&world).await.unwrap(), *name, "{fate:?}: it is there, and it is ours");
        assert_eq!(names(&world).await, [name.as_str()], "{fate:?}: one");
        assert_ne!(create(&world).await.unwrap(), *name, "{fate:?}: and the next one is another one");
    }
}

/// Otherwise, the late object of the first would pass for that of the second, which may be on another node.
#[tokio::test(start_paused = true)]
async fn a_kept_name_is_used_for_its_purpose_alone() {
    for fate in [Fate::Lost, Fate::Silence] {
        let mut number = 0;
        let world = World::with(move |_| {
            number += 1;
            if number == 1 { fate } else { Fate::Served }
        })
        .await;
        let within = std::time::Duration::from_secs(1);
        let first = tokio::time::timeout(within, create_for(&world, "node-1")).await;
        assert!(!matches!(first, Ok(Ok(_))), "{fate:?}: {first:?}");
        let sent = world.seen.bodies()[0]["metadata"]["name"].as_str().unwrap().to_owned();
        assert_ne!(create_for(&world, "node-2").await.unwrap(), *sent, "{fate:?}");
        assert_eq!(create_for(&world, "node-1").await.unwrap(), *sent, "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_named_create_that_is_no_longer_waited_for_keeps_its_name() {
    let mut number = 0;
    let world = World::with(move |_| {
        number += 1;
        if number == 1 { Fate::Silence } else { Fate::Served }
    })
    .await;
    let waited = tokio::time::timeout(std::time::Duration::from_secs(1), create(&world)).await;
    assert!(waited.is_err(), "{waited:?}");
    let sent = world.seen.bodies()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(create(&world).await.unwrap(), *sent, "so that the server refuses one of the two");
}

/// The create that was lost has arrived by now, and the read that would show it is stale.
#[tokio::test(start_paused = true)]
async fn a_name_that_exists_and_that_no_read_shows_is_tried_again() {
    let mut number = 0;
    let world = World::with(move |_| {
        number += 1;
        [Fate::Lost, Fate::Exists, Fate::Exists].get(number - 1).copied().unwrap_or(Fate::Served)
    })
    .await;
    let outcomes = [create(&world).await, create(&world).await, create(&world).await];
    assert_eq!(outcomes.each_ref().map(name), ["Unknown", "Unknown", "Unknown"]);
    let sent = world.seen.bodies()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(create(&world).await.unwrap(), *sent, "under another name it might be the second one");
    assert_eq!(names(&world).await, [sent.as_str()]);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_another_owners_object_is_not_used_again() {
    let mut number = 0;
    let world = World::with(move |_| {
        number += 1;
        if number == 1 { Fate::Lost } else { Fate::Served }
    })
    .await;
    assert_eq!(name(&create(&world).await), "Unknown");
    let taken = world.seen.bodies()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let theirs = http::Request::post(MAPS).body(owned(&taken, "u-2")).unwrap();
    let _: serde_json::Value = world.client.request(theirs).await.unwrap();
    let made = create(&world).await.unwrap();
    assert_ne!(made, *taken);
    let mut want = [taken.as_str(), made.as_str()];
    want.sort_unstable();
    assert_eq!(names(&world).await, want);
}
