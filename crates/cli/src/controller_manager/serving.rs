//! The secure port: health, metrics and inspection, guarded as upstream guards them.
//!
//! 1. It listens before anything else is tried, so that a port in use is the first error to be reported; and it answers
//!    before the API server does, because who starts us asks whether we are alive. What is not open to all stays shut until
//!    the API server can be asked.
//! 2. Who clients are and what they may is asked of the API server, with `--authentication-kubeconfig` and
//!    `--authorization-kubeconfig`; inside a cluster, with the pod's account; with neither, only the open paths and
//!    certificates of `--client-ca-file` work. As upstream.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use kube::Client;
use prometheus::Registry;
use steersman_base::Clock;
use steersman_runtime::__internal::admin::{Guard, GuardOptions};
use steersman_runtime::__internal::admin::{Lookup, RequestHeaderOptions, RequestHeaders};
use steersman_runtime::admin::Admin;
use steersman_runtime::connection::{self, Connection};
use steersman_runtime::manager::{Group, Runnable, runnable};
use steersman_runtime::serving::{
    CertificateSource, CipherSuites, ClientCertificates, KeyExchanges, ServeOptions, Serving, SniCertificate, Tls,
};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::CommandError;
use super::super::flags::{Parsed, Value};

/// The secure port, answering.
pub(super) struct Port {
    guard: Guard,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Upstream's names of the certificate files.
const PAIR: &str = "kube-controller-manager";

/// Listens on the secure port; `None` if it is 0.
pub(super) async fn listen(flags: &Parsed, clock: &Clock) -> Result<Option<Serving>, CommandError> {
    let port = u16::try_from(flags.int("secure-port")).unwrap_or(0);
    let Value::Ip(address) = *flags.value("bind-address") else { return Ok(None) };
    if port == 0 {
        return Ok(None);
    }
    let address = SocketAddr::new(listening_on(address, is_dual_stack()), port);
    let mut options = ServeOptions::at(address).with_tls(tls(flags)?);
    options.clock = clock.clone();
    options.share_port = flags.is_on("permit-port-sharing");
    if let Ok(streams @ 1..) = u32::try_from(flags.int("http2-max-streams-per-connection")) {
        options.streams_max = streams;
    }
    let serving = Serving::bind(options).await.map_err(|error| CommandError(format!("--secure-port: {error}")))?;
    tracing::info!(address = %serving.address(), "serving health, metrics and inspection");
    Ok(Some(serving))
}

/// Returns the address to listen on. As in Go, 0.0.0.0 is every address of both families where one socket takes both:
/// probes and scrapes of a cluster without IPv4 reach it with upstream's default.
fn listening_on(bind: IpAddr, is_dual_stack: bool) -> IpAddr {
    if is_dual_stack && bind == IpAddr::V4(Ipv4Addr::UNSPECIFIED) { Ipv6Addr::UNSPECIFIED.into() } else { bind }
}

/// Whether a socket of IPv6 takes connections of IPv4, too. A system without IPv6 has no such sockets, or no such file.
fn is_dual_stack() -> bool {
    let only_ipv6 = std::fs::read_to_string("/proc/sys/net/ipv6/bindv6only");
    only_ipv6.is_ok_and(|text| text.trim() == "0") && TcpSocket::new_v6().is_ok()
}

fn tls(flags: &Parsed) -> Result<Tls, CommandError> {
    let wrong = |flag: &'static str| move |error| CommandError(format!("--{flag}: {error}"));
    let names = || vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = match (flags.some_text("tls-cert-file"), flags.some_text("cert-dir")) {
        (Some(file), _) => {
            CertificateSource::Files { certificate: file.into(), key: flags.text("tls-private-key-file").into() }
        }
        (None, Some(directory)) => {
            CertificateSource::Directory { directory: directory.into(), pair: PAIR.to_owned(), names: names() }
        }
        (None, None) => CertificateSource::SelfSigned { names: names() },
    };
    let mut tls = Tls::new(certificate);
    tls.clients = ClientCertificates::Requested;
    tls.http2 = !flags.is_on("disable-http2-serving");
    tls.min_version = flags.text("tls-min-version").parse().map_err(wrong("tls-min-version"))?;
    let suites = flags.texts("tls-cipher-suites");
    if !suites.is_empty() {
        let chosen = CipherSuites::named(suites.iter().map(String::as_str)).map_err(wrong("tls-cipher-suites"))?;
        for name in chosen.left_out() {
            tracing::warn!(name, "--tls-cipher-suites: this one is too weak to be spoken here, and left out");
        }
        tls.cipher_suites = Some(chosen);
    }
    if let Value::Ints(curves) = flags.value("tls-curve-preferences")
        && !curves.is_empty()
    {
        let numbers: Vec<i32> = curves.iter().filter_map(|&number| i32::try_from(number).ok()).collect();
        let chosen = KeyExchanges::numbered(&numbers).map_err(wrong("tls-curve-preferences"))?;
        for number in chosen.left_out() {
            tracing::warn!(number, "--tls-curve-preferences: this one is not spoken here, and left out");
        }
        tls.key_exchanges = Some(chosen);
    }
    if let Value::CertKeys(pairs) = flags.value("tls-sni-cert-key") {
        let named =
            |pair: &super::super::flags::CertKey| SniCertificate::new(&pair.cert, &pair.key, pair.names.clone());
        tls.sni = pairs.iter().map(named).collect();
    }
    Ok(tls)
}

/// Serves from now on. Only paths that need no authorization are open yet.
pub(super) async fn answer(
    serving: Serving,
    flags: &Parsed,
    admin: &Admin,
    clock: &Clock,
    metrics: &Registry,
) -> Result<Port, CommandError> {
    let guard = guard(flags, clock, metrics).await?;
    admin.guard(guard.clone());
    let admin = admin.clone();
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { serving.run(admin, stop).await }
    });
    Ok(Port { guard, stop, serving })
}

