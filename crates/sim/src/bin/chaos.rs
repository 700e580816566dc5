//! What `cargo xtask k8s chaos` runs inside a rig: the harness, and our manager as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|command| command == "controller-manager") {
        return steersman_cli::main(std::env::args_os());
    }
    steersman_sim::chaos::cli::run(&args)
}
