//! Whatever happens to the network and to processes, never two may write.

use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::door::{Door, Fate};
use super::world::{Candidate, World};

const SEEDS: u64 = 10;
const PROCESSES: usize = 3;
/// Of virtual time, for each seed: enough for dozens of terms.
const STORM: Duration = Duration::from_secs(1200);
const LOOK_EVERY: Duration = Duration::from_millis(100);

struct Process {
    candidate: Candidate,
    frozen: bool,
    lives: u32,
}

fn candidate(world: &World, process: usize, lives: u32) -> Candidate {
    world.start_through(Door::new(&world.server), &format!("{process}-{lives}"))
}

/// Something happens to a process: its requests meet a fate, or it stands still, or all is well again.
fn befall(process: &mut Process, random: &mut fastrand::Rng) {
    match random.u8(0..10) {
        0 => process.candidate.door.all(Fate::Refuse(StatusCode::SERVICE_UNAVAILABLE)),
        1 => process.candidate.door.all(Fate::Hang),
        2 => process.candidate.door.all(Fate::HangAfter),
        3 => process.candidate.door.all(Fate::Fail),
        4 => process.candidate.door.all(Fate::LoseReply),
        5 | 6 => process.frozen = true,
        _ => {
            process.candidate.door.open();
            process.frozen = false;
        }
    }
    process.candidate.set_frozen(process.frozen);
}

/// How many terms there were.
async fn storm(seed: u64) -> usize {
    let world = World::new();
    // The electors' jitter comes from the thread's generator, the storm from one of its own.
    fastrand::seed(seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut processes: Vec<_> =
        (0..PROCESSES).map(|at| Process { candidate: candidate(&world, at, 0), frozen: false, lives: 0 }).collect();
    let start = Instant::now();
    let mut next = Instant::now();
    let mut leader = None;
    let mut terms = 0;
    while start.elapsed() < STORM {
        sleep(LOOK_EVERY).await;
        if Instant::now() >= next {
            befall(&mut processes[random.usize(0..PROCESSES)], &mut random);
            next = Instant::now() + Duration::from_millis(random.u64(100..8_000));
        }
        for (at, process) in processes.iter_mut().enumerate().filter(|(_, process)| process.candidate.is_over()) {
            process.lives += 1;
            process.candidate = candidate(&world, at, process.lives);
            process.frozen = false;
        }
        let leading: Vec<_> =
            processes.iter().map(|process| &process.candidate.leadership).filter(|one| one.is_leading()).collect();
        assert!(leading.len() <= 1, "seed {seed}, {:?}: two may write: {leading:?}", start.elapsed());
        let now = leading.first().and_then(|one| one.identity().map(str::to_owned));
        if now.is_some() && now != leader {
            terms += 1;
            leader = now;
        }
    }
    // All is well again: then somebody leads, soon and for good.
    for process in &mut processes {
        process.candidate.door.open();
        process.candidate.set_frozen(false);
    }
    sleep(Duration::from_secs(25)).await;
    for (at, process) in processes.iter_mut().enumerate().filter(|(_, process)| process.candidate.is_over()) {
        process.candidate = candidate(&world, at, process.lives + 1);
    }
    sleep(Duration::from_secs(25)).await;
    let leading = processes.iter().filter(|process| process.candidate.leadership.is_leading()).count();
    assert_eq!(leading, 1, "seed {seed}: after the storm, one leads");
    terms
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_never_two_may_write_and_in_the_end_one_leads() {
    let mut terms = 0;
    for seed in 0..SEEDS {
        terms += storm(seed).await;
    }
    assert!(terms > 10 * usize::try_from(SEEDS).unwrap(), "the storms were storms: {terms} terms");
}
