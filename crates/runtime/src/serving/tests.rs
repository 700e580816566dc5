use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Full;

use super::connection::{guarded, read};
use super::names::{CipherSuites, KeyExchanges, TlsVersion, UnknownTlsName};
use super::tls::matches;
use super::{Request, Response, text};

#[test]
fn versions_are_called_as_go_calls_them() {
    let rows = [
        ("", Ok(TlsVersion::Tls12)),
        ("VersionTLS10", Ok(TlsVersion::Tls12)),
        ("VersionTLS12", Ok(TlsVersion::Tls12)),
        ("VersionTLS13", Ok(TlsVersion::Tls13)),
        ("VersionTLS14", Err(UnknownTlsName::Version("VersionTLS14".to_owned()))),
    ];
    for (name, want) in rows {
        assert_eq!(name.parse::<TlsVersion>(), want, "{name}");
    }
}

#[test]
fn suites_that_are_only_gos_are_left_out_and_reported() {
    // names, suites of TLS 1.2 that are spoken, names that are left out
    let rows: [(&[&str], usize, &[&str]); 4] = [
        (&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], 1, &[]),
        (&["TLS_AES_128_GCM_SHA256"], 0, &[]),
        (&["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_RSA_WITH_RC4_128_SHA"], 1, &["TLS_RSA_WITH_RC4_128_SHA"]),
        (&[], 0, &[]),
    ];
    for (names, want, left_out) in rows {
        let suites = CipherSuites::named(names.iter().copied()).unwrap();
        let spoken = suites.spoken();
        assert_eq!(spoken.iter().filter(|suite| suite.tls13().is_none()).count(), want, "{names:?}");
        assert_eq!(spoken.iter().filter(|suite| suite.tls13().is_some()).count(), 3, "{names:?}");
        assert_eq!(suites.left_out(), left_out, "{names:?}");
    }
    let error = CipherSuites::named(["TLS_NULL"]).unwrap_err().to_string();
    assert!(error.contains("TLS_NULL") && error.contains("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "{error}");
}

#[test]
fn key_exchanges_have_gos_numbers() {
    let exchanges = KeyExchanges::numbered(&[23, 25, 29, 4588]).unwrap();
    assert_eq!((exchanges.spoken().len(), exchanges.left_out()), (3, &[25][..]));
    assert_eq!(KeyExchanges::numbered(&[29, 29]).unwrap_err(), UnknownTlsName::Twice(29));
    for wrong in [0, -1, 9999, 70_000] {
        assert_eq!(KeyExchanges::numbered(&[wrong]).unwrap_err(), UnknownTlsName::KeyExchange(wrong));
    }
}

#[test]
fn a_star_stands_for_one_label() {
    let rows = [
        ("a.example.com", "a.example.com", true),
        ("a.example.com", "b.example.com", false),
        ("*.example.com", "a.example.com", true),
        ("*.example.com", "a.b.example.com", false),
        ("*.example.com", "example.com", false),
        ("*.example.com", ".example.com", false),
    ];
    for (pattern, name, want) in rows {
        assert_eq!(matches(pattern, name), want, "{pattern} {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_whole_or_refused() {
    let patience = Duration::from_secs(1);
    let small = read(Full::new(Bytes::from_static(b"1234")), 4, patience).await;
    assert_eq!(small.unwrap(), "1234");
    let large = read(Full::new(Bytes::from_static(b"12345")), 4, patience).await.unwrap_err();
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    // One that does not say how long it is.
    let pieces = ["123", "45"].map(|piece| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(piece))));
    let pieces = http_body_util::StreamBody::new(futures::stream::iter(pieces));
    let large = read(pieces, 4, patience).await.unwrap_err();
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let never = futures::stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>();
    let slow = read(http_body_util::StreamBody::new(never), 4, patience).await.unwrap_err();
    assert_eq!(slow.status(), StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    async fn service(request: Request) -> Response {
        assert_ne!(request.uri().path(), "/panic", "as asked for");
        text(StatusCode::OK, "ok")
    }
    let get = |path: &str| http::Request::get(path).body(Bytes::new()).unwrap();
    assert_eq!(guarded(&service, get("/panic")).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(guarded(&service, get("/")).await.status(), StatusCode::OK);
}
