//! As whom controllers talk to the API server.
//!
//! 1. Each controller's requests carry its account's name in the user agent, over connections that all of them share; limits
//!    (`--kube-api-qps`) are each one's own.
//! 2. With `--use-service-account-credentials`, each has the rights of a service account in `kube-system`, and no others:
//!    a token per account by `TokenRequest`, for an hour; the account is made if it is missing.
//! 3. A token is asked for again when a fifth of its life is left, and after the server refused it. While none is to be
//!    had, the old one is shown until it ends.
//!
//! Follows `controller-manager/pkg/clientbuilder` of 1.37.1.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::client::Body;
use kube::{Client, Resource};
use steersman_runtime::__internal::connection::{Throttle, Transport, user_agent};
use steersman_runtime::connection::{ConnectError, Connection};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt as _};

/// Makes clients for accounts.
pub(super) struct Accounts {
    /// Without a user agent; with our own credentials, or with none.
    base: Transport,
    /// Every controller has limits of its own, so that a busy one does not delay others.
    throttle: Throttle,
    /// Makes accounts and their tokens, where every controller has one of its own.
    root: Option<Client>,
}

/// The layers of an account's requests.
#[derive(Clone)]
struct Account {
    base: Transport,
    agent: HeaderValue,
    tokens: Option<Arc<Tokens>>,
}

/// The token of one service account.
struct Tokens {
    root: Client,
    account: String,
    token: Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    bearer: HeaderValue,
    /// The time at which another one is requested.
    fresh_until: Instant,
    ends: Instant,
}

/// Why an account has no token.
#[derive(Debug, thiserror::Error)]
#[error("cannot get a token for the service account {NAMESPACE}/{account}: {source}")]
struct NoToken {
    account: String,
    source: BoxError,
}

/// The namespace of the controllers' accounts.
const NAMESPACE: &str = "kube-system";
/// Upstream's: the requested lifetime of a token.
const SECONDS: i64 = 3600;
/// upstream's: a life shorter than this means that clocks differ.
const LIFE_MIN: Duration = Duration::from_secs(600);
/// upstream's: 500 ms, doubled after each try, four tries.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

// === impl Accounts ===

impl Accounts {
    /// Clients over connections of their own, with our credentials or, with `own_accounts`, with those of each account,
    /// which `root` makes.
    pub(super) async fn new(connection: &Connection, root: &Client, own_accounts: bool) -> Result<Self, ConnectError> {
        let bare = connection.without_user_agent();
        let base = if own_accounts { bare.without_credentials() } else { bare };
        Ok(Self { base: base.transport().await?, throttle: base.throttle(), root: own_accounts.then(|| root.clone()) })
    }

    /// The client of an account.
    pub(super) fn client(&self, account: &str) -> Result<Client, ConnectError> {
        let name = match &self.root {
            Some(_) => format!("kube-controller-manager/system:serviceaccount:{NAMESPACE}:{account}"),
            None => format!("kube-controller-manager/{account}"),
        };
        let tokens = self
            .root
            .clone()
            .map(|root| Arc::new(Tokens { root, account: account.to_owned(), token: Mutex::new(None) }));
        let base = self.throttle.around(&self.base);
        let service = Account { base, agent: user_agent(Some(&name))?, tokens };
        Ok(Client::new(service, "default"))
    }
}

// === impl Account ===

impl Service<Request<Body>> for Account {
    type Response = <Transport as Service<Request<Body>>>::Response;
    type Error = BoxError;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let account = self.clone();
        Box::pin(async move {
            request.headers_mut().insert(USER_AGENT, account.agent);
            let Some(tokens) = account.tokens else { return account.base.oneshot(request).await };
            let bearer = tokens.bearer().await?;
            request.headers_mut().insert(AUTHORIZATION, bearer.clone());
            let response = account.base.oneshot(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                tokens.forget(&bearer).await;
            }
            Ok(response)
        })
    }
}

// === impl Tokens ===

impl Tokens {
    /// Returns a valid token, as far as is known. Concurrent callers wait for one request.
    async fn bearer(&self) -> Result<HeaderValue, NoToken> {
        let mut held = self.token.lock().await;
        let now = Instant::now();
        let old = held.as_ref().filter(|token| now < token.ends);
        if let Some(token) = old.filter(|token| now < token.fresh_until) {
            return Ok(token.bearer.clone());
        }
        match (self.ask_patiently().await, old) {
            (Ok(token), _) => Ok(held.insert(token).bearer.clone()),
            (Err(source), Some(old)) => {
                tracing::warn!(account = self.account, error = %source, "no new token: the old one is used until it ends");
                Ok(old.bearer.clone())
            }
            (Err(source), None) => Err(NoToken { account: self.account.clone(), source }),
        }
    }

    /// The server does not take this token: it is not shown again.
    async fn forget(&self, bearer: &HeaderValue) {
        let mut held = self.token.lock().await;
        if held.as_ref().is_some_and(|token| token.bearer == *bearer) {
            *held = None;
        }
    }

