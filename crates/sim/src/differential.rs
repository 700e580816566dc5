//! Our manager beside Go's: `cargo xtask k8s differential` and `cargo xtask k8s churn`.
//!
//! 1. Two clusters ([`side`]) have a kube-apiserver of their own each, simulated nodes, and one manager with all 49 controllers:
//!    ours in one of them, Go's in the other.
//! 2. Both get the same requests of users ([`load`]), step by step; after each step both are waited for.
//! 3. After each step every object is read, at the end of a sequence every event, too; they are normalised ([`normal`]) and compared ([`compare`]);
//!    requests are counted from the audit logs ([`audit`]).
//! 4. Differences that are meant are in a table ([`allowed`]); any other that lasts is a finding.
//! 5. The same load without pauses is the churn ([`churn`]): error lines and memory are compared.

pub mod allowed;
pub mod audit;
pub mod churn;
pub mod cli;
pub mod compare;
pub mod load;
pub mod normal;
pub mod report;
pub mod side;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steersman_base::Clock;
use steersman_testing::Failure;
use tokio::time::sleep;

use crate::chaos::managers::Kind;
use allowed::allows;
use audit::Calls;
use compare::{Area, Difference};
use load::{FAMILIES, Family};
use side::{Answer, Dump, Setting, Side};

/// What is compared.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of the first sequence.
    pub seed: u64,
    /// How many sequences there are.
    pub sequences: u64,
    /// The families of the load; all if there are none.
    pub only: Vec<String>,
    /// The programs and places.
    pub setting: Setting,
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The seed of the first sequence.
    pub seed: u64,
    /// How many sequences there were.
    pub sequences: u64,
    /// How many requests users made.
    pub requests: u64,
    /// How many objects and events were compared.
    pub compared: u64,
    /// Steps after which a cluster did not become quiet in time.
    pub restless: u64,
    /// How often the clusters were compared again, because they differed where they should not.
    pub looked_again: u64,
    /// The differences of all sequences.
    pub differences: Vec<Difference>,
    /// What our manager asked for.
    pub ours: Calls,
    /// What Go's asked for.
    pub go: Calls,
    /// What our manager has no right to.
    pub refused: Vec<String>,
}

/// Longer than the batches of endpoints, and than the first steps of back-offs.
const QUIET_FOR: Duration = Duration::from_millis(2_500);
const STEP_WITHIN: Duration = Duration::from_secs(30);
/// Longer than the autoscaler's period, and than the timers of the load.
const QUIET_AT_END: Duration = Duration::from_secs(8);
const END_WITHIN: Duration = Duration::from_secs(60);
/// Timers of two clusters do not begin at the same time: a difference counts only if it is still there so many looks later.
/// Together longer than the longest timer of the load, that of a pod on a lost node.
const LOOKS_MAX: u32 = 6;
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The last seconds of a minute, which a step may take on a busy machine, and the first of the next, in which CronJobs fire.
const MINUTE_ENDS: i64 = 47;
const MINUTE_BEGAN: i64 = 4;

/// Runs sequences on two clusters.
///
/// # Errors
/// The harness itself does not work; what it finds is in the outcome.
pub async fn run(options: &Options) -> Result<Outcome, Failure> {
    let families = families(&options.only)?;
    let (mut ours, mut go) =
        tokio::try_join!(Side::start(Kind::Ours, &options.setting), Side::start(Kind::Go, &options.setting))?;
    let mut outcome = Outcome { seed: options.seed, sequences: options.sequences, ..Outcome::default() };
    settle(&mut ours, &mut go, QUIET_AT_END, END_WITHIN).await?;
    for number in 0..options.sequences {
        let name = format!("seq-{number}");
        eprintln!("sequence {name}");
        for step in load::sequence(options.seed.wrapping_add(number), &name, &families) {
            within_a_minute().await;
            let (mine, theirs) = tokio::try_join!(ours.perform(&step), go.perform(&step))?;
            outcome.requests += u64::try_from(mine.len())?;
            outcome.differences.extend(answers(&mine, &theirs));
            let is_quiet = settle(&mut ours, &mut go, QUIET_FOR, STEP_WITHIN).await?;
            outcome.restless += u64::from(!is_quiet);
            look(&mut ours, &mut go, &mut outcome).await?;
        }
        outcome.restless += u64::from(!settle(&mut ours, &mut go, QUIET_AT_END, END_WITHIN).await?);
        let (mine, theirs) = look(&mut ours, &mut go, &mut outcome).await?;
        keep(&options.setting.scratch.join(format!("ours-{number}.json")), &mine.raw)?;
        keep(&options.setting.scratch.join(format!("go-{number}.json")), &theirs.raw)?;
        outcome.differences.extend(compare::events(&mine.events, &theirs.events));
        tokio::try_join!(ours.clear(&name), go.clear(&name))?;
        settle(&mut ours, &mut go, QUIET_AT_END, END_WITHIN).await?;
    }
    outcome.ours = ours.tail().calls().clone();
    outcome.go = go.tail().calls().clone();
    outcome.differences.extend(outcome.ours.more_than(&outcome.go));
    outcome.refused = ours.tail().refused().iter().cloned().collect();
    outcome.differences.sort();
    outcome.differences.dedup();
    ours.keep_log()?;
    go.keep_log()?;
    Ok(outcome)
}

