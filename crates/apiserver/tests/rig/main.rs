//! The server as the rig's kubectl sees it, over TLS and on the normal clock: `cargo xtask k8s test`.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

mod apply;
mod compare;
mod compare_access;
mod compare_kinds;
mod compare_mutations;
mod compare_new_cluster;
mod compare_rules;
mod frame;
mod openapi;
mod schemas;
mod webhooks;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use steersman_apiserver::listener::{ListenOptions, Listening};
use steersman_apiserver::{ApiServer, Authorization, Options};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: nginx, image: nginx}]}
";

/// A server and a kubectl that talks to it.
struct Kubectl {
    program: PathBuf,
    folder: PathBuf,
    listening: Option<Listening>,
}

impl Kubectl {
    async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    async fn start_with(options: Options) -> Self {
        let bin = std::env::var_os("STEERSMAN_RIG_BIN").expect("run me with `cargo xtask k8s test`");
        let program = PathBuf::from(bin).join("kubectl");
        let listening = Listening::start(&ApiServer::new(options), ListenOptions::default()).await.unwrap();
        let folder = std::env::temp_dir().join(format!("steersman-kubectl-{}", listening.address().port()));
        std::fs::create_dir_all(&folder).unwrap();
        listening.write_kubeconfig(&folder.join("config")).unwrap();
        Self { program, folder, listening: Some(listening) }
    }

    /// A kubectl that talks to the rig's kube-apiserver, in a namespace of its own.
    async fn on_rig(namespace: &str) -> Self {
        let bin = std::env::var_os("STEERSMAN_RIG_BIN").expect("run me with `cargo xtask k8s test`");
        let folder = std::env::temp_dir().join(format!("steersman-kubectl-{namespace}"));
        std::fs::create_dir_all(&folder).unwrap();
        let kubeconfig = std::env::var_os("STEERSMAN_RIG_KUBECONFIG").expect("run me with `cargo xtask k8s test`");
        std::fs::copy(kubeconfig, folder.join("config")).unwrap();
        let kubectl = Self { program: PathBuf::from(bin).join("kubectl"), folder, listening: None };
        kubectl.run(&format!("create namespace {namespace}")).await;
        kubectl.run(&format!("config set-context --current --namespace={namespace}")).await;
        kubectl
    }

