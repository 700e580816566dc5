//! `cargo xtask bench nodes`: thousands of nodes with heartbeats, our manager beside Go's.

use super::{Driver, Goals, both_on_rig, save_beside};
use crate::failure::Result;

const NAME: &str = "nodes";

const GOALS: Goals = &[
    ("5,000 nodes: 90 s of heartbeats, CPU", "≥ 4 ×"),
    ("5,000 nodes: 90 s of heartbeats, API calls", "≥ 1 ×"),
    ("5,000 nodes: memory", "≥ 6 ×"),
    ("5,000 nodes: memory, peak", "≥ 6 ×"),
];

pub(super) fn run(driver: &Driver, save: bool) -> Result<()> {
    let table = both_on_rig(driver, &driver.server, NAME, GOALS)?;
    let text = table.as_ref().map(ToString::to_string).unwrap_or_default();
    println!("\n{text}");
    if save { save_beside(NAME, table.is_some(), &text) } else { Ok(()) }
}
