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

/// Why a manager stopped by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A part failed.
    #[error("{name} failed: {source}")]
    Failed {
        /// Which one.
        name: String,
        /// Why.
        source: Failure,
    },
    /// The lease was lost: another process may lead now.
    #[error("leaderelection lost")]
    LeadershipLost,
    /// The orderly end took too long; what was left has been ended.
    #[error("these did not end within {within:?}, and were ended: {}", .names.join(", "))]
    StoppedHard {
        /// How long they had.
        within: Duration,
        /// Who they are.
        names: Vec<String>,
    },
    /// Two controllers have one name, and would count as one.
    #[error("two controllers are called \"{0}\": names must differ, because metrics, health and the log go by them")]
    SameName(&'static str),
    /// It runs already, or has run.
    #[error("the manager runs already, or has run: make another one")]
    RunsAlready,
}

/// The error of a part, as a source.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(Error);

/// What runs.
struct Running<'a> {
    manager: &'a Manager,
    barriers: Barriers,
    tasks: JoinSet<(usize, Result<(), Error>)>,
    /// By number: who runs.
    names: BTreeMap<usize, (Group, String)>,
    stops: BTreeMap<Group, CancellationToken>,
    started: usize,
}

const GROUPS: [Group; 4] = [Group::Servers, Group::Caches, Group::Others, Group::Leading];
/// How long caches wait for the election, which takes milliseconds on a server that answers.
const DECIDED_WITHIN: Duration = Duration::from_secs(1);
/// How long what was ended hard may take to let go: it does at its next pause, which is now unless it holds its thread.
const GONE_WITHIN: Duration = Duration::from_secs(1);
/// How long caches may take to fill before the manager says what it is waiting for. What does not need them goes on.
const SAY_WHAT_IS_MISSING_AFTER: Duration = Duration::from_secs(10);

// === impl Manager ===

impl Manager {
    /// Runs everything until `stop`, or until something fails.
    ///
    /// # Errors
    /// A part failed, the lease was lost, or the orderly end took too long.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), ManagerError> {
        let machinery = self.0.state.lock().machinery.take();
        let Some(Machinery { elector, broadcaster }) = machinery else { return Err(ManagerError::RunsAlready) };
        self.check_names()?;
        let (ending, ended_all) = (CancellationToken::new(), CancellationToken::new());
        checks::shutdown(self.health(), &ending);
        // A set, here and for the election: who drops this future leaves no task behind that would hold a lease.
        let mut beside = JoinSet::new();
        beside.spawn(broadcaster.run(ended_all.clone()));
        let (mapper, end) = (self.mapper().clone(), ended_all.clone());
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

    /// Runs everything until Ctrl-C or SIGTERM, or until something fails: [`run`](Self::run) with [`signals::stop`].
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until_signal(&self) -> Result<(), ManagerError> {
        self.run(signals::stop()).await
    }

    /// What did not get to start; from now on, nothing does.
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

    /// Starts what there is, group by group, then what comes later; until told to stop, or something fails.
    async fn until(&mut self, stop: &CancellationToken, election: &Election) -> Result<(), ManagerError> {
        let informers = self.manager.informers().clone();
        self.start_waiting(|part| part.group() == Group::Servers);
        // Who leads from the start lists after the election, and need not make sure afterwards that nothing was missed.
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
                    // What is added may need caches that nobody needed before.
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
        let (group, number) = (part.group(), self.started);
        self.started += 1;
        let stop = self.stops.get(&group).cloned().unwrap_or_default();
        let leadership = self.manager.leadership();
        match part {
            Part::Controller(engine) => {
                self.names.insert(number, (group, engine.controller().name().to_owned()));
                let barriers = self.barriers.clone();
                self.tasks.spawn(async move {
                    engine.run(barriers, stop).await;
                    (number, Ok(()))
                });
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

    /// Ends the groups in reverse order. What does not end in time is ended hard. The lease is given back when nobody
    /// who needs it runs any more.
    async fn end(mut self, election: &Election) -> Result<(), ManagerError> {
        let within = self.manager.0.shutdown_within;
        // Whoever gives an end all the time there is means no deadline, not a panic.
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
                    // Who holds a thread and never lets go of it cannot be ended; the process can.
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

/// Whoever drops a manager's run leaves nothing behind: tasks end with their set, sources and caches are told here.
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

/// Waits until the caches are filled; not for ever: what cannot be read is named, and the others go on.
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
        let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
        let mut task = JoinSet::new();
        if let Some(elector) = elector {
            let (stop, lost) = (stop.clone(), lost.clone());
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

    /// Nobody needs the lease any more.
    fn give_back(&self) {
        self.stop.cancel();
    }

    /// Waits until the lease is given back; if somebody may still be writing, it is left to run out.
    async fn finish(mut self, orderly: bool) {
        if orderly {
            while self.task.join_next().await.is_some() {}
        } else {
            self.task.shutdown().await;
        }
    }
}
