//! Serves an API server until it is interrupted: `cargo run -p steersman-apiserver --example serve -- FILE`, where FILE is
//! the kubeconfig to write.

use std::path::PathBuf;

use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("kubeconfig"), PathBuf::from);
    let server = ApiServer::new(Options::default());
    let listening = Listening::start(&server, ListenOptions::default()).await?;
    listening.write_kubeconfig(&path)?;
    println!("{} serves; KUBECONFIG={}", listening.url(), path.display());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
