//! `steersman up` as a process: what it says, what it leaves behind, and how it ends. Without kubectl.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use steersman_runtime::signals;

const PROGRAM: &str = env!("CARGO_BIN_EXE_steersman");
/// What a terminal of today shows without breaking lines.
const WIDTH: usize = 110;

/// A cluster; it ends with the test.
struct Up {
    child: Child,
    output: BufReader<ChildStdout>,
    /// What it has said until its greeting was over.
    greeting: String,
}

impl Up {
    fn start(flags: &[&str]) -> Self {
        Self::start_by(Command::new(PROGRAM).arg("up").args(flags))
    }

    fn start_by(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut up = Self { child, output, greeting: String::new() };
        up.greeting = up.until("Ctrl-C stops it.");
        up
    }

    /// What it says until a line says this.
    fn until(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.contains(end) {
            let read = self.output.read_line(&mut text).expect("its output");
            assert!(read > 0, "it ended without saying {end:?}: {text}{}", self.complaints());
        }
        text
    }

    fn complaints(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }

    fn said(&self, what: &str) -> &str {
        let line = self.greeting.lines().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("no {what:?} in {}", self.greeting)).trim()
    }

    fn kubeconfig(&self) -> PathBuf {
        self.said("kubeconfig:").into()
    }

    /// Sends a signal, and answers whether it ended with success.
    fn end_by(mut self, signal: &str) -> bool {
        let sent = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
        self.child.wait().expect("its end").success()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It has ended already, or is not wanted any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of a test's own.
fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("up-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    directory
}

/// Runs `up` with flags that it must refuse: exit code 1, one line that says this, nothing on standard output.
fn refused(flags: &[&str], want: &[&str]) {
    let Output { status, stdout, stderr } = Command::new(PROGRAM).arg("up").args(flags).output().expect("it runs");
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(1), "{flags:?}: {said}");
    for want in want {
        assert!(said.contains(want), "{flags:?} should say {want:?}, but says: {said}");
    }
    assert_eq!(said.lines().count(), 1, "one sentence: {said}");
    assert!(stdout.is_empty(), "{flags:?}: errors are not on standard output");
}

#[test]
fn the_greeting_says_where_everything_is_and_no_line_is_too_long() {
    let up = Up::start(&["--port=0"]);
    assert!(up.said("API server:").starts_with("https://127.0.0.1:"), "{}", up.greeting);
    assert_eq!(up.said("nodes:"), "node-0 … node-2, simulated");
    for want in ["deployment", "garbage-collector", "export KUBECONFIG=", "kubectl create deployment", "in memory"] {
        assert!(up.greeting.contains(want), "{want} is not in {}", up.greeting);
    }
    for line in up.greeting.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    assert!(up.end_by("TERM"));
}

#[test]
fn the_kubeconfig_is_its_owners_alone_and_goes_with_the_cluster() {
    let directory = scratch("kubeconfig");
    let file = directory.join("its kubeconfig");
    for signal in ["INT", "TERM", "HUP"] {
        // Under nohup, what this process starts ignores the signal, too.
        if signal == "HUP" && signals::ignores_hangup() {
            println!("skipped: the tests were started with SIGHUP ignored (nohup), and so is the cluster");
            continue;
        }
        let up = Up::start(&["--nodes=1", &format!("--kubeconfig-out={}", file.display())]);
        assert_eq!(up.kubeconfig(), file);
        assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        let port = up.said("API server:").rsplit(':').next().unwrap_or_default().to_owned();
        assert!(fs::read_to_string(&file).expect("text").contains(&format!("server: https://127.0.0.1:{port}")));
        assert!(up.greeting.contains(&format!("export KUBECONFIG='{}'", file.display())), "{}", up.greeting);
        assert!(up.end_by(signal), "SIG{signal} ends it with success");
        assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 0, "nothing stays behind");
    }
}

#[test]
fn a_kubeconfig_that_kubectl_has_rewritten_is_still_the_clusters() {
    let directory = scratch("rewritten");
    let file = directory.join("kubeconfig");
    let flags = ["--nodes=0", "--controllers=none", &format!("--kubeconfig-out={}", file.display())];
    // As kubectl writes it: sorted keys, and a namespace of one's own.
    let rewrite = || {
        let text = fs::read_to_string(&file).expect("text");
        let server = text.lines().find(|line| line.contains("server: ")).expect("a server");
        let rewritten = format!(
            "apiVersion: v1\nclusters:\n- cluster:\n{server}\n  name: steersman\ncontexts:\n- context:\n    \
             cluster: steersman\n    namespace: shop\n    user: admin\n  name: steersman\ncurrent-context: steersman\n\
             kind: Config\nusers:\n- name: admin\n  user:\n    token: t\n"
        );
        fs::write(&file, rewritten).expect("a file");
    };
    let up = Up::start(&flags);
    rewrite();
    assert!(up.end_by("TERM"));
    assert!(!file.exists(), "it went with the cluster");
    let up = Up::start(&flags);
    rewrite();
    let left = fs::read_to_string(&file).expect("text");
    assert!(up.end_by("TERM"));
    fs::write(&file, left).expect("a file that an `up` left behind");
    assert!(Up::start(&flags).end_by("TERM"));
}

