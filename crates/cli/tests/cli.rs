//! What the command line answers without a cluster: to bad input one sentence and exit code 1, to questions an answer.

use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_steersman");

fn run(command: &mut Command) -> Output {
    let quiet = command.env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST").env("HOME", "/nonexistent");
    quiet.output().expect("the binary runs")
}

/// Exit code 1, and a last line that says so much.
fn refused(command: &mut Command, want: &str) {
    let output = run(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
    assert!(said.contains(want), "{command:?} should say {want:?}, but says: {said}");
    assert!(output.stdout.is_empty(), "{command:?}: errors are not on standard output");
}

fn refused_args(args: &[&str], want: &str) {
    refused(Command::new(PROGRAM).args(args), want);
}

fn answered(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn bad_input_gets_one_sentence_and_exit_code_1() {
    refused_args(&["controller-mangaer"], "controller-manager");
    let manager = |more: &[&str], want: &str| {
        refused_args(&[&["controller-manager", "--controllers=replicaset", "--secure-port=0"], more].concat(), want);
    };
    manager(&["--leader-elct=false"], "steersman: there is no flag --leader-elct; did you mean --leader-elect?\n");
    manager(&["--leader-elect=maybe"], "--leader-elect: \"maybe\" is neither true nor false\n");
    manager(&["extra"], "\"extra\"");
    manager(&["--concurrent-replicaset-syncs=0"], "--concurrent-replicaset-syncs: 0 workers");
    manager(&["--feature-gates=WatchListCleint=true"], "did you mean WatchListClient?");
    let locked = "cannot set feature gate JobManagedBy to false, feature is locked to true";
    manager(&["--feature-gates=JobManagedBy=false"], locked);
    let ignored = "feature gate StaleControllerConsistencyReplicaSet has no effect here";
    manager(&["--feature-gates=StaleControllerConsistencyReplicaSet=false"], ignored);
    manager(&["--controllers=replicsaet"], "did you mean replicaset?");
    manager(&["--allow-missing"], "allow-missing");
    manager(&["--secure-port=-1"], "--secure-port: -1 is not between 0 and 65535");
    manager(&["--secure-port=1", "--bind-address=192.0.2.1"], "--secure-port: cannot listen on 192.0.2.1:1");
    manager(&["--secure-port=65000", "--bind-address=127.0.0.1", "--tls-cipher-suites=ROT13"], "ROT13");
}

#[test]
fn a_cluster_that_cannot_be_used_is_named() {
    let manager = |more: &[&str], want: &str| {
        refused_args(&[&["controller-manager", "--controllers=replicaset", "--secure-port=0"], more].concat(), want);
    };
    manager(&["--kubeconfig=does/not/exist"], "cannot read kubeconfig does/not/exist");
    manager(&[], "no cluster to talk to");
    manager(&["--master=ftp://x"], "ftp://x");
}

#[test]
fn a_flag_without_effect_is_reported_once_and_others_are_not() {
    let output = run(Command::new(PROGRAM).args([
        "controller-manager",
        "--controllers=replicaset",
        "--secure-port=0",
        "--cloud-config=a",
        "--cloud_config=b",
        "--attach-detach-reconcile-sync-period=5s",
        "--concurrent-replicaset-syncs=3",
        "--kubeconfig=does/not/exist",
    ]));
    let said = String::from_utf8_lossy(&output.stderr);
    let reported: Vec<&str> = said.lines().filter(|line| line.contains("has no effect here")).collect();
    assert_eq!(reported.len(), 1, "{said}");
    assert!(reported[0].starts_with('W') && reported[0].contains("--cloud-config"), "{said}");
}

#[test]
fn the_log_begins_with_the_version_and_with_a_verbosity_of_one_with_all_flags() {
    let flags = |verbosity: &str| {
        let args = ["controller-manager", "--secure-port=0", "--concurrent-gc-syncs=7", verbosity, "--kubeconfig=no"];
        let output = run(Command::new(PROGRAM).args(args));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = said.lines().next().unwrap_or_default();
        assert!(first.contains("\"starting\" version=\"v1.37.1\""), "{said}");
        said.lines().filter(|line| line.contains("\"FLAG\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(flags("-v=0").is_empty());
    let lines = flags("-v=1");
    assert!(lines.len() > 140, "{lines:?}");
    let is_shown = |want: &str| lines.iter().any(|line| line.starts_with('I') && line.ends_with(want));
    assert!(is_shown("name=\"concurrent-gc-syncs\" value=\"7\""), "{lines:?}");
    assert!(is_shown("name=\"leader-elect\" value=\"true\""), "{lines:?}");
}

#[test]
fn logs_are_json_where_asked_for() {
    let args = ["controller-manager", "--secure-port=0", "--logging-format=json", "--kubeconfig=no"];
    let output = run(Command::new(PROGRAM).args(args));
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with('{')).collect();
    assert!(!lines.is_empty(), "{said}");
    for line in lines {
        let value: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(value["ts"].is_f64() && value["msg"].is_string(), "{line}");
    }
}

#[test]
fn called_as_kube_controller_manager_it_is_that_program() {
    let drop_in = |args: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg0("/usr/local/bin/kube-controller-manager").args(args);
        command
    };
    assert_eq!(answered(&mut drop_in(&["--version"])), "Kubernetes v1.37.1\n");
    let help = answered(&mut drop_in(&["-h"]));
    assert!(help.contains("Usage:\n  kube-controller-manager [flags]\n"), "{help}");
    refused(&mut drop_in(&["up"]), "kube-controller-manager: no arguments are taken besides flags");
    refused(
        &mut drop_in(&["--controllers=replicaset", "--secure-port=0", "--kubeconfig=no"]),
        "cannot read kubeconfig no",
    );
}

#[test]
fn files_that_controllers_need_are_read_before_anything_starts() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let empty = directory.join("cli-empty");
    std::fs::write(&empty, "").expect("a file");
    let config = kubeconfig("cli.kubeconfig", "https://127.0.0.1:1");
    let empty = empty.display().to_string();
    let manager = |flag: String, want: &str| {
        refused_args(&["controller-manager", "--secure-port=0", &config, &flag], want);
    };
    manager("--root-ca-file=does/not/exist".into(), "--root-ca-file: cannot read does/not/exist: No such file");
    manager(format!("--root-ca-file={empty}"), "--root-ca-file: there is no certificate in PEM in ");
    manager(
        "--service-account-private-key-file=no".into(),
        "--service-account-private-key-file: cannot read no: No such",
    );
    manager(format!("--service-account-private-key-file={empty}"), "--service-account-private-key-file: cannot use ");
}

/// Writes a kubeconfig for a server at this address.
fn kubeconfig(name: &str, server: &str) -> String {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let text = format!(
        "clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         users: [{{name: a, user: {{token: x}}}}]\ncurrent-context: a\n"
    );
    std::fs::write(&file, text).expect("a kubeconfig");
    format!("--kubeconfig={}", file.display())
}

#[test]
fn a_pod_without_an_account_serves_its_open_pages() {
    // A static pod has these variables, and no account. The last flag is refused after clients for reviews are made.
    let config = kubeconfig("cli-static-pod.kubeconfig", "https://127.0.0.1:1");
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let port = format!("--secure-port={}", free.port());
    let mut command = Command::new(PROGRAM);
    command.args(["controller-manager", "--bind-address=127.0.0.1", &port, &config]);
    command.arg("--authorization-always-allow-paths=/a/*/b").env_remove("KUBECONFIG").env("HOME", "/nonexistent");
    command.env("KUBERNETES_SERVICE_HOST", "192.0.2.1").env("KUBERNETES_SERVICE_PORT", "443");
    let output = command.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot guard the secure port: only trailing * allowed"), "{said}");
    assert!(said.contains("without --authentication-kubeconfig"), "{said}");
}

#[test]
fn a_candidate_that_waits_for_its_server_ends_in_order_when_it_is_stopped() {
    // Nobody listens there.
    let config = kubeconfig("cli-away.kubeconfig", "https://127.0.0.1:1");
    let mut command = Command::new(PROGRAM);
    command.args(["controller-manager", "--secure-port=0", &config]).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut lines = std::io::BufReader::new(child.stderr.take().expect("piped")).lines();
    let waits = lines.by_ref().map_while(Result::ok).find(|line| line.contains("is not there yet: waiting"));
    assert!(waits.is_some(), "it says for what it waits");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{said:?}");
}

#[test]
fn nodes_say_what_they_cannot_use() {
    refused_args(&["nodes", "--kubeconfig=does/not/exist"], "cannot read kubeconfig does/not/exist");
    refused_args(&["nodes"], "no cluster to talk to");
    refused_args(&["nodes", "--count=0"], "0 is not in 1..=8192");
    refused_args(&["nodes", "--stages=does/not/exist"], "cannot use the stages in does/not/exist: No such file");
}

#[test]
fn help_is_grouped_and_a_success() {
    let help = answered(Command::new(PROGRAM).args(["controller-manager", "--help"]));
    for want in
        ["\nGeneric flags:\n", "\nReplicaset-controller flags:\n", "All controllers: bootstrap-signer-controller,"]
    {
        assert!(help.contains(want), "{want:?} is not in {help}");
    }
    assert!(answered(Command::new(PROGRAM).arg("--help")).contains("controller-manager"));
}

#[test]
fn versions_and_completion_scripts_are_printed() {
    let version = answered(Command::new(PROGRAM).arg("version"));
    assert!(version.contains("Kubernetes:  v1.37.1") && version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    assert_eq!(answered(Command::new(PROGRAM).args(["controller-manager", "--version=raw"])), version);
    for shell in ["bash", "zsh", "fish"] {
        let script = answered(Command::new(PROGRAM).args(["completion", shell]));
        for want in ["controller-manager", "concurrent-replicaset-syncs", "kubeconfig-out"] {
            assert!(script.contains(want), "{shell}: {want} is not in the script");
        }
    }
    refused_args(&["completion", "csh"], "csh");
}

#[test]
fn bash_takes_the_completion_script() {
    let script = answered(Command::new(PROGRAM).args(["completion", "bash"]));
    let probe = format!(
        "{script}\nCOMP_WORDS=(steersman controller-manager --concurrent-repl) COMP_CWORD=2\n_steersman\necho \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["-c", &probe]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--concurrent-replicaset-syncs\n");
}
