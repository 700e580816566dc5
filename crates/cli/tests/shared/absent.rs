//! The controller manager on an API server without one of the APIs.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::{Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use steersman_runtime::connection::{self, Options};
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster};

/// The API that is not there.
const ABSENT: &str = "/apis/discovery.k8s.io/v1";
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn pass_on(client: Client, request: Request<Incoming>) -> Result<Response<Body>, tower::BoxError> {
    if request.uri().path().starts_with(ABSENT) {
        let answer = Response::builder().status(404).header(header::CONTENT_TYPE, "text/plain");
        return Ok(answer.body(Body::from(b"404 page not found\n".to_vec()))?);
    }
    let (mut parts, body) = request.into_parts();
    for name in [header::HOST, header::CONNECTION, header::CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    let body = body.collect().await?.to_bytes();
    Ok(client.send(Request::from_parts(parts, Body::from(body.to_vec()))).await?)
}

/// Stands before a server, and does not have one of its APIs.
async fn without_the_api(client: Client) -> Result<SocketAddr, Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let client = client.clone();
            let service = service_fn(move |request| pass_on(client.clone(), request));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service),
            );
        }
    });
    Ok(address)
}

fn kubeconfig(name: &str, cluster: &str) -> Result<PathBuf, Failure> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("absent-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let file = directory.join(name);
    let contexts = "contexts: [{name: c, context: {cluster: c}}], current-context: c";
    std::fs::write(
        &file,
        format!("{{apiVersion: v1, kind: Config, {contexts}, clusters: [{{name: c, cluster: {{{cluster}}}}}]}}"),
    )?;
    Ok(file)
}

/// A page, as soon as it is there.
async fn page(client: &Client, path: &str) -> Result<String, Failure> {
    let looking = async {
        loop {
            let request = Request::get(path).body(Body::empty())?;
            if let Ok(response) = client.send(request).await
                && response.status() == 200
            {
                let bytes = response.into_body().collect_bytes().await?;
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.map_err(|_| Failure::new(format!("waited in vain for {path}")))?
}

/// The controller that needs the API does not run, and it is said why; the others run, and nothing is unhealthy.
pub(crate) async fn disables_who_needs_it(cluster: TestCluster) -> Result<(), Failure> {
    let server = without_the_api(cluster.client()).await?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let config = kubeconfig("kubeconfig", &format!("server: 'http://{server}'"))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
    command
        .args(["controller-manager", "--controllers=replicaset,endpointslice", "--leader-elect=false"])
        .args(["--bind-address=127.0.0.1", "--cert-dir=", "--authorization-always-allow-paths=/readyz,/debug/*"])
        .args([format!("--secure-port={port}"), format!("--kubeconfig={}", config.display())])
        .env_remove("KUBERNETES_SERVICE_HOST");
    let mut manager = Running(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?);

    let secure = format!("server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true");
    let kubeconfig = kubeconfig("secure-port", &secure)?;
    let secure_port = connection::connect(Options::default().kubeconfig(kubeconfig)).await?;
    let roster: Value = serde_json::from_str(&page(&secure_port, "/debug/controllers").await?)?;
    let of = |name: &str| {
        let entries = roster["controllers"].as_array().into_iter().flatten();
        entries.clone().find(|entry| entry["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(of("replicaset-controller")["state"], "enabled", "{roster}");
    let disabled = of("endpointslice-controller");
    assert_eq!(disabled["state"], "disabled", "{roster}");
    assert_eq!(disabled["why"], "the API server does not serve endpointslices.v1.discovery.k8s.io");
    assert_eq!(of("deployment-controller")["state"], "off", "{roster}");
    assert_eq!(of("job-controller")["state"], "off", "{roster}");

    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    cluster.pods_of(&set).until_count(2).await?;
    let ready = page(&secure_port, "/readyz?verbose").await?;
    assert!(ready.contains("[+]replicaset-controller ok") && !ready.contains("endpointslice"), "{ready}");

    Command::new("kill").arg(manager.0.id().to_string()).status()?;
    let ended = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        let read = manager.0.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said)).transpose();
        read.and_then(|_| manager.0.wait()).map(|status| (status.code(), said))
    });
    let (code, said) = ended.await??;
    assert_eq!(code, Some(0), "{said}");
    let wanted =
        ["controller is disabled", "endpointslice-controller", "does not serve endpointslices.v1.discovery.k8s.io"];
    assert!(said.lines().any(|line| wanted.iter().all(|want| line.contains(want))), "{said}");
    cluster.stop().await
}
