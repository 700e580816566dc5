//! The reconcile contract, held by the one worker loop.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_model::ReplicaSetView;
use steersman_runtime::__internal::descriptor::{BuiltIn, Row};
use steersman_runtime::{Action, Context, Descriptor, Error, Reconciler};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster};

/// How often each object was reconciled. One test, one table.
static SEEN: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Does what the object's name says.
struct Obedient;

impl Reconciler for Obedient {
    async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let times = {
            let mut seen = SEEN.lock();
            let times = seen.entry(key.name.to_string()).or_default();
            *times += 1;
            *times
        };
        match &*key.name {
            "panics" if times < 4 => panic!("on purpose"),
            "fails" if times < 4 => Err(Error::message("on purpose")),
            "hopeless" => Err(Error::terminal("on purpose")),
            "always-fails" => Err(Error::message("on purpose")),
            "again" if times < 4 => Ok(Action::Again),
            "hourly" => Ok(Action::After(Duration::from_secs(3600))),
            _ => Ok(Action::Done),
        }
    }
}

const OBEDIENT: Descriptor = Descriptor::built_in(
    Row::new,
    &BuiltIn {
        name: "obedient-controller",
        needs: &[],
        options: |_| (),
        build: |cx, ()| cx.controller(&cx.informer::<ReplicaSetView>()).give_up_after(5).reconcile(Obedient),
    },
);

#[tokio::test(start_paused = true)]
async fn each_outcome_has_its_consequence_and_one_worker_serves_them_all() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(&[OBEDIENT]).start().await?;
    let names = ["panics", "fails", "hopeless", "always-fails", "again", "hourly", "done"];
    for name in names {
        cluster.create(objects::replica_set(name).replicas(0)).await?;
    }
    cluster.advance(Duration::from_secs(3 * 3600 + 60)).await;
    let seen = SEEN.lock().clone();
    let want = BTreeMap::from([
        ("panics", 4),
        ("fails", 4),
        ("hopeless", 1),
        // The first time, and five retries; then it is given up.
        ("always-fails", 6),
        ("again", 4),
        // At once, and after one, two and three hours.
        ("hourly", 4),
        ("done", 1),
    ]);
    let want: BTreeMap<String, usize> = want.into_iter().map(|(name, times)| (name.to_owned(), times)).collect();
    assert_eq!(seen, want);
    cluster.stop().await
}

/// How often each object was reconciled by the controller below.
static LIMITED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Always fails: for good, if the object's name says so.
struct Failing;

impl Reconciler for Failing {
    async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
        *LIMITED.lock().entry(key.name.to_string()).or_default() += 1;
        Err(if &*key.name == "hopeless" { Error::terminal("on purpose") } else { Error::message("on purpose") })
    }
}

const FAILING: Descriptor = Descriptor::built_in(
    |name| {
        let mut row = Row::new(name);
        row.retries_max = Some(2);
        row
    },
    &BuiltIn {
        name: "failing-controller",
        needs: &[],
        options: |_| (),
        build: |cx, ()| cx.controller(&cx.informer::<ReplicaSetView>()).reconcile(Failing),
    },
);

#[tokio::test(start_paused = true)]
async fn a_key_of_a_built_in_controller_without_retries_left_is_tried_again_after_a_thousand_seconds()
-> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(&[FAILING]).start().await?;
    for name in ["hopeless", "refused"] {
        cluster.create(objects::replica_set(name).replicas(0)).await?;
    }
    cluster.advance(Duration::from_secs(500)).await;
    let three = BTreeMap::from([("hopeless".to_owned(), 1), ("refused".to_owned(), 3)]);
    assert_eq!(*LIMITED.lock(), three, "the first time, and two retries");
    cluster.advance(Duration::from_secs(2000)).await;
    let nine = BTreeMap::from([("hopeless".to_owned(), 1), ("refused".to_owned(), 9)]);
    assert_eq!(*LIMITED.lock(), nine, "and twice more");
    cluster.stop().await
}
