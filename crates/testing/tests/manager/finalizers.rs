//! What `finalizer` promises a controller.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use steersman_base::ObjectKey;
use steersman_informer::{Lister, Typed};
use steersman_runtime::decisions::{Fate, Filter};
use steersman_runtime::finalizer::{Event, finalizer};
use steersman_runtime::predicate::generation_changed;
use steersman_runtime::{Action, Context, Error, Manager, Reconciler};
use steersman_testing::{Failure, Fault, TestCluster, Verb, objects};

use crate::support::*;

const NAME: &str = "example.com/bucket";

/// Makes a bucket for each config map, in a diary.
struct Buckets {
    configs: Lister<Typed<ConfigMap>>,
    diary: Diary,
    finalizer: &'static str,
}

impl Reconciler for Buckets {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        // The server has config maps of its own.
        let config = self.configs.get(key).filter(|_| key.namespace != "kube-system");
        let Some(config) = config else { return Ok(Action::Done) };
        let outcome = finalizer(cx, self.finalizer, &*config, |event| async move {
            match event {
                Event::Apply(config) if config.labels().contains_key("never") => {
                    self.diary.note("refused");
                    return Err(Error::terminal("nobody can make such a bucket"));
                }
                Event::Cleanup(config) if config.labels().contains_key("full") => {
                    self.diary.note("not empty");
                    return Err(Error::message("the bucket is not empty"));
                }
                Event::Apply(config) => self.diary.note(format!("made {}", config.name_any())),
                Event::Cleanup(config) => self.diary.note(format!("deleted {}", config.name_any())),
            }
            Ok(Action::Done)
        });
        let outcome = outcome.await;
        if let Err(error) = &outcome {
            let terminal = error.is_terminal();
            let unreachable = error.is_unreachable();
            self.diary.note(format!("terminal: {terminal}, unreachable: {unreachable}: {error}"));
        }
        outcome
    }
}

