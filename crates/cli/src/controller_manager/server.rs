//! Whether the API server is there, and what it serves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use steersman_base::Resource;
use steersman_runtime::connection::{ConnectError, Connection};
use steersman_runtime::health::{Health, Probe, Unhealthy};
use tokio::time::Instant;

/// upstream's: how long a server that starts beside us is waited for without an election.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The time that one answer may take: a network that drops packets must not hold up the next try.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The time after which the log repeats for what the program waits.
const SAY_EVERY: Duration = Duration::from_secs(30);
/// The name of the check that we are not ready before the server is there.
const CHECK: &str = "api-server";

/// Why a server is not healthy.
#[derive(Debug, PartialEq)]
enum Problem {
    /// A temporary error.
    Passing(String),
    /// A permanent error.
    Lasting(String),
}

/// Waits until the server is healthy. Until then, the manager is not ready.
///
/// # Errors
/// It is not healthy within `patience`; or it rejects the credentials, or its certificate is not trusted, which
/// waiting does not change.
pub(super) async fn wait_until_healthy(
    connection: &Connection,
    client: &Client,
    ready: &Health,
    patience: Duration,
) -> Result<(), ConnectError> {
    ready.add(&[Probe::Readyz], CHECK, || Err(Unhealthy("the API server is waited for".to_owned())));
    wait(connection, client, patience).await?;
    ready.remove(CHECK);
    Ok(())
}

