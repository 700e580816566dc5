//! `cargo xtask`: the maintenance commands of this repository.
//!
//! Each command is a module with a `run(&[String])`. A command calls other programs (`cargo`, `go`, the rig's supervisor) and
//! prints what it did. A failure is one sentence that names the next step.

mod bench;
mod clock;
mod crates;
mod docs;
mod failure;
mod fuzz;
mod k8s;
mod process;
mod sections;
mod sim;
mod test;
mod tests_list;
mod tidy;
mod timings;
mod workspace;

use std::process::ExitCode;

use failure::{Failure, Result};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test                                the whole suite; with Go installed, the rig tier too
  tests-list [DIR]                    every test with its number of assertions, as TSV; to compare two commits
  tidy                                repository checks: crate edges, sizes, pure files, headings, generated tables
  docs                                write the tables of README and docs that follow from the controllers' pages
  crates                              packages, features alone, and a program outside with the oldest Kubernetes version
  bench NAME|all [--quick] [--save]   benchmarks; --save writes the figures to docs/benchmarks.md
  fuzz [TARGET…] [--seconds N]        the fuzz targets, a minute each
  sim [OPTIONS]                       simulated worlds under faults; --help lists the options
  k8s install                         build Kubernetes for the rig (minutes, once; needs Go)
  k8s up [OPTIONS]                    etcd and kube-apiserver until Ctrl-C; --help lists the options
  k8s down                            end a running `up`
  k8s run [OPTIONS] -- CMD ARGS...    run CMD beside a fresh kube-apiserver
  k8s test [FILTER]                   the tests and examples that need a real kube-apiserver
  k8s path                            print the directory of the rig's binaries";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        return Err(Failure::usage("no command given", USAGE));
    };
    match command.as_str() {
        "test" => test::run(rest),
        "tests-list" => tests_list::run(rest),
        "tidy" => tidy::run(rest),
        "docs" => docs::run(rest),
        "crates" => crates::run(rest),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "sim" => sim::run(rest),
        "k8s" => k8s::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => Err(Failure::usage(&format!("unknown command `{unknown}`"), USAGE)),
    }
}
