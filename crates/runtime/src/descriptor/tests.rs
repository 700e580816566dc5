use std::time::Duration;

use serde_json::json;
use steersman_base::ObjectKey;
use steersman_model::core::{NamespaceView, PodView};

use super::*;
use crate::test_server::TestServer;
use crate::{Action, Context, Error, ManagerOptions, Reconciler};

struct Nothing;

impl Reconciler for Nothing {
    async fn reconcile(&self, _: &Context, _: &ObjectKey) -> Result<Action, Error> {
        Ok(Action::Done)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Options {
    period: Duration,
}

impl Options {
    fn from_flags(flags: &Flags<'_>) -> Self {
        Self { period: flags.duration("period", Duration::from_secs(7)) }
    }
}

/// Says its options instead of doing something.
const REPORTING: Descriptor = Descriptor::built_in(
    Row::new,
    &BuiltIn {
        name: "reporting-controller",
        needs: &[],
        options: Options::from_flags,
        build: |_, options: Options| Err::<Built, _>(Disabled(format!("{:?}", options.period))),
    },
);

const TWO_QUEUES: Descriptor = Descriptor::built_in(
    |name| {
        let mut row = Row::new(name);
        row.component = "reported-by";
        row.queues = vec!["first", "second"];
        row.workers = Workers::flag("concurrent-syncs", 5);
        row
    },
    &BuiltIn {
        name: "two-controller",
        needs: &[],
        options: |_| (),
        build: |cx, ()| {
            let namespaces = cx.informer::<NamespaceView>();
            let first = cx.controller(&namespaces).needs_cache(&cx.informer::<PodView>()).reconcile(Nothing);
            first.and(cx.another("two-others", &namespaces).queue(1).reconcile(Nothing))
        },
    },
);

struct Given;

impl FlagSource for Given {
    fn flag(&self, name: &str) -> Option<FlagValue> {
        match name {
            "period" => Some(FlagValue::Duration(Duration::from_secs(1))),
            "concurrent-syncs" => Some(FlagValue::Int(9)),
            _ => None,
        }
    }

    fn gate(&self, _: &str) -> Option<bool> {
        None
    }

    fn file(&self, _: &str) -> Result<Option<FlagFile>, String> {
        Ok(None)
    }
}

struct Wrong;

impl FlagSource for Wrong {
    fn flag(&self, _: &str) -> Option<FlagValue> {
        None
    }

    fn gate(&self, _: &str) -> Option<bool> {
        None
    }

    fn file(&self, _: &str) -> Result<Option<FlagFile>, String> {
        Ok(None)
    }
}

fn manager() -> Manager {
    let server = TestServer::answering(404, &json!({}));
    Manager::new(server.client(), ManagerOptions::default()).unwrap()
}

#[tokio::test]
async fn options_are_those_that_were_set_or_what_the_flags_say_or_the_default() {
    let reported = |manager: &Manager, descriptor: &Descriptor| match manager.build(descriptor, None) {
        Build::Disabled(reported) => reported,
        Build::Enabled => panic!("it only reports"),
    };
    let manager = manager();
    assert_eq!(reported(&manager, &REPORTING), "7s");
    manager.set_flags(Given);
    assert_eq!(reported(&manager, &REPORTING), "1s");
    let prepared = REPORTING.prepared_by(|manager| manager.set_options(Options { period: Duration::from_secs(3) }));
    assert_eq!(reported(&manager, &prepared), "3s");
    assert_eq!(reported(&manager, &REPORTING), "3s", "what was set stays set");
}

#[tokio::test]
async fn a_controller_whose_flags_are_wrong_is_disabled_and_not_built_with_defaults() {
    let manager = manager();
    manager.set_flags(Wrong);
    let Build::Disabled(why) = manager.build(&REPORTING, None) else { panic!("it was built") };
    assert_eq!(why, "there is no flag --period");
}

#[tokio::test]
async fn name_queue_workers_and_component_come_from_the_row() {
    let manager = manager();
    let shown = |workers: usize| {
        let cx = ControllerContext::new(manager.context(), TWO_QUEUES.row(), workers);
        assert_eq!(cx.events.component(), "reported-by");
        TWO_QUEUES.build(&cx).unwrap().start()
    };
    let built = shown(3);
    let facts: Vec<_> = built.iter().map(|it| (it.name(), it.queue().name(), it.workers())).collect();
    assert_eq!(facts, [("two-controller", "first", 3), ("two-others", "second", 3)]);
    let watches: Vec<_> = built[0].watches().iter().map(|resource| resource.plural.to_string()).collect();
    assert_eq!(watches, ["namespaces", "pods"], "it waits for the cache that it needs");
    assert!(!built[0].has_synced());
}

#[tokio::test]
async fn the_number_of_workers_is_the_callers_or_the_flags_or_the_rows() {
    let workers = |flags: bool, asked: Option<usize>| {
        let manager = manager();
        if flags {
            manager.set_flags(Given);
        }
        assert_eq!(manager.build(&TWO_QUEUES, asked), Build::Enabled);
        manager.inspection().controllers()[0].workers()
    };
    assert_eq!(workers(false, None), 5);
    assert_eq!(workers(true, None), 9);
    assert_eq!(workers(true, Some(2)), 2);
}