async fn wait(connection: &Connection, client: &Client, patience: Duration) -> Result<(), ConnectError> {
    let server = connection.server();
    let origin = connection.origin().clone();
    let deadline = Instant::now() + patience;
    let mut said: Option<(String, Instant)> = None;
    loop {
        let answered_by = deadline.min(Instant::now() + ANSWER_WITHIN);
        let problem = match tokio::time::timeout_at(answered_by, health(client)).await {
            Ok(Ok(StatusCode::OK)) => return Ok(()),
            Ok(Ok(status @ StatusCode::UNAUTHORIZED)) => {
                return Err(ConnectError::Unauthorized { server, origin, status });
            }
            Ok(Ok(status)) => format!("it is not healthy: /healthz answers {status}"),
            Ok(Err(Problem::Passing(problem))) => problem,
            Ok(Err(Problem::Lasting(problem))) => return Err(ConnectError::Unreachable { server, origin, problem }),
            Err(_) => "it does not answer".to_owned(),
        };
        if Instant::now() + ASK_EVERY >= deadline {
            let problem = format!("{problem} (waited {} s for it)", patience.as_secs());
            return Err(ConnectError::Unreachable { server, origin, problem });
        }
        if said.as_ref().is_none_or(|(before, at)| *before != problem || at.elapsed() >= SAY_EVERY) {
            tracing::info!(server, problem, "the API server is not there yet: waiting");
            said = Some((problem, Instant::now()));
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

async fn health(client: &Client) -> Result<StatusCode, Problem> {
    let request = Request::get("/healthz").body(Body::empty());
    let request = request.map_err(|error| Problem::Lasting(error.to_string()))?;
    let answer = client.send(request).await;
    answer.map(|response| response.status()).map_err(|error| problem(&error))
}

fn problem(error: &kube::Error) -> Problem {
    let causes = || std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| (*error).source());
    let distrust = |mut error: &(dyn std::error::Error + 'static)| {
        // The content of an I/O error is not among its causes; and it may contain another one.
        while let Some(held) = error.downcast_ref::<std::io::Error>() {
            error = held.get_ref()?;
        }
        let error = error.downcast_ref::<rustls::Error>()?;
        matches!(error, rustls::Error::InvalidCertificate(_)).then(|| error.to_string())
    };
    match causes().find_map(distrust) {
        Some(why) => Problem::Lasting(format!(
            "its certificate is not trusted ({why}): is its authority in certificate-authority, and is the clock right?"
        )),
        None => Problem::Passing(causes().last().map_or_else(String::new, ToString::to_string)),
    }
}

/// Returns the resources that a server does not serve, among those that controllers need. If that cannot be determined,
/// a resource counts as served: its informer will report the error.
pub(super) async fn absent(client: &Client, needs: impl IntoIterator<Item = &Resource>) -> BTreeSet<String> {
    let mut groups: BTreeMap<(String, String), Vec<&Resource>> = BTreeMap::new();
    for resource in needs {
        groups.entry((resource.group.to_string(), resource.version.to_string())).or_default().push(resource);
    }
    let mut absent = BTreeSet::new();
    for ((group, version), resources) in groups {
        let answer = if group.is_empty() {
            client.list_core_api_resources(&version).await
        } else {
            client.list_api_group_resources(&format!("{group}/{version}")).await
        };
        let served: Vec<String> = match answer {
            Ok(list) => list.resources.into_iter().map(|resource| resource.name).collect(),
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => {
                tracing::warn!(%error, group, version, "cannot find out what the API server serves of this group");
                continue;
            }
        };
        let missing = resources.into_iter().filter(|resource| !served.contains(&resource.plural.to_string()));
        absent.extend(missing.map(name));
    }
    absent
}

/// `replicasets.v1.apps`, as kubectl takes it.
pub(super) fn name(resource: &Resource) -> String {
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}.{}{dot}{}", resource.plural, resource.version, resource.group)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use steersman_apiserver::ApiServer;
    use steersman_base::time::FOR_EVER;
    use steersman_runtime::__internal::health::Ask;
    use steersman_runtime::connection::Options;

    use super::*;

    /// A server that answers so from a given time on.
    fn answering(status: u16, from: Duration) -> Client {
        let start = Instant::now();
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let status = if start.elapsed() >= from { status } else { 500 };
            let response = Response::builder().status(status).body(Body::empty());
            Ok::<_, Infallible>(response.unwrap())
        });
        Client::new(service, "default")
    }

    async fn connection() -> Connection {
        Connection::load(Options::default().server("http://192.0.2.1:6443")).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_waited_for_ten_seconds_and_then_named() {
        let connection = connection().await;
        let start = Instant::now();
        let health = Health::new();
        let ready = || health.report(Probe::Readyz, &Ask::default()).passed;
        let late = answering(200, Duration::from_secs(5));
        let mut waiting = std::pin::pin!(wait_until_healthy(&connection, &late, &health, PATIENCE));
        assert!(tokio::time::timeout(Duration::from_secs(4), &mut waiting).await.is_err());
        assert!(!ready(), "who waits is not ready");
        waiting.await.unwrap();
        assert!(ready());
        assert_eq!(start.elapsed().as_secs(), 5);

        let start = Instant::now();
        let error = wait(&connection, &answering(200, Duration::MAX), PATIENCE).await.unwrap_err().to_string();
        assert!((9..=10).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
        for want in ["http://192.0.2.1:6443", "as named", "/healthz answers 500", "waited 10 s"] {
            assert!(error.contains(want), "{want} is not in: {error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_candidate_waits_as_long_as_the_server_is_away() {
        let connection = connection().await;
        let start = Instant::now();
        wait(&connection, &answering(200, Duration::from_secs(3600)), FOR_EVER).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 3600);

        // A server that takes a request and never answers it is asked again.
        let start = Instant::now();
        let service = tower::service_fn(move |_: Request<Body>| async move {
            if start.elapsed() < Duration::from_secs(60) {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        wait(&connection, &Client::new(service, "default"), FOR_EVER).await.unwrap();
        assert!((60..=72).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_know_us_is_not_waited_for() {
        let connection = connection().await;
        let start = Instant::now();
        for patience in [PATIENCE, FOR_EVER] {
            let error = wait(&connection, &answering(401, Duration::ZERO), patience).await.unwrap_err();
            assert!(matches!(error, ConnectError::Unauthorized { .. }), "{error}");
        }
        assert!(start.elapsed().is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_does_not_serve_is_named() {
        let client = Client::new(ApiServer::new(steersman_apiserver::Options::default()), "default");
        let of = |group, version, plural, kind| Resource::namespaced(group, version, plural, kind);
        let needs = [
            of("", "v1", "pods", "Pod"),
            of("", "v1", "prods", "Prod"),
            of("apps", "v1", "replicasets", "ReplicaSet"),
            of("apps", "v7", "replicasets", "ReplicaSet"),
            of("nowhere.example", "v1", "things", "Thing"),
        ];
        let absent: Vec<_> = absent(&client, &needs).await.into_iter().collect();
        assert_eq!(absent, ["prods.v1", "replicasets.v7.apps", "things.v1.nowhere.example"]);
    }
}
