//! `cargo xtask bench large`: both managers, one after the other, on one cluster of 150,000 pods.
//!
//! It takes about 10 GB of memory, so that neither CI nor `bench all` runs it.

use super::{Driver, Goals, PEER, beside, save_beside};
use crate::failure::{Failure, Result};
use crate::k8s;

const NAME: &str = "large";

/// How large the cluster is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    nodes: usize,
    pods_per_node: usize,
}

/// The size that the goals are set for, and one for trying it out.
const FULL: Size = Size { nodes: 5_000, pods_per_node: 30 };
const QUICK: Size = Size { nodes: 100, pods_per_node: 10 };
/// Each node has a range of addresses of its own, of which there are so many.
const NODES_MAX: usize = 8_192;

const GOALS: Goals = &[
    ("start to caches synced and leading, wall", "≥ 2 ×"),
    ("start, CPU", "≥ 6 ×"),
    ("start, API server's CPU", "≥ 2 ×"),
    ("start, memory, peak", "≥ 9 ×"),
    ("steady for a minute, CPU", "≥ 4 ×"),
    ("steady, memory", "≥ 9 ×"),
];

pub(super) fn run(driver: &Driver, size: Size, save: bool) -> Result<()> {
    if save && size != FULL {
        return Err(Failure::error("figures of another size mean nothing, so they are not saved: leave out --save"));
    }
    if k8s::Go::find().is_none() {
        return Err(Failure::error("without Go there is no rig, and nothing to measure"));
    }
    let mode = [NAME, &size.nodes.to_string(), &size.pods_per_node.to_string()];
    let both = driver.run_in_rig(&driver.server, None, &mode)?;
    let (go, ours): (Vec<_>, Vec<_>) = both.into_iter().partition(|figure| figure.of_peer);
    let Size { nodes, pods_per_node } = size;
    let table = beside(ours, &go, GOALS);
    let text =
        format!("{nodes} nodes with {pods_per_node} pods each, {PEER} on the same cluster after ours:\n\n{table}");
    println!("\n{text}");
    if save { save_beside(NAME, true, &text) } else { Ok(()) }
}

// === impl Size ===

impl Size {
    /// Returns the size with what `--nodes N` and `--pods-per-node N` say.
    pub(super) fn read(args: &[&str], quick: bool) -> Result<Self> {
        let mut size = if quick { QUICK } else { FULL };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let number = args.next().and_then(|value| value.parse().ok()).filter(|number| *number > 0);
            match (*flag, number) {
                ("--nodes", Some(number)) if number <= NODES_MAX => size.nodes = number,
                ("--pods-per-node", Some(number)) => size.pods_per_node = number,
                _ => {
                    return Err(Failure::error(format!("write --nodes N (at most {NODES_MAX}) and --pods-per-node N")));
                }
            }
        }
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::{FULL, Size};

    #[test]
    fn a_size_is_read_from_flags_and_must_be_a_number() {
        let read = |args: &[&str]| Size::read(args, false).ok();
        assert_eq!(read(&[]), Some(FULL));
        assert_eq!(read(&["--pods-per-node", "3", "--nodes", "7"]), Some(Size { nodes: 7, pods_per_node: 3 }));
        for wrong in [&["--nodes"][..], &["--nodes", "0"], &["--nodes", "9000"], &["--nodes", "x"], &["--pods", "1"]] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
