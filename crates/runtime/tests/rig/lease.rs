//! Leader election on a real kube-apiserver, and a real process that is stopped.
//!
//! Lease times are short (3 s, 2 s, 0.5 s instead of 15 s, 10 s, 2 s), so that the tests are.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use http::Request;
use serde_json::{Value, json};
use steersman_base::Clock;
use steersman_runtime::lease::{Elector, Ended, Leadership, LeaseOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Outcome, PATIENCE, Place};

const DURATION: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_millis(500);
/// For the answers of a real server on a busy machine.
const A_MOMENT: Duration = Duration::from_secs(1);

/// A `rig-leader`: it leads, has decided, and waits for a word. Its end comes with that of the test.
struct Process {
    child: Child,
    words: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

fn options(place: &Place, identity: &str) -> LeaseOptions {
    LeaseOptions::new(&place.namespace, "lease")
        .identity(identity)
        .lease_duration(DURATION)
        .renew_deadline(Duration::from_secs(2))
        .retry_period(RETRY)
        .release_on_exit()
}

fn start(
    place: &Place,
    identity: &str,
) -> Result<(Leadership, CancellationToken, JoinHandle<Ended>), Box<dyn std::error::Error>> {
    let elector = Elector::new(place.client.clone(), options(place, identity), Clock::system())?;
    let leadership = elector.leadership();
    let stop = CancellationToken::new();
    Ok((leadership, stop.clone(), tokio::spawn(elector.run(stop))))
}

async fn lease(place: &Place) -> Result<Value, Box<dyn std::error::Error>> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/lease", place.namespace);
    Ok(place.client.request(Request::get(path).body(Vec::new())?).await?)
}

async fn config_maps(place: &Place) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let list: Value = place.client.request(Request::get(place.path("configmaps")).body(Vec::new())?).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items.iter().filter_map(|item| Some(item["metadata"]["name"].as_str()?.to_owned())).collect())
}

/// Returns the program `rig-leader`, an example of this package: this test is `TARGET/PROFILE/deps/rig-HASH`.
fn leader() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let this = std::env::current_exe()?;
    let profile = this.ancestors().nth(2).ok_or("this test is in no target directory")?;
    Ok(profile.join("examples/rig-leader"))
}

impl Process {
    /// Returns when it leads and has decided.
    async fn start(place: &Place, identity: &str, config_map: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let mut child = Command::new(leader()?)
            .args([&place.namespace, "lease", identity, config_map])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let words = child.stdin.take().ok_or("no stdin")?;
        let says = child.stdout.take().ok_or("no stdout")?;
        let mut process = Self { child, words, says: BufReader::new(says).lines() };
        assert_eq!(process.next().await?, "decided");
        Ok(process)
    }

    async fn next(&mut self) -> Result<String, Box<dyn std::error::Error>> {
        Ok(timeout(PATIENCE, self.says.next_line()).await??.ok_or("it ended")?)
    }

    async fn signal(&self, signal: &str) -> Outcome {
        let pid = self.child.id().ok_or("it has ended")?.to_string();
        let status = Command::new("kill").args([signal, &pid]).status().await?;
        if status.success() { Ok(()) } else { Err(format!("kill {signal} {pid}: {status}").into()) }
    }

    /// Makes it send what it has decided, and answers what came of it.
    async fn send(mut self) -> Result<String, Box<dyn std::error::Error>> {
        self.words.write_all(b"now\n").await?;
        let verdict = self.next().await?;
        timeout(PATIENCE, self.child.wait()).await??;
        Ok(verdict)
    }
}

#[tokio::test]
async fn of_two_electors_one_leads_and_hands_over_within_a_second() -> Outcome {
    let place = Place::new("electors").await?;
    let (one, stop_one, running_one) = start(&place, "one")?;
    timeout(PATIENCE, one.acquired()).await?;
    let (two, stop_two, running_two) = start(&place, "two")?;
    sleep(2 * DURATION).await;
    assert!(one.is_leading() && !two.is_leading());
    let before = lease(&place).await?;
    assert_eq!(before["spec"]["holderIdentity"], "one");
    assert_eq!((&before["spec"]["leaseDurationSeconds"], &before["spec"]["leaseTransitions"]), (&json!(3), &json!(0)));

    let stopped = Instant::now();
    stop_one.cancel();
    assert_eq!(running_one.await?, Ended::Stopped);
    timeout(PATIENCE, two.acquired()).await?;
    assert!(stopped.elapsed() <= Duration::from_secs(1), "{:?}", stopped.elapsed());
    assert!(!one.is_leading());
    let after = lease(&place).await?;
    assert_eq!((&after["spec"]["holderIdentity"], &after["spec"]["leaseTransitions"]), (&json!("two"), &json!(1)));

    stop_two.cancel();
    assert_eq!(running_two.await?, Ended::Stopped);
    let released = lease(&place).await?;
    assert_eq!(released["spec"]["leaseDurationSeconds"], 1);
    assert_eq!(released["spec"]["holderIdentity"].as_str().unwrap_or_default(), "", "nobody's");
    Ok(())
}

#[tokio::test]
async fn a_killed_leader_is_succeeded_within_the_lease_and_a_retry_period() -> Outcome {
    let place = Place::new("killed").await?;
    let mut process = Process::start(&place, "process", "never-sent").await?;
    let (two, _stop, _running) = start(&place, "two")?;
    sleep(2 * DURATION).await;
    assert!(!two.is_leading());
    let killed = Instant::now();
    process.child.kill().await?;
    timeout(PATIENCE, two.acquired()).await?;
    assert!(killed.elapsed() <= DURATION + RETRY + A_MOMENT, "{:?}", killed.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_process_that_is_stopped_between_decision_and_send_sends_nothing() -> Outcome {
    let place = Place::new("stopped").await?;
    // What happens without a stop, so that the rest means something.
    let process = Process::start(&place, "brisk", "brisk").await?;
    assert_eq!(process.send().await?, "sent 201");

    let process = Process::start(&place, "stopped", "stopped").await?;
    let (two, _stop, _running) = start(&place, "two")?;
    process.signal("-STOP").await?;
    timeout(PATIENCE, two.acquired()).await?;
    sleep(DURATION).await;
    process.signal("-CONT").await?;
    assert_eq!(process.send().await?, "refused");
    let names = config_maps(&place).await?;
    assert!(names.contains(&"brisk".to_owned()), "{names:?}");
    assert!(!names.contains(&"stopped".to_owned()), "{names:?}");
    assert_eq!(lease(&place).await?["spec"]["holderIdentity"], "two");
    assert!(two.is_leading());
    Ok(())
}
