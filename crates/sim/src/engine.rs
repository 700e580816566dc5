//! Runs a world: the storm, the healing, the quiet.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Once};
use std::time::Duration;

use steersman_apiserver::aggregated::Aggregated;
use steersman_base::{Clock, Istr, Time};
use steersman_controllers::serviceaccount_token::Signer;
use steersman_nodes::Metrics;
use tokio::task::JoinSet;

use crate::faults::Faults;
use crate::invariants::{self, Count, Violation};
use crate::line::Line;
use crate::managers::{ENDED_PODS_MAX, EPOCH, Logs, Setting};
use crate::nodes;
use crate::plan::{HEALS_WITHIN, Millis, Options, Plan, Window};
use crate::server::{Objects, Recorder};
use crate::trace::Trace;
use crate::users::Users;

/// What came of a world.
#[derive(Debug)]
pub struct Outcome {
    /// What happened.
    pub trace: Trace,
    /// What did not hold; empty if all did.
    pub violations: Vec<Violation>,
    /// How often each invariant was judged.
    pub invariants: BTreeMap<&'static str, Count>,
    /// How often each fault acted.
    pub faults: BTreeMap<&'static str, u64>,
    /// How often each operation was done.
    pub operations: BTreeMap<&'static str, u64>,
    /// How many writes were checked.
    pub writes: u64,
    /// The objects that were there in the end, without events.
    pub objects: Objects,
    /// When it ended: with the first violation, or when all was quiet.
    pub ended: Millis,
}

thread_local! {
    /// Panics of the world that runs on this thread, while one does.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// One key for all worlds: to make one takes longer than to use it.
static SIGNER: LazyLock<Result<Signer, String>> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate().map_err(|error| error.to_string())?;
    Signer::from_pem(key.serialize_pem().as_bytes()).map_err(|error| error.to_string())
});

/// Runs a world to its end, or until something does not hold.
///
/// # Panics
/// There is no runtime, or no randomness to make a key from: nothing can be simulated on such a machine.
#[must_use]
pub fn run(plan: &Plan, trace_lines_max: usize) -> Outcome {
    note_panics();
    PANICS.set(Some(Vec::new()));
    // Uids, names and jitter come from here.
    fastrand::seed(plan.seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread needs nothing that could be missing");
    runtime.block_on(live(plan, trace_lines_max))
}

async fn live(plan: &Plan, trace_lines_max: usize) -> Outcome {
    let clock = Clock::starting_at(Time::from_unix(EPOCH));
    let metrics = Metrics::default();
    let apis = plan.options.furnished.then(|| Arc::new(metrics.clone()) as Arc<dyn Aggregated>);
    let (server, recorder) = Recorder::server(&clock, judged_by(&plan.options), apis, trace_lines_max);
    let faults = Faults::new(plan.faults.clone());
    let users = Users::new(&server, &recorder, &faults);
    let options = &plan.options;
    let logs = Logs::default();
    let mut world = JoinSet::new();
    let signer = SIGNER.clone().expect("there is randomness");
    let storm = async {
        users.furnish(options.furnished).await;
        let line = Line::new(&server, &recorder, &faults, &clock, None, options.latency_max, plan.seed);
        let nodes = nodes::start(&line, &clock, metrics, options, &mut world);
        let setting = Setting {
            server: server.clone(),
            recorder: recorder.clone(),
            faults: faults.clone(),
            options: options.clone(),
            seed: plan.seed,
            signer,
            clock: clock.clone(),
            logs: logs.clone(),
        };
        world.spawn(tell_of_faults(plan.faults.clone(), faults.clone(), recorder.clone()));
        for number in 0..options.managers {
            world.spawn(setting.clone().keep_alive(number));
        }
        for step in &plan.operations {
            tokio::time::sleep_until(faults.instant(step.at)).await;
            users.perform(&step.operation, &nodes).await;
        }
        tokio::time::sleep_until(faults.instant(options.ends)).await;
        recorder.note(format_args!("the storm is over"));
        users.tidy_up(&nodes, options.furnished).await;
        heal(&recorder, options).await;
        recorder.check_healed();
        let _ = recorder.take_restless();
        recorder.note(format_args!("quiet"));
        tokio::time::sleep(Duration::from_millis(options.quiet_for)).await;
        let restless = recorder.take_restless();
        if !restless.is_empty() {
            recorder.fail("a healed world stays as it is", restless.join("; "));
        }
        recorder.check_reasons(&logs.lock());
    };
    tokio::select! {
        biased;
        () = recorder.failed() => {}
        () = storm => {}
    }
    let ended = faults.now();
    world.shutdown().await;
    for panic in PANICS.take().unwrap_or_default() {
        recorder.fail("nothing panics", panic);
    }
    let recorded = recorder.finish();
    Outcome {
        trace: recorded.trace,
        violations: recorded.violations,
        invariants: recorded.counts,
        faults: faults.counts(),
        operations: users.counts(),
        writes: recorded.writes,
        objects: recorded.objects,
        ended,
    }
}

/// Waits until the world should have healed. One that may take longer, because a clock is behind, seldom does: when it has
/// healed and nothing was written for as long as it must stay so, the rest of the time would show nothing.
async fn heal(recorder: &Recorder, options: &Options) {
    let least = options.heals_within.min(HEALS_WITHIN);
    tokio::time::sleep(Duration::from_millis(least)).await;
    let mut left = options.heals_within - least;
    while left > 0 {
        let _ = recorder.take_restless();
        let step = options.quiet_for.clamp(1, left);
        tokio::time::sleep(Duration::from_millis(step)).await;
        left -= step;
        if recorder.take_restless().is_empty() && recorder.is_healed() {
            return;
        }
    }
}

/// Tells in the trace when each fault begins.
async fn tell_of_faults(mut windows: Vec<Window>, faults: Faults, recorder: Recorder) {
    windows.sort_by_key(|window| window.from);
    for window in windows {
        tokio::time::sleep_until(faults.instant(window.from)).await;
        let text = serde_json::to_string(&window).unwrap_or_default();
        recorder.aside(format_args!("! {text}"));
    }
}

/// Facts about the world that invariants need.
fn judged_by(options: &Options) -> invariants::Options {
    let controllers = options.controllers.iter().map(|name| Istr::interned(name)).collect::<BTreeSet<_>>();
    invariants::Options {
        controllers: (!controllers.is_empty()).then_some(controllers),
        ended_pods_max: usize::try_from(ENDED_PODS_MAX).unwrap_or(0),
        provisions: options.furnished,
        clock_skew_seconds: options.skew_seconds.iter().map(|skew| skew.abs()).max().unwrap_or(0),
        ..invariants::Options::default()
    }
}

/// Panics are recorded, so that caught ones count, too.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let note = |panics: &mut Option<Vec<String>>| panics.as_mut().map(|panics| panics.push(panic.to_string()));
            if PANICS.try_with(|panics| note(&mut panics.borrow_mut())).ok().flatten().is_none() {
                before(panic);
            }
        }));
    });
}
