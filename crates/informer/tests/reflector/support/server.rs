//! The scripted server: answers in, questions out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// The protocol that client and server speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    One,
    Two,
}

const NUMBER: &str = "x-number";

pub const BOTH: [Http; 2] = [Http::One, Http::Two];

/// What the server does with one request.
#[derive(Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    parts: VecDeque<Part>,
    /// How many bytes of the connection reach the client before it breaks.
    wire_cut: Option<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answers,
    /// Takes the request and says nothing.
    Mute,
    /// Cannot be connected to.
    Down,
}

#[derive(Clone)]
enum Part {
    Bytes(Bytes),
    Wait(Duration),
    /// The connection breaks.
    Cut,
    /// Nothing more comes, and no end.
    Hang,
}

/// From what is asked, in short, to what is answered.
type Improvised = Box<dyn Fn(&str) -> Answer + Send>;
type Parts = BoxStream<'static, Result<Frame<Bytes>, io::Error>>;

/// A server, and what it was asked.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    http: Http,
    answers: Mutex<VecDeque<Answer>>,
    /// What to say when the answers are used up.
    otherwise: Mutex<Improvised>,
    asked: Mutex<Vec<Asked>>,
    started: Instant,
    /// Answers for HTTP/2 requests on their way, by the number that each carries.
    chosen: Mutex<Vec<Answer>>,
    /// The connection that HTTP/2 requests share.
    shared: tokio::sync::Mutex<Option<hyper::client::conn::http2::SendRequest<Body>>>,
    /// Whether the network swallows everything from now on.
    unplugged: tokio::sync::watch::Sender<bool>,
    /// Ends all connections: what is left open would go on pinging for all the virtual time of a test.
    over: CancellationToken,
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub url: String,
    pub accept: String,
    pub encoding: String,
    pub at: Duration,
}

impl Answer {
    fn new(status: u16, content_type: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type", content_type.to_owned())],
            parts: VecDeque::new(),
            wire_cut: None,
            kind: Kind::Answers,
        }
    }

    /// 200 with JSON: a list, or lines of a watch, and a graceful end.
    pub fn json(body: impl Into<String>) -> Self {
        Self::new(200, "application/json").then(Bytes::from(body.into()))
    }

    /// 200 with protobuf.
    pub fn protobuf(body: Vec<u8>) -> Self {
        Self::new(200, "application/vnd.kubernetes.protobuf").then(Bytes::from(body))
    }

    pub fn of_type(content_type: &str, body: &str) -> Self {
        Self::new(200, content_type).then(Bytes::from(body.to_owned()))
    }

    pub fn status(code: u16, reason: &str) -> Self {
        Self::new(code, "application/json").then(super::objects::status(code, reason, "told by a status").into())
    }

    pub fn text(code: u16, text: &str) -> Self {
        Self::new(code, "text/plain").then(text.to_owned().into())
    }

    /// Takes the request and says nothing.
    pub fn mute() -> Self {
        Self { kind: Kind::Mute, ..Self::json("") }
    }

    /// Nobody listens.
    pub fn down() -> Self {
        Self { kind: Kind::Down, ..Self::json("") }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn then(mut self, bytes: Bytes) -> Self {
        if !bytes.is_empty() {
            self.parts.push_back(Part::Bytes(bytes));
        }
        self
    }

    pub fn then_text(self, text: &str) -> Self {
        self.then(text.to_owned().into())
    }

    pub fn after(mut self, time: Duration) -> Self {
        self.parts.push_back(Part::Wait(time));
        self
    }

    /// Stays open and says nothing more.
    pub fn hang(mut self) -> Self {
        self.parts.push_back(Part::Hang);
        self
    }

    /// Breaks after so many bytes of the body.
    pub fn cut_body(self, after: usize) -> Self {
        let mut cut = self.end_body(after);
        cut.parts.push_back(Part::Cut);
        cut
    }

    /// Ends, as if that were all, after so many bytes of the body.
    pub fn end_body(mut self, after: usize) -> Self {
        let of = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        let mut whole: Vec<u8> = self.parts.iter().flat_map(of).collect();
        whole.truncate(after);
        self.parts.clear();
        self.then(whole.into())
    }

    pub fn with_status(mut self, code: u16) -> Self {
        self.status = code;
        self
    }

    /// Breaks the connection after so many bytes of it, heads and frames included.
    pub fn cut_wire(mut self, after: usize) -> Self {
        self.wire_cut = Some(after);
        self
    }

    /// Sends the body in pieces of this size.
    pub fn in_pieces(mut self, size: usize) -> Self {
        let parts = std::mem::take(&mut self.parts);
        for part in parts {
            match part {
                Part::Bytes(bytes) => {
                    self.parts.extend(bytes.chunks(size).map(|piece| Part::Bytes(Bytes::copy_from_slice(piece))));
                }
                other => self.parts.push_back(other),
            }
        }
        self
    }

    fn response(self) -> Response<StreamBody<Parts>> {
        let parts = stream::unfold(self.parts, |mut parts| async {
            loop {
                match parts.pop_front()? {
                    Part::Bytes(bytes) => return Some((Ok(Frame::data(bytes)), parts)),
                    Part::Wait(time) => tokio::time::sleep(time).await,
                    Part::Cut => return Some((Err(io::Error::other("cut")), parts)),
                    Part::Hang => std::future::pending().await,
                }
            }
        });
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(StreamBody::new(parts.boxed())).unwrap()
    }
}

