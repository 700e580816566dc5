//! The order in which a manager's parts start and end.

use std::collections::BTreeMap;
use std::time::Duration;

use steersman_base::time::FOR_EVER;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::barrier::Barriers;
use super::runnable::Part;
use super::{Group, Machinery, Manager};
use crate::Error;
use crate::health::checks;
use crate::lease::{Elector, Ended};
use crate::signals;

/// The error for which a manager stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A part failed.
    #[error("{name} failed: {source}")]
    Failed {
        /// The name of the part.
        name: String,
        /// The cause.
        source: Failure,
    },
    /// The lease was lost: another process may lead now.
    #[error("leaderelection lost")]
    LeadershipLost,
    /// The orderly shutdown took too long; the remaining parts were aborted.
    #[error("these did not end within {within:?}, and were ended: {}", .names.join(", "))]
    StoppedHard {
        /// The time they had.
        within: Duration,
        /// The names of the parts.
        names: Vec<String>,
    },
    /// Two controllers have the same name.
    #[error("two controllers are called \"{0}\": names must differ, because metrics, health and the log go by them")]
    SameName(&'static str),
    /// The manager is running, or has run.
    #[error("the manager runs already, or has run: make another one")]
    RunsAlready,
}

/// The error of a part, as a source.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(Error);

/// The running parts.
struct Running<'a> {
    manager: &'a Manager,
    barriers: Barriers,
    tasks: JoinSet<(usize, Result<(), Error>)>,
    /// The running parts by number.
    names: BTreeMap<usize, (Group, String)>,
    stops: BTreeMap<Group, CancellationToken>,
    started: usize,
}

const GROUPS: [Group; 4] = [Group::Servers, Group::Caches, Group::Others, Group::Leading];
/// The maximum time that caches wait for the election, which takes milliseconds on a healthy server.
const DECIDED_WITHIN: Duration = Duration::from_secs(1);
/// The maximum time that aborted parts may take to end: they do at their next await, which is now unless they block
/// their thread.
const GONE_WITHIN: Duration = Duration::from_secs(1);
/// The time after which the manager logs which caches are not filled. Parts that do not need them run meanwhile.
const SAY_WHAT_IS_MISSING_AFTER: Duration = Duration::from_secs(10);

// === impl Manager ===

impl Manager {
    /// Runs everything until `stop`, or until a part fails.
    ///
    /// # Errors
    /// A part failed, the lease was lost, or the orderly shutdown took too long.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), ManagerError> {
        let machinery = self.0.state.lock().machinery.take();
        let Some(Machinery { elector, broadcaster }) = machinery else { return Err(ManagerError::RunsAlready) };
        self.check_names()?;
        let ending = CancellationToken::new();
        let ended_all = CancellationToken::new();
        checks::shutdown(self.health(), &ending);
        // A set, here and for the election: dropping this future leaves no task behind that would hold a lease.
        let mut beside = JoinSet::new();
        beside.spawn(broadcaster.run(ended_all.clone()));
        let mapper = self.mapper().clone();
        let end = ended_all.clone();
        beside.spawn(async move { mapper.run(end).await });
        let election = Election::start(elector);

        let mut running = Running::new(self);
        let outcome = running.until(&stop, &election).await;
        ending.cancel();
        for part in self.take_unstarted() {
            part.leave();
        }
        let ended = running.end(&election).await;
        election.finish(ended.is_ok()).await;
        self.0.informers.stop().await;
        ended_all.cancel();
        // They end by themselves, in bounded time.
        while beside.join_next().await.is_some() {}
        outcome.and(ended)
    }

    /// Runs everything until Ctrl-C, SIGTERM or SIGHUP, or until a part fails: [`run`](Self::run) with [`signals::stop`].
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until_signal(&self) -> Result<(), ManagerError> {
        self.run(signals::stop()).await
    }

    /// Returns the parts that were not started; from now on, none is.
    fn take_unstarted(&self) -> Vec<Part> {
        let mut state = self.0.state.lock();
        state.ending = true;
        std::mem::take(&mut state.parts)
    }

    fn check_names(&self) -> Result<(), ManagerError> {
        let state = self.0.state.lock();
        let mut names: Vec<_> = state.controllers.iter().map(crate::Controller::name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ManagerError::SameName(pair[0])),
            None => Ok(()),
        }
    }
}

// === impl Running ===

impl<'a> Running<'a> {
    fn new(manager: &'a Manager) -> Self {
        Self {
            manager,
            barriers: Barriers::new(manager.kube_client().clone()),
            tasks: JoinSet::new(),
            names: BTreeMap::new(),
            stops: GROUPS.into_iter().map(|group| (group, CancellationToken::new())).collect(),
            started: 0,
        }
    }

