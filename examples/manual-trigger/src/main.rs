//! Runs the looker in the cluster of your kubeconfig: a request to its web server makes it look.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use example_manual_trigger::{add_looker, respond};
use http::Request;
use steersman::runtime::{Manager, ManagerOptions, connection};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = connection::connect(connection::Options::default()).await?;
    let manager = Manager::new(client, ManagerOptions::default())?;
    let (looked, mut sees) = mpsc::unbounded_channel();
    let (_, sender) = add_looker(&manager, move |key| {
        // Nobody listens any more when the program ends.
        let _ = looked.send(key.to_string());
    });
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let manager = manager.clone();
        let stop = stop.clone();
        async move { manager.run(stop).await }
    });

    // What the web server does with a request; `web_server` serves it on a socket.
    let request = Request::post("/trigger/shop/cake").body(Bytes::new())?;
    println!("the answer is {}", respond(&sender, &request).status());
    let look = async { while sees.recv().await.is_some_and(|key| key != "shop/cake") {} };
    tokio::time::timeout(PATIENCE, look).await?;
    println!("looked at shop/cake");

    stop.cancel();
    running.await??;
    Ok(())
}
