//! `cargo xtask bench scale`: large numbers of small objects, embedded.

use super::{Driver, Goals, beside};
use crate::bench::report;
use crate::failure::Result;

const NAME: &str = "scale";

const GOALS: Goals = &[
    ("10,000 claims against as many volumes, wall", "≤ 20 s"),
    ("1,000 signing requests, wall", "≤ 3 s"),
    ("recount of a namespace with 50,000 pods, wall", "≤ 0.2 s"),
    ("one pass over 10,000 autoscalers, CPU", "≤ 5 s"),
];

pub(super) fn run(driver: &Driver, save: bool) -> Result<()> {
    let table = beside(driver.run(&[NAME])?, &[], GOALS).to_string();
    println!("\n{table}");
    if save { report::save(NAME, None, &table) } else { Ok(()) }
}