impl Server {
    /// Gives these answers one after the other, and then nothing but silent watches.
    pub fn in_turn(http: Http, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self(Arc::new(Shared {
            http,
            answers: Mutex::new(answers.into_iter().collect()),
            otherwise: Mutex::new(Box::new(|_| Answer::json("").hang())),
            asked: Mutex::default(),
            started: Instant::now(),
            chosen: Mutex::default(),
            shared: tokio::sync::Mutex::default(),
            unplugged: tokio::sync::watch::Sender::new(false),
            over: CancellationToken::new(),
        }))
    }

    /// Says what is answered when the answers are used up, from what is asked (in short).
    pub fn otherwise(&self, answer: impl Fn(&str) -> Answer + Send + 'static) {
        *self.0.otherwise.lock() = Box::new(answer);
    }

    /// What was asked, with the times left out: `stream`, `list …` or `watch from …`.
    pub fn asked(&self) -> Vec<String> {
        self.0.asked.lock().iter().map(|asked| in_short(&asked.url)).collect()
    }

    pub fn requests(&self) -> Vec<Asked> {
        self.0.asked.lock().clone()
    }

    /// When each request came, in seconds since the start.
    pub fn times(&self) -> Vec<f64> {
        self.0.asked.lock().iter().map(|asked| asked.at.as_secs_f64()).collect()
    }

    /// From now on nothing passes the network, and nobody is notified: a half-open connection.
    pub fn unplug(&self) {
        self.0.unplugged.send_replace(true);
    }

    /// Ends all connections.
    pub fn shut_down(&self) {
        self.0.over.cancel();
    }

    pub fn plug_in(&self) {
        self.0.unplugged.send_replace(false);
    }