    async fn ask_patiently(&self) -> Result<Token, BoxError> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            match self.ask().await {
                Ok(token) => return Ok(token),
                Err(error) => tracing::warn!(account = self.account, %error, "no token; asking again"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.ask().await
    }

    async fn ask(&self) -> Result<Token, BoxError> {
        self.ensure_account().await?;
        let spec = TokenRequestSpec { expiration_seconds: Some(SECONDS), ..TokenRequestSpec::default() };
        let asked = Instant::now();
        let accounts: Api<ServiceAccount> = Api::namespaced(self.root.clone(), NAMESPACE);
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = accounts.create_token_request(&self.account, &PostParams::default(), &request).await?;
        let token = answer.status.and_then(|status| status.token).ok_or("the server answers without a token")?;
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))?;
        bearer.set_sensitive(true);
        let granted = answer.spec.and_then(|spec| spec.expiration_seconds).unwrap_or(SECONDS);
        let life = Duration::from_secs(u64::try_from(granted).unwrap_or(0));
        Ok(Token { bearer, fresh_until: asked + fresh_for(life), ends: asked + life.max(LIFE_MIN) })
    }

    /// Makes the account if it is not there; and its namespace, as far as we may.
    async fn ensure_account(&self) -> Result<(), BoxError> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.root.clone(), NAMESPACE);
        if accounts.get_opt(&self.account).await?.is_some() {
            return Ok(());
        }
        let namespaces: Api<Namespace> = Api::all(self.root.clone());
        if let Ok(None) = namespaces.get_opt(NAMESPACE).await {
            let namespace = named::<Namespace>(NAMESPACE);
            if let Err(error) = namespaces.create(&PostParams::default(), &namespace).await {
                tracing::warn!(%error, "cannot create the namespace {NAMESPACE}");
            }
        }
        match accounts.create(&PostParams::default(), &named(&self.account)).await {
            Ok(_) => Ok(()),
            // Created by another process meanwhile.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    *object.meta_mut() = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    object
}

/// Returns how long a token of this lifetime is used before another one is requested.
fn fresh_for(life: Duration) -> Duration {
    life.max(LIFE_MIN) * 4 / 5
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use parking_lot::Mutex as Lock;
    use steersman_apiserver::ApiServer;

    use super::*;

    #[derive(Clone, Default)]
    struct Desk(Arc<Lock<Papers>>);

    #[derive(Default)]
    struct Papers {
        /// The user agent and token of each request.
        seen: Vec<(String, String)>,
        /// The status to answer instead of 200.
        answers: Vec<u16>,
    }

    impl Desk {
        fn transport(&self) -> Transport {
            let desk = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
                let mut desk = desk.0.lock();
                desk.seen.push((text(USER_AGENT).to_owned(), text(AUTHORIZATION).to_owned()));
                let status = desk.answers.pop().unwrap_or(200);
                let response = http::Response::builder().status(status).body(Body::empty());
                async move { Ok::<_, BoxError>(response.unwrap().map(|body| body.map_err(Into::into).boxed_unsync())) }
            });
            Transport::new(service)
        }

        fn seen(&self) -> Vec<(String, String)> {
            std::mem::take(&mut self.0.lock().seen)
        }
    }

    async fn send(client: &Client) {
        client.send(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
    }

    #[test]
    fn a_token_is_renewed_when_a_fifth_of_its_life_is_left() {
        assert_eq!(fresh_for(Duration::from_secs(3600)), Duration::from_secs(2880));
        assert_eq!(fresh_for(Duration::from_secs(5)), Duration::from_secs(480), "clocks differ, or it is a joke");
    }

    #[tokio::test(start_paused = true)]
    async fn without_accounts_of_their_own_controllers_differ_by_user_agent() {
        let desk = Desk::default();
        let accounts = Accounts { base: desk.transport(), throttle: Throttle::default(), root: None };
        send(&accounts.client("job-controller").unwrap()).await;
        let (agent, token) = desk.seen().remove(0);
        assert!(agent.ends_with(" kube-controller-manager/job-controller"), "{agent}");
        assert_eq!(token, "");
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_made_and_its_token_is_kept_until_it_is_old_or_refused() {
        let root = Client::new(ApiServer::new(steersman_apiserver::Options::default()), "default");
        let desk = Desk::default();
        let accounts = Accounts { base: desk.transport(), throttle: Throttle::default(), root: Some(root.clone()) };
        let client = accounts.client("job-controller").unwrap();
        send(&client).await;
        let made: Api<ServiceAccount> = Api::namespaced(root, NAMESPACE);
        assert!(made.get_opt("job-controller").await.unwrap().is_some());
        let (agent, first) = desk.seen().remove(0);
        assert!(agent.ends_with("/system:serviceaccount:kube-system:job-controller"), "{agent}");
        assert!(first.starts_with("Bearer "), "{first}");

        tokio::time::sleep(Duration::from_secs(2879)).await;
        send(&client).await;
        assert_eq!(desk.seen()[0].1, first, "it is fresh");
        tokio::time::sleep(Duration::from_secs(1)).await;
        send(&client).await;
        let second = desk.seen().remove(0).1;
        assert_ne!(second, first, "it was old");

        tokio::time::sleep(Duration::from_secs(1)).await;
        desk.0.lock().answers.push(401);
        send(&client).await;
        assert_eq!(desk.seen()[0].1, second);
        send(&client).await;
        assert_ne!(desk.seen()[0].1, second, "it was refused");
    }
}
