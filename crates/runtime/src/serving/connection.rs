//! Connections: from a socket to a whole request, and back.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderValue, Method, StatusCode, Version, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::tls::Secured;
use super::{PeerAddress, Request, Response, ServeOptions, Service, text};

/// Accepts connections and serves them.
pub(super) struct Acceptor<S>(Arc<Door<S>>);

/// The state that all connections share.
struct Door<S> {
    service: S,
    tls: Option<Arc<Secured>>,
    options: ServeOptions,
}

/// The activity of a connection, to close idle ones.
struct Activity(Mutex<Doing>);

struct Doing {
    requests: usize,
    since: Instant,
    /// Whether there was a request at all.
    spoke: bool,
}

/// Counts a request while it is held.
struct InFlight(Arc<Activity>);

/// The maximum size of headers: a token with many groups has a few thousand bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The interval of HTTP/2 pings.
const PING: Duration = Duration::from_secs(30);
/// The wait if the system has no file descriptors: others must be closed first.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

// === impl Acceptor ===

impl<S: Service> Acceptor<S> {
    pub(super) fn new(service: S, tls: Option<Arc<Secured>>, options: ServeOptions) -> Self {
        Self(Arc::new(Door { service, tls, options }))
    }

    /// Dropping the future drops its connections.
    pub(super) async fn run(self, socket: TcpListener, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(self.0.options.connections_max));
        let mut connections = JoinSet::new();
        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, socket.accept().await)
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                // Ended tasks are collected, or the set would grow with every connection.
                Some(_) = connections.join_next() => {}
                (place, accepted) = next => match accepted {
                    Ok((stream, peer)) => {
                        let door = Arc::clone(&self.0);
                        let stop = stop.clone();
                        connections.spawn(async move {
                            door.serve(stream, peer, stop).await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_AGAIN).await;
                    }
                },
            }
        }
        // From here on clients are refused at once, and can try another server.
        drop(socket);
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(self.0.options.drain, drained).await.is_err() {
            tracing::warn!(connections = connections.len(), "connections were cut off, their requests took too long");
            connections.shutdown().await;
        }
    }
}

// === impl Door ===

impl<S: Service> Door<S> {
    async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, stop: CancellationToken) {
        // A failure costs latency and nothing else.
        let _ = stream.set_nodelay(true);
        let mut extensions = http::Extensions::new();
        extensions.insert(PeerAddress(peer));
        let protocol = self.protocol();
        let Some(tls) = &self.tls else {
            return self.exchange(protocol, stream, extensions, stop).await;
        };
        let handshake = timeout(self.options.patience, tls.accept(stream));
        let handshake = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            handshake = handshake => handshake,
        };
        let stream = match handshake {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!(%peer, "a TLS handshake took too long"),
        };
        let session = stream.get_ref().1;
        if let Some(chain) = session.peer_certificates() {
            extensions.insert(super::PeerCertificates::new(chain));
        }
        // Only the negotiated protocol is used.
        let protocol = match session.alpn_protocol() {
            Some(b"h2") => protocol.http2_only(),
            _ => protocol.http1_only(),
        };
        self.exchange(protocol, stream, extensions, stop).await;
    }

    async fn exchange<IO>(
        self: &Arc<Self>,
        protocol: auto::Builder<TokioExecutor>,
        stream: IO,
        extensions: http::Extensions,
        stop: CancellationToken,
    ) where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity = Arc::new(Activity::new());
        let service = service_fn(|mut request: http::Request<Incoming>| {
            request.extensions_mut().extend(extensions.clone());
            let door = Arc::clone(self);
            let in_flight = InFlight::new(&activity);
            async move {
                let response = door.answer(request).await;
                drop(in_flight);
                Ok::<_, Infallible>(response.map(Full::new))
            }
        });
        let mut connection = std::pin::pin!(protocol.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error, "a connection ended with an error");
                }
                return;
            }
            () = stop.cancelled() => {}
            () = activity.idle(self.options.patience, self.options.idle) => {}
        }
        connection.as_mut().graceful_shutdown();
        // Against a client that does not read its response.
        let _ = timeout(self.options.drain, connection).await;
    }

    /// Reads the body, calls the service, and turns failures into responses.
    async fn answer(&self, request: http::Request<Incoming>) -> Response {
        let (head, body) = request.into_parts();
        let wants_head = head.method == Method::HEAD;
        let body = match read(body, self.options.body_bytes_max, self.options.patience).await {
            Ok(body) => body,
            Err(mut refusal) => {
                // The rest of the body is not read, so no request can follow; HTTP/2 has frames and needs no such
                // header.
                if head.version < Version::HTTP_2 {
                    refusal.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                return refusal;
            }
        };
        let response = guarded(&self.service, Request::from_parts(head, body)).await;
        if wants_head { without_body(response) } else { response }
    }

    fn protocol(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.patience)
            .max_buf_size(HEADER_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.options.streams_max)
            .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING);
        builder
    }
}

/// Leaves the body out, and says how long it would be: hyper does so for HTTP/1.1 alone.
fn without_body(mut response: Response) -> Response {
    let length = std::mem::take(response.body_mut()).len();
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// Returns the whole body, or the response for a client that sends too much or takes too long.
pub(super) async fn read<B>(body: B, bytes_max: usize, patience: Duration) -> Result<Bytes, Response>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || text(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {bytes_max} bytes\n"));
    // A declared size need not be read.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    match timeout(patience, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(text(StatusCode::BAD_REQUEST, "the body ended early\n")),
        Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "the body took too long\n")),
    }
}

/// Returns the service's response; 500 if it panics.
pub(super) async fn guarded(service: &impl Service, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    match AssertUnwindSafe(async { service.respond(request).await }).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!(path, "a request was not answered because its handler panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "this request made its handler panic; the server's log has more\n")
        }
    }
}

// === impl Activity ===

impl Activity {
    fn new() -> Self {
        Self(Mutex::new(Doing { requests: 0, since: Instant::now(), spoke: false }))
    }

    /// Returns after this time without a request; a client that never sent one has only `patience`.
    async fn idle(&self, patience: Duration, idle: Duration) {
        loop {
            let (busy, until) = {
                let doing = self.0.lock();
                let grace = if doing.spoke { idle } else { patience };
                (doing.requests > 0, doing.since + grace)
            };
            match busy {
                true => sleep(idle).await,
                false if until <= Instant::now() => return,
                false => sleep_until(until).await,
            }
        }
    }
}

// === impl InFlight ===

impl InFlight {
    fn new(activity: &Arc<Activity>) -> Self {
        let mut doing = activity.0.lock();
        doing.requests += 1;
        doing.spoke = true;
        Self(Arc::clone(activity))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut doing = self.0.0.lock();
        doing.requests -= 1;
        doing.since = Instant::now();
    }
}
