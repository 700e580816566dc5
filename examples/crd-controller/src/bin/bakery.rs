//! The bakery as a program: what `main` of an operator needs.

use example_crd_controller::{add_bakery, definition};
use steersman::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = connection::connect(connection::Options::default()).await?;
    definition::install_value(&client, &definition()).await?;
    let lease = LeaseOptions::new("default", "bakery");
    let manager = Manager::new(client, ManagerOptions::default().lease(lease))?;
    add_bakery(&manager);
    manager.serve(std::net::SocketAddr::from(([127, 0, 0, 1], 8080))).await?; // /readyz, /metrics, /debug/decisions
    Ok(manager.run_until_signal().await?)
}
