//! What `cargo xtask k8s differential` and `churn` run: the harness, and our manager as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|command| command == "controller-manager") {
        return steersman_cli::main(std::env::args_os());
    }
    steersman_sim::differential::cli::run(&args)
}