// === impl Port ===

impl Port {
    /// Sets up client authentication, which needs the API server. The returned task keeps it up to date.
    pub(super) async fn with_authorities(self) -> Result<impl Runnable, CommandError> {
        let Self { guard, stop: end, serving } = self;
        guard.look_up().await.map_err(|error| {
            unguarded(&format_args!("{error}; --authentication-tolerate-lookup-failure goes on without"))
        })?;
        Ok(runnable("secure port", Group::Servers, move |stop| async move {
            guard.run(stop).await;
            end.cancel();
            Ok(serving.await?)
        }))
    }
}

fn unguarded(error: &dyn std::fmt::Display) -> CommandError {
    CommandError(format!("cannot guard the secure port: {error}"))
}

async fn guard(flags: &Parsed, clock: &Clock, metrics: &Registry) -> Result<Guard, CommandError> {
    let authentication = delegate(flags, "authentication-kubeconfig").await?;
    let authorization = delegate(flags, "authorization-kubeconfig").await?;
    let lookup = lookup(flags, authentication.is_some());
    if authentication.is_none() {
        tracing::warn!("without --authentication-kubeconfig, clients of the secure port cannot show tokens");
    }
    if authorization.is_none() {
        tracing::warn!("without --authorization-kubeconfig, what is not open to all is open to system:masters only");
    }
    let request_header = flags.some_text("requestheader-client-ca-file").map(|file| RequestHeaderOptions {
        client_ca_file: file.into(),
        headers: RequestHeaders {
            username: flags.texts("requestheader-username-headers").to_vec(),
            uid: flags.texts("requestheader-uid-headers").to_vec(),
            group: flags.texts("requestheader-group-headers").to_vec(),
            extra_prefix: flags.texts("requestheader-extra-headers-prefix").to_vec(),
            allowed_names: flags.texts("requestheader-allowed-names").to_vec(),
        },
    });
    let options = GuardOptions {
        authentication,
        authorization,
        token_ttl: flags.duration("authentication-token-webhook-cache-ttl"),
        allowed_ttl: flags.duration("authorization-webhook-cache-authorized-ttl"),
        denied_ttl: flags.duration("authorization-webhook-cache-unauthorized-ttl"),
        client_ca_file: flags.some_text("client-ca-file").map(PathBuf::from),
        request_header,
        lookup,
        always_allow_paths: flags.texts("authorization-always-allow-paths").to_vec(),
        metrics: Some(metrics.clone()),
        ..GuardOptions::new(clock.clone())
    };
    Guard::new(options).map_err(|error| unguarded(&error))
}