#[test]
fn the_kubeconfig_is_printed_so_that_another_directory_finds_it() {
    let up = Up::start(&["--nodes=0", "--controllers=none", "--kubeconfig-out=target.kubeconfig"]);
    assert!(up.kubeconfig().is_absolute() && up.kubeconfig().exists(), "{}", up.greeting);
    assert!(up.end_by("TERM"));
}

#[test]
fn the_kubeconfig_is_in_the_users_own_directory_if_there_is_one() {
    let own = scratch("runtime");
    let flags = ["up", "--nodes=0", "--controllers=none"];
    for (directory, want) in [(own.as_path(), own.clone()), (Path::new("/does/not/exist"), std::env::temp_dir())] {
        let up = Up::start_by(Command::new(PROGRAM).args(flags).env("XDG_RUNTIME_DIR", directory));
        assert_eq!(up.kubeconfig().parent(), Some(want.as_path()), "{}", up.greeting);
        assert!(up.end_by("TERM"));
    }
}

/// What the service account `default` may do, by its impersonation.
async fn as_service_account(up: &Up) -> Result<(), kube::Error> {
    use k8s_openapi::api::core::v1::Secret;
    let kubeconfig = kube::config::Kubeconfig::read_from(up.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.expect("a configuration");
    let secrets = |config: kube::Config| {
        kube::Api::<Secret>::namespaced(kube::Client::try_from(config).expect("a client"), "kube-system")
    };
    secrets(config.clone()).list(&Default::default()).await.expect("the administrator may");
    let mut account = config;
    account.auth_info.impersonate = Some("system:serviceaccount:default:default".to_owned());
    secrets(account).list(&Default::default()).await.map(drop)
}

#[tokio::test]
async fn roles_count_unless_they_are_switched_off() {
    let up = Up::start(&["--nodes=0", "--controllers=none"]);
    let refused = as_service_account(&up).await.expect_err("it has no role");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    assert!(up.end_by("TERM"));
    let up = Up::start(&["--nodes=0", "--controllers=none", "--authorization-mode=AlwaysAllow"]);
    as_service_account(&up).await.expect("everybody may");
    assert!(up.end_by("TERM"));
}

#[test]
fn a_kubeconfig_of_somebody_else_is_neither_replaced_nor_removed() {
    let file = scratch("foreign").join("config");
    let out = format!("--kubeconfig-out={}", file.display());
    fs::write(&file, "apiVersion: v1\nkind: Config\nclusters:\n- name: prod\n").expect("a file");
    refused(&[&out], &[&file.display().to_string(), "did not write", "--kubeconfig-out"]);
    assert!(fs::read_to_string(&file).expect("still there").contains("prod"));
    fs::remove_file(&file).expect("removed");

    // One that an earlier `up` left behind, as after a crash, is replaced; the one of a later `up` is not removed.
    let mut crashed = Up::start(&["--nodes=0", "--controllers=none", &out]);
    crashed.child.kill().expect("killed");
    let first = Up::start(&["--nodes=0", "--controllers=none", &out]);
    let second = Up::start(&["--nodes=0", "--controllers=none", &out]);
    assert!(first.end_by("TERM"));
    assert!(file.exists(), "it is the second one's by now");
    assert!(second.end_by("TERM"));
    assert!(!file.exists());
}

#[test]
fn what_cannot_be_had_is_one_sentence() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port();
    refused(&[&format!("--port={port}")], &[&format!("cannot listen on 127.0.0.1:{port}"), "in use", "--port 0"]);
    refused(
        &["--kubeconfig-out=/does/not/exist"],
        &["cannot write the kubeconfig /does/not/exist", "--kubeconfig-out"],
    );
    refused(&["--kubeconfig-out=/"], &["cannot write the kubeconfig /"]);
    refused(&["--controllers=deploymnet"], &["did you mean deployment?"]);
    refused(&["--controllers=none,deployment"], &["there is no controller \"none\""]);
    refused(&["--demo", "--nodes=2"], &["--demo needs three nodes or more"]);
    refused(&["--demo", "--controllers=*,-deployment"], &["--demo needs these controllers too: deployment-controller"]);
}

#[test]
fn a_port_that_was_asked_for_is_taken() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port();
    let up = Up::start(&["--nodes=0", "--controllers=none", &format!("--port={free}")]);
    assert_eq!(up.said("API server:"), format!("https://127.0.0.1:{free}"));
    assert_eq!(up.said("controllers:"), "none");
    assert_eq!(up.said("nodes:"), "none: pods stay Pending");
    assert!(up.end_by("TERM"));
}