    /// Starts the parts, group by group, and those that are added later; until stopped, or until a part fails.
    async fn until(&mut self, stop: &CancellationToken, election: &Election) -> Result<(), ManagerError> {
        let informers = self.manager.informers().clone();
        self.start_waiting(|part| part.group() == Group::Servers);
        // A process that leads from the start lists after the election, and need not check afterwards that nothing was
        // missed.
        let decided = tokio::time::timeout(DECIDED_WITHIN, self.manager.0.leadership.decided());
        if stop.run_until_cancelled(decided).await.is_none() {
            return Ok(());
        }
        informers.start();
        self.start_waiting(Part::starts_early);

        let manager = self.manager;
        let mut filled = std::pin::pin!(caches_filled(manager));
        let mut all_started = false;
        let mut returns = informers.reachability().returns();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = election.lost() => return Err(ManagerError::LeadershipLost),
                Some(ended) = self.tasks.join_next() => self.note_end(ended)?,
                Ok(()) = returns.changed() => {
                    for controller in manager.inspection().controllers() {
                        controller.retry_unreached();
                    }
                }
                () = manager.0.added.notified() => {
                    manager.check_names()?;
                    // An added part may need new caches.
                    informers.start();
                    self.start_waiting(|part| all_started || part.starts_early());
                }
                () = &mut filled, if !all_started => {
                    all_started = true;
                    self.start_waiting(|_| true);
                }
            }
        }
    }

    fn start_waiting(&mut self, which: impl Fn(&Part) -> bool) {
        let mut chosen = Vec::new();
        {
            let mut state = self.manager.0.state.lock();
            let mut kept = Vec::new();
            for part in state.parts.drain(..) {
                if which(&part) { chosen.push(part) } else { kept.push(part) }
            }
            state.parts = kept;
        }
        chosen.sort_by_key(Part::group);
        for part in chosen {
            self.start(part);
        }
    }

    fn start(&mut self, part: Part) {
        let group = part.group();
        let number = self.started;
        self.started += 1;
        let stop = self.stops.get(&group).cloned().unwrap_or_default();
        let leadership = self.manager.leadership();
        match part {
            Part::Controller(engine) => {
                self.names.insert(number, (group, engine.controller().name().to_owned()));
                let barriers = self.barriers.clone();
                self.tasks.spawn(async move { (number, engine.run(barriers, stop).await) });
            }
            Part::Runnable { name, run, .. } => {
                tracing::debug!(name, ?group, "starting");
                self.names.insert(number, (group, name));
                self.tasks.spawn(async move {
                    let leads = async {
                        if group == Group::Leading {
                            leadership.acquired().await;
                        }
                    };
                    if stop.run_until_cancelled(leads).await.is_none() {
                        return (number, Ok(()));
                    }
                    (number, run(stop).await)
                });
            }
        }
    }

    fn note_end(
        &mut self,
        ended: Result<(usize, Result<(), Error>), tokio::task::JoinError>,
    ) -> Result<(), ManagerError> {
        let failed = |name, error| Err(ManagerError::Failed { name, source: Failure(error) });
        match ended {
            Err(error) => failed("a task".to_owned(), Error::message(error)),
            Ok((number, result)) => {
                let name = self.names.remove(&number).map(|(_, name)| name).unwrap_or_default();
                match result {
                    Ok(()) => Ok(()),
                    Err(error) => failed(name, error),
                }
            }
        }
    }

    /// Ends the groups in reverse order. Parts that do not end in time are aborted. The lease is given back when all
    /// parts that need it have ended.
    async fn end(mut self, election: &Election) -> Result<(), ManagerError> {
        let within = self.manager.0.shutdown_within;
        // A deadline of all the time there is means no deadline, not a panic.
        let deadline = Instant::now() + within.min(FOR_EVER);
        let mut first_failure = Ok(());
        for group in GROUPS.into_iter().rev() {
            if let Some(stop) = self.stops.get(&group) {
                stop.cancel();
            }
            while self.names.values().any(|(of, _)| *of == group) {
                let Ok(Some(ended)) = tokio::time::timeout_at(deadline, self.tasks.join_next()).await else {
                    let names = self.names.values().map(|(_, name)| name.clone()).collect();
                    self.tasks.abort_all();
                    // A part that blocks its thread cannot be aborted; the process can exit.
                    let gone = async { while self.tasks.join_next().await.is_some() {} };
                    let _ = tokio::time::timeout(GONE_WITHIN, gone).await;
                    self.tasks.detach_all();
                    return Err(ManagerError::StoppedHard { within, names });
                };
                first_failure = first_failure.and(self.note_end(ended));
            }
            match group {
                Group::Leading => election.give_back(),
                Group::Caches => self.manager.informers().stop().await,
                Group::Servers | Group::Others => {}
            }
        }
        first_failure
    }
}

/// A dropped run leaves nothing behind: tasks end with their set, sources and caches are stopped here.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        for stop in self.stops.values() {
            stop.cancel();
        }
        let informers = self.manager.informers().clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { informers.stop().await });
        }
    }
}

/// Waits until the caches are filled, and logs which are not; parts that do not need them run meanwhile.
async fn caches_filled(manager: &Manager) {
    if let Err(missing) = manager.informers().synced_within(SAY_WHAT_IS_MISSING_AFTER).await {
        tracing::warn!("still waiting: {missing}");
    }
}

/// The election that runs beside everything else, if there is one.
struct Election {
    stop: CancellationToken,
    lost: CancellationToken,
    /// One task, or none.
    task: JoinSet<()>,
}

// === impl Election ===

impl Election {
    fn start(elector: Option<Elector>) -> Self {
        let stop = CancellationToken::new();
        let lost = CancellationToken::new();
        let mut task = JoinSet::new();
        if let Some(elector) = elector {
            let stop = stop.clone();
            let lost = lost.clone();
            task.spawn(async move {
                if elector.run(stop).await == Ended::Lost {
                    lost.cancel();
                }
            });
        }
        Self { stop, lost, task }
    }

    async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Ends the election when no part needs the lease any more.
    fn give_back(&self) {
        self.stop.cancel();
    }

    /// Waits until the lease is given back; if a part may still be writing, the lease is left to expire.
    async fn finish(mut self, orderly: bool) {
        if orderly {
            while self.task.join_next().await.is_some() {}
        } else {
            self.task.shutdown().await;
        }
    }
}