/// Compares all objects, and again while they differ where they should not. Differences that go away are not counted.
async fn look(ours: &mut Side, go: &mut Side, outcome: &mut Outcome) -> Result<(Dump, Dump), Failure> {
    let mut before: Option<Vec<Difference>> = None;
    let mut looks = 0;
    loop {
        looks += 1;
        within_a_minute().await;
        let (mine, theirs) = tokio::try_join!(ours.dump(), go.dump())?;
        let found = compare::states(&mine.state, &theirs.state);
        if looks == LOOKS_MAX || found.iter().all(|difference| allows(difference).is_some()) {
            outcome.compared += mine.count();
            outcome.differences.extend(match &before {
                Some(before) => compare::lasting(before, found),
                None => found,
            });
            return Ok((mine, theirs));
        }
        outcome.looked_again += 1;
        before = Some(found);
        sleep(LOOK_AGAIN_AFTER).await;
    }
}

fn keep(file: &Path, objects: &[serde_json::Value]) -> Result<(), Failure> {
    Ok(std::fs::write(file, serde_json::to_vec(objects)?)?)
}

/// Returns the families of these names, all if there are none.
fn families(only: &[String]) -> Result<Vec<Family>, Failure> {
    if only.is_empty() {
        return Ok(FAMILIES.to_vec());
    }
    let find = |name: &String| FAMILIES.iter().find(|(known, _)| known == name).copied();
    let known = FAMILIES.map(|(name, _)| name).join(", ");
    only.iter().map(|name| find(name).ok_or_else(|| Failure::new(format!("there is no {name}: {known}")))).collect()
}

/// Waits until both are quiet. Returns whether they became so.
async fn settle(ours: &mut Side, go: &mut Side, quiet: Duration, within: Duration) -> Result<bool, Failure> {
    let (mine, theirs) = tokio::try_join!(ours.quiet(quiet, within), go.quiet(quiet, within))?;
    Ok(mine && theirs)
}

/// Waits while CronJobs may fire: they fire before both clusters are looked at, or after.
async fn within_a_minute() {
    loop {
        let second = Clock::system().now().unix().rem_euclid(60);
        if (MINUTE_BEGAN..MINUTE_ENDS).contains(&second) {
            return;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Compares the answers to one step.
fn answers(ours: &[Answer], go: &[Answer]) -> Vec<Difference> {
    let mut found = Vec::new();
    if ours.len() != go.len() {
        let told = |answers: &[Answer]| format!("{} requests", answers.len());
        found.push(Difference {
            area: Area::Answer,
            about: "requests".to_owned(),
            name: String::new(),
            path: String::new(),
            ours: told(ours),
            go: told(go),
        });
    }
    for ((what, mine), (_, theirs)) in ours.iter().zip(go).filter(|(mine, theirs)| mine != theirs) {
        found.push(Difference {
            area: Area::Answer,
            about: what.clone(),
            name: String::new(),
            path: String::new(),
            ours: mine.to_string(),
            go: theirs.to_string(),
        });
    }
    found
}
