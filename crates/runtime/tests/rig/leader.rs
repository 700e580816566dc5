//! A process that leads, decides to create an object, and waits for a command before it sends: the tests of the rig stop it in
//! between.
//!
//! `rig-leader <namespace> <lease> <identity> <config map>`; it says `decided` when it leads and the request is on its
//! way, lets the request go on when it reads a line, and says `sent <code>`, `refused`, or what else happened.

use std::error::Error;
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use steersman_base::Clock;
use steersman_runtime::connection::{Connection, Options};
use steersman_runtime::lease::{Elector, LeaseOptions, NotLeader};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("usage: rig-leader <namespace> <lease> <identity> <config map>");
    let namespace = arg()?;
    let lease = arg()?;
    let identity = arg()?;
    let name = arg()?;
    let kubeconfig = std::env::var("STEERSMAN_RIG_KUBECONFIG")?;
    let connection = Connection::load(Options::default().kubeconfig(kubeconfig)).await?;
    // Shorter than the defaults, so that the test is; in the same proportions.
    let options = LeaseOptions::new(&namespace, &lease)
        .identity(identity)
        .lease_duration(Duration::from_secs(3))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(500));
    let elector = Elector::new(connection.client().await?, options, Clock::system())?;
    let leadership = elector.leadership();
    tokio::spawn(elector.run(CancellationToken::new()));
    leadership.acquired().await;

    // An open connection, so that nothing but the leadership stands between the word and the bytes.
    let client = connection.client().await?;
    connection.check_reachable(&client).await?;
    // Something that holds requests back after the decision, such as a queue; it ends with the word.
    let queue = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            println!("decided");
            // The tasks go on meanwhile: the lease is renewed.
            tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    let request = Request::post(format!("/api/v1/namespaces/{namespace}/configmaps"))
        .header("content-type", "application/json")
        .body(serde_json::json!({"metadata": {"name": name}}).to_string())?;
    println!("{}", verdict(leadership.send(&Client::new(queue, "default"), request).await));
    Ok(())
}

fn verdict(outcome: Result<Response<Body>, kube::Error>) -> String {
    match outcome {
        Ok(response) => format!("sent {}", response.status().as_u16()),
        Err(error) if NotLeader::cause_of(&error).is_some() => "refused".to_owned(),
        Err(error) => format!("failed: {error}"),
    }
}