#[test]
fn the_list_of_controllers_has_upstreams_syntax() {
    let check = |list: &str, want: &str| {
        let up = Up::start(&["--nodes=0", &format!("--controllers={list}")]);
        assert_eq!(up.said("controllers:"), want, "{list}");
        assert!(up.end_by("TERM"));
    };
    check("replicaset", "replicaset");
    check("deployment-controller,replicaset", "deployment, replicaset");
    let all_but_some =
        Up::start(&["--nodes=0", "--controllers=*,-endpoint,-serviceaccount-token,-endpointslicemirroring"]);
    let listed = all_but_some.said("controllers:");
    assert!(listed.starts_with("endpointslice, replicationcontroller, "), "{listed}");
    assert!(all_but_some.end_by("TERM"));
}

#[test]
fn the_demo_runs_through_and_reads_well() {
    let mut up = Up::start(&["--demo"]);
    let whole = up.until("That was it.");
    for line in whole.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    let (reported, third) = whole.split_once("\n10. ").expect("a third act");
    let count = |what: &str| reported.matches(what).count();
    assert_eq!(count("garbage-collector  deleted replicaset/web-"), 2, "{reported}");
    assert_eq!(count("garbage-collector  deleted pod/web-"), 3, "{reported}");
    assert_eq!(
        count("replicaset         created pod/web-"),
        7,
        "three, one in place of another, three new: {reported}"
    );
    assert_eq!(count("replicaset         deleted pod/web-"), 3, "{reported}");
    for node in ["node-0", "node-1", "node-2"] {
        assert!(reported.contains(&format!("{node}             runs pod/web-")), "pods are spread: {reported}");
    }
    // The second act: a StatefulSet, a Job, an autoscaler, a budget.
    for pod in ["db-0", "db-1", "db-2"] {
        assert_eq!(
            count(&format!("statefulset        created pod/{pod}\n")),
            2,
            "once more with the new image: {reported}"
        );
        assert_eq!(count(&format!("statefulset        deleted pod/{pod}\n")), 1, "{reported}");
        assert_eq!(count(&format!("bound pvc/data-{pod} to a new volume of 1Gi")), 1, "{reported}");
    }
    let order = ["db-2", "db-1", "db-0"].map(|pod| reported.find(&format!("deleted pod/{pod}\n")));
    assert!(order.is_sorted(), "from the last to the first: {reported}");
    assert_eq!(count(" for index 1\n"), 2, "it is tried again: {reported}");
    assert_eq!((count(" for index 0\n"), count(" for index 2\n")), (1, 1), "{reported}");
    assert_eq!(count("job/batch is complete: indexes 0-2, failed pods: 1"), 1, "{reported}");
    assert_eq!(count("autoscaler         scaled deployment/shop from 1 to 4"), 1, "{reported}");
    assert_eq!(count("refuses: Cannot evict pod as it would violate the pod's disruption budget."), 1, "{reported}");
    assert!(count("disruption         budget/shop allows one eviction") >= 1, "{reported}");
    // The third act: a node is drained, one is lost, a zone is lost, and then all of them.
    let count = |what: &str| third.matches(what).count();
    assert_eq!(count(": unschedulable:NoSchedule"), 2, "a node is cordoned, and uncordoned: {third}");
    assert!(count("refuses: Cannot evict pod as it would violate the pod's disruption budget.") >= 1, "{third}");
    for node in ["node-0", "node-1", "node-2"] {
        assert!(count(&format!("node-lifecycle     says that {node} is Unknown")) >= 1, "{third}");
        assert!(count(&format!("{node}             is ready")) >= 1, "{third}");
    }
    let part = |number: &str, next: &str| {
        let from = third.split_once(number).map(|(_, rest)| rest).unwrap_or_default();
        from.split_once(next).map(|(part, _)| part.to_owned()).unwrap_or_default()
    };
    let evicts = "unreachable:NoExecute";
    let node = part("\n11. ", "\n12. ");
    assert!(
        node.contains("taint-eviction     deleted pod/site-") && node.contains("replicaset         created pod/site-")
    );
    let zone = part("\n12. ", "\n13. ");
    assert_eq!(zone.matches("taint-eviction     deleted pod/site-").count(), zone.matches("runs pod/site-").count());
    assert!(zone.contains(&format!("tainted node-0: {evicts}")) && zone.contains(&format!("tainted node-2: {evicts}")));
    let all = part("\n13. ", "\n14. ");
    assert_eq!(all.matches("deleted pod/").count(), 0, "{all}");
    assert_eq!(all.matches(&format!("removed a taint of node-0: {evicts}")).count(), 1, "{all}");
    assert_eq!(all.matches(&format!("removed a taint of node-2: {evicts}")).count(), 1, "{all}");
    assert!(up.end_by("INT"), "and the cluster goes on until it is stopped");
}