    /// What it prints when it fails.
    async fn refused_with(&self, line: &str, input: &str) -> String {
        let mut child = self.command(line).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = tokio::time::timeout(Duration::from_secs(60), child.wait_with_output()).await.unwrap().unwrap();
        assert!(!output.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&output.stdout));
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(self.folder.join("config")).arg("--cache-dir").arg(self.folder.join("cache"));
        command.args(line.split_whitespace()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What it prints when it succeeds; the words of the line are separated by spaces.
    async fn run_with(&self, line: &str, input: &str) -> String {
        let mut child = self.command(line).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = tokio::time::timeout(Duration::from_secs(60), child.wait_with_output()).await.unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {line}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    async fn run(&self, line: &str) -> String {
        self.run_with(line, "").await
    }

    async fn expect(&self, line: &str, part: &str) {
        let printed = self.run(line).await;
        assert!(printed.contains(part), "kubectl {line}: no {part:?} in\n{printed}");
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn kubectl_creates_shows_and_changes() {
    let kubectl = Kubectl::start().await;
    kubectl.run_with("create -f -", DEPLOYMENT).await;
    kubectl.expect("get deployments -o wide", "nginx").await;
    kubectl.expect("get deployment web -o yaml", "progressDeadlineSeconds: 600").await;
    kubectl.expect("get deployment web -o custom-columns=N:.metadata.name,R:.spec.replicas", "web   2").await;
    kubectl.expect("describe deployment web", "RollingUpdate").await;
    kubectl.expect("label deployment web a=b", "labeled").await;
    kubectl.expect("annotate deployment web c=d", "annotated").await;
    kubectl.expect("patch deployment web -p {\"spec\":{\"paused\":true}}", "patched").await;
    kubectl.expect("scale deployment web --replicas=5", "scaled").await;
    kubectl.expect("wait deployment/web --for=jsonpath={.spec.replicas}=5 --timeout=10s", "met").await;
    kubectl.expect("explain deployment.spec.replicas", "<integer>").await;
    kubectl.expect("api-resources", "deployments").await;
    kubectl.expect("get deployments --selector a=b", "web").await;
}

#[tokio::test]
async fn kubectl_applies() {
    let kubectl = Kubectl::start().await;
    kubectl.run_with("apply -f -", DEPLOYMENT).await;
    let changed = DEPLOYMENT.replace("image: nginx", "image: nginx:2");
    let printed = kubectl.run_with("apply -f -", &changed).await;
    assert!(printed.contains("configured"), "{printed}");
    let printed = kubectl.run_with("apply -f -", &changed).await;
    assert!(printed.contains("unchanged"), "{printed}");
    kubectl.expect("get deployment web -o jsonpath={.metadata.generation}", "2").await;
}

#[tokio::test]
async fn kubectl_deletes_with_each_cascade_mode() {
    let kubectl = Kubectl::start().await;
    for (mode, finalizer) in [("background", ""), ("orphan", "orphan"), ("foreground", "foregroundDeletion")] {
        kubectl.run_with("create -f -", DEPLOYMENT).await;
        kubectl.run(&format!("delete deployment web --cascade={mode} --wait=false")).await;
        let left = kubectl.run("get deployments --ignore-not-found -o jsonpath={.items[*].metadata.finalizers}").await;
        assert!(left.contains(finalizer) && left.is_empty() == finalizer.is_empty(), "{mode}: {left}");
        if !finalizer.is_empty() {
            kubectl.run("patch deployment web --type=merge -p {\"metadata\":{\"finalizers\":null}}").await;
        }
    }
    kubectl.expect("get deployments -o name", "").await;
}

#[tokio::test]
async fn kubectl_watches() {
    let kubectl = Kubectl::start().await;
    kubectl.run_with("create -f -", DEPLOYMENT).await;
    let mut child = kubectl.command("get deployments -w").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        async || tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(next().await.starts_with("NAME"));
    assert!(next().await.contains("0/2"));
    kubectl.run("scale deployment web --replicas=3").await;
    assert!(next().await.contains("0/3"));
    child.kill().await.unwrap();
}

/// What kubectl sends as protobuf: everything it makes up itself.
#[tokio::test]
async fn kubectl_makes_objects_of_its_own() {
    let kubectl = Kubectl::start().await;
    for line in [
        "create namespace extra",
        "create deployment web --image=nginx --replicas=2 --port=80",
        "create configmap settings --from-literal=a=b",
        "create secret generic password --from-literal=a=b",
        "create serviceaccount robot",
        "create job once --image=busybox -- echo hi",
        "create cronjob often --image=busybox --schedule=@hourly -- echo hi",
        "create job now --from=cronjob/often",
        "create service clusterip inner --tcp=80:8080",
        "create service nodeport outer --tcp=80:8080",
        "create role reader --verb=get,list --resource=pods",
        "create rolebinding robot-reads --role=reader --serviceaccount=default:robot",
        "create quota few --hard=pods=3",
        "create poddisruptionbudget careful --selector=app=web --min-available=50%",
        "create priorityclass urgent --value=10",
        "create ingress front --rule=example.com/*=inner:80",
        "expose deployment web --port=80",
        "autoscale deployment web --max=5 --cpu=50%",
        "run single --image=nginx --labels=app=single",
        "set image deployment/web nginx=nginx:2",
        "set env deployment/web A=B",
        "set resources deployment/web --limits=cpu=1",
        "rollout pause deployment/web",
        "rollout resume deployment/web",
        "rollout restart deployment/web",
    ] {
        kubectl.run(line).await;
    }
    let image = "get deployment web -o jsonpath={.spec.template.spec.containers[0]";
    kubectl.expect(&format!("{image}.image}}"), "nginx:2").await;
    kubectl.expect(&format!("{image}.resources.limits.cpu}}"), "1").await;
    kubectl.expect(&format!("{image}.ports[0].containerPort}}"), "80").await;
    kubectl.expect("get secret password -o jsonpath={.data.a}", "Yg==").await;
    kubectl.expect("get pdb careful -o jsonpath={.spec.minAvailable}", "50%").await;
    kubectl.expect("get service inner -o jsonpath={.spec.ports[0].targetPort}", "8080").await;
    kubectl.expect("get cronjob often -o jsonpath={.spec.schedule}", "@hourly").await;
    assert_eq!(kubectl.run("create token robot").await.split('.').count(), 3, "a signed token");
}

#[tokio::test]
async fn kubectl_drains_a_node() {
    let kubectl = Kubectl::start().await;
    kubectl.run_with("create -f -", r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}"#).await;
    let on = r#"--overrides={"spec":{"nodeName":"n1","terminationGracePeriodSeconds":0}}"#;
    kubectl.run(&format!("run alone --image=nginx {on}")).await;
    kubectl.run("taint nodes n1 a=b:NoSchedule").await;
    kubectl.run("cordon n1").await;
    kubectl.expect("drain n1 --force --timeout=30s", "node/n1 drained").await;
    kubectl.expect("get pods --no-headers -o name", "").await;
    kubectl.run("uncordon n1").await;
}

#[tokio::test]
async fn kubectl_asks_who_may_what() {
    let kubectl = Kubectl::start_with(Options::default().authorization(Authorization::Rbac)).await;
    kubectl.run("create role reader --verb=get --resource=pods").await;
    kubectl.run("create rolebinding jane-reads --role=reader --user=jane").await;
    kubectl.expect("auth can-i delete nodes", "yes").await;
    kubectl.expect("auth whoami --as=jane", "jane").await;
    kubectl.expect("auth can-i get pods --as=jane", "yes").await;
    kubectl.expect("auth can-i --list --as=jane", "pods").await;
    // The administrator has what the roles of all users give, too, as on kube-apiserver.
    kubectl.expect("auth can-i --list", "selfsubjectaccessreviews.authorization.k8s.io").await;
    let refused = kubectl.command("get nodes --as=jane").output().await.unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot list resource \"nodes\""));
}

/// Upstream's own controllers, as their own user and with accounts of their own: client-go in earnest.
#[tokio::test]
async fn kube_controller_manager_works_on_it() {
    let kubectl = Kubectl::start_with(Options::default().authorization(Authorization::Rbac)).await;
    let listening = kubectl.listening.as_ref().unwrap();
    let certificate = listening.client_certificate("system:kube-controller-manager", &["a", "b"]).unwrap();
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let admin = listening.kubeconfig();
    let (rest, _) = admin.split_once("    client-certificate-data").unwrap();
    let user = format!(
        "    client-certificate-data: {}\n    client-key-data: {}",
        encode(&certificate.certificate_pem),
        encode(&certificate.key_pem)
    );
    let config = kubectl.folder.join("controllers");
    std::fs::write(&config, format!("{rest}{user}\n")).unwrap();
    let log = std::fs::File::create(kubectl.folder.join("log")).unwrap();
    let mut manager = Command::new(kubectl.program.with_file_name("kube-controller-manager"))
        .arg("--kubeconfig")
        .arg(&config)
        .args(["--use-service-account-credentials", "--secure-port=0", "--leader-elect-retry-period=1s"])
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    kubectl.run("create deployment web --image=nginx --replicas=3").await;
    kubectl.run("wait deployment/web --for=jsonpath={.status.replicas}=3 --timeout=50s").await;
    kubectl.run("rollout restart deployment/web").await;
    kubectl.run("wait deployment/web --for=jsonpath={.status.observedGeneration}=2 --timeout=50s").await;
    kubectl.run("create namespace short").await;
    kubectl.run("create configmap content -n short").await;
    kubectl.run("delete namespace short --timeout=50s").await;
    kubectl.run("delete deployment web --cascade=foreground --timeout=50s").await;
    assert_eq!(kubectl.run("get pods,replicasets -o name").await, "");
    kubectl.expect("get serviceaccount default -o name", "default").await;
    kubectl.expect("get lease kube-controller-manager -n kube-system -o name", "lease").await;
    manager.kill().await.unwrap();
    let log = std::fs::read_to_string(kubectl.folder.join("log")).unwrap();
    let forbidden: Vec<&str> = log.lines().filter(|line| line.contains("is forbidden")).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}