/// Whether authorities that no flag names are looked up. As upstream, only that of front proxies must be found: without
/// that of clients, certificates are refused until it is.
fn lookup(flags: &Parsed, has_client: bool) -> Lookup {
    match () {
        () if flags.is_on("authentication-skip-lookup") || !has_client => Lookup::Skipped,
        () if flags.is_on("authentication-tolerate-lookup-failure") => Lookup::Tolerated,
        () if flags.is_on("requestheader-client-ca-file") => Lookup::Tolerated,
        () => Lookup::Required,
    }
}

/// The client that a flag names; inside a cluster, that of the pod's account; else none. A static pod has no account, and
/// another kubeconfig that happens to be there does not decide who may read our pages.
async fn delegate(flags: &Parsed, flag: &str) -> Result<Option<Client>, CommandError> {
    let wrong = |error| CommandError(format!("--{flag}: {error}"));
    if let Some(file) = flags.some_text(flag) {
        let connection = Connection::load(connection::Options::default().kubeconfig(file)).await.map_err(wrong)?;
        return connection.client().await.map(Some).map_err(wrong);
    }
    match Connection::in_cluster() {
        Ok(Some(connection)) => connection.client().await.map(Some).map_err(wrong),
        Ok(None) => Ok(None),
        Err(error) => {
            tracing::warn!(%error, "the account of this pod is not used instead of --{flag}");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::flags;
    use super::*;

    #[test]
    fn only_the_authority_of_front_proxies_must_be_found() {
        let check = |words: &str, has_client: bool, want: Lookup| {
            let flags = flags::parse(flags::table(), words.split_whitespace().map(str::to_owned)).unwrap();
            assert_eq!(lookup(&flags, has_client), want, "{words}");
        };
        check("", true, Lookup::Required);
        check("", false, Lookup::Skipped);
        check("--client-ca-file=a", true, Lookup::Required);
        check("--requestheader-client-ca-file=a", true, Lookup::Tolerated);
        check("--authentication-tolerate-lookup-failure", true, Lookup::Tolerated);
        check("--authentication-skip-lookup --requestheader-client-ca-file=a", true, Lookup::Skipped);
    }

    #[test]
    fn all_addresses_are_those_of_both_families() {
        let check = |bind: &str, is_dual_stack: bool, want: &str| {
            let got = listening_on(bind.parse().unwrap(), is_dual_stack);
            assert_eq!(got, want.parse::<IpAddr>().unwrap(), "{bind}");
        };
        check("0.0.0.0", true, "::");
        check("0.0.0.0", false, "0.0.0.0");
        check("::", true, "::");
        check("127.0.0.1", true, "127.0.0.1");
        check("10.0.0.1", true, "10.0.0.1");
    }

    #[tokio::test]
    async fn a_socket_that_is_said_to_take_both_families_does() {
        if !is_dual_stack() {
            return;
        }
        // A socket of IPv6 at an address of IPv4.
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        let serving = Serving::bind(ServeOptions::at(SocketAddr::new(mapped.into(), 0))).await.unwrap();
        let by_ipv4 = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), serving.address().port());
        tokio::net::TcpStream::connect(by_ipv4).await.unwrap();
    }
}