fn buckets(diary: &Diary, finalizer: &'static str) -> impl Fn(&Manager) + Send + Sync + 'static + use<> {
    let diary = diary.clone();
    move |manager: &Manager| {
        let buckets = Buckets { configs: manager.lister(), diary: diary.clone(), finalizer };
        manager.controller::<ConfigMap>("buckets").reconcile_with(buckets);
    }
}

fn config(name: &str, labels: &[&str], finalizers: &[&str]) -> ConfigMap {
    let mut config = ConfigMap { metadata: objects::named(name), ..ConfigMap::default() };
    config.metadata.labels = Some(labels.iter().map(|&label| (label.to_owned(), String::new())).collect());
    config.metadata.finalizers = Some(finalizers.iter().map(|&name| name.to_owned()).collect());
    config
}

/// What was decided about a config map: rule, and whether it was written.
fn decided(cluster: &TestCluster, name: &str) -> Vec<(&'static str, bool)> {
    let entries = cluster.manager().decisions().for_key("buckets", &ObjectKey::new(cluster.namespace(), name));
    let decisions = entries.iter().flat_map(|entry| &entry.decisions);
    decisions.map(|decision| (decision.rule, matches!(decision.fate, Fate::Written(_)))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_added_before_the_work_and_removed_after_the_cleaning() -> Result<(), Failure> {
    let diary = Diary::default();
    let cluster = TestCluster::builder().with(buckets(&diary, NAME)).start().await?;
    cluster.create(config("a", &[], &["example.com/other"])).await?;
    cluster.settle().await?;
    assert_eq!(diary.take(), ["made a"]);
    let api = cluster.api::<ConfigMap>();
    assert_eq!(api.get("a").await?.finalizers(), ["example.com/other", NAME], "those of others stay");
    assert_eq!(decided(&cluster, "a"), [("AddsFinalizer", true)], "with a reason");

    let label = |value: serde_json::Value| Patch::Merge(json!({"metadata": {"labels": {"full": value}}}));
    api.patch("a", &PatchParams::default(), &label(json!(""))).await?;
    cluster.settle().await?;
    diary.take();
    cluster.delete::<ConfigMap>("a").await?;
    cluster.advance(SOON).await;
    assert!(diary.take().iter().any(|line| line == "not empty"));
    assert_eq!(api.get("a").await?.finalizers(), ["example.com/other", NAME], "it stays until it is cleaned up");
    api.patch("a", &PatchParams::default(), &label(json!(null))).await?;
    cluster.settle().await?;
    assert!(diary.take().contains(&"deleted a".to_owned()));
    assert_eq!(api.get("a").await?.finalizers(), ["example.com/other"]);
    assert_eq!(decided(&cluster, "a").last(), Some(&("RemovesFinalizer", true)));
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn work_begins_after_the_finalizer_whatever_a_predicate_lets_through() -> Result<(), Failure> {
    let diary = Diary::default();
    let noted = diary.clone();
    // A finalizer changes no generation, so that the event of the write does not come through.
    let filtered = move |manager: &Manager| {
        let buckets = Buckets { configs: manager.lister(), diary: noted.clone(), finalizer: NAME };
        manager.controller::<ConfigMap>("buckets").filter(generation_changed()).reconcile_with(buckets);
    };
    let cluster = TestCluster::builder().with(filtered).start().await?;
    cluster.create(config("a", &[], &[])).await?;
    cluster.settle().await?;
    assert_eq!(diary.take(), ["made a"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_stays_terminal() -> Result<(), Failure> {
    let diary = Diary::default();
    let cluster = TestCluster::builder().with(buckets(&diary, NAME)).start().await?;
    cluster.create(config("a", &["never"], &[NAME])).await?;
    cluster.advance(HOUR).await;
    let want = ["refused", "terminal: true, unreachable: false: nobody can make such a bucket"];
    assert_eq!(diary.take(), want, "once in an hour");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn an_invalid_finalizer_name_is_reported_once() -> Result<(), Failure> {
    let diary = Diary::default();
    let cluster = TestCluster::builder().with(buckets(&diary, "unqualified")).start().await?;
    cluster.create(config("a", &[], &[])).await?;
    cluster.advance(HOUR).await;
    let reported = diary.take();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("terminal: true") && reported[0].contains("use one like"), "{reported:?}");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_seen_through_the_finalizer() -> Result<(), Failure> {
    let diary = Diary::default();
    let cluster = TestCluster::builder().with(buckets(&diary, NAME)).start().await?;
    cluster.settle().await?;
    cluster.faults().on(Verb::Patch, "configmaps").next(1).happens(Fault::LoseRequest);
    cluster.create(config("a", &[], &[])).await?;
    cluster.settle().await?;
    let reported = diary.take();
    let want = format!("terminal: false, unreachable: true: cannot add the finalizer {NAME}, so nothing was applied: ");
    assert!(reported.first().is_some_and(|line| line.starts_with(&want)), "{reported:?}");
    assert_eq!(reported.last().map(String::as_str), Some("made a"), "and it goes on");
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_no_failure() -> Result<(), Failure> {
    let diary = Diary::default();
    let cluster = TestCluster::builder().with(buckets(&diary, NAME)).start().await?;
    cluster.settle().await?;
    cluster.faults().on(Verb::Patch, "configmaps").next(2).refuse(http::StatusCode::CONFLICT);
    cluster.create(config("a", &[], &[])).await?;
    cluster.settle().await?;
    assert_eq!(diary.take(), ["made a"]);
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_shadow_shows_what_it_would_make_and_cleans_up_nothing() -> Result<(), Failure> {
    let diary = Diary::default();
    let builder = TestCluster::builder().with(buckets(&diary, NAME)).manager_options(|options| options.shadow = true);
    let cluster = builder.start().await?;
    cluster.create(config("new", &[], &[])).await?;
    cluster.settle().await?;
    assert_eq!(diary.take(), ["made new"], "it goes on as if the finalizer had been added");
    assert_eq!(decided(&cluster, "new"), [("AddsFinalizer", false)]);

    cluster.create(config("going", &[], &[NAME])).await?;
    cluster.settle().await?;
    diary.take();
    cluster.delete::<ConfigMap>("going").await?;
    cluster.settle().await?;
    assert!(diary.take().is_empty(), "whatever is outside of Kubernetes is left alone");
    assert_eq!(decided(&cluster, "going"), [("WouldCleanUp", false), ("RemovesFinalizer", false)]);
    let shown = cluster.manager().decisions().entries(&Filter::default());
    let shown = shown.last().map(ToString::to_string).unwrap_or_default();
    assert!(shown.contains("WouldCleanUp: example.com/bucket would clean up"), "{shown}");
    assert_eq!(cluster.last_writes().len(), 0);
    cluster.stop().await
}
