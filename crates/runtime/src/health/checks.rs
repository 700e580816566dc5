//! The checks of every manager.

use std::time::Duration;

use steersman_base::Resource;
use steersman_informer::__internal::reflector::ProblemKind;
use steersman_informer::InformerFactory;
use steersman_informer::RunningInformer;
use steersman_model::Projection;
use tokio_util::sync::CancellationToken;

use super::{Health, Probe, Progress, STUCK_AFTER, Unhealthy};
use crate::lease::Leadership;

/// Upstream's time after the expiration of its lease for which a leader that did not renew it is still healthy. It
/// should have exited long before.
pub(crate) const LEASE_TOLERANCE: Duration = Duration::from_secs(20);

/// Adds the checks of one controller, under its name: on `healthz` and `livez`, that its workers make progress and that
/// none of its sources has panicked; on `readyz`, also that every resource it needs can be read.
pub(crate) fn controller(
    health: &Health,
    name: &str,
    progress: &Progress,
    waiting: impl Fn() -> usize + Clone + Send + Sync + 'static,
    source_panic: impl Fn() -> Option<String> + Clone + Send + Sync + 'static,
    informers: &InformerFactory,
    needs: impl Fn() -> Vec<Resource> + Send + Sync + 'static,
) {
    let come_forward = {
        let progress = progress.clone();
        let waiting = waiting;
        move || {
            if let Some(panic) = source_panic() {
                return Err(Unhealthy(format!("one of its sources panicked, and sends nothing any more: {panic}")));
            }
            progress.seen(waiting()).judge(STUCK_AFTER).map_err(|stuck| Unhealthy(stuck.to_string()))
        }
    };
    health.add(&Probe::VITAL, name, come_forward.clone());
    let informers = informers.clone();
    health.add(&[Probe::Readyz], name, move || {
        come_forward()?;
        readable(&informers.running(), &needs())
    });
}

/// Checks whether all of these resources can be read, as far as their informers know.
///
/// # Errors
/// A resource cannot be read; the error names it, and the cause.
pub(crate) fn readable(running: &[RunningInformer], needs: &[Resource]) -> Result<(), Unhealthy> {
    let refused = |informer: &&RunningInformer| {
        let problem = informer.reflector.as_ref().and_then(|reflector| reflector.problem.as_ref());
        problem.is_some_and(|problem| matches!(problem.kind, ProblemKind::Forbidden | ProblemKind::NotFound))
    };
    let needed = |informer: &&RunningInformer| needs.contains(&informer.informer.target.resource);
    let mut unread: Vec<_> = running
        .iter()
        .filter(needed)
        .filter(refused)
        .map(|informer| {
            let problem = informer.reflector.as_ref().and_then(|reflector| reflector.problem.as_ref());
            let message = problem.map_or("", |problem| &*problem.message);
            format!("waits for {}, which it cannot read: {message}", informer.informer.target)
        })
        .collect();
    unread.sort_unstable();
    unread.dedup();
    if unread.is_empty() { Ok(()) } else { Err(Unhealthy(unread.join("; "))) }
}

/// Adds upstream's check `leaderElection` to every probe: a leader that could neither renew its lease for its duration
/// and [`LEASE_TOLERANCE`], nor give it up, hangs. On `readyz`, also that the server allows the use of the lease:
/// otherwise this process never leads.
pub(crate) fn leader_election(health: &Health, leadership: &Leadership) {
    const NAME: &str = "leaderElection";
    let renews = {
        let leadership = leadership.clone();
        move || leadership.check_renewal(LEASE_TOLERANCE).map_err(|overdue| Unhealthy(overdue.to_string()))
    };
    health.add(&Probe::VITAL, NAME, renews.clone());
    let leadership = leadership.clone();
    health.add(&[Probe::Readyz], NAME, move || {
        renews()?;
        leadership.refusal().map_or(Ok(()), |why| Err(Unhealthy(why.into())))
    });
}

/// Adds `informer-sync` to `readyz`: every cache is filled. Metadata of a resource that cannot be read does not count:
/// one broken custom kind must not make a garbage collector unready; a controller that needs it has a check of its own.
pub(crate) fn informer_sync(health: &Health, informers: &InformerFactory) {
    let informers = informers.clone();
    health.add(&[Probe::Readyz], "informer-sync", move || {
        let running = informers.running();
        let is_in_trouble =
            |each: &RunningInformer| each.reflector.as_ref().is_some_and(|state| state.problem.is_some());
        let counts = |each: &&RunningInformer| each.projection == Projection::Whole || !is_in_trouble(each);
        let missing: Vec<_> = running.iter().filter(|each| !each.informer.synced).filter(counts).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = missing.iter().map(|each| each.informer.target.to_string()).collect();
        Err(Unhealthy(format!("{} informers not started yet: [{}]", missing.len(), names.join(" "))))
    });
}

/// Adds `shutdown` to `readyz`: the process is not shutting down.
pub(crate) fn shutdown(health: &Health, stop: &CancellationToken) {
    let stop = stop.clone();
    health.add(&[Probe::Readyz], "shutdown", move || {
        if stop.is_cancelled() { Err(Unhealthy("process is shutting down".to_owned())) } else { Ok(()) }
    });
}
