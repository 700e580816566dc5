//! A bearer token in a file that is renewed by others.
//!
//! kube's own layer does the same, but keeps the newline that most editors add to a token, which no header can contain.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use kube::client::Body;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// A token that is read again every minute. If that fails, the last one counts: some delete the file after the start.
#[derive(Clone)]
pub(super) struct TokenFile {
    path: Arc<Path>,
    held: Arc<Mutex<Held>>,
}

struct Held {
    header: HeaderValue,
    read: Instant,
}

/// Adds the token to every request.
#[derive(Clone)]
pub(super) struct WithToken<S> {
    inner: S,
    token: TokenFile,
}

/// client-go's value; a projected token is renewed many minutes before it expires.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

// === impl TokenFile ===

impl TokenFile {
    /// Reads the token for the first time.
    pub(super) async fn open(path: PathBuf) -> io::Result<Self> {
        let header = read(&path).await?;
        Ok(Self { path: path.into(), held: Arc::new(Mutex::new(Held { header, read: Instant::now() })) })
    }

    pub(super) async fn header(&self) -> HeaderValue {
        let mut held = self.held.lock().await;
        if held.read.elapsed() >= READ_AGAIN_AFTER {
            match read(&self.path).await {
                Ok(header) => held.header = header,
                Err(error) => tracing::warn!(path = %self.path.display(), %error, "token kept, file unreadable"),
            }
            held.read = Instant::now();
        }
        held.header.clone()
    }
}

async fn read(path: &Path) -> io::Result<HeaderValue> {
    let text = tokio::fs::read_to_string(path).await?;
    let token = text.trim();
    if token.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no header can hold this token"))?;
    header.set_sensitive(true);
    Ok(header)
}

impl<S> Layer<S> for TokenFile {
    type Service = WithToken<S>;

    fn layer(&self, inner: S) -> WithToken<S> {
        WithToken { inner, token: self.clone() }
    }
}

// === impl WithToken ===

impl<S> Service<Request<Body>> for WithToken<S>
where
    S: Service<Request<Body>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let token = self.token.clone();
        // The clone that was polled for readiness is the one to call.
        let waiting = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, waiting);
        Box::pin(async move {
            request.headers_mut().insert(AUTHORIZATION, token.header().await);
            ready.call(request).await
        })
    }
}
