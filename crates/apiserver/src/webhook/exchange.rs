//! One question and its answer.

use std::error::Error as _;
use std::io;
use std::pin::pin;

use bytes::Bytes;
use futures::future::{Either, select};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{CallError, Endpoint, answer_bytes_max, trust};

/// The user agent that webhooks see.
const AGENT: &str = concat!("steersman-apiserver/", env!("CARGO_PKG_VERSION"), " (kube-apiserver-admission)");
/// The maximum bytes of an error's body that are shown; client-go's bound.
const SHOWN_BYTES_MAX: usize = 2048;

/// Asks a webhook, and returns the body of its answer.
pub(super) async fn post(endpoint: &Endpoint, question: Bytes) -> Result<Bytes, CallError> {
    let bytes_max = answer_bytes_max(question.len());
    let failed = |why: String| CallError(format!("Post {:?}: {why}", endpoint.url));
    let stream = connect(endpoint).await.map_err(failed)?;
    let (code, headers, body) = ask(stream, endpoint, question, bytes_max).await.map_err(failed)?;
    if !(200..=206).contains(&code) {
        return Err(CallError(refusal(code, &headers, &body)));
    }
    if body.is_empty() {
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        return Err(CallError(format!("0-length response with status code: {code} and content type: {content_type}")));
    }
    Ok(body)
}

async fn connect(endpoint: &Endpoint) -> Result<TlsStream<TcpStream>, String> {
    let (host, port) = endpoint.address.as_ref().map_err(Clone::clone)?;
    let found = tokio::net::lookup_host((host.as_str(), *port)).await;
    let addresses: Vec<_> = found.map_err(|_| format!("dial tcp: lookup {host}: no such host"))?.collect();
    let mut refused = format!("dial tcp: lookup {host}: no such host");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let name = ServerName::try_from(endpoint.server_name.clone());
                let name = name.map_err(|_| format!("tls: invalid server name {:?}", endpoint.server_name))?;
                let connected = TlsConnector::from(endpoint.tls.clone()).connect(name, stream).await;
                return connected.map_err(|error| trust::go_words(&error, &endpoint.server_name));
            }
            Err(error) => refused = format!("dial tcp {address}: connect: {}", go_error(&error)),
        }
    }
    Err(refused)
}

fn go_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        _ => error.to_string(),
    }
}

async fn ask(
    stream: TlsStream<TcpStream>,
    endpoint: &Endpoint,
    question: Bytes,
    bytes_max: usize,
) -> Result<(u16, HeaderMap, Bytes), String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(&endpoint.target)
        .header(HOST, &endpoint.authority)
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, AGENT)
        .body(Full::new(question))
        .map_err(|error| error.to_string())?;
    let answer = async move {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, bytes_max).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return format!("the answer is larger than {bytes_max} bytes");
            }
            error.downcast_ref::<hyper::Error>().map_or_else(|| error.to_string(), broken)
        })?;
        Ok((parts.status.as_u16(), parts.headers, body.to_bytes()))
    };
    // The connection may end before all that it brought has been read.
    match select(pin!(answer), pin!(connection)).await {
        Either::Left((answered, _)) => answered,
        Either::Right((_, answer)) => answer.await,
    }
}

/// Returns what Go says about a connection that broke.
fn broken(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "unexpected EOF".to_owned();
    }
    if error.is_closed() || error.is_canceled() {
        return "EOF".to_owned();
    }
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause {
        Some(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        Some(cause) => go_error(cause),
        None if error.is_parse() => {
            "net/http: HTTP/1.x transport connection broken: malformed HTTP response".to_owned()
        }
        None => error.to_string(),
    }
}

/// Returns what client-go says about an answer that is no success.
fn refusal(code: u16, headers: &HeaderMap, body: &[u8]) -> String {
    let status: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let status = status.filter(|status| status["kind"] == "Status" && status["apiVersion"] == "v1");
    if let Some(message) = status.as_ref().and_then(|status| status["message"].as_str()) {
        return message.to_owned();
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let shown = match content_type {
        kind if kind.is_empty() || kind.starts_with("text/") => {
            let shown = String::from_utf8_lossy(body.get(..SHOWN_BYTES_MAX).unwrap_or(body));
            shown.trim().to_owned()
        }
        _ => "unknown".to_owned(),
    };
    match code {
        409 => "the server reported a conflict".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => shown,
        406 if matches!(shown.as_str(), "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        406 => shown,
        405 => "the server does not allow this method on the requested resource".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        500.. => format!("an error on the server ({shown:?}) has prevented the request from succeeding"),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}
