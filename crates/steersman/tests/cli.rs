//! What the command line answers to bad input: one sentence, and exit code 1.

use std::process::Command;

fn check(args: &[&str], want: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_steersman"))
        .args(args)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    assert!(said.contains(want), "{args:?} should say {want:?}, but says: {said}");
}

#[test]
fn bad_input_gets_one_sentence_and_exit_code_1() {
    let run = |more: &[&str], want: &str| {
        let args: Vec<&str> = ["controller-manager"].iter().chain(more).copied().collect();
        check(&args, want);
    };
    check(&["controller-mangaer"], "controller-manager");
    run(&["--leader-elct=false"], "--leader-elect");
    run(&["--leader-elect=maybe"], "maybe");
    run(&[], "--leader-elect=false");
    run(&["--leader-elect=false", "--controllers=nope"], r#"no controller "nope""#);
    run(&["--leader-elect=false", "--kubeconfig=does/not/exist"], "does/not/exist");
    run(&["--leader-elect=false", "--concurrent-replicaset-syncs=0"], "0");
}