    /// A client of this server. Its HTTP/2 pings as the runtime's connector does.
    pub fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| {
            let server = server.clone();
            async move { server.send(request).await }
        });
        kube::Client::new(service, "default")
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let answer = self.next_answer(&request);
        if answer.kind == Kind::Down {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        }
        match self.0.http {
            Http::One => {
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(self.connect(&answer))).await?;
                tokio::spawn(connection);
                Ok(sender.send_request(request).await?)
            }
            Http::Two => {
                let mut sender = self.shared_connection(&answer).await?;
                let (mut head, body) = request.into_parts();
                head.uri = format!("http://server{}", head.uri).parse()?;
                head.headers.insert(NUMBER, self.choose(answer).into());
                Ok(sender.send_request(Request::from_parts(head, body)).await?)
            }
        }
    }

    fn choose(&self, answer: Answer) -> usize {
        let mut chosen = self.0.chosen.lock();
        chosen.push(answer);
        chosen.len() - 1
    }

    /// HTTP/2 requests share a connection until it breaks; one that is to break at a byte gets its own.
    async fn shared_connection(
        &self,
        answer: &Answer,
    ) -> Result<hyper::client::conn::http2::SendRequest<Body>, BoxError> {
        let mut shared = self.0.shared.lock().await;
        if let Some(sender) = shared.as_ref().filter(|sender| !sender.is_closed() && answer.wire_cut.is_none()) {
            return Ok(sender.clone());
        }
        let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(15))
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(self.connect(answer)))
            .await?;
        tokio::spawn(connection);
        *shared = Some(sender.clone());
        Ok(sender)
    }

    fn next_answer(&self, request: &Request<Body>) -> Answer {
        let header = |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        self.0.asked.lock().push(Asked {
            url: request.uri().to_string(),
            accept: header("accept"),
            encoding: header("accept-encoding"),
            at: self.0.started.elapsed(),
        });
        let next = self.0.answers.lock().pop_front();
        next.unwrap_or_else(|| (self.0.otherwise.lock())(&in_short(&request.uri().to_string())))
    }

    /// A new connection to the server; what it takes HTTP/1.1 requests to is `answer`.
    fn connect(&self, answer: &Answer) -> DuplexStream {
        let (client, network) = tokio::io::duplex(64 << 10);
        let (server, far) = tokio::io::duplex(64 << 10);
        let carried = carry(network, far, answer.wire_cut, self.0.unplugged.subscribe());
        tokio::spawn(self.0.over.clone().run_until_cancelled_owned(carried));
        let this = self.clone();
        let io = TokioIo::new(server);
        let one = answer.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let number = request.headers().get(NUMBER).map(|number| number.to_str().unwrap().parse::<usize>().unwrap());
            let answer = number.map_or_else(|| one.clone(), |number| this.0.chosen.lock()[number].clone());
            async move {
                if answer.kind == Kind::Mute {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(answer.response())
            }
        });
        let http = self.0.http;
        tokio::spawn(async move {
            // Broken connections are what this server is for.
            let _ = match http {
                Http::One => hyper::server::conn::http1::Builder::new().serve_connection(io, service).await,
                Http::Two => {
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
                }
            };
        });
        client
    }
}

/// The network between client and server: carries bytes both ways until it is cut, or swallows them while unplugged.
async fn carry(
    client: DuplexStream,
    server: DuplexStream,
    cut: Option<usize>,
    unplugged: tokio::sync::watch::Receiver<bool>,
) {
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (mut server_read, mut server_write) = tokio::io::split(server);
    let there = async {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = client_read.read(&mut buffer).await {
            if !*unplugged.borrow() && server_write.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    };
    let back = async {
        let mut left = cut.unwrap_or(usize::MAX);
        let mut buffer = [0; 4096];
        while left > 0
            && let Ok(read @ 1..) = server_read.read(&mut buffer).await
        {
            let passed = read.min(left);
            left -= passed;
            if !*unplugged.borrow() && client_write.write_all(&buffer[..passed]).await.is_err() {
                break;
            }
        }
    };
    tokio::select! { biased; () = back => {}, () = there => {} }
}

fn in_short(url: &str) -> String {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let value =
        |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned);
    if value("sendInitialEvents").is_some() {
        assert_eq!(value("resourceVersion"), None, "a list is consistent");
        return "stream".to_owned();
    }
    if value("watch").is_some() {
        return format!("watch from {}", value("resourceVersion").unwrap());
    }
    assert_eq!(value("resourceVersion"), None, "a list is consistent");
    match (value("limit"), value("continue")) {
        (None, None) => "list all".to_owned(),
        (Some(limit), None) => format!("list {limit}"),
        (limit, Some(token)) => format!("list {} from {token}", limit.unwrap_or_default()),
    }
}
