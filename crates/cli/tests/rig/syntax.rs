//! Our command line beside that of the real kube-controller-manager: both take, or both refuse.

use std::path::PathBuf;
use std::process::Command;

use steersman_testing::Failure;

/// Whether a program takes a line: it then looks for a kubeconfig that is not there.
fn takes(program: &mut Command, line: &str) -> Result<bool, Failure> {
    const NOWHERE: &str = "/nonexistent/kubeconfig";
    let output = program
        .args(line.split_whitespace())
        .arg(format!("--kubeconfig={NOWHERE}"))
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    Ok(last.contains(NOWHERE) && !last.contains("besides flags"))
}

#[test]
fn upstreams_program_and_ours_take_and_refuse_the_same_lines() -> Result<(), Failure> {
    let upstream = PathBuf::from(std::env::var("STEERSMAN_RIG_BIN")?).join("kube-controller-manager");
    let lines = include_str!("../data/lines.txt").lines();
    let mut differ = Vec::new();
    let mut taken = 0;
    let mut refused = 0;
    for line in lines {
        // Neither shall write certificates or listen.
        let theirs = takes(Command::new(&upstream).arg("--secure-port=0"), line)?;
        let mut ours = Command::new(env!("CARGO_BIN_EXE_steersman"));
        let ours = takes(ours.args(["controller-manager", "--secure-port=0"]), line)?;
        *(if theirs { &mut taken } else { &mut refused }) += 1;
        if theirs != ours {
            differ.push(format!("{line}: upstream takes it: {theirs}, we do: {ours}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(taken > 40 && refused > 40, "{taken} lines are taken and {refused} refused: that proves little");
    Ok(())
}
